"""Projects with an episodic memory, and calls that are killed in their middle."""

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
from core.episodes.protocol import Episodes

START = datetime(2026, 2, 1, 9, tzinfo=UTC)
QUICK = mock.patch.multiple("core.storage.atomic_write", _CHECK_SECONDS=(), _COLLISION_CHECK_SECONDS=())
"""Without the pauses in which a slower writer of another make could show itself."""
UNSYNCED = mock.patch("os.fsync")
"""Skip fsync, which matters only after a power failure."""
CHANGING_CALLS = ("write", "link", "unlink", "rename", "replace", "ftruncate", "mkdir", "rmdir")
"""What changes the disk as other processes see it; to them `fsync` does nothing."""


class Clock:
    """A minute later at each look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def make_episodes(project: Path, clock: Callable[[], datetime] | None = None, **options: Any) -> Episodes:
    """The memory of a project that is made if there is none."""
    (project / ".aiwg/ralph").mkdir(parents=True, exist_ok=True)
    return Episodes(ProjectPaths(project), clock=clock or Clock(), by="implementer", **options)


def bash(command: str, success: bool, **more: Any) -> dict[str, Any]:
    """A command that was run."""
    return {"type": "bash", "tool": "Bash", "params": {"command": command}, "success": success, **more}


def edit(file: str) -> dict[str, Any]:
    """A file that was changed."""
    return {"type": "edit", "tool": "Edit", "params": {"file_path": file}, "success": True}


def read_json(project: Path, file: str) -> Any:
    """A file of the first task, by its name there."""
    return json.loads((project / ".aiwg/ralph/tasks/task-001" / file).read_bytes())


def tree(project: Path) -> dict[str, bytes]:
    """All files by name, but for those that begin with a dot and for locks."""
    return {
        str(file.relative_to(project)): file.read_bytes()
        for file in (project / ".aiwg/ralph").rglob("*")
        if file.is_file()
        and not file.name.endswith(".lock")
        and not any(part.startswith(".") for part in file.relative_to(project / ".aiwg").parts)
    }


class Killed(BaseException):
    """The end of a process, without its last words."""


@contextmanager
def killed_before(call: int) -> Iterator[None]:
    """Stop all writes from this call on, as after a kill; the lock of the dead process remains."""
    left = call

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return function(*args, **options)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGING_CALLS:
            patch.setattr(os, name, dying(getattr(os, name)))
        patch.setattr(core.storage.atomic_write, "_exchange", dying(core.storage.atomic_write._exchange))
        yield


def bury(project: Path) -> None:
    """Remove the leases of a process that seemed to die, since this one lives on."""
    for lease in (project / ".aiwg/ralph/tasks").glob("*/.task.lock"):
        lease.unlink()
