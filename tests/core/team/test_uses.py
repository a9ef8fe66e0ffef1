"""Uses arrive exactly once, and the sums on the server are those of the uses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from core.records.team import SpaceInfo, TeamSums, TeamUse
from core.team.local_state import Sums
from core.team.outbox import Use
from core.team.server import Space
from tests.core.team.calls import AT, PATTERN, join, make_text, make_use
from tests.team_server import Team

BATCHES = 20
USES = 50

times = st.sampled_from([None, AT, AT + timedelta(seconds=1), AT - timedelta(days=100), AT - timedelta(days=2500)])
uses = st.builds(
    lambda number, kind, at, success, weight, count: (number, kind, at, success, weight, count),
    st.integers(0, 7),
    st.sampled_from(["applied", "injected"]),
    times,
    st.sampled_from([True, False, None]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.integers(0, 100),
)


def expected_sums(uses: Sequence[TeamUse], info: SpaceInfo) -> Sums:
    """What the uses add to the sums of one pattern, computed in Python."""
    parts = []
    for one in uses:
        at = None if one.at is None else (one.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        use = Use(one.pattern_id, one.kind, at, one.success, one.weight, one.count)
        parts.append(use.sums(info.epoch, info.half_life_days))
    totals: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in Sums._fields[:-1]}
    totals["last_used"] = max((part.last_used for part in parts if part.last_used is not None), default=None)
    return Sums(**totals)


@pytest.fixture
def two(team: Team) -> tuple[Space, Space]:
    """The space of two members."""
    return team.space("ada"), team.space("rita")


def assert_sums(found: TeamSums, uses: Sequence[TeamUse], info: SpaceInfo, *, times: bool = True) -> None:
    expected = expected_sums(uses, info)
    for name in Sums._fields[:-1]:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-6), name
    if times:
        assert (found.last_used.timestamp() if found.last_used else None) == expected.last_used


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


def test_transaction_that_is_rolled_back_adds_nothing(team: Team) -> None:
    first, reader = team.space("carl"), team.space("rolf")
    project = join(first)
    send_uncommitted(first, project, make_use(1))
    first.connection.rollback()
    first.connection.autocommit = True
    assert reader.sums().sums == {}
    assert first.add_events(project, [make_use(1)]).new == {UUID(int=1)}


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


@pytest.mark.parametrize("year", [2000, 2019, 2020, 2099])
def test_uses_of_any_year_are_stored_once(team: Team, year: int) -> None:
    space = team.space("carl")
    project = join(space)
    use = make_use(at=datetime(year, 1, 1, tzinfo=UTC))
    assert space.add_events(project, [use]).new == {use.id}
    assert space.add_events(project, [use]).new == frozenset()
    sums = space.sums().sums[PATTERN]
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
