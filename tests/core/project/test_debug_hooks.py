"""The debug hooks on success and on escalation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Unwritable
from core.config.paths import ProjectPaths
from core.config.settings import DebugMemorySettings, Settings
from core.curation.commands import Dismiss, Undo
from core.debug_memory.archive import DebugArchive
from core.debug_memory.escalations import context_file
from core.project.debug_hooks import on_escalation, on_success
from core.project.notifications import NotificationKind, find_notifications
from core.project.project import Project
from core.queries.record_filters import MemoryCatalog
from core.records.snapshot import Delta
from tests.factories import DEBUG_NOW

STATE = {
    "loopId": "ralph-a",
    "task": "Fix it",
    "status": "running",
    "iterations": [{"number": n, "action": f"step {n}"} for n in range(1, 31)],
    "cross_loop_learning": {"injected_patterns": [{"pattern_id": "pat-error-x-001", "applied": True}]},
}


def write(project: Path, name: str, value: Any) -> Path:
    path = project / ".aiwg/ralph" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def stored(**changes: Any) -> dict[str, Any]:
    values = {"session_id": "s", "file_path": "a.ts", "status": "escalated", "executions": [], "mine": {"kept": 1.5}}
    return {**values, **changes}


def opened(project: Path) -> Project:
    open_project = Project(ProjectPaths(project), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    open_project.load()
    return open_project


def test_escalation_preserves_the_surrounding_records(tmp_path: Path) -> None:
    write(tmp_path, "loops/ralph-a/state.json", STATE)
    write(tmp_path, "loops/ralph-a/debug-memory/s.json", stored(metadata={"task_id": "task-001"}))
    write(tmp_path, "tasks/task-001/metadata.json", {"id": "task-001", "description": "x", "status": "running"})
    write(tmp_path, "tasks/task-001/attempts/002/attempt.json", {"id": 2, "task_id": "task-001"})
    kept = on_escalation(opened(tmp_path), "s", reason="why")
    context = json.loads(kept.file.read_bytes())
    assert context["session"] == stored(metadata={"task_id": "task-001"})
    assert [iteration["number"] for iteration in context["loop"]["iterations"]] == list(range(11, 31))
    assert context["loop"]["injected_patterns"][0]["pattern_id"] == "pat-error-x-001"
    assert [attempt["number"] for attempt in context["open_attempts"]] == [2]
    assert (context["reason"], context["by"]) == ("why", "ada")


def test_each_call_has_its_own_file(tmp_path: Path) -> None:
    write(tmp_path, "debug-memory/s.json", stored(status="failed"))
    write(tmp_path, "debug-memory/s-2.json", stored(session_id="s-2", status="failed"))
    open_project = opened(tmp_path)
    files = [
        on_escalation(open_project, id, reason=reason).file for id, reason in (("s", "a"), ("s-2", "b"), ("s", "c"))
    ]
    assert [file.name for file in files] == ["s.json", "s-2.json", "s-3.json"]
    assert [json.loads(file.read_bytes())["reason"] for file in files] == ["a", "b", "c"]
    call = open_project.view.snapshot.escalations["s"]
    assert (call.reason, [one.reason for one in call.earlier]) == ("c", ["a"])


def test_session_is_escalated_until_acknowledged_and_again_by_the_next_call(tmp_path: Path) -> None:
    write(tmp_path, "debug-memory/s.json", stored(status="in_progress"))
    times = iter(DEBUG_NOW + timedelta(minutes=minute) for minute in range(100))
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: next(times), cache=False)
    open_project.load()
    assert (open_project.view.escalations(), open_project.view.queue) == ((), ())
    for reason in ("needs credentials", "still needs them"):
        before = open_project.view
        on_escalation(open_project, "s", reason=reason)
        view = open_project.view
        (one,), (item,) = view.escalations(), view.queue
        assert (one.call, item.kind, item.escalated) == (view.snapshot.escalations["s"], "escalation", one)
        assert f"; {reason} — by ada; " in item.reason
        (result,) = find_notifications(before, view, Delta(escalations=frozenset({"s"})))
        assert result.what is NotificationKind.ESCALATED and reason in result.text
        assert MemoryCatalog(open_project.view.snapshot).escalated.keys() == {"s"}
        open_project.decide(Dismiss(key=item.question_key, summary="seen"))
        assert (open_project.view.escalations(), open_project.view.queue) == ((), ())
        assert MemoryCatalog(open_project.view.snapshot).escalated == {}
        open_project.decide(Undo())
        assert open_project.view.queue[0].question_key == item.question_key
        open_project.decide(Dismiss(key=item.question_key, summary="seen"))
    on_escalation(open_project, "s")
    before = open_project.view
    on_escalation(open_project, "s", reason="again, though nobody has answered")
    assert [one.what for one in find_notifications(before, open_project.view, Delta())] == [NotificationKind.ESCALATED]


def test_context_is_not_written_outside_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "p", tmp_path / "outside"
    outside.mkdir()
    write(project, "debug-memory/s.json", stored())
    open_project = opened(project)
    open_project.project.curation.parent.mkdir(parents=True, exist_ok=True)
    open_project.project.curation.symlink_to(outside)
    with pytest.raises(Unwritable):
        on_escalation(open_project, "s")
    assert list(outside.iterdir()) == []


def test_context_is_not_indexed_as_a_session(tmp_path: Path) -> None:
    write(tmp_path, "debug-memory/s.json", stored())
    open_project = opened(tmp_path)
    open_project.project.patterns.mkdir(parents=True)
    open_project.project.curation.mkdir(exist_ok=True)
    (open_project.project.curation / "escalations").symlink_to(open_project.project.patterns)
    with pytest.raises(Unwritable, match="is a link"):
        on_escalation(open_project, "s")
    assert list(open_project.project.patterns.iterdir()) == []


@pytest.mark.parametrize("id", ["../x", "a/b", ".hidden", "", "x" * 300, "a..b", "\ud800"])
def test_context_file_name_is_safe(id: str, tmp_path: Path) -> None:
    path = context_file(ProjectPaths(tmp_path), id)
    assert path.parent == tmp_path / ".aiwg/ralph/shared/curation/escalations"
    assert path.name.startswith("session-") and path.name.isascii()


def test_patterns_are_extracted_even_if_lessons_cannot_be_written(tmp_path: Path) -> None:
    failure = {"test_name": "t", "error_type": "TypeError", "error_message": "Cannot read property 'x' of null"}
    run = {
        "attempt": 1,
        "failures": [failure],
        "analysis": {"root_cause": "x" * 20, "root_cause_category": "null_undefined_access"},
        "fix_applied": {"description": "Added an early return for null", "verification": "passed"},
    }
    write(tmp_path, "debug-memory/s.json", stored(status="passed", executions=[run], learnings=[1]))
    late = opened(tmp_path)
    result = on_success(opened(tmp_path), "s")
    assert "unknown structure" in result.learned.problem
    assert result.decided is not None
    again = on_success(late, "s")  # it has not seen yet what another process has put into the registry
    assert (again.decided, again.warnings) == (None, ())
    open_project = opened(tmp_path)
    assert [item.kind for item in open_project.view.queue if item.subject in open_project.view.snapshot.patterns] == [
        "extracted"
    ]


def test_concurrent_archiving_moves_each_file_once(tmp_path: Path) -> None:
    old = {"updated_at": "2020-01-01T00:00:00Z", "status": "failed"}
    for number in range(20):
        write(tmp_path, f"debug-memory/{number}.json", stored(session_id=f"s{number}", **old))

    def retain(_: int) -> int:
        moved, warnings = DebugArchive(ProjectPaths(tmp_path)).archive_expired(DebugMemorySettings(), DEBUG_NOW)
        assert warnings == ()
        return len(moved)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(retain, range(4))) == 20
    assert len(DebugArchive(ProjectPaths(tmp_path)).list_sessions()) == 20


_KILLED = """
import os, sys
from pathlib import Path
from core.debug_memory import archive
from core.debug_memory.archive import DebugArchive
from core.config.paths import ProjectPaths
from core.config.settings import DebugMemorySettings
from tests.factories import DEBUG_NOW
left = int(sys.argv[2])
def trace(frame, event, arg):
    global left
    if event == "call" and frame.f_code.co_name in {"_move", "_open", "_check_unchanged", "rename_to_free", "_append"}:
        left -= 1
        if not left:
            os._exit(9)
sys.setprofile(trace)
DebugArchive(ProjectPaths(Path(sys.argv[1]))).archive_expired(DebugMemorySettings(), DEBUG_NOW)
"""


@pytest.mark.parametrize("after", [2, 6, 7])
def test_kill_at_any_step_loses_no_session(after: int, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path, f"debug-memory/{name}.json", stored(session_id=name, status="failed", updated_at="2020-01-01"))
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), str(after)],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
        timeout=30,
    )
    assert done.returncode == 9
    archive = DebugArchive(ProjectPaths(tmp_path))
    listed = set(opened(tmp_path).view.snapshot.debug_sessions)
    archived = {item.session.id for item in archive.list_sessions()}
    assert listed | archived == {"a", "b"} and not listed & archived
    archive.archive_expired(DebugMemorySettings(), DEBUG_NOW)
    assert {item.session.id for item in archive.list_sessions()} == {"a", "b"}
