from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.paths import ProjectPaths
from core.decisions.reference_storage import LoggedErrors
from core.learning.storage import ErrorAccumulator
from tests.core.cli.conftest import Call

LOOP = "ralph-fix-null-customer-crash-in-the-644aee36"


def context(project: Path, work: str, everything: bool = False) -> str:
    storage = LoggedErrors(ProjectPaths(project), clock=lambda: datetime.now(UTC))
    return ErrorAccumulator(storage).get_error_context(work, include_resolved=everything)


def test_stdout_is_the_context_and_nothing_else(sample: Path, call: Call) -> None:
    for everything in (False, True):
        result = call("loop", "score", LOOP, "--errors", *(["--all"] if everything else []))
        assert (result.code, result.out, result.err) == (0, context(sample, LOOP, everything) + "\n", "")
        assert result.out.startswith("## Previous Errors\n") and ("Resolved: yes" in result.out) is everything
    none = call("loop", "score", "task-001.1", "--errors")
    assert (none.code, none.out, none.err) == (0, "", "no unresolved errors of task-001.1\n")


def test_add_and_resolve(sample: Path, call: Call) -> None:
    def document(*words: str) -> Any:
        command = ("record", "bd-123.1") if "--error" in words else ("score", "bd-123.1", "--errors")
        return call("loop", *command, *words, "--json").document

    words = ["--tool", "typecheck", "--context", "After adding OAuth types", "--stack-trace", "at line 3"]
    added = call("loop", "record", "bd-123.1", "--error", "Type error in src/auth.ts", *words)
    error_id = added.out.strip()
    assert error_id and added.out.count("\n") == 1
    found = document()
    assert found["errors"] == [
        {
            "id": error_id,
            "at": found["errors"][0]["at"],
            "type": "validation",
            "message": "Type error in src/auth.ts",
            "tool": "typecheck",
            "context": "After adding OAuth types",
            "stack_trace": "at line 3",
            "resolved": False,
        }
    ]
    more = document("--error", "whatever", "--type", "conflict")
    assert more["stats"] == {"total": 2, "unresolved": 2, "by_type": {"validation": 1, "conflict": 1}}
    assert call("loop", "record", "bd-123.1", "--resolve", error_id).out == f"resolved {error_id}\n"
    assert [error["type"] for error in document()["errors"]] == ["conflict"]
    assert [error["resolved"] for error in document("--all")["errors"]] == [True, False]
    assert document()["stats"]["total"] == 2


def test_an_error_of_another_work_item_is_not_resolved(sample: Path, call: Call) -> None:
    error_id = call("loop", "record", "bd-1", "--error", "x").out.strip()
    for work, wanted in (("bd-2", error_id), ("bd-1", "no-such-error")):
        result = call("loop", "record", work, "--resolve", wanted)
        assert (result.code, result.out) == (1, "")
        assert "has no error" in result.err
