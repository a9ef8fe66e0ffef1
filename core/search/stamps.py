"""Detect changes of the files of a task by their stamps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.episodes.history import MAX_RESULTS
from core.sources import episodes as sources
from core.sources.record_kinds import is_text

if TYPE_CHECKING:
    from core.episodes.history import TaskFiles

NamedStamp = tuple[str, int, int, int, int]  # path, inode, size, and time of the last change and of its status, in ns
_NO_TARGET: Final = -1  # instead of the size of a link that leads nowhere
_OF_TASK: Final = ("", sources.ATTEMPTS, sources.METADATA, sources.TRAJECTORY, sources.SUMMARY, sources.REFLECTIONS)
_OF_ATTEMPT: Final = ("", sources.ATTEMPT, sources.OUTCOME, sources.PLAN)


class Freshness:
    """Which parts of the index are those of the files; the rest must be read from the files.

    `removed` has the tasks that no longer exist, `tasks` the tasks of which all but `logs` is to be read, and
    `other_logs` task and attempt of the outdated logs of other tasks. `identity` is that of the index file, and `total`
    the number of tasks in it and in the files.
    """

    def __init__(self, identity: bytes) -> None:
        self.identity: Final = identity
        self.total = 0
        self.removed: dict[str, None] = {}
        self.tasks: dict[str, None] = {}
        self.logs: set[str] = set()
        self.other_logs: dict[str, tuple[str, int]] = {}

    @property
    def is_complete(self) -> bool:
        return not (self.removed or self.tasks or self.other_logs)

    @property
    def differences(self) -> tuple[int, int, int]:
        """Number of removed tasks, of tasks and of logs that differ."""
        return len(self.removed), len(self.tasks), len(self.other_logs)

    def is_outdated(self, task: str, log: str | None) -> bool:
        """Return whether indexed records are not those of the files: those of a log, or else of the rest of a task."""
        if task in self.removed or log in self.other_logs:
            return True
        return task in self.tasks and log not in self.logs

    def copy(self) -> Freshness:
        """Return a copy that an update of the index does not change."""
        other = copy(self)
        other.removed, other.tasks, other.logs = self.removed.copy(), self.tasks.copy(), self.logs.copy()
        other.other_logs = self.other_logs.copy()
        return other


def read_stamps(folder: str, files: TaskFiles) -> list[NamedStamp]:
    """Return the stamps of all files and folders of a task but its logs.

    A missing file needs no stamp: writing it changes its folder.
    """
    names = [*_OF_TASK]
    for name in files.numbers.values():
        inside = f"{sources.ATTEMPTS}/{name}"
        names += (f"{inside}/{part}" for part in _OF_ATTEMPT)
        names += _results(folder, f"{inside}/{sources.RESULTS}")
    return [stamp for name in names if (stamp := read_stamp(folder, name)) is not None]


def _results(folder: str, results: str) -> Iterator[str]:
    for name in (results, *_entries(folder, results)):
        yield name
        if name != results and Path(folder, name).is_dir() and not Path(folder, name).is_symlink():
            yield from _entries(folder, name)


def _entries(folder: str, name: str) -> list[str]:
    try:
        with os.scandir(f"{folder}/{name}") as entries:
            return [f"{name}/{entry.name}" for entry in islice(entries, MAX_RESULTS) if is_text(entry.name)]
    except OSError:
        return []


def read_stamp(folder: str, name: str) -> NamedStamp | None:
    """Return the stamp of a file or folder, or of a link that leads nowhere; None if it does not exist."""
    path = f"{folder}/{name}"
    try:
        found = os.stat(path)  # noqa: PTH116 (faster than a Path)
        size = found.st_size
    except (OSError, ValueError):
        try:
            found, size = os.lstat(path), _NO_TARGET
        except (OSError, ValueError):
            return None
    return name, found.st_ino, size, found.st_mtime_ns, found.st_ctime_ns


def are_current(folder: str, stamps: Sequence[NamedStamp]) -> bool:
    """Return whether nothing has changed since the stamps were read."""
    return bool(stamps) and all(read_stamp(folder, stamp[0]) == stamp for stamp in stamps)
