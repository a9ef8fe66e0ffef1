"""Find a task or attempt by ID or ID prefix, and list the task folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, UnknownRecord
from core.base.id_lookup import ambiguous_id_error, find_matching_ids, name_ids, suggest_id
from core.base.paths import SAFE_ID, ProjectPaths
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.sources.record_kinds import is_text

_ATTEMPT_ID: Final = lazy_regex(r"(?P<task>.+)\.(?P<number>[0-9]{1,9})")


def task_ids(paths: ProjectPaths) -> list[str]:
    """Return the IDs of all tasks, sorted; links to folders are ignored."""
    return sorted(entry.name for entry in list_entries(paths.tasks) if entry.is_dir(follow_symlinks=False))


def find_task(paths: ProjectPaths, name: str) -> str:
    """Return the ID of the task that an ID or unambiguous part of it selects.

    Raises UnknownRecord if it matches no task, or several.
    """
    if is_task(paths, name):
        return name
    known = task_ids(paths)
    found = find_matching_ids(name, known, fragments=True)
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous_id_error(name, found)
    asked = repr(visible_line(name, 80))
    if known:
        verb = "is" if len(known) == 1 else "are"
        raise UnknownRecord(f"no task {asked}; there {verb} {name_ids(known)}{suggest_id(name, known)}")
    raise UnknownRecord(f"no task {asked}: there are no tasks in {paths.tasks} yet")


def find_attempt(paths: ProjectPaths, name: str, number: int | None = None) -> tuple[str, int | None]:
    """Return the task ID and attempt number that `name` selects, such as `task-001.2`.

    `number` is the attempt if it is passed separately. Raises BadInput if it differs from the one in `name`, and
    UnknownRecord if the task does not exist.
    """
    parts = _ATTEMPT_ID.fullmatch(name)
    if parts is None or is_task(paths, name):
        return find_task(paths, name), number
    task_id, named = find_task(paths, parts["task"]), int(parts["number"])
    if number not in (None, named):
        raise BadInput(f"{visible_line(name, 80)} is attempt {named}, but --attempt is {number}; use only one of them")
    return task_id, named


def is_task(paths: ProjectPaths, name: str) -> bool:
    """Whether `name` is the complete ID of a task; does not list all tasks."""
    with suppress(OSError):
        return SAFE_ID.fullmatch(name) is not None and (paths.tasks / name).is_dir()
    return False


def list_entries(folder: Path, errors: list[OSError] | None = None) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder; none if it does not exist or is a link.

    Any other error ends the list, and is added to `errors`.
    """
    try:
        if not folder.is_symlink():
            with os.scandir(folder) as entries:
                yield from (entry for entry in entries if is_text(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if errors is not None:
            errors.append(error)
