"""Which task or attempt a person means, and how the folders of (1) are gone through."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, UnknownRecord
from core.base.id_lookup import find_matching_ids
from core.base.text import plural, visible_line
from core.config.paths import SAFE_ID, ProjectPaths
from core.sources.record_kinds import is_text

MOST_NAMED: Final = 5
"""So many tasks a message names."""
_ATTEMPT_ID: Final = re.compile(r"(?P<task>.+)\.(?P<number>[0-9]{1,9})")


def task_ids(paths: ProjectPaths) -> list[str]:
    """The names of all tasks, in order; links to folders are none."""
    return sorted(entry.name for entry in entries_of(paths.tasks) if entry.is_dir(follow_symlinks=False))


def find_task(paths: ProjectPaths, name: str) -> str:
    """The task with this name, else the only one whose name begins so.

    Raises:
        UnknownRecord: There is none, or several begin so.
    """
    if _is_task(paths, name):
        return name
    known = task_ids(paths)
    found = find_matching_ids(name, known)
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous_task_error(name, found)
    asked = repr(visible_line(name, 80))
    if known:
        raise UnknownRecord(f"no task {asked}; there {'is' if len(known) == 1 else 'are'} {_named(known)}")
    raise UnknownRecord(f"no task {asked}: there are no tasks in {paths.tasks} yet")


def find_attempt(paths: ProjectPaths, name: str, number: int | None = None) -> tuple[str, int | None]:
    """The task that `name` means, and the number of the attempt if it names one: `task-001.2`.

    Args:
        number: Of the attempt, where it is told apart from the name.

    Raises:
        BadInput: The name and the number mean different attempts.
        UnknownRecord: There is no such task.
    """
    parts = _ATTEMPT_ID.fullmatch(name)
    if parts is None or _is_task(paths, name):
        return find_task(paths, name), number
    task_id, named = find_task(paths, parts["task"]), int(parts["number"])
    if number not in (None, named):
        raise BadInput(f"{visible_line(name, 80)} names attempt {named}, --attempt another one")
    return task_id, named


def ambiguous_task_error(name: str, found: Sequence[str]) -> UnknownRecord:
    """The error of a name that may be several tasks."""
    return UnknownRecord(f"{visible_line(name, 80)!r} may be {_named(found)}; give more of the id")


def _is_task(paths: ProjectPaths, name: str) -> bool:
    """Whether this is the whole name of a task, without a look at all the others."""
    return SAFE_ID.fullmatch(name) is not None and (paths.tasks / name).is_dir()


def _named(ids: Sequence[str]) -> str:
    told = ", ".join(visible_line(id, 80) for id in ids[-MOST_NAMED:])
    more = len(ids) - MOST_NAMED
    return f"{told} and {plural(more, 'other')}" if more > 0 else told


def entries_of(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What lies in a folder; nothing where there is none, or only a link to one."""
    if folder.is_symlink():
        return
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if is_text(entry.name))
    except OSError:
        return
