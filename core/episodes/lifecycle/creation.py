"""Create a task: choose its ID and create its folder."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from core.base.errors import Refused
from core.config.paths import ProjectPaths
from core.episodes.folders import TaskFolder, check_inside, create_folder, lock_index
from core.episodes.json_files import encode_object, read_object
from core.episodes.task_lookup import task_ids
from core.sources.episodes import METADATA, TRAJECTORY

_TASK: Final = "task-"
_NUMBERED: Final = re.compile(rf"{_TASK}([0-9]{{1,6}})")
"""IDs that count as numbered; a longer number is a date or the like."""


def create_task(project: ProjectPaths, metadata: Mapping[str, Any], task_id: str | None) -> str:
    """Create the folder of a task with its metadata and an empty trajectory.

    Args:
        metadata: All members but the ID.
        task_id: A checked ID; by default the next free `task-NNN`.

    Returns:
        Its ID. An equal task with this ID and without attempts is used as it is.

    Raises:
        Refused: Another task has this ID.
        Unwritable: The disk, a lock or a permission forbids it.
    """
    check_inside(project, project.tasks)
    with lock_index(project):
        for id in (task_id,) if task_id is not None else _free_ids(project):
            files = {
                METADATA: encode_object({"id": id, **metadata}),
                TRAJECTORY: encode_object({"task_id": id, "attempts": []}),
            }
            if create_folder(project, project.tasks / id, files):
                return id
        assert task_id is not None
        _check_same(project, task_id, metadata)
        return task_id


def _free_ids(project: ProjectPaths) -> Iterator[str]:
    """The IDs after the highest one in use."""
    numbers = [int(found[1]) for id in task_ids(project) if (found := _NUMBERED.fullmatch(id))]
    return (f"{_TASK}{number:03}" for number in itertools.count(max(numbers, default=0) + 1))


def _check_same(project: ProjectPaths, task_id: str, metadata: Mapping[str, Any]) -> None:
    folder = TaskFolder.of(project, task_id)
    present = read_object(folder.metadata, project.aiwg) or {}
    same = all(present.get(key) == metadata[key] for key in ("description", "completion_criteria", "status"))
    if not same or folder.attempts():
        raise Refused(f"{task_id} exists already; choose another id, or start an attempt at it")
