"""The archive of the debug memory: files move into it and out of it, and nothing is ever deleted (4) `retention`.

A file goes to `archive/<YYYY-MM>/` of the same `debug-memory` folder, under the name that it has inside. The journal
`shared/curation/debug-memory.jsonl` tells of every move, before it, so that a kill leaves none untold, and after it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, Refused, UnknownRecord, Unwritable
from core.base.id_lookup import find_matching_ids, require_one
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.config.settings import DebugMemorySettings
from core.debug_memory.retention import RetentionPlan, plan
from core.records.debug_sessions import DebugSession, Escalation
from core.records.findings import Severity
from core.records.times import iso, parse_time
from core.sources.debug_sessions import read_sessions
from core.sources.escalations import join_escalations, read_escalation
from core.sources.record_kinds import DEBUG_SESSIONS, ESCALATION, kind_of
from core.sources.sweep import can_contain_records, scan
from core.storage.append_log import AppendLog
from core.storage.atomic_write import rename_to_free
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp, decode, read_file
from core.storage.json_reader import decode_jsonl

HOME: Final = "debug-memory"
ARCHIVE: Final = "archive"
JOURNAL: Final = "debug-memory.jsonl"
_ARCHIVED: Final = "archived"
_RESTORED: Final = "restored"
_STAYED: Final = "stayed"
"""What was to be moved and was not."""
_MOVING: Final = "moving"
_MOVED: Final = "moved"
"""The keys of a line before a move, and of the one after it."""
_ROOTS: Final = (".aiwg/ralph", ".aiwg/ralph-external")
_MAX_DEPTH: Final = 8
"""Folders below an archive that are looked into."""
_MAX_COPIES: Final = 1000
"""Files of one name that a month of the archive takes."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DebugFiles(Struct, frozen=True, kw_only=True):
    """What lies in files that can hold debug sessions; a file that cannot be read as a whole is left out, and stays.

    Attributes:
        sessions: By file, of those that hold any.
        stamps: Of these files, when they were read.
        called: When a person was called last, by the id of the session (4) on_escalation.
    """

    sessions: Mapping[str, tuple[DebugSession, ...]]
    stamps: Mapping[str, Stamp]
    called: Mapping[str, datetime]


class FileMove(Struct, frozen=True, kw_only=True):
    """One file that was moved, project-relative, with the ids of its sessions."""

    source: str
    target: str
    sessions: tuple[str, ...]


class ArchivedSession(Struct, frozen=True, kw_only=True):
    """One archived session; `at` and `by` are known if ralphdeck put it there."""

    session: DebugSession
    file: str
    at: datetime | None = None
    by: str = ""


