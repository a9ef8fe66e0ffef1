from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from core.decisions.commands import CountReports, DiscardReports, Redo, Undo
from core.learning.bursts import Burst
from core.records.events import Event, Observation
from core.records.patterns import Pattern
from core.records.team import SUMS, Level, SpaceInfo, TeamSums, TeamUse
from core.team.connection import LevelTooLow
from core.team.local_state import LocalState, Status, StoredUse
from core.team.outbox import Changes, Outbox, Use, compare, decode_use, find_slots, make_uses
from core.team.server import Space
from tests.core.team.working_copy import (
    AT,
    PATTERN,
    Psql,
    WorkingCopy,
    call,
    join,
    make_decision,
    make_record,
    make_text,
    make_use,
    make_use_event,
)
from tests.factories import NOW, make_board, make_event, make_pattern
from tests.team_server import Team

ID = "pat-error-sample-001"
SALT = b"space"
SAMPLE = make_pattern(ID)
times = st.none() | st.integers(0, 3).map(lambda days: NOW - timedelta(days=days))
observations = st.lists(
    st.builds(
        Observation,
        pattern_id=st.just(ID),
        kind=st.sampled_from(["applied", "injected", "aggregate"]),
        source=st.just("event-log"),
        loop_id=st.sampled_from(["", "loop-1", "loop-2"]),
        at=times,
        success=st.sampled_from([True, False, None]),
        weight=st.sampled_from([1.0, 0.5]),
        count=st.sampled_from([1, 3, 250]),
        iteration=st.none() | st.integers(1, 2),
    ),
    max_size=6,
)


@dataclass
class Server:
    """Counts each use once, unless it was withdrawn."""

    uses: dict[bytes, StoredUse]
    withdrawn: set[bytes]

    def counted(self) -> list[Use]:
        return sorted((decode_use(use) for id, use in self.uses.items() if id not in self.withdrawn), key=repr)


def all_uses(observed: Iterable[Observation]) -> list[Use]:
    return [use for one in observed for use in make_uses(one)]


def sync(known: dict[bytes, StoredUse], observed: Iterable[Observation], server: Server) -> None:
    found = compare(ID, find_slots(observed, SALT), known.values())
    for use in found.add:
        known[use.id] = use._replace(status=Status.SENT)
        server.uses.setdefault(use.id, use)
    for use in found.withdraw:
        known[use.id] = use._replace(status=Status.WITHDRAWN)
        server.withdrawn.add(use.id)


@given(st.lists(observations, min_size=1, max_size=4))
def test_the_space_has_exactly_the_uses_that_are_observed_now(versions: list[list[Observation]]) -> None:
    server, known = Server({}, set()), dict[bytes, StoredUse]()
    for observed in versions:
        sync(known, observed, server)
        sync(known, observed, server)
        assert server.counted() == sorted(all_uses(observed), key=repr)


@given(observations, observations)
def test_two_copies_of_a_project_send_each_use_once(common: list[Observation], later: list[Observation]) -> None:
    server, one, two = Server({}, set()), dict[bytes, StoredUse](), dict[bytes, StoredUse]()
    sync(one, common, server)
    sync(two, [*common, *later], server)
    assert server.counted() == sorted(all_uses([*common, *later]), key=repr)


@given(observations)
def test_a_lost_state_sends_the_same_uses_again(observed: list[Observation]) -> None:
    server = Server({}, set())
    sync({}, observed, server)
    before = dict(server.uses)
    sync({}, observed, server)
    assert server.uses == before


def test_a_large_count_is_sent_in_parts_that_the_server_takes() -> None:
    seen = [Observation(pattern_id=ID, kind="applied", source="loop", at=NOW, success=True, count=250)] * 2
    slots = find_slots(seen, SALT)
    assert [slot.use.count for slot in slots] == [100, 100, 50] * 2
    assert len({slot.key for slot in slots}) == 6


def test_another_space_cannot_recognize_a_use() -> None:
    seen = [Observation(pattern_id=ID, kind="applied", source="loop", loop_id="secret-loop", at=NOW, success=True)]
    assert find_slots(seen, b"one")[0].key != find_slots(seen, b"other")[0].key


