"""What attempts at tasks have learned, through the command line into the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.cli.commands.test_extract import ids, proposals
from tests.core.cli.conftest import Call


def attempt_at(project: Path, actions: list[dict[str, Any]], **metadata: Any) -> None:
    """A task `task-900` with one successful attempt that did this."""
    folder = project / ".aiwg/ralph/tasks/task-900"
    (folder / "attempts/001").mkdir(parents=True)
    reported = {"id": "task-900", "description": "Mend the import of invoices", "status": "completed", **metadata}
    (folder / "metadata.json").write_text(json.dumps(reported))
    steps = ["Skip the rows without a number", "Count what was skipped"]
    attempt = {
        "id": 1,
        "plan": {"approach": "Skip first, count later", "steps": steps},
        "outcome": {"status": "success"},
    }
    (folder / "attempts/001/attempt.json").write_text(json.dumps(attempt))
    (folder / "attempts/001/actions.jsonl").write_text("".join(f"{json.dumps(action)}\n" for action in actions))


FAILS: dict[str, Any] = {"type": "bash", "tool": "Bash", "params": {"command": "npm test"}, "success": False}
FAILS |= {"error": "TypeError: Cannot read properties of undefined (reading 'invoiceNumber')"}
PASSES: dict[str, Any] = {"type": "bash", "tool": "Bash", "params": {"command": "npm test"}, "success": True}
EDIT: dict[str, Any] = {
    "type": "edit",
    "tool": "Edit",
    "params": {"file_path": "src/import.ts", "old_string": "", "new_string": "if (!row) continue"},
}
EDIT |= {"success": True, "reasoning": "Skip rows without a number"}


def test_a_task_without_a_loop_offers_the_learnings_of_its_attempts(tmp_path: Path, call: Call) -> None:
    attempt_at(tmp_path, [FAILS, EDIT, PASSES])
    assert [one["type"] for one in proposals(call, tmp_path, "--all", "--dry-run")] == ["error", "success"]
    assert call("loop", "extract", "task-900", "--project", tmp_path).code == 0
    found = ids(call, tmp_path)
    (error,) = [id for id in found if id.startswith("pat-error")]
    shown = call("pattern", "show", error, "--json", "--project", tmp_path).document
    assert [source["loop_id"] for source in shown["pattern"]["source_loops"]] == ["task-900"]
    assert [entry["loop_id"] for entry in shown["lineage"] if entry["kind"] == "discovered"] == ["task-900"]
    again = call("loop", "extract", "task-900", "--project", tmp_path)
    assert ids(call, tmp_path) == found
    assert again.err.startswith("nothing to extract from task-900: ")


def test_learnings_of_a_loops_task_count_once_for_the_loop(sample: Path, call: Call) -> None:
    attempt_at(sample, [FAILS, EDIT, PASSES], tags=["current-loop"])
    trace = "task-900, attempt 1, actions 1 → 3"
    words = ("current-loop", "--dry-run", "--types", "error")
    (of_loop,) = [one for one in proposals(call, sample, *words) if trace in one["trace"]]
    assert call("loop", "extract", "task-900").code == 0
    (refused,) = [one for one in proposals(call, sample, *words) if trace in one["trace"]]
    assert of_loop["record"]["source_loops"][0]["loop_id"] == "current-loop"
    assert of_loop["refused"] is None and refused["refused"].startswith("already known from this loop as pat-error")
    document = call("loop", "extract", "--all", "--dry-run", "--json").document
    assert "task-900" not in {extraction["source"] for extraction in document["extractions"]}


def test_a_task_that_has_not_ended_is_refused(tmp_path: Path, call: Call) -> None:
    attempt_at(tmp_path, [FAILS, EDIT, PASSES], status="running")
    result = call("loop", "extract", "task-900", "--project", tmp_path)
    assert (result.out, result.err.count("\n")) == ("", 1) and "task-900 has not ended" in result.err
    assert proposals(call, tmp_path, "--all", "--dry-run") == []
