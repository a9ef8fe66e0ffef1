from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.episodes import Attempt, Task
from core.records.loops import Loop, Outcome
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.tasks.success_metrics import READ_LATENCY_SECONDS, measure_audit_trail, measure_latency, measure_success

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
EXAMPLES = ProjectPaths(Path(__file__).parents[2] / "trees/spec-examples")


def attempt(number: int, **fields: Any) -> Attempt:
    return Attempt(
        **{"task_id": "t", "number": number, "outcome": Outcome.SUCCESS, "actions": 2, "errors": 0, **fields}
    )


def reflection(number: int) -> Reflection:
    return Reflection(id=f"r{number}", shape="episodic", file="f", task_id="t", attempt=number)


def test_example_of_the_documentation() -> None:
    snapshot = Index(EXAMPLES, Settings(), clock=lambda: NOW, is_kept=False).load()
    found = measure_success(snapshot, {"task-001": 0.002, "task-002": 0.001}, NOW, Settings())
    assert (found.audit.ended, found.audit.complete, found.audit.met) == (3, 3, True)
    assert (found.latency.tasks, found.latency.slowest_task, found.latency.met) == (2, "task-001", True)
    assert (found.covers, found.improves) == (False, None)
    assert found.coverage.tracked == ()  # its tasks name no loop


def test_incomplete_attempts_are_listed_by_id() -> None:
    found = measure_audit_trail(
        [
            attempt(1),
            attempt(2, actions=0),
            attempt(3, errors=None),  # only claimed by the metadata: there is no log
            attempt(4, outcome=Outcome.UNKNOWN, ended_at=NOW),
            attempt(5),
            attempt(6, outcome=Outcome.UNKNOWN),  # open
        ],
        map(reflection, (1, 2, 3, 4)),
    )
    assert (found.ended, found.complete, found.met) == (5, 1, False)
    assert found.without_actions == ("t.2", "t.3")
    assert (found.without_outcome, found.without_reflection) == (("t.4",), ("t.5",))


def test_goals_are_undecided_without_data() -> None:
    found = measure_success(Snapshot(), {}, NOW, Settings())
    assert (found.covers, found.latency.met, found.improves, found.audit.met) == (None, None, None, None)


def test_one_slow_history_misses_the_latency_goal() -> None:
    found = measure_latency({"a": 0.001, "b": READ_LATENCY_SECONDS, "c": 0.002})
    assert (found.met, found.slowest_task, found.median) == (False, "b", 0.002)


@pytest.mark.parametrize(("ids", "covers"), [(("a", "b"), True), (("a",), False)])
def test_coverage_goal_needs_all_loops(ids: tuple[str, ...], covers: bool) -> None:
    snapshot = Snapshot(
        loops={id: Loop(id=id) for id in "ab"}, tasks={id: Task(id=f"task-{id}", loop_id=id) for id in ids}
    )
    assert measure_success(snapshot, {}, NOW, Settings()).covers is covers


def test_open_attempts_are_listed_by_state() -> None:
    asleep, awake = NOW - timedelta(days=1), NOW - timedelta(minutes=1)
    attempts = [
        attempt(1, task_id="a", outcome=Outcome.UNKNOWN, started_at=asleep),
        attempt(1, task_id="b", outcome=Outcome.UNKNOWN, started_at=awake),
    ]
    found = measure_success(Snapshot(attempts={one.id: one for one in attempts}), {}, NOW, Settings())
    assert (found.running, found.paused, found.left) == (("b.1",), (), ("a.1",))
