"""Who contributed a use or a pattern: the agent that reported it or worked, never the user of the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

OWNED = "ralph-owned-loop-aaaaaaaa"
UNOWNED = "ralph-unowned-loop-bbbbbbbb"
ID = "pat-error-null-check-001"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two ended loops of one repair each, one of them with an owner."""
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path))
    ralph = tmp_path / ".aiwg" / "ralph"
    for loop_id, owner in ((OWNED, {"owner": "software-implementer"}), (UNOWNED, {"owner": "unknown"})):
        state = {
            "loopId": loop_id,
            "task": f"Fix the crash {loop_id}",
            "status": "completed",
            "startTime": "2026-11-20T10:00:00Z",
            "endTime": "2026-11-20T10:10:00Z",
            **owner,
            "iterations": [
                {
                    "number": 1,
                    "error": {"type": "TypeError", "message": f"Cannot read property '{loop_id[6:10]}' of null"},
                    "verified": False,
                },
                {
                    "number": 2,
                    "fix_applied": {"description": "Added a null check for the user object"},
                    "test_results": {"total": 3, "passed": 3, "failed": 0},
                    "verified": True,
                },
            ],
        }
        write(ralph / "loops" / loop_id / "state.json", state)
    record = {
        "pattern_id": ID,
        "error_signature": {"error_type": "TypeError", "error_pattern": "x is undefined"},
        "fix_approach": {"description": "Check for undefined before use", "fix_category": "add_null_check"},
        "success_rate": 1.0,
        "usage_count": 1,
    }
    write(ralph / "shared" / "patterns" / "error-patterns.json", {"patterns": [record]})
    return tmp_path


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))


def contributors(project: Path) -> dict[str, str | None]:
    """The contributor of each source loop of the registry's patterns."""
    document = json.loads((project / ".aiwg/ralph/shared/patterns/error-patterns.json").read_text())
    return {
        loop["loop_id"]: loop.get("contributed_by")
        for record in document["patterns"]
        for loop in record.get("source_loops", [])
    }


def test_a_recorded_use_names_the_reporting_agent(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_AGENT", "debugger")
    event = call("loop", "record", OWNED, ID, "--success", "--json").document["event"]
    assert (event["agent"], event["by"]) == ("debugger", "ada")
    assert contributors(project) == {OWNED: "debugger"}


def test_without_an_agent_a_use_names_the_owner_of_the_loop(project: Path, call: Call) -> None:
    call("loop", "record", OWNED, ID, "--success")
    call("loop", "record", UNOWNED, ID, "--success")
    assert contributors(project) == {OWNED: "software-implementer", UNOWNED: None}


def test_an_extracted_pattern_names_the_agent_that_extracts_it(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALPHDECK_AGENT", "debugger")
    assert call("loop", "extract", UNOWNED, "--types", "error").code == 0
    assert contributors(project) == {UNOWNED: "debugger"}


def test_extracting_all_loops_names_the_owner_of_each(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALPHDECK_AGENT", "debugger")
    assert call("loop", "extract", "--all", "--types", "error").code == 0
    assert contributors(project)[OWNED] == "software-implementer"
    assert "ada" not in contributors(project).values()
