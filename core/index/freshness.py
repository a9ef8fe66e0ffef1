"""A cheap check of what an agent gets, for processes that must answer at once; see docs/architecture.md#freshness.

It compares exactly what decides: pattern files, decision log, event log, sums of a team, what the user's state says
about decisions, and the files of loops at work. New loops and tasks are found by the times of the folders that contain
them. What it does not see are writes into files of ended loops; those are found by the next sweep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from core.files.hash_chain import read_anchor
from core.index.records import Kind, Reader
from core.index.snapshot import FOREIGN, ORIGINS

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.trust.origins import Origins

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
_StampRow = tuple[int, int, int, int]


_NOTHING_FOREIGN: Final = msgspec.msgpack.encode(((), ()))


class Changes(NamedTuple):
    """Project-relative paths that differ from the index, and the folders that have another time.

    `origins` is whether the user's state says something else about the decisions.
    """

    paths: list[str]
    folders: list[str]
    origins: bool


def find_changes(paths: ProjectPaths, reader: Reader, origins: Origins) -> Changes:
    """Compare what is worth a check with the index."""
    project = str(paths.project)
    names = [path for path, row in (*_decisive_files(reader), *_files_at_work(reader)) if _differs(project, path, row)]
    folders = []
    for folder in (*_DECISIVE, *_HOMES):
        if (entries := _new_entries(project, folder, reader)) is not None:
            names += entries
            folders.append(folder)
    names += [path for (path,) in reader.rows("SELECT path FROM torn")]
    has_other_origins = origins_key(paths, origins, reader) != reader.meta(ORIGINS)
    return Changes(list(dict.fromkeys(names)), folders, has_other_origins)


def origins_key(paths: ProjectPaths, origins: Origins, reader: Reader) -> bytes:
    """Return a value that is another one if decisions, or the end of their log, may mean something else than before."""
    ledger = paths.ledger
    is_odd = os.path.lexists(ledger) and (ledger.is_symlink() or not ledger.is_file())
    # Own events count for patterns from elsewhere alone, and each recorded event is one.
    with_events = reader.meta(FOREIGN) not in (None, _NOTHING_FOREIGN)
    return origins.state_key(with_events=with_events) + msgspec.msgpack.encode((read_anchor(ledger), is_odd))


def _decisive_files(reader: Reader) -> Iterator[tuple[str, _StampRow]]:
    sql = "SELECT path, inode, size, mtime, ctime FROM file WHERE path > ? AND path < ?"
    for folder in _DECISIVE:
        for path, *row in reader.rows(sql, f"{folder}/", f"{folder}0"):
            yield path, tuple(row)


def _files_at_work(reader: Reader) -> Iterator[tuple[str, _StampRow]]:
    """Yield the files that loops at work were joined from."""
    # Without CROSS, SQLite begins with the parts of all loops: 40 ms for 10,000.
    sql = (
        "SELECT DISTINCT file.path, inode, size, mtime, ctime FROM record"
        " CROSS JOIN part ON part.kind = record.kind AND part.key = record.key"
        " CROSS JOIN file ON file.number = part.file"
        " WHERE record.kind = ? AND record.is_open"
    )
    for path, *row in reader.rows(sql, Kind.LOOP):
        yield path, tuple(row)


def _differs(project: str, path: str, row: _StampRow) -> bool:
    try:
        status = os.lstat(f"{project}/{path}")
    except OSError:
        return True
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) != row


def _new_entries(project: str, folder: str, reader: Reader) -> list[str] | None:
    """Return the entries that a folder did not have when it was listed last; None if it has the same time."""
    known = reader.row("SELECT inode, size, mtime, ctime, folders, files FROM folder WHERE path = ?", folder)
    if known is None and not os.path.lexists(f"{project}/{folder}"):
        return None
    if known is not None and not _differs(project, folder, known[:4]):
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
