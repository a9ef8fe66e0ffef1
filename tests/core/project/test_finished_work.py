from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.project.finished_work import ActionLogs, find_pattern_uses, find_scored_work, list_unjudged, record_verdicts
from core.project.project import Project
from core.records.events import Event, Signals, injected_events
from core.records.loops import Outcome
from core.sources.events import append_events
from core.tasks.protocol import Episodes
from tests.conftest import WriteSample
from tests.core.project.test_watch_loop import NOW, opened, project
from tests.factories import make_pattern_file

SCORED_AT = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
PATTERN = "pat-error-null-check-015"
OTHER = "pat-success-types-first-006"


@pytest.fixture
def open_project(tmp_path: Path, write_sample: WriteSample) -> Project:
    write_sample(tmp_path, SCORED_AT)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: SCORED_AT, cache=False)
    open_project.load()
    return open_project


def event(kind: str, number: int, work_id: str, pattern_id: str = "", success: bool | None = None) -> Event:
    at = SCORED_AT - timedelta(minutes=number)
    return Event(id=f"e{number}", at=at, kind=kind, loop_id=work_id, pattern_id=pattern_id, success=success)


def uses(view: ProjectState, work_id: str) -> list[tuple[str, bool | None, bool]]:
    return [(use.pattern_id, use.success, use.inferred) for use in find_pattern_uses(view, [work_id])[work_id]]


def test_finished_work_is_listed_once_newest_first(open_project: Project) -> None:
    found = find_scored_work(open_project.view)
    assert sorted(one.work_id for one in found) == sorted(open_project.view.board.inputs.finished())
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    assert {one.kind for one in found} == {"loop", "attempt", "reported"}
    for one in found:
        assert find_scored_work(open_project.view, [one.work_id, one.work_id]) == (one,)
    running = next(loop.id for loop in open_project.view.snapshot.loops.values() if loop.status.active)
    assert find_scored_work(open_project.view, [running, "bd-0"]) == ()


def test_use_without_a_result_inherits_that_of_the_loop(open_project: Project) -> None:
    view = open_project.record(
        event("applied", 6, "bd-1", PATTERN),
        event("applied", 5, "bd-1", OTHER, success=False),
        event("feedback", 4, "bd-1", "pat-error-deadlock-retry-005", success=True),  # it alone is not a use
        event("injected", 3, "bd-1", "pat-error-type-mismatch-003"),
        event("applied", 2, "bd-1", "pat-gone-001", success=True),
    )
    assert uses(view, "bd-1") == [(PATTERN, None, False), (OTHER, False, False)]
    clean = Signals(duration_ms=1000, error_count=0, retry_count=0)
    outcome = Event(id="o", at=SCORED_AT, kind="outcome", loop_id="bd-1", success=True, signals=clean)
    view = open_project.record(outcome)
    assert uses(view, "bd-1") == [(PATTERN, True, True), (OTHER, False, False)]
    (one,) = find_scored_work(view, ["bd-1"])
    assert one.outcome.raw == pytest.approx(1.0)
    assert (one.at, one.kind) == (SCORED_AT, "reported")
    (loop, *_) = [loop for loop in view.snapshot.loops.values() if loop.aliases]
    view = open_project.record(event("applied", 1, loop.aliases[0], PATTERN, success=True))
    assert (PATTERN, True, False) in uses(view, loop.id)


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
