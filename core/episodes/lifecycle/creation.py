"""How a task begins: its id, and its folder with what is known of it (1) init_task."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from core.base.errors import Refused
from core.config.paths import ProjectPaths
from core.episodes.folders import TaskFolder, inside, lock_index, publish
from core.episodes.json_files import encode_object, read_object
from core.episodes.task_lookup import task_ids
from core.sources.episodes import METADATA, TRAJECTORY

_TASK: Final = "task-"
_COUNTED: Final = re.compile(rf"{_TASK}([0-9]{{1,6}})")
"""Ids that were counted; a longer number is a date or the like."""


def create_task(project: ProjectPaths, metadata: Mapping[str, Any], task_id: str | None) -> str:
    """(1) `generate_task_id`, `create_task_directory`, `write_metadata_json`, `initialize_trajectory`.

    Args:
        metadata: All but the id.
        task_id: A checked id; by default the next free `task-NNN`.

    Returns:
        Its id. A task of that id that is the same, and that nobody has begun, is this one.

    Raises:
        Refused: Another task has this id.
        Unwritable: The disk, a lock or a permission forbids it.
    """
    inside(project, project.tasks)
    with lock_index(project):
        for id in (task_id,) if task_id is not None else _free_ids(project):
            files = {
                METADATA: encode_object({"id": id, **metadata}),
                TRAJECTORY: encode_object({"task_id": id, "attempts": []}),
            }
            if publish(project, project.tasks / id, files):
                return id
        assert task_id is not None
        _check_same(project, task_id, metadata)
        return task_id


def _free_ids(project: ProjectPaths) -> Iterator[str]:
    """The ids after all that were counted, in their order."""
    numbers = [int(found[1]) for id in task_ids(project) if (found := _COUNTED.fullmatch(id))]
    return (f"{_TASK}{number:03}" for number in itertools.count(max(numbers, default=0) + 1))


def _check_same(project: ProjectPaths, task_id: str, metadata: Mapping[str, Any]) -> None:
    folder = TaskFolder.of(project, task_id)
    present = read_object(folder.metadata, project.aiwg) or {}
    same = all(present.get(key) == metadata[key] for key in ("description", "completion_criteria", "status"))
    if not same or folder.attempts():
        raise Refused(f"{task_id} exists already; choose another id, or start an attempt at it")
