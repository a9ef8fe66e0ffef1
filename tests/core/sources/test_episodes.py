"""Reading tasks and attempts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from core.records.episodes import Attempt, Task, TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome
from core.sources.episodes import (
    count_actions,
    join_attempts,
    join_tasks,
    parse_attempts,
    parse_tasks,
    select_attempt_folders,
    skipped_attempt_folders,
)

FILE = ".aiwg/ralph/tasks/task-001/trajectory.json"


def read(value: Any) -> tuple[dict[str, Attempt], tuple[Finding, ...]]:
    attempts, findings = parse_attempts(FILE, json.loads(json.dumps(value)))
    return join_attempts(attempts), findings


def test_the_documented_example_is_read() -> None:
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


def test_the_folder_names_the_task() -> None:
    assert list(read({"task_id": "../../etc", "attempts": [{"attempt_id": 1}]})[0]) == ["task-001.1"]


def test_a_long_quality_history_keeps_its_end() -> None:
    history = [{"iteration": number, "quality": number / 2_000} for number in range(1, 1_501)]
    execution = {"execution": {"quality_history": history}}
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert [attempt.quality[at].iteration for at in (0, -1)] == [501, 1_500]


def test_an_invalid_field_does_not_affect_others() -> None:
    attempts, findings = read({"attempts": [{"attempt_id": 1}, {"attempt_id": -1}, {}, "x", {"attempt_id": 2}]})
    assert sorted(attempts) == ["task-001.1", "task-001.2", "task-001.3", "task-001.4"]
    assert [finding.pointer for finding in findings] == [
        "/attempts/1",
        "/attempts/2",
        "/attempts/3",
    ]
    assert read([1])[1] and read({"attempts": 7})[1]


FOLDER = ".aiwg/ralph/tasks/task-001"


def join_files(*files: tuple[str, Any]) -> Attempt:
    """Join an attempt from these files."""
    parsed = [attempt for file, value in files for attempt in parse_attempts(f"{FOLDER}/{file}", value)[0]]
    (attempt,) = join_attempts(parsed).values()
    return attempt


def test_precedence_is_outcome_then_trajectory_then_attempt() -> None:
    attempt = join_files(
        ("attempts/002/attempt.json", {"id": 7, "outcome": {"status": "timeout", "reason": "slow"}, "plan": "a"}),
        ("attempts/002/outcome.json", {"status": "success", "final_quality": 92}),
        ("trajectory.json", {"attempts": [{"attempt_id": 2, "outcome": "failure", "final_quality": 0.5, "plan": "b"}]}),
    )
    assert (attempt.outcome, attempt.final_quality, attempt.reason) == (Outcome.SUCCESS, 0.92, "slow")
    assert (attempt.id, attempt.plan, attempt.is_open) == ("task-001.2", "b", False)


def test_an_attempt_without_an_end_is_open() -> None:
    attempt = join_files(("attempts/001/attempt.json", {"started": "2026-02-01T09:00:00Z", "outcome": None}))
    assert attempt.is_open


@pytest.mark.parametrize("beside", [True, False])
def test_successful_approaches_are_read_beside_and_inside_the_outcome(beside: bool) -> None:
    lists = {"what_worked": ["types first"], "what_didnt_work": ["big bang"], "suggestions_for_next_time": ["x"]}
    value = {"outcome": {"status": "failure"}} | lists if beside else {"outcome": {"status": "failure"} | lists}
    attempt = join_files(("attempts/001/attempt.json", value))
    assert (attempt.worked, attempt.failed, attempt.suggestions) == (("types first",), ("big bang",), ("x",))


def test_the_action_log_has_the_exact_counts() -> None:
    log = b'{"timestamp":"2026-02-01T09:00:00Z","success":true}\n{"error":"exit 1"}\n{"success":fa'
    counts, findings = count_actions(f"{FOLDER}/attempts/002/actions.jsonl", log)
    assert findings == ()
    trajectory = parse_attempts(FILE, {"attempts": [{"attempt_id": 2, "actions": 9, "errors": 4}]})[0]
    attempt = join_attempts([*trajectory, *counts])["task-001.2"]
    assert (attempt.actions, attempt.errors, attempt.last_action_at) == (2, 1, datetime(2026, 2, 1, 9, tzinfo=UTC))


def test_one_folder_counts_for_each_number() -> None:
    names = ["1", "001", "0001", "2", "0003", "00003", "1000000", "999999", "0", "x", "-1", "\u0661"]
    assert select_attempt_folders(names) == {0: "0", 1: "001", 2: "2", 3: "0003", 999_999: "999999"}
    assert skipped_attempt_folders(names, select_attempt_folders(names)) == ["00003", "0001", "1", "1000000"]


def test_a_skipped_folder_is_not_merged() -> None:
    def parsed(folder: str, reason: str) -> tuple[Attempt, ...]:
        return parse_attempts(f".aiwg/ralph/tasks/t/attempts/{folder}/outcome.json", {"reason": reason})[0]

    ours, theirs = parsed("001", "ours"), parsed("1", "theirs")
    assert join_attempts([*theirs, *ours, *theirs])["t.1"].reason == "ours"
    assert join_attempts(theirs)["t.1"].reason == "theirs"


@pytest.mark.parametrize(
    ("name", "value"),
    [("attempts/999999999/outcome.json", {}), ("trajectory.json", {"attempts": [{"attempt_id": 1_000_000}]})],
)
def test_an_impossible_attempt_number_is_a_finding(name: str, value: Any) -> None:
    attempts, findings = parse_attempts(f".aiwg/ralph/tasks/t/{name}", value)
    assert (attempts, [one.code for one in findings]) == ((), ["no-attempt"])


def test_metadata_win_over_other_files() -> None:
    files = {"trajectory.json": {}, "metadata.json": {"description": "d", "status": "in-progress"}}
    tasks = [task for name, value in files.items() for task in parse_tasks(f"{FOLDER}/{name}", value)[0]]
    for order in (tasks, tasks[::-1]):
        assert join_tasks(order) == {
            "task-001": Task(
                id="task-001",
                description="d",
                status=TaskStatus.RUNNING,
                raw_status="in-progress",
                file=f"{FOLDER}/metadata.json",
            )
        }


def test_quality_changes_are_read_or_computed() -> None:
    history = [{"quality": 0.4, "delta": 0}, {"quality": 0.55, "delta": 0.15}, {"quality": 0.5}]
    execution = {"execution": {"quality_history": history}}
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert [one.delta for one in attempt.quality] == [None, 0.15, -0.05]
    assert [one.change for one in attempt.quality] == ["", "+15", "-5"]
    history[0]["delta"] = 0.1
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert attempt.quality[0].delta == 0.1
