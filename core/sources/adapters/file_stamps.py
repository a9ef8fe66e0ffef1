"""Versions of all files and folders that an adapter looked at, to find out cheaply what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from heapq import nlargest
from pathlib import Path
from typing import Final

from core.files.file_reader import Stamp

MAX_RECENT: Final = 300  # files and folders that are checked often: those that changed last
_RACY_NS: Final = 100_000_000  # a file that changed less than this before a check may change again at the same time


class FileStamps:
    """Stamps of paths; `clock` returns nanoseconds since 1970."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._stamps: dict[Path, Stamp] = {}
        self._missing: dict[Path, set[Path]] = {}
        """Paths at which there was nothing, by their nearest folder that exists."""
        self._folder_of: dict[Path, Path] = {}
        self._parents: set[Path] = set()  # folders that are checked only for what is missing in them
        self._racy: set[Path] = set()
        self._changed: frozenset[Path] | None = None
        self._recent: list[Path] | None = None

    def start_look(self, changed: Iterable[Path] | None) -> None:
        """Take the other paths as unchanged until the next look; None checks all."""
        self._changed = None if changed is None else frozenset(changed)

    def of(self, path: Path) -> Stamp | None:
        """Return the stamp of a file or folder, None if there is none."""
        if self._changed is not None and path not in self._changed:
            if (stamp := self._stamps.get(path)) is not None:
                return stamp
            if path in self._folder_of:
                return None
        self._parents.discard(path)
        return self._check(path)

    def is_racy(self, path: Path) -> bool:
        """Return whether a path may have changed without another stamp."""
        return path in self._racy

    def find_changed(self, *, is_recent: bool = False) -> set[Path]:
        """Return the paths that have another stamp than at the last call or look.

        With `is_recent`, check only those that changed last.
        """
        checked = self._find_recent() if is_recent else [*self._stamps, *self._missing]
        changed = self._racy | {path for path in checked if self._stamps.get(path) != _stamp(path)}
        for path in changed:
            self._check(path)
        for folder in changed & self._missing.keys():
            missing = self._missing.pop(folder)
            for path in missing:
                del self._folder_of[path]
            changed |= {path for path in missing if self._check(path) is not None}
        return changed - self._parents

    def _check(self, path: Path) -> Stamp | None:
        stamp = _stamp(path)
        if stamp is None:
            self._stamps.pop(path, None)
            self._racy.discard(path)
            if path not in self._folder_of:
                self._add_missing(path)
            return None
        if (folder := self._folder_of.pop(path, None)) is not None and folder in self._missing:
            self._missing[folder].discard(path)
        if stamp != self._stamps.get(path):
            self._recent = None
            self._stamps[path] = stamp
        if abs(self._clock() - stamp.mtime_ns) < _RACY_NS:
            self._racy.add(path)
        else:
            self._racy.discard(path)
        return stamp

    def _add_missing(self, path: Path) -> None:
        folder = next((one for one in path.parents if one in self._stamps or _stamp(one) is not None), None)
        if folder is not None:
            if folder not in self._stamps:
                self._parents.add(folder)
                self._check(folder)
            self._folder_of[path] = folder
            self._missing.setdefault(folder, set()).add(path)
            self._recent = None

    def _find_recent(self) -> list[Path]:
        if self._recent is None:
            newest = nlargest(MAX_RECENT, self._stamps, key=lambda path: self._stamps[path].mtime_ns)
            folders = nlargest(MAX_RECENT, self._missing, key=lambda path: len(self._missing[path]))
            self._recent = list(dict.fromkeys((*newest, *folders)))
        return self._recent


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path.stat())
    except (OSError, ValueError):
        return None
