from __future__ import annotations

from datetime import timedelta

import pytest

from core.records.loops import Liveness, LoopStatus
from core.sources.loop_facts import directory_fact
from tests.core.sources.making import (
    EXTERNAL,
    INTERNAL,
    NOW,
    UUID,
    ago,
    external,
    facts,
    joined,
    launcher,
    registry,
    session,
)


def test_launcher_and_registry_join_by_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "do it", "status": "running"}
    bare = directory_fact(f"{EXTERNAL}/loops/launched", NOW)
    assert bare is not None
    loops = joined(launcher(7, ago(hours=9)), registry(entry, root=EXTERNAL), external("a"), [bare])
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.directory) == ("a", ("launched",), f"{EXTERNAL}/loops/a")
    assert loop.sources == ("external", "external-registry", "launcher")


def test_a_reused_pid_joins_nothing() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "something else", "status": "running"}
    assert set(joined(launcher(7, ago(hours=9)), registry(entry, root=EXTERNAL))) == {"a", "launched"}


@pytest.mark.parametrize(("seconds", "rows"), [(4.9, 1), (5.0, 2)])
def test_session_state_joins_by_objective_and_start_within_five_seconds(seconds: float, rows: int) -> None:
    loops = joined(external("a"), session(ago(minutes=10, seconds=seconds), currentIteration=3))
    assert len(loops) == rows
    assert loops["a"].iteration == (3 if rows == 1 else None)


def test_the_nearer_of_two_starts_joins() -> None:
    loops = joined(
        external("a", startTime=ago(minutes=10, seconds=3)),
        external("b", startTime=ago(minutes=10, seconds=-1)),
        session(ago(minutes=10)),
    )
    assert loops["b"].aliases == (UUID,)
    assert loops["a"].aliases == ()


def test_session_state_alone_is_a_loop_and_the_launcher_finds_it() -> None:
    loops = joined(session(ago(minutes=10)), launcher(7, ago(minutes=10, seconds=1)))
    assert list(loops) == [UUID]
    assert loops[UUID].sources == ("external-state", "launcher")


def test_a_linked_session_state_is_the_same_loop() -> None:
    loops = joined(external("a"), session(ago(days=1), loopId="a", objective="other words"))
    assert list(loops) == ["a"]
    assert loops["a"].sources == ("external", "external-state")


def test_analytics_and_heartbeat_of_a_uuid_find_their_external_loop() -> None:
    analytics = {
        "loop_id": UUID,
        "task_description": "do it",
        "start_time": ago(minutes=10),
        "total_iterations": 4,
        "iterations": [{"quality_score": 50}],
    }
    loops = joined(
        facts(f"{INTERNAL}/heartbeats/{UUID}.json", {"timestamp": 1777636740000, "iteration": 5}),
        facts(f"{EXTERNAL}/analytics/{UUID}.json", analytics),
        external("a"),
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.quality, loop.iteration) == ("a", (UUID,), (0.5,), 5)
    assert loop.last_activity == NOW - timedelta(minutes=1)


def test_the_newest_fact_gives_the_status_of_an_external_loop() -> None:
    loops = joined(
        external("a", lastUpdate=ago(minutes=9)),
        session(ago(minutes=10), status="paused", lastUpdate=ago(minutes=2)),
    )
    assert loops["a"].status is LoopStatus.PAUSED


def test_the_external_registry_gives_the_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "status": "running"}
    assert joined(external("a"), registry(entry, root=EXTERNAL))["a"].liveness is Liveness.DEAD
