"""Factories of task memory projects, and calls that are killed at any step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import core.storage.atomic_write
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.episodes.protocol import Episodes
from core.project.index import Library
from core.records.snapshot import Snapshot

TASKS = ".aiwg/ralph/tasks"
START = datetime(2026, 2, 1, 9, tzinfo=UTC)
QUICK = mock.patch.multiple("core.storage.atomic_write", _CHECK_SECONDS=(), _COLLISION_CHECK_SECONDS=())
"""Skip the pauses in which a slower foreign writer is detected."""
UNSYNCED = mock.patch("os.fsync")
"""Skip fsync, which matters only after a power failure."""
CHANGING_CALLS = ("write", "link", "unlink", "rename", "replace", "ftruncate", "mkdir", "rmdir")
"""Calls that change the disk for other processes."""


class Clock:
    """Advances by a minute at each call."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def make_episodes(project: Path, clock: Callable[[], datetime] | None = None, **options: Any) -> Episodes:
    """The task memory of a project, which is created if needed."""
    (project / ".aiwg/ralph").mkdir(parents=True, exist_ok=True)
    return Episodes(ProjectPaths(project), clock=clock or Clock(), by="implementer", **options)


def start_first_attempt(memory: Episodes, **fields: Any) -> str:
    """Create task-001, start its first attempt and return the task ID."""
    task_id = memory.init_task("Add OAuth")
    memory.start_attempt(task_id, **fields)
    return task_id


def load_snapshot(project: Path) -> Snapshot:
    """The snapshot of a project."""
    found = Library(ProjectPaths(project), Settings(), clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), cache=False)
    return found.load()


def bash(command: str, success: bool, **more: Any) -> dict[str, Any]:
    """A bash action."""
    return {"type": "bash", "tool": "Bash", "params": {"command": command}, "success": success, **more}


def edit(file: str) -> dict[str, Any]:
    """An edit action."""
    return {"type": "edit", "tool": "Edit", "params": {"file_path": file}, "success": True}


def read_json(project: Path, file: str) -> Any:
    """The JSON value of a file of task-001."""
    return json.loads((project / ".aiwg/ralph/tasks/task-001" / file).read_bytes())


def tree(project: Path) -> dict[str, bytes]:
    """Contents of all files by name, without hidden files and locks."""
    return {
        str(file.relative_to(project)): file.read_bytes()
        for file in (project / ".aiwg/ralph").rglob("*")
        if file.is_file()
        and not file.name.endswith(".lock")
        and not any(part.startswith(".") for part in file.relative_to(project / ".aiwg").parts)
    }


class Killed(BaseException):
    """Simulates the kill of a process."""


@contextmanager
def killed_before(call: int) -> Iterator[None]:
    """Stop all writes from this call on, as after a kill; the lock of the dead process remains."""
    left = call

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return function(*args, **options)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGING_CALLS:
            patch.setattr(os, name, wrap(getattr(os, name)))
        patch.setattr(core.storage.atomic_write, "_exchange", wrap(core.storage.atomic_write._exchange))
        yield


def remove_leases(project: Path) -> None:
    """Remove the leases of the simulated dead process."""
    for lease in (project / ".aiwg/ralph/tasks").glob("*/.task.lock"):
        lease.unlink()
