"""`index/by-status.json` and `index/by-agent.json`: the ids of the tasks by status and by agent (1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from core.episodes.folders import index_locked
from core.episodes.json_files import Shapes, edit_object, expect, read_object
from core.episodes.names import task_ids
from core.paths import ProjectPaths
from core.records.episodes import Task, TaskStatus
from core.sources.episodes import METADATA, read_episode
from core.sources.json_text import JsonText
from core.sources.reading import RawFile, decode_json, read_file

BY_STATUS: Final = "by-status.json"
BY_AGENT: Final = "by-agent.json"
STATUSES: Final = tuple(status.value for status in TaskStatus if status is not TaskStatus.UNKNOWN)
"""(1) `task_metadata.status`; each has a list in the index, also while it is empty.

Another list, `unknown`, has the tasks whose metadata told no status when the index took them in.
"""
STATUS_SHAPES: Final[Shapes] = {(status,): list for status in TaskStatus}
"""What the index by status must be like to be written."""


def index_task(project: ProjectPaths, task_id: str, status: str, agents: Sequence[str]) -> None:
    """Say in the index how a task stands, and who works at it.

    Where an index lacks tasks that have a folder, those come in with what their metadata say: it is made anew where
    it is missing, and mended after a kill.

    Args:
        status: One of `STATUSES`.
        agents: Everybody who is known to have worked at it; "" is nobody.

    Raises:
        Conflict: A file of the index cannot be understood; it is as it was.
        Unwritable: The disk, a lock or a permission forbids it.
    """
    with index_locked(project):
        others = [id for id in task_ids(project) if id != task_id]
        by_status = _lists(project, project.task_index / BY_STATUS)
        indexed = {id for ids in by_status.values() for id in ids}
        lacking = [_stands(project, id) for id in others if id not in indexed]
        _write(
            project.task_index / BY_STATUS,
            [(task_id, (status,)), *((task.id, (task.status.value,)) for task in lacking)],
            only=True,
        )
        _write(
            project.task_index / BY_AGENT,
            [(task_id, agents), *((task.id, (task.agent,)) for task in lacking)],
            only=False,
        )


def _stands(project: ProjectPaths, task_id: str) -> Task:
    """What the metadata of another task say at the first look; what is wrong there is not for this writer to tell."""
    file = project.tasks / task_id / METADATA
    raw = read_file(file, project.aiwg)
    value = decode_json(raw.data).value if isinstance(raw, RawFile) else None
    tasks = read_episode(project.relative(file), value if isinstance(value, dict) else {})[0]
    return tasks[0]


def _lists(project: ProjectPaths, path: Path) -> dict[str, list[str]]:
    """The lists of an index."""
    value = read_object(path, project.aiwg) or {}
    return {key: [id for id in ids if isinstance(id, str)] for key, ids in value.items() if isinstance(ids, list)}


def _write(path: Path, entries: Iterable[tuple[str, Sequence[str]]], *, only: bool) -> None:
    """Bring each id into its lists; with `only` also out of all others."""
    wanted = {id: frozenset(key for key in keys if key) for id, keys in entries}
    added: dict[str, list[str]] = {}
    for id, keys in wanted.items():
        for key in keys:
            added.setdefault(key, []).append(id)

    def edit(document: JsonText) -> None:
        expect(document.value, STATUS_SHAPES if only else {})
        for key in dict.fromkeys((*document.value, *added)):
            present = document.value.get(key, [])
            if not isinstance(present, list):  # something of another maker's, not a list of ids
                continue
            kept = [id for id in present if not only or not isinstance(id, str) or key in wanted.get(id, (key,))]
            known = {id for id in kept if isinstance(id, str)}
            kept += [id for id in added.get(key, ()) if id not in known]
            if kept != present:
                document.set((), key, kept)

    initial: dict[str, list[str]] = {key: [] for key in STATUSES} if only else {}
    edit_object(path, edit, initial)