class RestoredFile(Struct, frozen=True, kw_only=True):
    """A file that came back.

    Attributes:
        session_id: The session that was asked for.
        others: Further archived files that hold the session, newest first; they stay.
        taken: Those of them whose place is taken now, so that they cannot be restored as well.
    """

    session_id: str
    moved: FileMove
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
        self._journal = AppendLog(paths.curation / JOURNAL)

    def plan(self, settings: DebugMemorySettings) -> tuple[RetentionPlan, ...]:
        """How long each file is kept, as they are on the disk now."""
        return self._plan(read_memory(self._paths), settings)

    def _plan(self, memory: DebugFiles, settings: DebugMemorySettings) -> tuple[RetentionPlan, ...]:
        return plan(memory.sessions, settings, self._restored(), memory.called)

    def retain(self, settings: DebugMemorySettings, now: datetime) -> tuple[tuple[FileMove, ...], tuple[str, ...]]:
        """Archive every file that is due.

        Returns:
            What was moved, and why other files that are due stayed, one line each.

        Raises:
            Unwritable: The journal cannot be locked or written; what was moved before is moved.
        """
        self._check_journal()
        with self._journal.locked():
            self._settle()
            memory = read_memory(self._paths)
            due = [kept for kept in self._plan(memory, settings) if kept.is_due(now)]
            moved, failed = self._carry_out(_ARCHIVED, self._planned(due, now), now, memory.stamps)
        warnings = tuple(
            f"{visible_line(file, 160)} stays: {error.strerror if isinstance(error, OSError) else error}"
            for file, error in failed.items()
        )
        return tuple(moved), warnings

    def _planned(self, due: Iterable[RetentionPlan], now: datetime) -> list[FileMove]:
        """Where each file goes; the names are free now."""
        planned: dict[str, FileMove] = {}
        for kept in due:
            home, inside = split(kept.file)
            wished = f"{home}/{ARCHIVE}/{now:%Y-%m}/{inside}"
            free = (name for name in _names(wished) if name not in planned and not self._lies(name))
            target = next(free, wished)
            ids = tuple(term.session_id for term in kept.terms)
            planned[target] = FileMove(source=kept.file, target=target, sessions=ids)
        return list(planned.values())

    def _carry_out(
        self, what: str, planned: Sequence[FileMove], now: datetime, stamps: Mapping[str, Stamp]
    ) -> tuple[list[FileMove], dict[str, OSError | Refused]]:
        """Move files, and tell the journal before and after it; returns those moved, and why others stayed."""
        moved: list[FileMove] = []
        failed: dict[str, OSError | Refused] = {}
        self._note(_MOVING, what, planned, now)
        try:
            for one in planned:
                try:
                    self._move(one.source, one.target, stamps.get(one.source))
                except (OSError, Refused) as error:
                    failed[one.source] = error
                else:
                    moved.append(one)
        finally:
            self._sync(moved)
            self._note(_MOVED, what, moved, now)
            self._note(_MOVED, _STAYED, [one for one in planned if one.source in failed], now)
        return moved, failed

    def listed(self) -> tuple[ArchivedSession, ...]:
        """Every archived session, those archived last first."""
        notes = self._archived()
        found = []
        for file in self._files():
            for session in _read(self._paths, file)[0]:
                note = notes.get(file, {})
                by = note.get("by")
                at = parse_time(note.get("at"))
                found.append(ArchivedSession(session=session, file=file, at=at, by=by if isinstance(by, str) else ""))
        return tuple(sorted(found, key=lambda item: (_month(item.file), iso(item.at) or "", item.file), reverse=True))

    def find(self, name: str) -> ArchivedSession | None:
        """The archived session that a name means, of several files the one archived last; None if nobody knows."""
        listed = self.listed()
        try:
            session_id = _archived(name, {item.session.id for item in listed})
        except UnknownRecord:
            return None
        return next(item for item in listed if item.session.id == session_id)

    def restore(self, session_id: str, now: datetime) -> RestoredFile:
        """Bring the file that holds an archived session back to where it was; of several the one archived last.

        Args:
            session_id: The session, or the beginning of its id.
            now: The present moment.

        Raises:
            UnknownRecord: No archived session has this id, or several ids begin so.
            Refused: Something else lies there by now.
            Unwritable: The disk or a permission forbids it.
        """
        self._check_journal()
        with self._journal.locked():
            listed = self.listed()
            session_id = _archived(session_id, {item.session.id for item in listed})
            file, *others = dict.fromkeys(item.file for item in listed if item.session.id == session_id)
            notes = self._archived()
            places = _places(file, notes)
            if not places:
                raise Refused(f"{visible_line(file, 160)} lies in no month of the archive; move it by hand")
            target = next((place for place in places if not self._lies(place)), places[0])
            ids = tuple(item.session.id for item in listed if item.file == file)
            moved = FileMove(source=file, target=target, sessions=ids)
            _, failed = self._carry_out(_RESTORED, [moved], now, {})
            for error in failed.values():
                if isinstance(error, Refused):
                    raise error
                raise Unwritable(f"cannot restore {visible_line(file, 160)}: {error.strerror}")
            taken = frozenset(other for other in others if all(map(self._lies, _places(other, notes))))
        return RestoredFile(session_id=session_id, moved=moved, others=tuple(others), taken=taken)

    def _lies(self, file: str) -> bool:
        """Whether anything lies there."""
        return os.path.lexists(self._paths.project / file)

    def _move(self, source: str, target: str, stamp: Stamp | None) -> None:
        """Give a file a new name, through no link and over no other file.

        Args:
            stamp: As it was when it was judged; `Refused` if it was written since. None: it was not judged.
        """
        folder, _, name = source.rpartition("/")
        into, _, new_name = target.rpartition("/")
        with ExitStack() as stack:
            old, new = self._open(stack, folder), self._open(stack, into, make=True)
            if stamp is not None:
                _check_unchanged(name, old, stamp)
            try:
                rename_to_free(old, name, new, new_name)
            except FileExistsError:
                raise Refused(f"something else lies at {visible_line(target, 160)}") from None
            if stamp is not None:
                try:
                    _check_unchanged(new_name, new, stamp)
                except Refused:
                    rename_to_free(new, new_name, old, name)
                    raise

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
                here = (name for name in sorted(names) if kind_of((PurePosixPath(home) / below / name).as_posix()))
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
            if note.get(_MOVED) == _RESTORED and (at := parse_time(note.get("at"))) is not None
        }

    def _archived(self) -> dict[str, dict[str, Any]]:
        """What the journal tells of files that were archived, by where they went."""
        return {str(note.get("to")): note for note in self._notes() if note.get(_MOVED) == _ARCHIVED}

    def _notes(self) -> list[dict[str, Any]]:
        """What was moved, oldest first; of moves that a kill left open last, as the disk tells them."""
        done, left = self._read_journal()
        return [*done, *map(self._outcome, left)]

    def _read_journal(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The lines that were written after moves, and of those before moves the ones that none follows."""
        done: list[dict[str, Any]] = []
        left: dict[tuple[str, str], dict[str, Any]] = {}
        for line in decode_jsonl(self._journal.read()[0])[0]:
            if isinstance(line.value, dict):
                key = str(line.value.get("from")), str(line.value.get("to"))
                if line.value.get(_MOVING) in (_ARCHIVED, _RESTORED):
                    left[key] = line.value
                else:
                    left.pop(key, None)
                    done.append(line.value)
        return done, list(left.values())

    def _outcome(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        """The line that should have followed one that was written before a move."""
        moved = self._lies(str(begun.get("to"))) and not self._lies(str(begun.get("from")))
        told = {key: value for key, value in begun.items() if key != _MOVING}
        return {**told, _MOVED: begun[_MOVING] if moved else _STAYED}

    def _settle(self) -> None:
        """Write the lines that a kill prevented."""
        left = self._read_journal()[1]
        if left:
            self._journal.append([json.dumps(self._outcome(begun)).encode() for begun in left])

    def _sync(self, moved: Sequence[FileMove]) -> None:
        """Make the new names durable, each folder once."""
        for folder in {name.rpartition("/")[0] for one in moved for name in (one.source, one.target)}:
            with ExitStack() as stack:
                os.fsync(self._open(stack, folder))

    def _note(self, key: str, what: str, files: Sequence[FileMove], now: datetime) -> None:
        """Tell the journal of moves."""
        told = {"at": iso(now), "by": self._by, key: what}
        notes = [{**told, "from": one.source, "to": one.target, "sessions": one.sessions} for one in files]
        if notes:
            self._journal.append([msgspec.json.encode(note) for note in notes])


def _archived(name: str, known: Collection[str]) -> str:
    """The archived session with this id, or the only one whose id begins so, else `UnknownRecord`."""
    ids = "ids of archived debug sessions"
    return require_one(
        find_matching_ids(name, known), name, what="archived debug session", ids=ids, command="debug archived"
    )


def read_memory(paths: ProjectPaths) -> DebugFiles:
    """All files of the debug memory as they are on the disk now."""
    sessions, stamps = {}, {}
    calls: list[Escalation] = []
    for file in scan(paths):
        if DEBUG_SESSIONS.matches(file):
            found, stamp = _read(paths, file)
            if found and stamp is not None:
                sessions[file], stamps[file] = found, stamp
        elif kind_of(file) is ESCALATION:
            calls += _calls(paths, file)
    called = {id: call.at for id, call in join_escalations(calls).items()}
    return DebugFiles(sessions=sessions, stamps=stamps, called=called)


def _calls(paths: ProjectPaths, file: str) -> tuple[Escalation, ...]:
    raw = read_file(paths.project / file, paths.aiwg)
    return () if raw is None or isinstance(raw, Problem) else read_escalation(file, decode(file, raw.data).value)[0]


def _places(file: str, notes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Where an archived file can go back to: where it was, as far as `notes` tell, else under the name it has now."""
    home, inside = split(file)
    told = notes.get(file, {}).get("from")
    names = [told] if isinstance(told, str) and DEBUG_SESSIONS.matches(told) and split(told)[0] == home else []
    names.append(f"{home}/{PurePosixPath(*PurePosixPath(inside).parts[2:])}")
    return [name for name in dict.fromkeys(names) if DEBUG_SESSIONS.matches(name)]


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
    decoded = decode(file, raw.data, every=True)
    if decoded.failed:
        return (), None
    torn = any(problem.severity is Severity.ERROR for problem in decoded.problems)
    if file.endswith(".jsonl"):
        torn = bool(decoded.problems) or not raw.data.endswith(b"\n")
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
            folders[:] = sorted(name for name in folders if can_contain_records(f"{relative}/{name}"))


def _names(file: str) -> Iterator[str]:
    """`s.json`, `s-2.json`, `s-3.json`, …"""
    yield file
    path = PurePosixPath(file)
    yield from (str(path.with_name(f"{path.stem}-{number}{path.suffix}")) for number in range(2, _MAX_COPIES))


def _month(file: str) -> str:
    return split(file)[1].split("/")[1]
