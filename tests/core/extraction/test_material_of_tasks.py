"""What the material of a loop or task takes from the episodic memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.extraction.material import MAX_ACTIONS, MAX_ATTEMPTS, Materials
from core.project.index import Library
from core.records.extractions import Material

NOW = datetime(2026, 2, 3, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A loop, the task that records it, and a task of its own."""
    write(tmp_path, "loops/ralph-a/state.json", {"task": "Fix it", "status": "completed"})
    write(tmp_path, "tasks/task-001/metadata.json", {"status": "completed", "loop_id": "ralph-a"})
    write(tmp_path, "tasks/task-002/metadata.json", {"status": "completed", "description": "Mend that"})
    attempt(tmp_path, "task-001", 1, actions=2)
    attempt(tmp_path, "task-002", 1, actions=1)
    return tmp_path


def write(project: Path, name: str, document: dict[str, Any]) -> None:
    file = project / ".aiwg/ralph" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def attempt(project: Path, task: str, number: int, actions: int = 0) -> None:
    started = (NOW + timedelta(minutes=number)).isoformat()
    values = {"started": started, "plan": {"steps": ["one"]}, "outcome": {"status": "failure"}}
    write(project, f"tasks/{task}/attempts/{number:03}/attempt.json", values)
    log = project / f".aiwg/ralph/tasks/{task}/attempts/{number:03}/actions.jsonl"
    log.write_text('{"type": "bash", "success": true}\n' * actions)


def read(project: Path, source_id: str) -> Material:
    paths = ProjectPaths(project)
    snapshot = Library(paths, Settings(), clock=lambda: NOW, cache=False).load()
    return Materials(paths, snapshot).read(source_id)


def test_a_loop_includes_the_attempts_at_its_task(project: Path) -> None:
    (logged,) = read(project, "ralph-a").attempts
    assert (logged.attempt.id, logged.steps, len(logged.actions)) == ("task-001.1", ("one",), 2)


def test_the_task_of_a_loop_adds_only_its_attempts(project: Path) -> None:
    write(project, "debug-memory/sessions/s.json", {"session_id": "s", "metadata": {"task_id": "task-001"}})
    of_task, of_loop = read(project, "task-001"), read(project, "ralph-a")
    assert (of_task.source_id, of_task.loop_id, len(of_task.attempts), of_task.sessions) == (
        "task-001",
        "ralph-a",
        1,
        (),
    )
    assert [session.id for session in of_loop.sessions] == ["s"]
    assert read(project, "s").loop_id == "ralph-a"


def test_a_task_without_loop_has_sessions_reflections_and_errors(project: Path) -> None:
    write(project, "debug-memory/sessions/s.json", {"session_id": "s", "metadata": {"task_id": "task-002"}})
    reflection = {"attempt_id": 1, "learning": "Look first", "timestamp": NOW.isoformat()}
    (project / ".aiwg/ralph/tasks/task-002/reflections.jsonl").write_text(f"{json.dumps(reflection)}\n")
    error: dict[str, Any] = {"id": "e1", "at": NOW.isoformat(), "kind": "error", "loop_id": "task-002.1"}
    error |= {"error": {"error_type": "other", "message": "x broke"}}
    write(project, "shared/curation/events.jsonl", {})
    (project / ".aiwg/ralph/shared/curation/events.jsonl").write_text(f"{json.dumps(error)}\n")
    found = read(project, "task-002")
    assert (found.loop_id, found.goal) == ("task-002", "Mend that")
    assert [session.id for session in found.sessions] == ["s"]
    assert [one.learning for one in found.reflections] == ["Look first"]
    assert [event.id for event in found.errors] == ["e1"]
    assert read(project, "s").loop_id == "task-002"


def test_only_the_newest_attempts_and_actions_are_read(project: Path) -> None:
    for number in range(2, MAX_ATTEMPTS + 3):
        attempt(project, "task-002", number, actions=MAX_ACTIONS // 2 - 1 if number > MAX_ATTEMPTS else 0)
    found = read(project, "task-002").attempts
    assert [logged.attempt.number for logged in found] == list(range(3, MAX_ATTEMPTS + 3))
    assert sum(len(logged.actions) for logged in found) == MAX_ACTIONS - 2
    attempt(project, "task-002", MAX_ATTEMPTS + 3, actions=MAX_ACTIONS + 5)
    *older, newest = read(project, "task-002").attempts
    assert (len(newest.actions), newest.actions[0].number) == (MAX_ACTIONS, 6)
    assert not any(logged.actions for logged in older)
