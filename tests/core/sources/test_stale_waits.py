from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.records.loops import Liveness, Loop, LoopStatus
from core.records.waits import needs_person
from core.sources.stale_waits import StaleWaits

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIMIT = timedelta(minutes=30)


def waiting(minutes: int, liveness: Liveness = Liveness.FRESH, status: LoopStatus = LoopStatus.WAITING) -> Loop:
    badges = ("stale",) if liveness is Liveness.STALE else ()
    last = NOW - timedelta(minutes=minutes)
    return Loop(id="x:1", runner="x", status=status, liveness=liveness, last_activity=last, badges=badges)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (waiting(29), Liveness.FRESH),
        (waiting(31), Liveness.STALE),
        (waiting(31, Liveness.IDLE), Liveness.STALE),
        (waiting(29, Liveness.IDLE), Liveness.IDLE),
        (waiting(31, Liveness.ALIVE), Liveness.ALIVE),
        (waiting(29, Liveness.STALE), Liveness.FRESH),
        (waiting(31, status=LoopStatus.RUNNING), Liveness.FRESH),
    ],
)
def test_a_wait_without_a_known_process_is_stale_after_the_time_of_the_setting(loop: Loop, expected: Liveness) -> None:
    found = StaleWaits().mark({"x:1": loop}, NOW, LIMIT)["x:1"]
    assert (found.liveness, found.badges) == (expected, ("stale",) if expected is Liveness.STALE else ())
    if loop.status is LoopStatus.WAITING:
        assert needs_person(found) is (expected is not Liveness.STALE)


def test_the_same_mapping_is_returned_until_a_wait_becomes_stale() -> None:
    loops, waits = {"x:1": waiting(10)}, StaleWaits()
    assert waits.mark(loops, NOW, LIMIT) is loops
    later = waits.mark(loops, NOW + LIMIT, LIMIT)
    assert later["x:1"].liveness is Liveness.STALE
    assert waits.mark(loops, NOW + LIMIT + LIMIT, LIMIT) is later
