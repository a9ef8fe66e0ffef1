"""Update `index/by-status.json` and `index/by-agent.json`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput, Conflict, Unwritable
from core.files.append_log import sync_folder
from core.records.episodes import TASK_STATUSES, Attempt, Task, TaskStatus
from core.sources.episodes import TRAJECTORY
from core.tasks.folders import TaskFolder, lock_index
from core.tasks.history import TaskFiles
from core.tasks.json_files import Shapes, check_editable, check_shapes, edit_object, read_object
from core.tasks.task_lookup import task_ids

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.json_editor import JsonText

BY_STATUS: Final = "by-status.json"
BY_AGENT: Final = "by-agent.json"
"""Keys that the index always contains; tasks without a valid status are listed under `unknown`."""
STATUS_SHAPES: Final[Shapes] = {(status,): list for status in TaskStatus}  # expected types in the index by status


def index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    """Set the status (one of `TASK_STATUSES`) and the agents of a task in the index.

    Missing tasks are added from their files, so that a missing or damaged index is rebuilt, and tasks without a folder
    are removed. A problem is added to `folder.warnings` and does not stop the call, since the index can be rebuilt.
    """
    try:
        with lock_index(folder.project):
            _index_task(folder, status, agents)
    except (BadInput, Conflict, Unwritable) as error:
        folder.warnings.append(_warning(folder, error))


def _index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    project, task_id = folder.project, folder.id
    shapes: dict[str, Shapes] = {BY_STATUS: STATUS_SHAPES, BY_AGENT: {}}
    indexed = {name: _read_ids(project, name) for name in shapes if _is_writable(folder, name, shapes[name])}
    others = {id for id in task_ids(project) if id != task_id}
    lacking = sorted(others - indexed[BY_STATUS]) if BY_STATUS in indexed else []
    removed = set().union(*indexed.values()) - others - {task_id}
    # Tasks without an agent are never in this index, so others are added only if the whole file is missing.
    unnamed = lacking if (project.task_index / BY_AGENT).exists() else sorted(others)
    if BY_STATUS in indexed:
        statuses = ((id, (TaskFiles(project, id).task().status.value,)) for id in lacking)
        _write(project.task_index / BY_STATUS, [(task_id, (status,)), *statuses], removed, exclusive=True)
    if BY_AGENT in indexed:
        worked = ((id, _read_agents(TaskFiles(project, id))) for id in unnamed)
        _write(project.task_index / BY_AGENT, [(task_id, agents), *worked], removed, exclusive=False)


def _is_writable(folder: TaskFolder, name: str, shapes: Shapes) -> bool:
    """Return whether an index file can be edited; rename it first if it is damaged."""
    path = folder.project.task_index / name
    try:
        check_editable(path, folder.project.aiwg, shapes)
        return True
    except Conflict as error:
        if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
            folder.warnings.append(_warning(folder, error))
            return False
    aside = path.with_name(f"{path.name}.damaged-{os.urandom(4).hex()}")
    try:
        path.rename(aside)
        sync_folder(path.parent)
    except OSError as error:
        folder.warnings.append(_warning(folder, f"cannot move {path} away: {error.strerror}"))
        return False
    folder.warnings.append(
        f"{path} could not be parsed; it was rebuilt from the tasks, and the old file was renamed to {aside.name}"
    )
    return True


def _warning(folder: TaskFolder, error: Exception | str) -> str:
    reason = str(error).replace("; nothing was changed", "")
    return f"the index does not contain the status of {folder.id}: {reason}"


def _read_agents(files: TaskFiles) -> tuple[str, ...]:
    own = (part for number in files.numbers for part in files.attempt_parts(number))
    return list_agents(files.task(), (*files.attempts(TRAJECTORY), *own))


def list_agents(task: Task, attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the agents of a task and its attempts, without duplicates."""
    return tuple(dict.fromkeys(name for name in (task.agent, *(one.agent for one in attempts)) if name))


def _read_ids(project: ProjectPaths, name: str) -> set[str]:
    value = read_object(project.task_index / name, project.aiwg) or {}
    return {id for ids in value.values() if isinstance(ids, list) for id in ids if isinstance(id, str)}


def _write(path: Path, entries: Iterable[tuple[str, Sequence[str]]], removed: Set[str], *, exclusive: bool) -> None:
    """Add IDs to the lists of their keys, and remove the `removed` IDs.

    If `exclusive`, also remove each added ID from all other lists.
    """
    wanted = {id: frozenset(key for key in keys if key) for id, keys in entries}
    added: dict[str, list[str]] = {}
    for id, keys in wanted.items():
        for key in keys:
            added.setdefault(key, []).append(id)

    def edit(document: JsonText) -> None:
        check_shapes(document.value, STATUS_SHAPES if exclusive else {})
        for key in dict.fromkeys((*document.value, *added)):
            present = document.value.get(key, [])
            if not isinstance(present, list):  # another program added this member
                continue
            dropped = removed | {id for id, keys in wanted.items() if exclusive and key not in keys}
            ids = [id for id in present if not isinstance(id, str) or id not in dropped]
            known = {id for id in ids if isinstance(id, str)}
            ids += [id for id in added.get(key, ()) if id not in known]
            if ids != present:
                document.set((), key, ids)

    initial: dict[str, list[str]] = {key: [] for key in TASK_STATUSES} if exclusive else {}
    edit_object(path, edit, initial)
