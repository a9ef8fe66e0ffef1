"""Find the record files that changed since they were indexed, by comparing stamps.

Folders that were listed before are listed again only if their own stamp changed: that alone says which names a folder
contains. Each file is asked for its stamp, because a write in place changes no folder.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from core.sources.record_kinds import is_text
from core.sources.sweep import ROOT_FOLDERS, FolderWalk, Listing

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.storage.decoded import Problem
    from core.storage.file_reader import Stamp


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
        path: Listing((inode, size, mtime, ctime), _split(folders), _split(names))
        for path, inode, size, mtime, ctime, folders, names in connection.execute("SELECT * FROM folder")
    }
    walk = FolderWalk(paths, files, {} if lists_all else folders, progress)
    walk.run(ROOT_FOLDERS)
    left = [path for path in folders if path not in walk.seen]
    return Sweep(walk.changed, walk.left, walk.unreadable, _rows_of(walk.listed), left)


def list_folders(paths: ProjectPaths, folders: Iterable[str]) -> Sequence[tuple[object, ...]]:
    """List single folders; returns their rows."""
    walk = FolderWalk(paths)
    for folder in folders:
        with contextlib.suppress(OSError):
            walk.list_one(folder)
    return _rows_of(walk.listed)


def _rows_of(listings: Mapping[str, Listing]) -> Sequence[tuple[object, ...]]:
    """Return listings as they are stored, names separated by `/`; without those that have names of invalid UTF-8."""
    rows = ((path, *one.row, "/".join(one.folders), "/".join(one.files)) for path, one in listings.items())
    return [row for row in rows if is_text(f"{row[0]}{row[5]}{row[6]}")]


def _split(names: str) -> Sequence[str]:
    return names.split("/") if names else ()