def test_a_use_adds_what_the_scoreboard_adds() -> None:
    events = (
        make_event(1, "applied", NOW - timedelta(days=90), loop_id="loop-1", success=True, weight=0.5),
        make_event(2, "applied", NOW, loop_id="loop-2", success=False),
        make_event(3, "injected", NOW - timedelta(days=180), loop_id="loop-3"),
    )
    board = make_board(SAMPLE, events=events)
    parts = [use.sums(NOW, 90.0) for use in all_uses(board.observations(ID))]
    total = [sum(getattr(part, name) for part in parts) for name in SUMS]
    assert total == pytest.approx([1, 1, 2, 1, 0.25, 1.0, 0.5 + 1 + 0.25, 1.5, 0, 0, 0])
    assert [part.last_used for part in parts] == [None, NOW - timedelta(days=90), NOW]


def test_a_use_in_the_future_counts_from_its_arrival() -> None:
    (seen,) = make_uses(Observation(pattern_id=ID, kind="applied", source="loop", at=NOW))
    use = Use(ID, "applied", seen.at, True, 1, 1)
    assert use.sums(NOW, 90.0, NOW - timedelta(days=90)).helpful == pytest.approx(0.5)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[LocalState]:
    found = LocalState(tmp_path / "project")
    yield found
    found.close()


def events_of(pattern_id: str) -> tuple[Event, ...]:
    return (make_event(1, "applied", NOW, pattern_id=pattern_id, loop_id="loop-1", success=True),)


def send_all(state: LocalState) -> None:
    unsent = state.unsent(100)
    added = {use.id: decode_use(use).sums(NOW, 90.0) for use in unsent if use.status is Status.TO_SEND}
    state.confirm(added, [use.id for use in unsent if use.status is Status.TO_WITHDRAW])


def patterns(*found: Pattern) -> dict[str, Pattern]:
    return {pattern.id: pattern for pattern in found}


def test_only_changed_patterns_are_compared_again(state: LocalState) -> None:
    outbox, board = Outbox(state, SALT), make_board(SAMPLE, events=events_of(ID))
    outbox.store(outbox.find(board, patterns(SAMPLE)))
    send_all(state)
    assert outbox.find(board, patterns(SAMPLE)) == Changes()


def test_uses_of_a_missing_pattern_stay_in_the_space(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(SAMPLE, events=events_of(ID)), patterns(SAMPLE)))
    send_all(state)
    assert outbox.find(make_board(), {})[:2] == ((), ())


def test_uses_of_a_merged_pattern_move_to_the_other_one(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(SAMPLE, events=events_of(ID)), patterns(SAMPLE)))
    send_all(state)
    heir = make_pattern("pat-error-other-001", aliases=(ID,))
    outbox.store(outbox.find(make_board(heir, events=events_of(ID)), patterns(heir)))
    send_all(state)
    state.set_sums([])
    own = {use.pattern_id for name in (ID, heir.id) for use in state.uses_of(name) if use.status is Status.SENT}
    assert own == {heir.id}


def test_others_are_the_sums_of_the_space_without_own_uses(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(SAMPLE, events=events_of(ID)), patterns(SAMPLE)))
    send_all(state)
    at = datetime.fromtimestamp(5, UTC)

    def sums(*parts: float) -> TeamSums:
        return TeamSums(pattern_id=ID, last_used=at, **dict(zip(SUMS, parts, strict=False)))  # type: ignore[arg-type]

    state.set_sums([sums(3, 1, 4, 0, 2.5, 1.0, 3.5, 4.0)])
    assert [*state.others()] == [sums(2, 1, 3, 0, 1.5, 1.0, 2.5, 3.0)]


def test_nothing_is_withdrawn_while_files_cannot_be_read(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(SAMPLE, events=events_of(ID)), patterns(SAMPLE)))
    send_all(state)
    assert outbox.find(make_board(SAMPLE), patterns(SAMPLE), withdraws=False) == Changes()
    assert len(outbox.find(make_board(SAMPLE), patterns(SAMPLE)).withdraw) == 1


