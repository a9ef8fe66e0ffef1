"""The thread that keeps a joined project in sync: presence, leases, offline times and pauses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from core.records.team import TeamStatus
from core.team import follow
from core.team.errors import AccessDenied
from core.team.follow import Follower, hide_question
from tests.core.team.fake_space import NOW, WAIT, FakeJoined, FakeSpace, Watched, offline

QUESTION = hide_question("shop", "inversion of pat-error-a-001")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CYCLE_SECONDS", "LOCAL_SECONDS", "HINT_SECONDS", "FIRST_PAUSE"):
        monkeypatch.setattr(follow, name, 0.01)
    monkeypatch.setattr(follow, "HEARTBEAT_SECONDS", 0.05)


@pytest.fixture
def space() -> FakeSpace:
    return FakeSpace()


@pytest.fixture
def joined(space: FakeSpace) -> FakeJoined:
    return FakeJoined(space)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def follower(joined: FakeJoined, watched: Watched) -> Iterator[Follower]:
    with watched.follow(joined) as following:
        yield following


def wait_for(is_reached: Callable[[], object]) -> None:
    end = monotonic() + WAIT
    pause = threading.Event()
    while not is_reached():
        assert monotonic() < end
        pause.wait(0.005)


def test_a_first_sync_shows_member_level_and_since_when_online(follower: Follower, watched: Watched) -> None:
    status = watched.wait_for(lambda status: status.is_online)
    assert (status.space, status.member, status.level) == ("shop", "ana", "reviewer")
    assert status.since == status.last_sync == NOW
    assert status.offline_since is None


def test_other_members_and_their_questions_are_shown(follower: Follower, watched: Watched, space: FakeSpace) -> None:
    watched.wait_for(lambda status: status.is_online)
    space.add("ben", question=QUESTION)
    status = watched.wait_for(lambda status: status.leases)
    assert status.members_here == ("ben",)
    found = follower.holder("inversion of pat-error-a-001")
    assert found is not None
    assert found.member == "ben"
    assert follower.holder("another question") is None
    space.remove("ben")
    watched.wait_for(lambda status: not status.leases and not status.members_here)


def test_a_program_without_a_person_is_not_counted_as_a_member(watched: Watched, space: FakeSpace) -> None:
    other = FakeJoined(space, "ben")
    daemon = Follower(lambda: other, lambda status: None, place="watch")
    with daemon, watched.follow(FakeJoined(space)):
        status = watched.wait_for(lambda status: len(status.present) > 1)
    assert status.members_here == ()


def test_a_question_is_held_until_another_one_is_opened(follower: Follower, space: FakeSpace) -> None:
    follower.hold("one")
    wait_for(lambda: hide_question("shop", "one") in space.leases)
    follower.hold("two")
    wait_for(lambda: space.leases.keys() == {hide_question("shop", "two")})
    follower.hold("")
    wait_for(lambda: not space.leases)


def test_no_name_of_a_question_leaves_the_machine() -> None:
    hidden = hide_question("shop", "escalation of /home/ana/secret.py")
    assert "ana" not in hidden
    assert hidden != hide_question("other", "escalation of /home/ana/secret.py")


def test_a_question_of_another_client_is_not_taken_over(joined: FakeJoined, watched: Watched, space: FakeSpace) -> None:
    space.add("ben", question=QUESTION)
    with watched.follow(joined) as follower:
        follower.hold("inversion of pat-error-a-001")
        status = watched.wait_for(lambda status: len(status.present) > 1)
        assert [lease.member for lease in status.leases] == ["ben"]


def test_an_unreachable_server_is_shown_with_its_time_and_the_pending_number(
    follower: Follower, watched: Watched, space: FakeSpace, joined: FakeJoined
) -> None:
    watched.wait_for(lambda status: status.is_online)
    space.cut(offline())
    status = watched.wait_for(lambda status: status.offline_since)
    assert status.offline_since == NOW
    assert status.problem == "the server db.example does not answer"
    assert not status.needs_person
    assert not status.present
    joined.pending = 4
    follower.note_change()
    watched.wait_for(lambda status: status.to_send == 4)
    space.error = None
    watched.wait_for(lambda status: status.is_online and not status.to_send)
    assert joined.sent == 4


def test_refused_credentials_need_a_person(watched: Watched, joined: FakeJoined, space: FakeSpace) -> None:
    space.error = AccessDenied("the role ana may not connect")
    with watched.follow(joined):
        status = watched.wait_for(lambda status: status.offline_since)
    assert status.needs_person
    assert status.problem == "the role ana may not connect"


def test_an_unexpected_error_is_shown_and_the_thread_goes_on(
    follower: Follower, watched: Watched, space: FakeSpace
) -> None:
    space.cut(ZeroDivisionError("oops \x1b[31m"))
    status = watched.wait_for(lambda status: status.problem)
    assert status.problem.startswith("internal error: ZeroDivisionError: oops")
    assert "\x1b" not in status.problem
    space.error = None
    watched.wait_for(lambda status: status.is_online)


def test_the_time_of_the_first_failure_is_known_in_the_next_run(
    joined: FakeJoined, watched: Watched, space: FakeSpace
) -> None:
    earlier = NOW.replace(hour=9)
    joined.kept = TeamStatus(space="shop", member="ana", since=earlier, last_sync=earlier)
    space.error = offline()
    with watched.follow(joined):
        status = watched.wait_for(lambda status: status.problem)
    assert status.offline_since == earlier
    assert status.member == "ana"


def test_nothing_is_shown_as_offline_before_the_first_attempt(joined: FakeJoined, watched: Watched) -> None:
    joined.kept = TeamStatus(space="shop", since=NOW, last_sync=NOW)
    with watched.follow(joined):
        watched.wait_for(lambda status: status.is_online)
    assert watched.statuses[0].offline_since is None


def test_pauses_grow_up_to_a_limit(joined: FakeJoined, space: FakeSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "FIRST_PAUSE", 1.0)
    space.error = offline()
    at = 0.0
    times: list[float] = []
    follower = Follower(lambda: joined, lambda status: None, clock=lambda: at, jitter=lambda: 1.0)

    def select(seconds: float, *, hints: bool = True) -> bool:
        nonlocal at
        times.append(seconds)
        at += seconds
        if len(times) == 7:
            follower._stopped = True
        return False

    monkeypatch.setattr(follower, "_select", select)
    follower.start()
    follower._thread.join(WAIT)
    assert times == [1, 2, 4, 8, 16, 30, 30]
    assert space.attempts == 7


def test_the_more_work_it_is_to_count_the_later_it_is_done_again(
    joined: FakeJoined, space: FakeSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = worked = 0.0
    counted: list[float] = []

    def collect() -> int:
        nonlocal worked
        worked += 0.5
        counted.append(at)
        return 10_000

    def select(seconds: float, *, hints: bool = True) -> bool:
        nonlocal at
        at += min(seconds, 0.25) or 0.01
        program._has_news = True
        program._stopped = at > 25
        return False

    space.error = offline()
    monkeypatch.setattr(follow, "thread_time", lambda: worked)
    monkeypatch.setattr(joined, "collect", collect)
    program = Follower(lambda: joined, lambda status: None, clock=lambda: at)
    monkeypatch.setattr(program, "_select", select)
    program.start()
    program._thread.join(WAIT)
    assert len(counted) == 3
    assert counted[1] - counted[0] >= 10


def test_leaving_ends_presence_and_lease(joined: FakeJoined, watched: Watched, space: FakeSpace) -> None:
    with watched.follow(joined) as follower:
        follower.hold("one")
        wait_for(lambda: space.leases)
    assert not space.leases
    assert not space.present
    assert joined.is_closed
    assert not space.connections


def test_the_end_of_the_program_does_not_wait_for_the_network(joined: FakeJoined, watched: Watched) -> None:
    is_hanging, released = threading.Event(), threading.Event()

    def hang() -> None:
        is_hanging.set()
        released.wait(WAIT)

    joined.wait = hang
    follower = watched.follow(joined)
    follower.start()
    assert is_hanging.wait(WAIT)
    start = monotonic()
    follower.hold("one")
    follower.note_change()
    follower.stop(0.05)
    assert monotonic() - start < 1
    released.set()
    follower._thread.join(WAIT)
    assert joined.is_closed


def test_a_follower_that_was_not_started_can_be_stopped(joined: FakeJoined, watched: Watched) -> None:
    follower = watched.follow(joined)
    follower.stop()
    follower.note_change()
    assert watched.statuses == []


def test_a_project_that_cannot_be_opened_is_reported(watched: Watched) -> None:
    def fail() -> FakeJoined:
        raise AccessDenied("the file team.json is readable by others; see: chmod 600")

    with Follower(fail, watched.changed, now=lambda: NOW):
        status = watched.wait_for(lambda status: status.problem)
    assert status.needs_person
    assert status.offline_since == NOW
