"""The archive of the debug memory: files move into it and out of it, and nothing is ever deleted (4) `retention`.

A file goes to `archive/<YYYY-MM>/` of the same `debug-memory` folder, under the name that it has inside. The journal
`shared/curation/debug-memory.jsonl` tells of every move.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.debug_memory.retention import Kept, plan
from core.errors import BadInput, Refused, UnknownRecord, Unwritable
from core.paths import ProjectPaths
from core.records.debug_sessions import DebugSession
from core.records.times import iso, parse_time
from core.settings import DebugMemorySettings
from core.sources.debug_sessions import is_debug_memory, read_sessions
from core.sources.journal import Journal
from core.sources.reading import Problem, Stamp, decode, decode_jsonl, read_file
from core.sources.scanning import can_hold, scan, wanted
from core.sources.writing import rename_to_free
from core.text import visible_line

HOME: Final = "debug-memory"
ARCHIVE: Final = "archive"
JOURNAL: Final = "debug-memory.jsonl"
_ARCHIVED: Final = "archived"
_RESTORED: Final = "restored"
_ROOTS: Final = (".aiwg/ralph", ".aiwg/ralph-external")
_MAX_DEPTH: Final = 8
"""Folders below an archive that are looked into."""
_MAX_COPIES: Final = 1000
"""Files of one name that a month of the archive takes."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Memory(Struct, frozen=True, kw_only=True):
    """What lies in files that can hold debug sessions; a file that cannot be read as a whole is left out, and stays.

    Attributes:
        sessions: By file, of those that hold any.
        stamps: Of these files, when they were read.
    """

    sessions: Mapping[str, tuple[DebugSession, ...]]
    stamps: Mapping[str, Stamp]


class Moved(Struct, frozen=True, kw_only=True):
    """One file that was moved, project-relative, with the ids of its sessions."""

    source: str
    target: str
    sessions: tuple[str, ...]


class Archived(Struct, frozen=True, kw_only=True):
    """One archived session; `at` and `by` are known if ralphdeck put it there."""

    session: DebugSession
    file: str
    at: datetime | None = None
    by: str = ""


class Restored(Struct, frozen=True, kw_only=True):
    """A file that came back.

    Attributes:
        others: Further archived files that hold the session, newest first; they stay.
        taken: Those of them that were archived from the same place, so that they cannot be restored as well.
    """

    moved: Moved
    others: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()


