"""`metrics --tasks`: what is measured on the trees, and what it takes to say anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.cli.conftest import TREES, Call

EXAMPLES = TREES / "spec-examples"


def test_the_example_of_the_document(call: Call) -> None:
    """One task, a timeout, a failure and a success: two retries, each after a reflection on the one before."""
    document = call("metrics", "--tasks", "--json", "--project", EXAMPLES).document
    reported = document["improvement"]
    assert [reported[kind]["successes"] for kind in ("first", "with_reflections", "without_reflections")] == [0, 1, 0]
    assert [reported[kind]["failures"] for kind in ("first", "with_reflections", "without_reflections")] == [1, 1, 0]
    assert (reported["against_first"]["difference"], reported["against_first"]["tells"]) == (0.5, False)
    metrics = document["metrics"]
    assert metrics["audit_trail"]["met"] is True and metrics["audit_trail"]["ended"] == 3
    assert metrics["read_latency"]["tasks"] == 2 and metrics["read_latency"]["limit_ms"] == 50
    assert metrics["retry_improvement"] == {"met": None, "target": 0.2, "difference": None, "interval": None}
    assert metrics["tracking_coverage"]["met"] is False


def test_in_words(call: Call) -> None:
    out = call("metrics", "--tasks", "--project", EXAMPLES).out
    assert "Attempts with an outcome (a timeout is a failure): 3\n" in out
    assert "  retries with reflections: 1 of 2 succeeded, 50 % (90 % interval " in out
    assert "  against first attempts: not enough data: about 2 more attempts per group; so far +50 perc" in out
    assert (
        "  tracking coverage: not met; all loops have a task record: 0 of 2, "
        "missing: ralph-fix-api-d4e5f6a7, ralph-fix-validation-b2c3d4e5\n"
    ) in out
    assert "  retry improvement: not enough data; at least +20 percentage points more than retries without\n" in out
    assert "  against retries without: not enough data: no attempts to compare with\n" in out
    assert "    2 tasks without a known loop\n" in out
    assert "  audit trail: met; ended attempts with actions, outcome and reflection: 3 of 3\n" in out


def write(project: Path, name: str, document: dict[str, Any]) -> None:
    file = project / ".aiwg/ralph" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def test_missing_records_are_named_and_hostile_ids_stay_text(tmp_path: Path, call: Call) -> None:
    write(tmp_path, "loops/ralph-a/state.json", {"task": "Fix it", "status": "completed"})
    write(tmp_path, "loops/ralph-b/state.json", {"task": "Fix that", "status": "completed"})
    write(tmp_path, "tasks/task-001/metadata.json", {"description": "fix it", "status": "failed"})
    write(tmp_path, "tasks/task-001/attempts/001/attempt.json", {"outcome": {"status": "failure"}})
    write(tmp_path, "tasks/task-\x1b]0;x\x07/attempts/001/attempt.json", {"outcome": {"status": "success"}})
    result = call("metrics", "--tasks", "--project", tmp_path)
    assert result.code == 0 and "\x1b" not in result.out
    assert "all loops have a task record: 1 of 2, missing: ralph-b\n" in result.out
    assert (
        "    1 task matched with a loop: the same description, as no other loop has\n    1 task without a known loop\n"
        in result.out
    )
    assert "audit trail: not met; ended attempts with actions, outcome and reflection: 0 of 2\n" in result.out
    assert "    without actions: task-␛]0;x␇.1, task-001.1\n" in result.out


def test_without_any_task_nothing_is_claimed(tmp_path: Path, call: Call) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    result = call("metrics", "--tasks", "--project", tmp_path)
    assert (result.code, result.out.count("not enough data;"), result.out.count("not enough data:")) == (0, 4, 2)
    assert "a history is read in less than 50 ms: no tasks" in result.out
