"""Which uses are sent and withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records.events import Event, Observation
from core.records.patterns import Pattern
from core.team.local_state import SUMS, LocalState, Status, StoredUse, Sums
from core.team.outbox import Changes, Outbox, Use, compare, decode_use, find_slots, make_uses
from tests.factories import NOW, make_board, make_event, make_pattern

ID = "pat-error-sample-001"
SALT = b"space"
PATTERN = make_pattern(ID)
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
    board = make_board(PATTERN, events=events)
    parts = [use.sums(NOW, 90.0) for use in all_uses(board.observations(ID))]
    total = [sum(getattr(part, name) for part in parts) for name in SUMS]
    assert total == pytest.approx([1, 1, 2, 1, 0.25, 1.0, 0.5 + 1 + 0.25, 1.5, 0, 0, 0])
    assert [part.last_used for part in parts] == [None, (NOW - timedelta(days=90)).timestamp(), NOW.timestamp()]


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
    outbox, board = Outbox(state, SALT), make_board(PATTERN, events=events_of(ID))
    outbox.store(outbox.find(board, patterns(PATTERN)))
    send_all(state)
    assert outbox.find(board, patterns(PATTERN)) == Changes()


def test_uses_of_a_missing_pattern_stay_in_the_space(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(PATTERN, events=events_of(ID)), patterns(PATTERN)))
    send_all(state)
    assert outbox.find(make_board(), {})[:2] == ((), ())


def test_uses_of_a_merged_pattern_move_to_the_other_one(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(PATTERN, events=events_of(ID)), patterns(PATTERN)))
    send_all(state)
    heir = make_pattern("pat-error-other-001", aliases=(ID,))
    outbox.store(outbox.find(make_board(heir, events=events_of(ID)), patterns(heir)))
    send_all(state)
    state.set_sums([])
    own = {use.pattern_id for name in (ID, heir.id) for use in state.uses_of(name) if use.status is Status.SENT}
    assert own == {heir.id}


def test_others_are_the_sums_of_the_space_without_own_uses(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(PATTERN, events=events_of(ID)), patterns(PATTERN)))
    send_all(state)
    state.set_sums([(ID, Sums(3, 1, 4, 0, 2.5, 1.0, 3.5, 4.0, last_used=5.0))])
    ((pattern_id, others),) = state.others()
    assert pattern_id == ID
    assert others == Sums(2, 1, 3, 0, 1.5, 1.0, 2.5, 3.0, last_used=5.0)


def test_nothing_is_withdrawn_while_files_cannot_be_read(state: LocalState) -> None:
    outbox = Outbox(state, SALT)
    outbox.store(outbox.find(make_board(PATTERN, events=events_of(ID)), patterns(PATTERN)))
    send_all(state)
    assert outbox.find(make_board(PATTERN), patterns(PATTERN), withdraws=False) == Changes()
    assert len(outbox.find(make_board(PATTERN), patterns(PATTERN)).withdraw) == 1


def test_uses_of_a_skipped_pattern_are_found_once_it_is_not_skipped(state: LocalState) -> None:
    board, outbox = make_board(PATTERN, events=events_of(ID)), Outbox(state, SALT)
    for _ in range(2):
        outbox.store(found := outbox.find(board, patterns(PATTERN), skipped={ID}))
        assert not found.add
    assert len(outbox.find(board, patterns(PATTERN)).add) == 1