def test_uses_of_a_skipped_pattern_are_found_once_it_is_not_skipped(state: LocalState) -> None:
    board, outbox = make_board(SAMPLE, events=events_of(ID)), Outbox(state, SALT)
    for _ in range(2):
        outbox.store(found := outbox.find(board, patterns(SAMPLE), skipped={ID}))
        assert not found.add
    assert len(outbox.find(board, patterns(SAMPLE)).add) == 1


BATCHES = 20
USES = 50

use_times = st.sampled_from([None, AT, AT + timedelta(seconds=1), AT - timedelta(days=100), AT - timedelta(days=2500)])
uses = st.builds(
    lambda number, kind, at, success, weight, count: (number, kind, at, success, weight, count),
    st.integers(0, 7),
    st.sampled_from(["applied", "injected"]),
    use_times,
    st.sampled_from([True, False, None]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.integers(0, 100),
)


def expected_sums(uses: Sequence[TeamUse], info: SpaceInfo) -> TeamSums:
    """What the uses add to the sums of one pattern, computed in Python."""
    parts = []
    for one in uses:
        at = None if one.at is None else (one.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        use = Use(one.pattern_id, one.kind, at, one.success, one.weight, one.count)
        parts.append(use.sums(info.epoch, info.half_life_days))
    totals: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in SUMS}
    totals["last_used"] = max((part.last_used for part in parts if part.last_used is not None), default=None)
    return TeamSums(pattern_id="", **totals)


@pytest.fixture
def two(team: Team) -> tuple[Space, Space]:
    """The space of two members."""
    return team.space("ada"), team.space("rita")


def assert_sums(found: TeamSums, uses: Sequence[TeamUse], info: SpaceInfo, *, times: bool = True) -> None:
    expected = expected_sums(uses, info)
    for name in SUMS:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-6), name
    if times:
        assert found.last_used == expected.last_used


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    made=st.lists(uses, min_size=8, max_size=8),
    batches=st.lists(
        st.tuples(st.booleans(), st.lists(st.tuples(st.booleans(), st.integers(0, 7)), min_size=1, max_size=10)),
        min_size=1,
        max_size=8,
    ),
)
def test_sums_are_those_of_the_uses_however_they_are_sent(
    two: tuple[Space, Space],
    made: list[tuple[int, str, datetime | None, bool | None, float, int]],
    batches: list[tuple[bool, list[tuple[bool, int]]]],
) -> None:
    """Uses and withdrawals in any order, mixed, repeated, by two reviewers: the result is that of the set."""
    project, pattern = join(*two), f"pattern-{uuid4()}"
    keys = [uuid4() for _ in made]
    known = [
        TeamUse(id=key, pattern_id=pattern, kind=kind, at=at, success=success, weight=weight, count=count)
        for key, (_, kind, at, success, weight, count) in zip(keys, made, strict=True)
    ]
    ended = [replace(one, id=UUID(int=one.id.int ^ 1), withdraws=one.id) for one in known]
    for is_second, batch in batches:
        two[is_second].add_events(project, [(ended if withdraws else known)[number] for withdraws, number in batch])
    sent = {number for _, batch in batches for withdraws, number in batch if not withdraws}
    withdrawn = {number for _, batch in batches for withdraws, number in batch if withdraws}
    expected = [known[number] for number in sent - withdrawn]
    assert_sums(two[0].sums().sums[pattern], expected, two[0].info, times=not withdrawn)


def test_the_same_batch_on_twenty_connections_at_once_arrives_once(team: Team) -> None:
    spaces = [team.space("rita") for _ in range(BATCHES)]
    project = join(spaces[0])
    batch = [make_use(number, pattern_id=f"p{number % 7}") for number in range(1, USES + 1)]
    with ThreadPoolExecutor(BATCHES) as pool:
        answers = list(pool.map(lambda space: space.add_events(project, batch).new, spaces))
    assert sorted(id for answer in answers for id in answer) == sorted(use.id for use in batch)
    sums = spaces[0].sums().sums
    for pattern in {use.pattern_id for use in batch}:
        assert_sums(sums[pattern], [use for use in batch if use.pattern_id == pattern], spaces[0].info)


