"""Writes the planned changes of agents' files: all files of an agent or none."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from core.agents.agent_table import AGENTS
from core.agents.plan import Target, parts_of
from core.agents.restore_points import RestorePoint, RestorePoints, load_points, save_points
from core.base.errors import Conflict, RalphdeckError, Unwritable
from core.files.append_log import sync_folder
from core.files.atomic_write import rewrite, take_theirs
from core.files.file_access import file_lock, remove_drafts

if TYPE_CHECKING:
    from core.agents.plan import AgentPlan, FileChange


def apply_plan(plan: AgentPlan, points_file: Path) -> None:
    """Write the files of one agent; on an error, restores those that were written.

    The restore points are saved before the files, so that a killed process leaves no file without one.
    Raises Conflict if a file is not what the plan was made from, Unwritable if it cannot be written.
    """
    with file_lock(points_file.with_suffix(".lock")):
        points = load_points(points_file)
        before = dict(points)
        done: list[tuple[FileChange, list[Path]]] = []
        emptied: list[Path] = []
        try:
            folders = [_missing_folders(change.path.parent) for change in plan.changes]
            for change, missing in zip(plan.changes, folders, strict=True):
                emptied += _note(points, change, missing)
            save_points(points_file, {**before, **points})
            for change, missing in zip(plan.changes, folders, strict=True):
                done.append((change, missing))
                change.path.parent.mkdir(parents=True, exist_ok=True)
                _write(change)
            save_points(points_file, {path: point for path, point in points.items() if os.path.lexists(path)})
        except (OSError, RalphdeckError) as error:
            for change, missing in reversed(done):
                with suppress(OSError, RalphdeckError):
                    _write(change._replace(before=change.after, after=change.before))
                _remove_folders(missing)
            if isinstance(error, RalphdeckError):
                raise
            raise Unwritable(f"cannot write {error.filename or points_file}: {error.strerror}") from None
        _remove_folders(emptied)


def remove_old_drafts(project: Path) -> None:
    """Remove the drafts of agents' files and of `.gitignore` that killed processes have left in a project."""
    parts = [part for agent in AGENTS for part in parts_of(agent, Target(project))]
    for path in {project / ".gitignore", *(part.path for part in parts if part.path.is_relative_to(project))}:
        remove_drafts(path.parent, path.name)


def _write(change: FileChange) -> None:
    """Replace, create or delete one file, unless its content is not the expected one."""

    def replace(present: bytes | None) -> bytes | None:
        if present not in (change.before, change.after):
            raise Conflict(f"{change.shown} was changed by another program meanwhile; run the command again")
        return change.after

    if change.after is not None:
        rewrite(change.path, replace, merge=take_theirs, retry_seconds=())
    elif change.path.is_file() and replace(change.path.read_bytes()) is None:
        change.path.unlink()
        sync_folder(change.path.parent)


def _note(points: RestorePoints, change: FileChange, folders: list[Path]) -> list[Path]:
    """Record what the file was; returns the folders that are not needed if the file is deleted."""
    present = points.pop(str(change.path), None)
    made = [*(present.folders if present else []), *map(str, folders)]
    if change.after is None:
        own = [change.path.parent] if change.path.parent.name.startswith("ralphdeck") else []
        return [*map(Path, made), *own]
    if change.after != change.original:
        points[str(change.path)] = RestorePoint(sha256(change.after).hexdigest(), change.original, made)
    return []


def _missing_folders(folder: Path) -> list[Path]:
    """Return the folder and its parents that do not exist, outermost first."""
    return [place for place in (folder, *folder.parents) if not place.exists()][::-1]


def _remove_folders(folders: list[Path]) -> None:
    """Remove the folders that are empty, innermost first."""
    for folder in sorted(set(folders), key=lambda place: -len(place.parts)):
        with suppress(OSError):
            folder.rmdir()


# Restore points
