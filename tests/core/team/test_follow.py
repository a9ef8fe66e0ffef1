from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from core.project.project import Project
from core.project.watch_loop import Daemon, WatchEvent, WatchLoop
from core.records.team import TeamStatus
from core.team import follow
from core.team.connection import AccessDenied, Joined, save_joined
from core.team.follow import Follower, hide_question, read_status
from tests.core.team.fake_space import NOW, WAIT, FakeJoined, FakeSpace, Watched, offline
from tests.core.team.working_copy import WorkingCopy, make_record, make_use_event
from tests.team_server import SPACE

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
    assert watched.statuses[0].offline_since is None
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


def test_a_question_is_held_until_another_one_is_opened_or_the_program_ends(
    joined: FakeJoined, watched: Watched, space: FakeSpace
) -> None:
    with watched.follow(joined) as follower:
        follower.hold("one")
        wait_for(lambda: hide_question("shop", "one") in space.leases)
        follower.hold("")
        wait_for(lambda: not space.leases)
        follower.hold("two")
        wait_for(lambda: space.leases.keys() == {hide_question("shop", "two")})
        follower.hold("three")
        wait_for(lambda: space.leases.keys() == {hide_question("shop", "three")})
    assert not space.leases
    assert not space.present
    assert joined.is_closed
    assert not space.connections


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


A = "pat-error-a-001"


class Program:
    """A watched project of a member, with what it reports."""

    def __init__(self, copy: WorkingCopy, project: Project) -> None:
        self.copy, self.project = copy, project
        self.events: list[WatchEvent] = []
        self.loop: WatchLoop = Daemon(project, self.events.append)

    @property
    def team(self) -> TeamStatus:
        assert self.loop.team is not None
        return self.loop.team.status

    def reported(self, what: str) -> list[str]:
        return [event.text for event in self.events if event.what == what]


@contextmanager
def watching(copy: WorkingCopy) -> Iterator[Program]:
    save_joined(copy.paths.project, Joined(space=SPACE, source=f"url={copy.team.url(copy.role)}", id=copy.id, name="x"))
    program = Program(copy, copy.open())
    thread = threading.Thread(target=program.loop.run)
    thread.start()
    try:
        wait_for(lambda: program.loop.team is not None and program.loop.team.status.is_online)
        yield program
    finally:
        start = monotonic()
        program.loop.stop()
        thread.join(WAIT)
        assert monotonic() - start < 5


def test_members_see_each_others_patterns_uses_and_open_question(ada: WorkingCopy, rita: WorkingCopy) -> None:
    with watching(ada) as here, watching(rita) as there:
        ada.write(make_record(A))
        ada.log(make_use_event(1, A, "loop-1"))
        wait_for(lambda: A in there.project.view.snapshot.patterns)
        wait_for(lambda: there.project.view.board.assessment(A).uses == 1)
        assert there.reported("pattern-new") == [f"new pattern: {A}"]
        mine, other = here.loop.team, there.loop.team
        assert mine is not None and other is not None
        wait_for(lambda: {one.member for one in mine.status.present} == {"Ada", "Rita"})
        other.hold("the question")
        wait_for(lambda: mine.holder("the question"))
        lease = mine.holder("the question")
        assert lease is not None and lease.member == "Rita"
        assert abs((lease.since - here.project.now()).total_seconds()) < 5
        mine.hold("the question")
        assert other.holder("the question") is None
        wait_for(lambda: here.team.uses)
    wait_for(lambda: not ada.team.connect("ada").execute("select * from ralphdeck.presence").fetchall())
    status = read_status(ada.paths.project)  # known in the next run without the server
    assert status is not None and not status.present
    assert {one.project for one in status.uses} == {"x"}
    assert status.member == "Ada"


def test_a_server_that_stops_and_returns_is_reported(ada: WorkingCopy) -> None:
    cluster = ada.team.cluster
    with watching(ada) as here:
        cluster.stop()
        try:
            wait_for(lambda: here.team.offline_since)
            ada.write(make_record(A))
            ada.log(make_use_event(1, A, "loop-1"))
            wait_for(lambda: here.team.to_send == 2)
        finally:
            cluster.start()
        wait_for(lambda: here.team.is_online and not here.team.to_send)
        wait_for(lambda: len(here.reported("team")) == 3)
    online, offline, again = here.reported("team")
    assert online == again == f"online: team {SPACE}"
    assert offline.startswith("offline: ")