class DebugArchive:
    """The archive of one project. Moves exclude each other, in this process and in others.

    Args:
        by: Who moves, as the journal tells it.
    """

    def __init__(self, paths: ProjectPaths, *, by: str = "") -> None:
        self._paths = paths
        self._by = by
        self._journal = Journal(paths.curation / JOURNAL)

    def plan(self, settings: DebugMemorySettings) -> tuple[Kept, ...]:
        """How long each file is kept, as they are on the disk now."""
        return plan(read_memory(self._paths).sessions, settings, self._restored())

    def retain(self, settings: DebugMemorySettings, now: datetime) -> tuple[tuple[Moved, ...], tuple[str, ...]]:
        """Archive every file that is due.

        Returns:
            What was moved, and why other files that are due stayed, one line each.

        Raises:
            Unwritable: The journal cannot be locked or written; what was moved before is moved.
        """
        moved: list[Moved] = []
        warnings: list[str] = []
        self._check_journal()
        with self._journal.locked():
            try:
                self._archive(settings, now, moved, warnings)
            finally:
                self._note(_ARCHIVED, moved, now)
        return tuple(moved), tuple(warnings)

    def _archive(self, settings: DebugMemorySettings, now: datetime, moved: list[Moved], warnings: list[str]) -> None:
        memory = read_memory(self._paths)
        for kept in plan(memory.sessions, settings, self._restored()):
            if not kept.is_due(now):
                continue
            home, inside = split(kept.file)
            try:
                target = self._move(kept.file, f"{home}/{ARCHIVE}/{now:%Y-%m}/{inside}", memory.stamps[kept.file])
            except (OSError, Refused) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                warnings.append(f"{visible_line(kept.file, 160)} stays: {reason}")
                continue
            ids = tuple(term.session_id for term in kept.terms)
            moved.append(Moved(source=kept.file, target=target, sessions=ids))

    def listed(self) -> tuple[Archived, ...]:
        """Every archived session, those archived last first."""
        notes = {note.get("to"): note for note in self._notes() if note.get("moved") == _ARCHIVED}
        found = []
        for file in self._files():
            for session in _read(self._paths, file)[0]:
                note = notes.get(file, {})
                by = note.get("by")
                at = parse_time(note.get("at"))
                found.append(Archived(session=session, file=file, at=at, by=by if isinstance(by, str) else ""))
        return tuple(sorted(found, key=lambda item: (_month(item.file), iso(item.at) or "", item.file), reverse=True))

    def restore(self, session_id: str, now: datetime) -> Restored:
        """Bring the file that holds an archived session back to where it was; of several the one archived last.

        Raises:
            UnknownRecord: No archived session has this id.
            Refused: Something else lies there by now.
            Unwritable: The disk or a permission forbids it.
        """
        self._check_journal()
        with self._journal.locked():
            listed = self.listed()
            files = list(dict.fromkeys(item.file for item in listed if item.session.id == session_id))
            if not files:
                shown = visible_line(session_id, 80)
                raise UnknownRecord(f"no archived debug session {shown!r}; see: ralphdeck debug archived")
            file, *others = files
            target = _place(file)
            if not is_debug_memory(target):
                raise Refused(f"{visible_line(file, 160)} lies in no month of the archive; move it by hand")
            try:
                target = self._move(file, target, None)
            except OSError as error:
                raise Unwritable(f"cannot restore {visible_line(file, 160)}: {error.strerror}") from None
            ids = tuple(item.session.id for item in listed if item.file == file)
            moved = Moved(source=file, target=target, sessions=ids)
            self._note(_RESTORED, [moved], now)
        taken = frozenset(other for other in others if _place(other) == target)
        return Restored(moved=moved, others=tuple(others), taken=taken)

    def _move(self, source: str, target: str, stamp: Stamp | None) -> str:
        """Give a file a new name, through no link and over no other file; returns the name.

        Args:
            stamp: As it was when it was judged; `Refused` if it was written since. None: the very name or none.
        """
        folder, _, name = source.rpartition("/")
        into, _, free = target.rpartition("/")
        with ExitStack() as stack:
            old, new = self._open(stack, folder), self._open(stack, into, make=True)
            if stamp is not None:
                _check_unchanged(name, old, stamp)
            for new_name in _names(free) if stamp is not None else (free,):
                try:
                    rename_to_free(old, name, new, new_name)
                    break
                except FileExistsError:
                    continue
            else:
                raise Refused(f"something else lies at {visible_line(target, 160)}")
            if stamp is not None:
                try:
                    _check_unchanged(new_name, new, stamp)
                except Refused:
                    rename_to_free(new, new_name, old, name)
                    raise
        return f"{into}/{new_name}"

    def _open(self, stack: ExitStack, folder: str, *, make: bool = False) -> int:
        """A descriptor of a folder below `.aiwg` that no link leads to."""
        first, *parts = PurePosixPath(folder).parts
        handle = os.open(self._paths.project / first, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        for part in parts:
            if make:
                try:
                    os.mkdir(part, dir_fd=handle)
                    os.fsync(handle)
                except FileExistsError:
                    pass
            handle = os.open(part, _FOLDER, dir_fd=handle)
            stack.callback(os.close, handle)
        return handle

    def _files(self) -> Iterator[str]:
        """The files in all archives that could hold sessions."""
        for home in _homes(self._paths):
            top = self._paths.project / home / ARCHIVE
            for folder, folders, names in os.walk(top) if not top.is_symlink() else ():
                below = Path(folder).relative_to(top)
                if len(below.parts) >= _MAX_DEPTH:
                    folders.clear()
                # What can hold sessions where it came from holds them here.
                here = (name for name in sorted(names) if wanted((PurePosixPath(home) / below / name).as_posix()))
                yield from ((PurePosixPath(home, ARCHIVE) / below / name).as_posix() for name in here)

    def _check_journal(self) -> None:
        try:
            self._paths.unlinked(self._paths.relative(self._paths.curation))
        except BadInput as error:
            raise Unwritable(str(error)) from None

    def _restored(self) -> dict[str, datetime]:
        """When files came back last."""
        return {
            str(note.get("to")): at
            for note in self._notes()
            if note.get("moved") == _RESTORED and (at := parse_time(note.get("at"))) is not None
        }

    def _notes(self) -> Iterator[dict[str, Any]]:
        """What the journal tells, oldest first."""
        lines, _ = decode_jsonl(self._journal.read()[0])
        return (line.value for line in lines if isinstance(line.value, dict))

    def _sync(self, moved: Sequence[Moved]) -> None:
        """Make the new names durable, each folder once."""
        for folder in {name.rpartition("/")[0] for one in moved for name in (one.source, one.target)}:
            with ExitStack() as stack:
                os.fsync(self._open(stack, folder))

    def _note(self, what: str, moved: Sequence[Moved], now: datetime) -> None:
        """Tell the journal of moves, once they are on the disk."""
        notes = (
            {
                "at": iso(now),
                "by": self._by,
                "moved": what,
                "from": one.source,
                "to": one.target,
                "sessions": one.sessions,
            }
            for one in moved
        )
        if moved:
            self._sync(moved)
            self._journal.append([msgspec.json.encode(note) for note in notes])


def read_memory(paths: ProjectPaths) -> Memory:
    """All files of the debug memory as they are on the disk now."""
    sessions, stamps = {}, {}
    for file in scan(paths):
        if is_debug_memory(file):
            found, stamp = _read(paths, file)
            if found and stamp is not None:
                sessions[file], stamps[file] = found, stamp
    return Memory(sessions=sessions, stamps=stamps)


def _place(file: str) -> str:
    """Where an archived file was."""
    home, inside = split(file)
    return f"{home}/{PurePosixPath(*PurePosixPath(inside).parts[2:])}"


def split(file: str) -> tuple[str, str]:
    """The `debug-memory` folder that a file lies in, and its name inside."""
    parts = file.split("/")
    depth = parts.index(HOME) + 1
    return "/".join(parts[:depth]), "/".join(parts[depth:])


def _read(paths: ProjectPaths, file: str) -> tuple[tuple[DebugSession, ...], Stamp | None]:
    """The sessions of a file, and its stamp; None if it cannot be read as a whole."""
    raw = read_file(paths.project / file, paths.aiwg)
    if raw is None or isinstance(raw, Problem):
        return (), None
    decoded = decode(file, raw.data)
    if decoded.failed:
        return (), None
    torn = file.endswith(".jsonl") and (decoded.problems or not raw.data.endswith(b"\n"))
    return read_sessions(file, decoded.value)[0], None if torn else raw.stamp


def _check_unchanged(name: str, folder: int, stamp: Stamp) -> None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("it is a link")
    if (status.st_ino, status.st_mtime_ns, status.st_size) != (stamp.inode, stamp.mtime_ns, stamp.size):
        raise Refused("it was written just now")


def _homes(paths: ProjectPaths) -> Iterator[str]:
    """Every `debug-memory` folder of a project; links are not followed."""
    for root in _ROOTS:
        for folder, folders, _ in os.walk(paths.project / root):
            relative = paths.relative(paths.project / folder)
            if HOME in folders:
                folders.remove(HOME)
                if not Path(folder, HOME).is_symlink():
                    yield f"{relative}/{HOME}"
            folders[:] = sorted(name for name in folders if can_hold(f"{relative}/{name}"))


def _names(name: str) -> Iterator[str]:
    """`s.json`, `s-2.json`, `s-3.json`, …"""
    yield name
    path = PurePosixPath(name)
    yield from (f"{path.stem}-{number}{path.suffix}" for number in range(2, _MAX_COPIES))


def _month(file: str) -> str:
    return split(file)[1].split("/")[1]
