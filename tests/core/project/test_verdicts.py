"""Verdicts on patterns that attempts were given."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from core.base.paths import ProjectPaths
from core.project.verdicts import ActionLogs, list_unjudged, record_verdicts
from core.records.events import injected_events
from core.records.loops import Outcome
from core.sources.events import append_events
from core.tasks.protocol import Episodes
from tests.core.project.test_daemon import NOW, opened, project
from tests.factories import make_pattern_file

LESSON: dict[str, Any] = {
    "pattern_id": "pat-error-total-001",
    "error_signature": {"error_type": "TypeError", "error_pattern": "total is None"},
    "fix_approach": {
        "description": "Return ZERO_AMOUNT",
        "diff_pattern": "-return total\n+return total or ZERO_AMOUNT",
    },
}
EDIT = {"file_path": "cart.py", "old_string": "return total", "new_string": "return total or ZERO_AMOUNT"}


def given(folder: Path) -> ProjectPaths:
    """Return a project with the lesson."""
    paths = project(folder)
    paths.patterns.mkdir(parents=True, exist_ok=True)
    (paths.patterns / "error-patterns.json").write_bytes(make_pattern_file(LESSON))
    return paths


def test_an_attempt_of_the_agent_protocol_is_judged_once(tmp_path: Path) -> None:
    paths = given(tmp_path)
    memory = Episodes(paths, clock=lambda: NOW - timedelta(minutes=5), by="agent")
    task = memory.init_task("Fix the total")
    memory.start_attempt(task)
    append_events(paths, *injected_events(f"{task}.1", [LESSON["pattern_id"]], (), at=NOW - timedelta(hours=1), by="a"))
    check = {"type": "bash", "tool": "Bash", "params": {"command": "pytest"}}
    memory.log_action(task, check | {"success": False, "error": "TypeError: total is None"})
    memory.log_action(task, {"type": "edit", "tool": "Edit", "params": EDIT, "success": True})
    memory.log_action(task, check | {"success": True})
    memory.complete_attempt(task, outcome=Outcome.SUCCESS)
    found = opened(paths)
    assert list_unjudged(found) == [f"{task}.1"]
    record_verdicts(found, task)
    record_verdicts(found, task)
    kinds = [event.kind for event in found.view.snapshot.events if event.kind != "counted"]
    assert sorted(kinds) == ["applied", "injected", "verdict"]
    (verdict,) = found.view.inputs.verdicts(found.view.pattern(LESSON["pattern_id"]))
    assert (verdict.is_followed, verdict.action) == (True, 2)
    assert verdict.evidence == "edited cart.py: return total or ZERO_AMOUNT"
    assert list_unjudged(found) == []


def test_the_log_of_an_attempt_is_read_once(tmp_path: Path) -> None:
    paths = given(tmp_path)
    memory = Episodes(paths, clock=lambda: NOW - timedelta(minutes=5), by="agent")
    task = memory.init_task("Fix the total")
    memory.start_attempt(task)
    check = {"type": "bash", "tool": "Bash", "params": {"command": "pytest"}}
    memory.log_action(task, check | {"success": False, "error": "TypeError: total is None"})
    memory.complete_attempt(task, outcome=Outcome.FAILURE)
    found = opened(paths)
    attempt, logs = found.view.snapshot.attempts[f"{task}.1"], ActionLogs(found)
    before = logs.read(attempt).find_errors(found.view.pattern(LESSON["pattern_id"]))
    for file in paths.tasks.rglob("*actions*"):
        file.unlink()
    assert logs.read(attempt).find_errors(found.view.pattern(LESSON["pattern_id"])) == before == [0]
    assert not len(ActionLogs(found).read(attempt).actions)
