from __future__ import annotations

from datetime import timedelta

import pytest

from core.records.loops import Liveness, LoopStatus
from core.sources.loop_facts import directory_fact
from tests.factories import (
    EXTERNAL_FOLDER,
    INTERNAL_FOLDER,
    LOOP_UUID,
    SOURCES_NOW,
    external_facts,
    iso_ago,
    join_facts,
    launcher_facts,
    read_facts,
    registry_facts,
    session_facts,
)


def test_launcher_and_registry_join_by_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "do it", "status": "running"}
    bare = directory_fact(f"{EXTERNAL_FOLDER}/loops/launched", SOURCES_NOW)
    assert bare is not None
    loops = join_facts(
        launcher_facts(7, iso_ago(hours=9)), registry_facts(entry, root=EXTERNAL_FOLDER), external_facts("a"), [bare]
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.directory) == ("a", ("launched",), f"{EXTERNAL_FOLDER}/loops/a")
    assert loop.sources == ("external", "external-registry", "launcher")


def test_a_reused_pid_joins_nothing() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "something else", "status": "running"}
    assert set(join_facts(launcher_facts(7, iso_ago(hours=9)), registry_facts(entry, root=EXTERNAL_FOLDER))) == {
        "a",
        "launched",
    }


@pytest.mark.parametrize(("seconds", "rows"), [(4.9, 1), (5.0, 2)])
def test_session_state_joins_by_objective_and_start_within_five_seconds(seconds: float, rows: int) -> None:
    loops = join_facts(external_facts("a"), session_facts(iso_ago(minutes=10, seconds=seconds), currentIteration=3))
    assert len(loops) == rows
    assert loops["a"].iteration == (3 if rows == 1 else None)


def test_the_nearer_of_two_starts_joins() -> None:
    loops = join_facts(
        external_facts("a", startTime=iso_ago(minutes=10, seconds=3)),
        external_facts("b", startTime=iso_ago(minutes=10, seconds=-1)),
        session_facts(iso_ago(minutes=10)),
    )
    assert loops["b"].aliases == (LOOP_UUID,)
    assert loops["a"].aliases == ()


def test_session_state_alone_is_a_loop_and_the_launcher_finds_it() -> None:
    loops = join_facts(session_facts(iso_ago(minutes=10)), launcher_facts(7, iso_ago(minutes=10, seconds=1)))
    assert list(loops) == [LOOP_UUID]
    assert loops[LOOP_UUID].sources == ("external-state", "launcher")


def test_a_linked_session_state_is_the_same_loop() -> None:
    loops = join_facts(external_facts("a"), session_facts(iso_ago(days=1), loopId="a", objective="other words"))
    assert list(loops) == ["a"]
    assert loops["a"].sources == ("external", "external-state")


def test_analytics_and_heartbeat_of_a_uuid_find_their_external_loop() -> None:
    analytics = {
        "loop_id": LOOP_UUID,
        "task_description": "do it",
        "start_time": iso_ago(minutes=10),
        "total_iterations": 4,
        "iterations": [{"quality_score": 50}],
    }
    loops = join_facts(
        read_facts(f"{INTERNAL_FOLDER}/heartbeats/{LOOP_UUID}.json", {"timestamp": 1777636740000, "iteration": 5}),
        read_facts(f"{EXTERNAL_FOLDER}/analytics/{LOOP_UUID}.json", analytics),
        external_facts("a"),
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.quality, loop.iteration) == ("a", (LOOP_UUID,), (0.5,), 5)
    assert loop.last_activity == SOURCES_NOW - timedelta(minutes=1)


def test_the_newest_fact_gives_the_status_of_an_external_loop() -> None:
    loops = join_facts(
        external_facts("a", lastUpdate=iso_ago(minutes=9)),
        session_facts(iso_ago(minutes=10), status="paused", lastUpdate=iso_ago(minutes=2)),
    )
    assert loops["a"].status is LoopStatus.PAUSED


def test_the_external_registry_gives_the_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "status": "running"}
    assert join_facts(external_facts("a"), registry_facts(entry, root=EXTERNAL_FOLDER))["a"].liveness is Liveness.DEAD
