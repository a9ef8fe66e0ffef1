"""Find record files that changed since they were indexed, by comparing stamps.

Folders that were listed before are listed again only if their own stamp changed: that alone says which names a folder
contains. Each file is asked for its stamp, because a write in place changes no folder. Processes that must answer at
once compare exactly what decides what an agent gets; see docs/architecture.md#freshness."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from core.files.hash_chain import read_anchor
from core.index.records import FOREIGN, ORIGINS, Kind, Reader
from core.sources.record_kinds import HOME_FOLDERS, ROOT_FOLDERS, FolderRow, FolderWalk, is_text, kind_of

if TYPE_CHECKING:
    from pathlib import (
        Path,
    )

    from core.base.paths import (
        ProjectPaths,
    )
    from core.files.file_reader import (
        Problem,
        Stamp,
    )
    from core.trust.origins import (
        Origins,
    )

_MOST_TOPS: Final = 100  # changed folders, after which a walk through all folders is faster
_FileRow = tuple[str, int, int, int, int]
"""Path and stamp of a file."""


class Sweep(NamedTuple):
    """What differs from the index: `changed` files with stamps, and `removed` ones.

    `unreadable` has the problem of each folder that cannot be listed. `listed` are rows of folders to be stored, and
    `left` folders that are not listed any more. `paths` are those that were compared; None if all were.
    """

    changed: dict[str, Stamp]
    removed: set[str]
    unreadable: dict[str, Problem]
    listed: Sequence[FolderRow] = ()
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
    rows = connection.execute("SELECT path, inode, size, mtime, ctime FROM file").fetchall()
    files: dict[str, _FileRow] = {row[0]: row for row in rows}
    folders: dict[str, FolderRow] = {row[0]: row for row in connection.execute("SELECT * FROM folder")}
    tops, differing = ROOT_FOLDERS, list(files)
    if folders and not lists_all:
        # Comparing the rows in their order takes two thirds of the time of a walk through all folders.
        with contextlib.suppress(OSError), _opened(paths.project) as project:
            found = _find_changed_folders(project, files, folders)
            if len(found) <= _MOST_TOPS:
                tops, differing = found, _find_differing(project, found, files, folders)
    known = {path: files[path][1:] for path in differing if path in files}
    walk = FolderWalk(paths, known, {} if lists_all else folders, progress)
    walk.run(tops)
    below = tuple(f"{top}/" for top in tops)
    for path in differing:
        if path[-1] != "/" and not path.startswith(below):
            walk.check(path)
    left = [path for path in folders if path not in walk.seen and f"{path}/".startswith(below)] if below else []
    return Sweep(walk.changed, set(walk.left), walk.unreadable, _storable(walk.listed), left)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder: paths below an open one take a fifth less time to look up."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _find_changed_folders(
    project: int, files: Mapping[str, _FileRow], folders: Mapping[str, FolderRow]
) -> tuple[str, ...]:
    """Return the folders to walk: those that differ from their row or have none."""
    found = {root for root in ROOT_FOLDERS if root not in folders}
    for path, *row, names, _ in folders.values():
        if _differs(path, row, project, follows_link=path in ROOT_FOLDERS):
            found.add(path)
        elif names:
            found |= {inner for name in names.split("/") if (inner := f"{path}/{name}") not in folders}
    for path in HOME_FOLDERS & folders.keys():
        for name in folders[path][5].split("/"):
            own, listed = files.get(f"{path}/{name}/"), folders.get(f"{path}/{name}")
            if listed is not None and (kind_of(f"{path}/{name}/") if own is None else own[1:] != listed[1:5]):
                found.add(f"{path}/{name}")
    tops: list[str] = []
    for path in sorted(found, key=lambda path: f"{path}/"):
        if not tops or not path.startswith(f"{tops[-1]}/"):
            tops.append(path)
    return tuple(tops)


def _find_differing(
    project: int, tops: Iterable[str], files: Mapping[str, _FileRow], folders: Mapping[str, FolderRow]
) -> list[str]:
    """Return the files that differ from their row or have none, and all below `tops`."""
    below = tuple(f"{top}/" for top in tops)
    found = []
    for path, *row in files.values():
        if below and path.startswith(below):
            found.append(path)
        elif path[-1] == "/":
            if path[:-1] not in folders:
                found.append(path)
        elif _differs(path, row, project):
            found.append(path)
    for folder, *_, names in folders.values():
        if names and not (below and f"{folder}/".startswith(below)):
            found += [path for name in names.split("/") if (path := f"{folder}/{name}") not in files]
    return found


def _differs(path: str, row: Sequence[int], project: int | None = None, *, follows_link: bool = False) -> bool:
    """Return whether a path (relative to open folder `project`) differs from a row."""
    try:
        status = os.stat(path, dir_fd=project, follow_symlinks=follows_link)
    except OSError:
        return True
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns] != row


def list_folders(paths: ProjectPaths, folders: Iterable[str]) -> Sequence[FolderRow]:
    """List single folders; returns their rows."""
    walk = FolderWalk(paths)
    for folder in folders:
        with contextlib.suppress(OSError):
            walk.list_one(folder)
    return _storable(walk.listed)


def _storable(listed: Mapping[str, FolderRow]) -> Sequence[FolderRow]:
    """Return listings to be stored: those without names of invalid UTF-8."""
    return [row for row in listed.values() if is_text(f"{row[0]}{row[5]}{row[6]}")]


_DECISIVE: Final = (
    *(".aiwg/ralph/shared/patterns", ".aiwg/ralph/shared/curation", ".aiwg/ralph/shared/team"),
    *(".aiwg/ralph/memory/patterns", ".aiwg/ralph/reflections/patterns", ".aiwg/ralph/debug-memory/patterns"),
)
"""Folders whose files decide what an agent gets; all of them are compared."""
_HOMES: Final = (
    *(".aiwg/ralph", ".aiwg/ralph-external", ".aiwg/ralph/loops", ".aiwg/ralph/archive"),
    *(".aiwg/ralph-external/loops", ".aiwg/ralph-external/archive", ".aiwg/ralph/tasks", ".aiwg/ralph/memory"),
    *(".aiwg/ralph/reflections", ".aiwg/ralph/debug-memory", ".aiwg/ralph/debug-memory/sessions"),
)
"""Folders in which new work appears."""


_NOTHING_FOREIGN: Final = msgspec.msgpack.encode(((), ()))


class Changes(NamedTuple):
    """Project-relative paths that differ from the index, and folders that changed.

    `origins` is whether the user's state says something else about the decisions.
    """

    paths: list[str]
    folders: list[str]
    origins: bool


def find_changes(paths: ProjectPaths, reader: Reader, origins: Origins) -> Changes:
    """Compare what is worth a check with the index."""
    project = str(paths.project)
    names = [path for path, *row in _decisive_files(reader) if _differs(f"{project}/{path}", row)]
    folders = []
    for folder in (*_DECISIVE, *_HOMES):
        if (entries := _new_entries(project, folder, reader)) is not None:
            names += entries
            folders.append(folder)
    names += [path for (path,) in reader.rows("SELECT path FROM torn")]
    has_other_origins = origins_key(paths, origins, reader) != reader.meta(ORIGINS)
    return Changes(list(dict.fromkeys(names)), folders, has_other_origins)


def origins_key(paths: ProjectPaths, origins: Origins, reader: Reader) -> bytes:
    """Return a key that changes if decisions or their log's end may mean otherwise."""
    ledger = paths.ledger
    is_odd = os.path.lexists(ledger) and (ledger.is_symlink() or not ledger.is_file())
    # Own events count for patterns from elsewhere alone, and each recorded event is one.
    with_events = reader.meta(FOREIGN) not in (None, _NOTHING_FOREIGN)
    return origins.state_key(with_events=with_events) + msgspec.msgpack.encode((read_anchor(ledger), is_odd))


