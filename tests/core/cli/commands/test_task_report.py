"""`metrics --tasks`: what is measured on the trees, and what it takes to say anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.cli.conftest import TREES, Call

EXAMPLES = TREES / "spec-examples"


def test_the_example_of_the_document(call: Call, tmp_path: Path) -> None:
    """One task, a timeout, a failure and a success: two retries, each after a reflection on the one before."""
    document = call("metrics", "--tasks", "--json", "--project", EXAMPLES).document
    reported = document["improvement"]
    assert [reported[kind]["successes"] for kind in ("first", "with_reflections", "without_reflections")] == [0, 1, 0]
    assert (reported["against_first"]["difference"], reported["against_first"]["tells"]) == (0.5, False)
    assert document["metrics"]["audit_trail"]["met"] is True
    out = call("metrics", "--tasks", "--project", EXAMPLES).out
    for line in (
        "Attempts with an outcome (a timeout is a failure): 3\n",
        "  retries with reflections: 1 of 2 succeeded, 50 % (90 % interval ",
        "  against first attempts: not enough data: about 2 more attempts per group; so far +50 perc",
        "  against retries without: not enough data: no attempts to compare with\n",
        "  tracking coverage: not met; all loops have a task record: 0 of 2, missing: ralph-fix-api-d4e5f6a7, ralph-",
        "  audit trail: met; ended attempts with actions, outcome and reflection: 3 of 3\n",
    ):
        assert line in out
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    nothing = call("metrics", "--tasks", "--project", tmp_path)
    assert (nothing.code, nothing.out.count("not enough data;"), nothing.out.count("not enough data:")) == (0, 4, 2)


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