def test_concurrent_batches_on_the_same_patterns_never_deadlock(team: Team) -> None:
    spaces = [team.space("rita") for _ in range(BATCHES)]
    project = join(spaces[0])
    choice = random.Random(18)
    batches = []
    for number in range(BATCHES * 3):
        first = number * USES + 1
        batch = [
            make_use(first + i, pattern_id=f"p{i % 10}", at=AT - timedelta(days=choice.randrange(300)))
            for i in range(USES)
        ]
        choice.shuffle(batch)
        batches.append(batch)
    with ThreadPoolExecutor(BATCHES) as pool:
        list(pool.map(lambda work: spaces[work[0] % BATCHES].add_events(project, work[1]), enumerate(batches)))
    sums = spaces[0].sums().sums
    everything = [use for batch in batches for use in batch]
    for pattern in {use.pattern_id for use in everything}:
        assert_sums(sums[pattern], [use for use in everything if use.pattern_id == pattern], spaces[0].info)


def send_uncommitted(space: Space, project: UUID, use: TeamUse) -> None:
    """Send a use in a transaction that stays open until `commit`."""
    space.connection.autocommit = False
    space.add_events(project, [use])


def test_cursor_does_not_skip_transactions_that_commit_later(team: Team) -> None:
    """A starts before B and commits after it, and after B was read."""
    first, second, reader = team.space("carl"), team.space("rita"), team.space("rolf")
    project, other = join(first), join(second)
    first.add_events(project, [make_use(9)])  # makes the partition of the month
    before = reader.sums().cursor
    send_uncommitted(first, project, make_use(1, pattern_id="a"))
    second.add_events(other, [make_use(2, pattern_id="b")])
    middle = reader.sums(before)
    assert middle.sums.keys() == {"b"}
    second.add_events(other, [make_use(3, pattern_id="c")])
    assert reader.sums(middle.cursor).sums.keys() >= {"c"}
    first.connection.commit()
    last = reader.sums(middle.cursor)
    assert "a" in last.sums
    assert reader.sums(last.cursor).sums == {}


def test_cursor_does_not_skip_patterns_that_commit_later(team: Team) -> None:
    first, second, reader = team.space("carl"), team.space("rita"), team.space("rolf")
    first.connection.autocommit = False
    first.put_patterns([make_text("a")])
    second.put_patterns([make_text("b")])
    seen = reader.changed_patterns()
    first.connection.commit()
    after = reader.changed_patterns(seen.cursor)
    assert seen.ids == {"b"}
    assert "a" in after.ids


def test_use_in_the_future_counts_as_of_its_arrival(team: Team) -> None:
    """A clock that is a day ahead makes no evidence stronger, and a second copy gets the same answer."""
    space = team.space("carl")
    project = join(space)
    before = space.now()
    use = make_use(at=before + timedelta(days=1))
    arrived = space.add_events(project, [use]).arrived[use.id]
    assert before <= arrived <= space.now()
    assert space.add_events(project, [use]).arrived == {use.id: arrived}
    sums = space.sums().sums[PATTERN]
    assert sums.helpful == pytest.approx(2.0 ** ((arrived - space.info.epoch) / timedelta(days=30)))
    assert sums.last_used == arrived
    space.add_events(project, [make_use(2, at=use.at, withdraws=use.id)])
    assert space.sums().sums[PATTERN].helpful == 0.0