def _decisive_files(reader: Reader) -> Iterator[_FileRow]:
    """Yield rows of pattern files, logs, and files that loops at work came from."""
    sql = "SELECT path, inode, size, mtime, ctime FROM file WHERE path > ? AND path < ?"
    for folder in _DECISIVE:
        yield from reader.rows(sql, f"{folder}/", f"{folder}0")
    # Without CROSS, SQLite begins with the parts of all loops: 40 ms for 10,000.
    sql = (
        "SELECT DISTINCT file.path, inode, size, mtime, ctime FROM record"
        " CROSS JOIN part ON part.kind = record.kind AND part.key = record.key"
        " CROSS JOIN file ON file.number = part.file"
        " WHERE record.kind = ? AND record.is_open"
    )
    yield from reader.rows(sql, Kind.LOOP)


def _new_entries(project: str, folder: str, reader: Reader) -> list[str] | None:
    """Return entries of a folder that its last listing lacks; None if unchanged."""
    known = reader.row("SELECT inode, size, mtime, ctime, folders, files FROM folder WHERE path = ?", folder)
    if known is None and not os.path.lexists(f"{project}/{folder}"):
        return None
    if known is not None and not _differs(f"{project}/{folder}", [*known[:4]]):
        return None
    try:
        with os.scandir(f"{project}/{folder}") as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return [folder]
    before = {*known[4].split("/"), *known[5].split("/")} if known is not None else set()
    return [f"{folder}/{name}" for name in names if name not in before and _may_be_read(name)]


def _may_be_read(name: str) -> bool:
    """Return whether a name may be that of a record file or of a folder with some."""
    return name[0] != "." and not name.endswith((".lock", ".tmp", ".anchor", ".md", ".bak"))
