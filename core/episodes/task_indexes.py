"""`index/by-status.json` and `index/by-agent.json`: the ids of the tasks by status and by agent (1)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any, Final

from core.base.errors import BadInput, Conflict, Unwritable
from core.config.paths import ProjectPaths
from core.episodes.folders import TaskFolder, lock_index
from core.episodes.json_files import Shapes, check_editable, edit_object, expect, read_object
from core.episodes.task_lookup import task_ids
from core.records.episodes import Task, TaskStatus
from core.sources.episodes import METADATA, parse_attempts, parse_tasks
from core.storage.append_log import sync_folder
from core.storage.file_reader import RawFile, read_file
from core.storage.json_editor import JsonText
from core.storage.json_reader import decode_json

BY_STATUS: Final = "by-status.json"
BY_AGENT: Final = "by-agent.json"
STATUSES: Final = tuple(status.value for status in TaskStatus if status is not TaskStatus.UNKNOWN)
"""(1) `task_metadata.status`; each has a list in the index, also while it is empty.

Another list, `unknown`, has the tasks whose metadata told no status when the index took them in.
"""
STATUS_SHAPES: Final[Shapes] = {(status,): list for status in TaskStatus}
"""What the index by status must be like to be written."""


def index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    """Say in the index how a task stands, and who works at it.

    Where an index lacks tasks that have a folder, those come in with what their files say: it is made anew where
    it is missing or cannot be understood, and mended after a kill. Tasks that have no folder any more are taken out.
    What cannot be written stops nobody, as the index only follows from the tasks: `folder.warnings` tells of it.

    Args:
        status: One of `STATUSES`.
        agents: Everybody who is known to have worked at it; "" is nobody.
    """
    try:
        _index_task(folder, status, agents)
    except (BadInput, Conflict, Unwritable) as error:
        folder.warnings.append(_untold(folder, error))


def _index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    project, task_id = folder.project, folder.id
    with lock_index(project):
        usable = [
            name for name, shapes in ((BY_STATUS, STATUS_SHAPES), (BY_AGENT, {})) if _usable(folder, name, shapes)
        ]
        others = {id for id in task_ids(project) if id != task_id}
        indexed = {name: _indexed(project, name) for name in usable}
        lacking = sorted(others - indexed[BY_STATUS]) if BY_STATUS in usable else []
        gone = set().union(*indexed.values()) - others - {task_id}
        # Nobody is known to have worked at many a task: only where the whole file is missing it lacks those, too.
        unnamed = lacking if (project.task_index / BY_AGENT).exists() else sorted(others)
        if BY_STATUS in usable:
            stand = ((id, (_stands(project, id).status.value,)) for id in lacking)
            _write(project.task_index / BY_STATUS, [(task_id, (status,)), *stand], gone, only=True)
        if BY_AGENT in usable:
            worked = ((id, _workers(project, id)) for id in unnamed)
            _write(project.task_index / BY_AGENT, [(task_id, agents), *worked], gone, only=False)


def _usable(folder: TaskFolder, name: str, shapes: Shapes) -> bool:
    """Whether a file of the index can be written, perhaps anew; if not, `folder.warnings` tells why."""
    try:
        moved = _move_damaged(folder.project.task_index / name, folder.project.aiwg, shapes)
    except (Conflict, Unwritable) as error:
        folder.warnings.append(_untold(folder, error))
        return False
    folder.warnings.extend([moved] if moved else [])
    return True


def _untold(folder: TaskFolder, error: Exception) -> str:
    told = str(error).replace("; nothing was changed", "")
    return f"the index does not tell how {folder.id} stands: {told}"


def _move_damaged(path: Path, root: Path, shapes: Shapes) -> str:
    """Move a file of the index out of the way that cannot be understood; what it holds is kept.

    Returns:
        What was done, "" if nothing.

    Raises:
        Conflict: It is a link or no regular file, or cannot be read; it is as it was.
        Unwritable: It cannot be moved.
    """
    try:
        check_editable(path, root, shapes)
        return ""
    except Conflict:
        if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
            raise
    aside = path.with_name(f"{path.name}.damaged-{os.urandom(4).hex()}")
    try:
        path.rename(aside)
        sync_folder(path.parent)
    except OSError as error:
        raise Unwritable(f"cannot move {path} away: {error.strerror}") from None
    return f"{path} could not be understood: it was made anew from the tasks, and is kept as {aside.name}"


def _stands(project: ProjectPaths, task_id: str) -> Task:
    """What the metadata of another task say at the first look; what is wrong there is not for this writer to tell."""
    return parse_tasks(*_read(project, project.tasks / task_id / METADATA))[0][0]


def _workers(project: ProjectPaths, task_id: str) -> tuple[str, ...]:
    """Everybody who has worked at another task, as its files say at the first look."""
    folder = TaskFolder(project, task_id)
    try:
        files = [folder.trajectory, *(place.attempt for place in folder.attempts().values())]
    except BadInput:  # its attempts lie behind a link
        files = [folder.trajectory]
    told = [attempt.agent for file in files for attempt in parse_attempts(*_read(project, file))[0]]
    return tuple(dict.fromkeys((_stands(project, task_id).agent, *told)))


def _read(project: ProjectPaths, file: Path) -> tuple[str, dict[str, Any]]:
    """Project-relative name and decoded object of a file; an empty object if it is not one."""
    raw = read_file(file, project.aiwg)
    value = decode_json(raw.data).value if isinstance(raw, RawFile) else None
    return project.relative(file), value if isinstance(value, dict) else {}


def _indexed(project: ProjectPaths, name: str) -> set[str]:
    """The ids in the lists of an index."""
    value = read_object(project.task_index / name, project.aiwg) or {}
    return {id for ids in value.values() if isinstance(ids, list) for id in ids if isinstance(id, str)}


def _write(path: Path, entries: Iterable[tuple[str, Sequence[str]]], gone: Set[str], *, only: bool) -> None:
    """Bring each id into its lists, with `only` also out of all others; what is gone out of all."""
    wanted = {id: frozenset(key for key in keys if key) for id, keys in entries}
    added: dict[str, list[str]] = {}
    for id, keys in wanted.items():
        for key in keys:
            added.setdefault(key, []).append(id)

    def stays(id: str, key: str) -> bool:
        return not only or key in wanted.get(id, (key,))

    def edit(document: JsonText) -> None:
        expect(document.value, STATUS_SHAPES if only else {})
        for key in dict.fromkeys((*document.value, *added)):
            present = document.value.get(key, [])
            if not isinstance(present, list):  # something of another maker's, not a list of ids
                continue
            kept = [id for id in present if not isinstance(id, str) or (id not in gone and stays(id, key))]
            known = {id for id in kept if isinstance(id, str)}
            kept += [id for id in added.get(key, ()) if id not in known]
            if kept != present:
                document.set((), key, kept)

    initial: dict[str, list[str]] = {key: [] for key in STATUSES} if only else {}
    edit_object(path, edit, initial)
