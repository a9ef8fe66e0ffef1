"""Find the record files that changed since they were indexed, by comparing stamps.

Folders that were listed before are listed again only if their own stamp changed: that alone says which names a folder
contains. Each file is asked for its stamp, because a write in place changes no folder.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from core.sources.loop_facts import HOME_FOLDERS
from core.sources.record_kinds import IGNORED_FOLDERS, NAMED_BY_ID, kind_of
from core.sources.sweep import MAX_PARTS, ROOTS, file_stamp, unreadable_folder
from core.storage.file_reader import Stamp

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.storage.decoded import Problem

_SETTLED_NS: Final = 2_000_000_000  # age from which the times of a folder change with its content: the coarsest clock
_StampRow = tuple[int, int, int, int]


class Sweep(NamedTuple):
    """What differs from the index: `changed` files with their stamps, and `removed` ones.

    `unreadable` has the problem of each folder that cannot be listed. `listed` are rows of folders to be stored, and
    `left` folders that are not listed any more. `paths` are those that were compared; None if all were.
    """

    changed: dict[str, Stamp]
    removed: set[str]
    unreadable: dict[str, Problem]
    listed: Sequence[tuple[object, ...]] = ()
    left: Sequence[str] = ()
    paths: Sequence[str] | None = None

    def has_checked(self, folder: str) -> bool:
        """Return whether a folder was looked at."""
        return self.paths is None or any(folder == path or folder.startswith(f"{path}/") for path in self.paths)


def sweep(
    paths: ProjectPaths,
    connection: sqlite3.Connection,
    *,
    lists_all: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Compare all record files with the index.

    With `lists_all`, every folder is listed: some network drives keep no times of folders. `progress` is called for
    each listed folder with the number of files found before it.
    """
    files = {
        path: (inode, size, mtime, ctime)
        for path, inode, size, mtime, ctime in connection.execute("SELECT path, inode, size, mtime, ctime FROM file")
    }
    folders = {
        path: ((inode, size, mtime, ctime), folders, names)
        for path, inode, size, mtime, ctime, folders, names in connection.execute("SELECT * FROM folder")
    }
    return _Walk(paths, files, {} if lists_all else folders, progress).run(folders.keys())


def list_folders(paths: ProjectPaths, folders: Iterable[str]) -> Sequence[tuple[object, ...]]:
    """List single folders; returns their rows."""
    walk = _Walk(paths, {}, {}, None)
    for folder in folders:
        with contextlib.suppress(OSError):
            walk.list_one(folder)
    return walk.rows


class _Walk:
    def __init__(
        self,
        paths: ProjectPaths,
        files: dict[str, _StampRow],
        folders: dict[str, tuple[_StampRow, str, str]],
        progress: Callable[[int], None] | None,
    ) -> None:
        self._paths = paths
        self._project = f"{paths.project}/"
        self._files = files
        self._folders = folders
        self._progress = progress
        self._left = set(files)
        self._changed: dict[str, Stamp] = {}
        self._unreadable: dict[str, Problem] = {}
        self._listed: dict[str, tuple[_StampRow, str, str]] = {}
        self._seen: set[str] = set()
        self._found = 0

    def run(self, stored: Iterable[str]) -> Sweep:
        pending = [f".aiwg/{root}" for root in ROOTS]
        tops = frozenset(pending)
        while pending:
            folder = pending.pop()
            try:
                # The roots may be links; links to other folders are not followed.
                path = self._project + folder
                status = os.stat(path) if folder in tops else os.lstat(path)  # noqa: PTH116 (`Path` takes long)
                if stat.S_ISDIR(status.st_mode):
                    pending += self._enter(folder, status, is_top=folder in tops)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._unreadable[folder] = unreadable_folder(error)
        rows = self.rows
        return Sweep(
            self._changed, self._left, self._unreadable, rows, [path for path in stored if path not in self._seen]
        )

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The folders that were listed, as they are stored."""
        return [(path, *row, folders, names) for path, (row, folders, names) in self._listed.items()]

    def list_one(self, folder: str) -> None:
        status = os.lstat(self._project + folder)
        row = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        self._listed[folder] = row, *self._list(folder)

    def _enter(self, folder: str, status: os.stat_result, *, is_top: bool) -> list[str]:
        """Compare the files of one folder; returns the folders in it."""
        row = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        known = self._folders.get(folder)
        if known is None or known[0] != row:
            if self._progress is not None:
                self._progress(self._found)
            known = row, *self._list(folder)
            # A folder that has just changed may change again within the same tick of the clock.
            if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS and _is_text(folder, *known):
                self._listed[folder] = known
                self._seen.add(folder)
        else:
            self._seen.add(folder)
        if not is_top and folder.rpartition("/")[0] in HOME_FOLDERS and kind_of(f"{folder}/"):
            self._compare(f"{folder}/", row)
        prefix = f"{self._project}{folder}/"
        for name in known[2].split("/") if known[2] else ():
            try:
                status = os.lstat(prefix + name)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._unreadable[folder] = unreadable_folder(error)
                continue
            if stat.S_ISREG(status.st_mode):
                found = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
                self._compare(f"{folder}/{name}", found)
            elif stat.S_ISLNK(status.st_mode) and (target := file_stamp(self._paths, f"{folder}/{name}")) is not None:
                self._compare(f"{folder}/{name}", (target.inode, target.size, target.mtime_ns, target.ctime_ns))
        return [f"{folder}/{name}" for name in known[1].split("/")] if known[1] else []

    def _compare(self, file: str, row: _StampRow) -> None:
        self._found += 1
        self._left.discard(file)
        if self._files.get(file) != row:
            self._changed[file] = Stamp(*row)

    def _list(self, folder: str) -> tuple[str, str]:
        """Return the names of the folders and of the record files in a folder, each separated by `/`."""
        folders, files = [], []
        is_deepest, is_named_by_id = folder.count("/") + 2 > MAX_PARTS, folder in NAMED_BY_ID
        with os.scandir(self._project + folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not is_deepest and (is_named_by_id or entry.name not in IGNORED_FOLDERS):
                        folders.append(entry.name)
                elif kind_of(f"{folder}/{entry.name}") is not None:
                    files.append(entry.name)
        return "/".join(folders), "/".join(files)


def _is_text(folder: str, _row: _StampRow, folders: str, files: str) -> bool:
    """Return whether names can be stored; others are listed by each sweep."""
    try:
        f"{folder}{folders}{files}".encode()
    except UnicodeEncodeError:
        return False
    return True
