"""Attempts at tasks, as trajectories tell of them (1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from core.records.attempts import Attempt
from core.records.findings import Finding
from core.records.loops import Outcome
from core.sources.attempts import is_trajectory, join_attempts, read_attempts

FILE = ".aiwg/ralph/tasks/task-001/trajectory.json"


def read(value: Any) -> tuple[dict[str, Attempt], tuple[Finding, ...]]:
    attempts, findings = read_attempts(FILE, json.loads(json.dumps(value)))
    return join_attempts(attempts), findings


def test_the_example_of_the_document() -> None:
    entry = {
        "attempt_id": 2,
        "started": "2026-02-01T010:00:00Z",
        "ended": "2026-02-01T10:30:00Z",
        "outcome": "failure",
        "plan": "types first",
        "iterations": 3,
    }
    attempts, findings = read({"task_id": "task-001", "attempts": [entry]})
    assert findings == ()
    assert attempts == {
        "task-001.2": Attempt(
            task_id="task-001",
            number=2,
            started_at=datetime(2026, 2, 1, 10, tzinfo=UTC),
            ended_at=datetime(2026, 2, 1, 10, 30, tzinfo=UTC),
            outcome=Outcome.FAILURE,
            plan="types first",
            iterations=3,
            file=FILE,
        )
    }


def test_the_folder_names_the_task_whatever_the_file_says() -> None:
    assert list(read({"task_id": "../../etc", "attempts": [{"attempt_id": 1}]})[0]) == ["task-001.1"]


def test_what_is_wrong_costs_only_itself() -> None:
    attempts, findings = read({"attempts": [{"attempt_id": 1}, {"attempt_id": -1}, {}, "x", {"attempt_id": 2}]})
    assert list(attempts) == ["task-001.1", "task-001.2"]
    assert [finding.pointer for finding in findings] == [
        "/attempts/1/attempt_id",
        "/attempts/1",
        "/attempts/2",
        "/attempts/3",
    ]
    assert read([1])[1] and read({"attempts": 7})[1]


def test_only_the_trajectory_of_a_task_is_one() -> None:
    assert is_trajectory(FILE)
    assert not is_trajectory(".aiwg/ralph/tasks/trajectory.json")
    assert not is_trajectory(".aiwg/ralph/tasks/a/b/trajectory.json")