def test_uses_of_any_year_are_stored_once(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    for year in (2000, 2019, 2020, 2099):
        use = make_use(year, pattern_id=f"p{year}", at=datetime(year, 1, 1, tzinfo=UTC))
        assert space.add_events(project, [use]).new == {use.id}
        assert space.add_events(project, [use]).new == frozenset()
        sums = space.sums().sums[use.pattern_id]
        assert (sums.successes, sums.uses) == (1, 1)
        assert 0 <= sums.helpful < 2.0


def test_partitions_are_made_once_by_concurrent_batches(team: Team) -> None:
    spaces = [team.space("rita") for _ in range(10)]
    project = join(spaces[0])
    months = [datetime(2025, month, 15, tzinfo=UTC) for month in range(1, 13)]
    batches = [
        [make_use(100 * number + i, at=at) for i, at in enumerate(months[:: 1 if number % 2 else -1], 1)]
        for number in range(len(spaces))
    ]
    with ThreadPoolExecutor(len(spaces)) as pool:
        list(pool.map(lambda work: work[0].add_events(project, work[1]), zip(spaces, batches, strict=True)))
    assert spaces[0].sums().sums[PATTERN].uses == len(spaces) * len(months)
    rows = team.connect("postgres").execute(
        "select c.relname, count(*) from ralphdeck.events e join pg_class c on c.oid = e.tableoid group by 1"
    )
    assert dict(rows.fetchall()) == {f"events_{at:%Y_%m}": len(spaces) for at in months}


def test_new_month_does_not_wait_for_readers_and_writers(team: Team) -> None:
    first, second = team.space("carl"), team.space("rita")
    project = join(first, second)
    first.add_events(project, [make_use(9)])
    reader = team.connect("rolf")
    reader.autocommit = False
    reader.execute("select count(*) from ralphdeck.events")
    send_uncommitted(first, project, make_use(1))
    second.connection.execute("set lock_timeout = '5s'")
    assert second.add_events(project, [make_use(2, pattern_id="b", at=datetime(2021, 3, 1, tzinfo=UTC))]).new


def test_uses_are_summed_by_project(team: Team) -> None:
    space = team.space("rita")
    web, api = join(space, name="web"), join(space, name="api")
    recent = space.now() - timedelta(hours=1)
    space.add_events(web, [make_use(1, at=recent), make_use(2, at=recent, success=False)])
    space.add_events(web, [make_use(3, at=recent - timedelta(days=20)), make_use(4, at=recent, withdraws=UUID(int=1))])
    space.add_events(web, [make_use(5, at=recent, kind="injected")])
    found = space.project_uses([1, 4])
    assert [astuple(one) for one in found] == [
        ("api", {1: (0, 0, 0), 4: (0, 0, 0)}),
        ("web", {1: (0, 1, 1), 4: (1, 1, 2)}),
    ]
    assert [(one.name, one.uses) for one in space.projects()] == [("api", 0), ("web", 2)]
    assert api != web


A: Final = "pat-error-a-001"
RECENT: Final = datetime.now(UTC) - timedelta(hours=1)
"""Uses of now: older ones would have decayed, by the clock of the server."""
MEMBER: Final = "member Carl"


@pytest.fixture
def carl(team: Team) -> Space:
    return team.space("carl")


@pytest.fixture
def rita(team: Team, tmp_path: Path) -> WorkingCopy:
    """A reviewer's project, in which the pattern A is a candidate."""
    copy = WorkingCopy(tmp_path / "rita", team)
    copy.write(make_record(A))
    copy.log(make_use_event(1, A, "own-1"), make_use_event(2, A, "own-2", False))
    copy.sync()
    return copy


def send(space: Space, project: UUID, *, pattern: str = A, **changes: Any) -> UUID:
    """Send one result; returns its ID."""
    use = make_use(**{"pattern_id": pattern, "at": RECENT, "number": uuid4().int, **changes})
    space.add_events(project, [use])
    return use.id


def counts(space: Space, pattern: str = A) -> tuple[int, int]:
    sums = space.sums().sums.get(pattern, TeamSums(pattern_id=pattern))
    return sums.successes, sums.failures


def bursts(copy: WorkingCopy) -> list[Burst]:
    return list(copy.open().view.board.bursts)


@pytest.mark.parametrize(("success", "count"), [(True, 100), (False, 3)])
def test_a_sum_by_sql_makes_nothing_proven_or_deprecated(
    psql: Psql, carl: Space, rita: WorkingCopy, success: bool, count: int
) -> None:
    project = join(carl)
    use = {"pattern_id": A, "kind": "applied", "at": str(RECENT), "success": success, "weight": 1, "count": count}
    for _ in range(2):
        psql("carl", call(carl.info.id, "add_events", project, json.dumps([{"id": str(uuid4()), **use}])))
    rita.sync()
    assert rita.state_of_pattern(A) == "candidate"
    (burst,) = bursts(rita)
    assert (burst.source, burst.patterns) == (MEMBER, (A,))
    assert (burst.successes, burst.failures) == ((2 * count, 0) if success else (0, 2 * count))


def test_praise_for_work_that_does_not_exist_makes_nothing_proven(
    team: Team, rita: WorkingCopy, tmp_path: Path
) -> None:
    """As by eight times `loop record job-N A --success` with a sync after each."""
    carl = WorkingCopy(tmp_path / "carl", team, "carl", rita.clock)
    carl.sync()
    for number in range(8):
        carl.log(make_use_event(100 + number, A, f"job-{number}", at=RECENT))
        carl.sync()
    rita.sync()
    assert rita.state_of_pattern(A) == "established"
    assert rita.sums([A])[A]["successes"] == 3
    assert [item.question for item in rita.open(asks=True).view.queue if item.subject == MEMBER] == [
        "member Carl sent 6 unconfirmed results. Ignore them?"
    ]


def test_results_that_others_support_count_at_once(team: Team, carl: Space) -> None:
    rita = team.space("rita")
    rita.add_events(join(rita), [make_use(1, pattern_id=A, at=RECENT, count=40)])
    own = join(carl)
    carl.add_events(own, [make_use(2, pattern_id=A, at=RECENT, count=9)])
    assert counts(carl) == (49, 0)
    carl.add_events(own, [make_use(3, pattern_id=A, at=RECENT, count=2)])
    assert counts(carl) == (49, 0)


def test_old_support_weighs_as_little_as_old_evidence(team: Team, carl: Space) -> None:
    rita = team.space("rita")
    rita.add_events(join(rita), [make_use(1, pattern_id=A, at=RECENT - timedelta(days=300), count=100)])
    carl.add_events(join(carl), [make_use(2, pattern_id=A, at=RECENT, count=9)])
    assert counts(carl) == (100, 0)


def test_two_contributors_do_not_support_each_other(team: Team, carl: Space) -> None:
    team.space("ada").set_member("nora", "Nora", Level.CONTRIBUTOR)
    nora = team.space("nora")
    own, other = join(carl), join(nora)
    for _ in range(3):
        send(carl, own)
        send(nora, other)
    assert counts(carl) == (2, 0)


def test_failures_of_many_patterns_within_an_hour_are_held(carl: Space) -> None:
    own = join(carl)
    for number in range(8):
        send(carl, own, pattern=f"p{number}", success=False)
    assert [counts(carl, f"p{number}")[1] for number in range(8)] == [1] * 5 + [0] * 3
    (held,) = carl.held_uses()
    assert (held.member, held.patterns, held.successes, held.failures) == ("Carl", ("p5", "p6", "p7"), 0, 3)


def test_injections_and_uses_without_a_result_are_not_held(carl: Space) -> None:
    carl.add_events(
        join(carl), [make_use(1, kind="injected", success=None, count=50), make_use(2, success=None, count=50)]
    )
    sums = carl.sums().sums[PATTERN]
    assert (sums.injected_only, sums.uses) == (50, 50)
    assert carl.held_uses() == ()


def test_confirmed_results_count_and_an_undo_takes_them_back(carl: Space, rita: WorkingCopy) -> None:
    project_of_carl = join(carl)
    carl.add_events(project_of_carl, [make_use(1, pattern_id=A, at=RECENT, count=20)])
    rita.sync()
    project = rita.open()
    decided = project.decide(CountReports(source=MEMBER, reason="nightly jobs"))
    assert decided.summary == "confirmed the reports of member Carl on 1 pattern"
    assert list(project.view.board.bursts) == []
    rita.sync()
    assert counts(carl) == (21, 1)
    assert rita.state_of_pattern(A) == "proven"
    rita.open().decide(Undo())
    rita.sync()
    assert counts(carl) == (1, 1)
    assert [burst.successes for burst in bursts(rita)] == [20]
    rita.open().decide(Redo())
    rita.sync()
    assert counts(carl) == (21, 1)
    assert bursts(rita) == []
    carl.add_events(project_of_carl, [make_use(2, pattern_id=A, at=RECENT, count=4)])
    assert counts(carl) == (25, 1), "further results are supported by the confirmed ones"


def test_discarded_results_never_count(carl: Space, rita: WorkingCopy) -> None:
    own, use = join(carl), make_use(1, pattern_id=A, at=RECENT, count=20)
    carl.add_events(own, [use])
    rita.sync()
    rita.open().decide(DiscardReports(source=MEMBER, reason="made up"))
    rita.sync()
    carl.add_events(own, [use])
    assert counts(carl) == (1, 1)
    assert bursts(rita) == []


def test_what_arrives_after_a_decision_is_asked_about_again(carl: Space, rita: WorkingCopy) -> None:
    own = join(carl)
    carl.add_events(own, [make_use(1, pattern_id=A, at=RECENT, count=20)])
    rita.sync()
    carl.add_events(own, [make_use(2, pattern_id=A, at=RECENT, count=30)])
    rita.open().decide(DiscardReports(source=MEMBER))
    rita.sync()
    assert [burst.successes for burst in bursts(rita)] == [30]


def test_a_withdrawn_result_is_neither_held_nor_counted_later(carl: Space, rita: WorkingCopy) -> None:
    own = join(carl)
    carl.add_events(
        own, [make_use(1, pattern_id=A, at=RECENT, count=20), make_use(2, pattern_id=A, at=RECENT, count=7)]
    )
    carl.add_events(own, [make_use(3, pattern_id=A, at=RECENT, withdraws=UUID(int=1))])
    assert [held.successes for held in carl.held_uses()] == [7]
    rita.sync()
    rita.open().decide(CountReports(source=MEMBER))
    rita.sync()
    assert counts(carl) == (8, 1)


def test_the_sender_sees_the_evidence_of_others_while_the_own_is_held(
    team: Team, rita: WorkingCopy, tmp_path: Path
) -> None:
    """Own uses that are not in the sums are not subtracted from them."""
    carl = WorkingCopy(tmp_path / "carl", team, "carl", rita.clock)
    carl.sync()
    carl.log(*(make_use_event(100 + number, A, f"job-{number}", at=RECENT) for number in range(8)))
    carl.sync()
    carl.sync()
    assert carl.sums([A])[A]["successes"] == 9
    rita.sync()
    rita.open().decide(CountReports(source=MEMBER))
    rita.sync()
    for _ in range(2):
        carl.sync()
    assert carl.sums([A])[A]["successes"] == 9
    assert rita.sums([A])[A]["successes"] == 9


@pytest.mark.parametrize("verb", ["confirm", "revoke"])
def test_a_contributor_confirms_nothing(carl: Space, verb: str) -> None:
    project = join(carl)
    carl.add_events(project, [make_use(1, pattern_id=A, at=RECENT, count=20)])
    decision = make_decision(by="Carl", verb=verb, subject=MEMBER, after={"last": "2099-01-01T00:00:00Z"})
    with pytest.raises(LevelTooLow, match=f"{verb} needs reviewer"):
        carl.decide(project, decision, [], seen=0)
    assert counts(carl) == (0, 0)


def test_two_reviewers_do_not_decide_differently(team: Team, carl: Space, rita: WorkingCopy, tmp_path: Path) -> None:
    ada = WorkingCopy(tmp_path / "ada", team, "ada", rita.clock)
    carl.add_events(join(carl), [make_use(1, pattern_id=A, at=RECENT, count=20)])
    for copy in (rita, ada):
        copy.sync()
    rita.open().decide(DiscardReports(source=MEMBER, reason="made up"))
    ada.open().decide(CountReports(source=MEMBER))
    rita.sync()
    assert "Rita had decided" in ada.sync().refused[0]
    assert counts(carl) == (1, 1)


def test_what_was_withdrawn_takes_no_room_from_other_contributors(team: Team, carl: Space) -> None:
    ada = team.space("ada")
    ada.set_member("nora", "Nora", Level.CONTRIBUTOR)
    nora = team.space("nora")
    carl.add_events(join(carl), [make_use(1, pattern_id=A, at=RECENT, count=2)])
    withdrawal = make_decision(by="Ada", verb="revoke", subject=MEMBER, after={"last": str(ada.now()), "sent": "all"})
    ada.decide(join(ada), withdrawal, [MEMBER], seen=0)
    nora.add_events(join(nora), [make_use(2, pattern_id=A, at=RECENT, count=2)])
    assert counts(ada) == (2, 0)
    assert ada.held_uses() == ()
