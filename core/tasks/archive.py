"""Move expired debug memory files to the archive, and restore them.

No file is ever deleted (docs/task-memory.md#archive). The journal `shared/curation/debug-memory.jsonl` gets one line
before and one after each move, so that an interrupted move can be detected and completed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, Refused, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.base.validation import find_matching_ids, require_one
from core.files.append_log import AppendLog
from core.files.atomic_write import rename_to_free
from core.files.file_access import private_mode
from core.files.file_reader import Problem, Stamp, decode, decode_jsonl, read_file
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, DebugSession, Escalation
from core.records.findings import Severity
from core.records.times import iso, parse_time
from core.sources.debug_sessions import join_escalations, read_escalation, read_sessions
from core.sources.keys import normalize_keys
from core.sources.record_kinds import ESCALATION, can_contain_records, can_contain_sessions, kind_of, scan

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import DebugMemorySettings


JOURNAL: Final = "debug-memory.jsonl"
ARCHIVED: Final = "archived"
RESTORED: Final = "restored"
_NOT_MOVED: Final = "stayed"
_BEFORE: Final = "moving"
_AFTER: Final = "moved"  # key of the kind of move, in the line after a move; `_BEFORE` in the line before it
_MAX_COPIES: Final = 1000  # maximum number of archived files with the same name in one month
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ArchivedSession(Struct, frozen=True, kw_only=True):
    """One archived session."""

    session: DebugSession
    file: str
    at: datetime | None = None  # time of archiving; None and "" (`by`) unless ralphdeck archived it
    by: str = ""


class FileMove(Struct, frozen=True, kw_only=True):
    """Move of one file; `source` and `target` are project-relative."""

    source: str
    target: str
    sessions: tuple[str, ...]  # IDs of its sessions


class RestoredFile(Struct, frozen=True, kw_only=True):
    """Result of restoring the file of a session."""

    session_id: str
    moved: FileMove
    others: tuple[str, ...] = ()  # other files with this session that stay in the archive, newest first
    taken: frozenset[str] = frozenset()  # files in `others` whose original path is in use


class DebugArchive:
    """Debug memory archive of a project; a file lock allows one move at a time."""

    def __init__(self, paths: ProjectPaths, *, by: str = "") -> None:
        self._paths = paths
        self._journal = ArchiveJournal(paths, by=by)

    def plan(self, settings: DebugMemorySettings, files: DebugFiles | None = None) -> tuple[RetentionPlan, ...]:
        """Return how long each file is kept; reads the files if `files` is None."""
        files = files or read_debug_files(self._paths)
        lines = self._journal.newest(RESTORED)
        restored = {file: parse_time(line.get("at")) for file, line in lines.items()}
        return tuple(
            RetentionPlan(
                file=file,
                periods=tuple(
                    retention_period(session, settings, restored.get(file), files.called.get(session.id))
                    for session in sessions
                ),
            )
            for file, sessions in sorted(files.sessions.items())
        )

    def archive_expired(
        self, settings: DebugMemorySettings, now: datetime
    ) -> tuple[tuple[FileMove, ...], tuple[str, ...]]:
        """Archive every expired file.

        Returns the moves, and a warning for each expired file that could not be moved. Raises Unwritable if the journal
        cannot be locked or written; moves made before are not reverted.
        """
        with self._locked():
            self._journal.complete_interrupted()
            files = read_debug_files(self._paths)
            moves: dict[str, FileMove] = {}
            for plan in self.plan(settings, files):
                if plan.is_due(now):
                    home, inside = split_home(plan.file)
                    wished = f"{home}/{ARCHIVE}/{now:%Y-%m}/{inside}"
                    free = (name for name in _numbered_names(wished) if name not in moves and not self._exists(name))
                    target = next(free, wished)
                    ids = tuple(period.session_id for period in plan.periods)
                    moves[target] = FileMove(source=plan.file, target=target, sessions=ids)
            moved, failed = self._move_all(ARCHIVED, list(moves.values()), now, files.stamps)
        warnings = tuple(
            f"{visible_line(file, 160)} was not archived: {error.strerror if isinstance(error, OSError) else error}"
            for file, error in failed.items()
        )
        return tuple(moved), warnings

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._paths.unlinked(self._paths.relative(self._paths.curation))
        except BadInput as error:
            raise Unwritable(str(error)) from None
        with self._journal.locked():
            yield

    def _move_all(
        self, kind: str, moves: Sequence[FileMove], now: datetime, stamps: Mapping[str, Stamp]
    ) -> tuple[list[FileMove], dict[str, OSError | Refused]]:
        """Move files; return the successful moves, and the errors by source file."""
        moved: list[FileMove] = []
        failed: dict[str, OSError | Refused] = {}
        self._journal.record(_BEFORE, kind, moves, now)
        try:
            for move in moves:
                try:
                    self._move(move.source, move.target, stamps.get(move.source))
                except (OSError, Refused) as error:
                    failed[move.source] = error
                else:
                    moved.append(move)
        finally:
            self._sync(moved)
            self._journal.record(_AFTER, kind, moved, now)
            self._journal.record(_AFTER, _NOT_MOVED, [move for move in moves if move.source in failed], now)
        return moved, failed

    def list_sessions(self) -> tuple[ArchivedSession, ...]:
        """Return all archived sessions, most recently archived first."""
        lines = self._journal.newest(ARCHIVED)
        found = []
        for file in archived_files(self._paths):
            line = lines.get(file, {})
            by, at = line.get("by"), parse_time(line.get("at"))
            for session in read_session_file(self._paths, file)[0]:
                found.append(ArchivedSession(session=session, file=file, at=at, by=by if isinstance(by, str) else ""))
        found.sort(key=lambda one: (split_home(one.file)[1].split("/")[1], iso(one.at) or "", one.file), reverse=True)
        return tuple(found)

    def find(self, name: str) -> ArchivedSession | None:
        """Return the latest archived session with this ID or unambiguous prefix, or None."""
        listed = self.list_sessions()
        try:
            session_id = _resolve(name, listed)
        except UnknownRecord:
            return None
        return next(item for item in listed if item.session.id == session_id)

    def restore(self, session_id: str, now: datetime) -> RestoredFile:
        """Move the most recently archived file with a session back to its original path.

        `session_id` is an ID or an unambiguous ID prefix. Raises UnknownRecord if no archived session matches, Refused
        if another file has the original path, and Unwritable if the file cannot be moved.
        """
        with self._locked():
            listed = self.list_sessions()
            session_id = _resolve(session_id, listed)
            lines = self._journal.newest(ARCHIVED)
            files = dict.fromkeys(item.file for item in listed if item.session.id == session_id)
            names = {file: original_names(file, lines.get(file, {}).get("from")) for file in files}
            file, *others = files
            if not names[file]:
                raise Refused(f"{visible_line(file, 160)} is not in a YYYY-MM folder of the archive; move it by hand")
            target = next((name for name in names[file] if not self._exists(name)), names[file][0])
            ids = tuple(item.session.id for item in listed if item.file == file)
            move = FileMove(source=file, target=target, sessions=ids)
            _, failed = self._move_all(RESTORED, [move], now, {})
            for error in failed.values():
                if isinstance(error, Refused):
                    raise error
                raise Unwritable(f"cannot restore {visible_line(file, 160)}: {error.strerror}")
            taken = frozenset(other for other in others if all(map(self._exists, names[other])))
        return RestoredFile(session_id=session_id, moved=move, others=tuple(others), taken=taken)

    def _exists(self, file: str) -> bool:
        return os.path.lexists(self._paths.project / file)

    def _move(self, source: str, target: str, stamp: Stamp | None) -> None:
        """Rename a file without following links; raise `Refused` if its stamp differs."""
        folder, _, name = source.rpartition("/")
        new_folder, _, new_name = target.rpartition("/")
        with ExitStack() as stack:
            old, new = self._open(stack, folder), self._open(stack, new_folder, create=True)
            if stamp is not None:
                _check_unchanged(name, old, stamp)
            try:
                rename_to_free(old, name, new, new_name)
            except FileExistsError:
                raise Refused(f"another file exists at {visible_line(target, 160)}") from None
            if stamp is not None:
                try:
                    _check_unchanged(new_name, new, stamp)
                except Refused:
                    rename_to_free(new, new_name, old, name)
                    raise

    def _open(self, stack: ExitStack, folder: str, *, create: bool = False) -> int:
        """Open a folder below `.aiwg` without following links; return its descriptor."""
        first, *parts = PurePosixPath(folder).parts
        path = self._paths.project / first
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        for part in parts:
            path = path / part
            if create:
                try:
                    os.mkdir(part, private_mode(path, 0o777), dir_fd=handle)
                    os.fsync(handle)
                except FileExistsError:
                    pass
            handle = os.open(part, _FOLDER, dir_fd=handle)
            stack.callback(os.close, handle)
        return handle

    def _sync(self, moved: Sequence[FileMove]) -> None:
        for folder in {name.rpartition("/")[0] for one in moved for name in (one.source, one.target)}:
            with ExitStack() as stack:
                os.fsync(self._open(stack, folder))


def _resolve(name: str, listed: Iterable[ArchivedSession]) -> str:
    """Return the session ID that `name` selects; raises `UnknownRecord` for none."""
    known = {item.session.id for item in listed}
    found = find_matching_ids(name, known, fragments=True)
    return require_one(found, name, what="archived debug session", command="debug list --archived", known=known)


def _check_unchanged(name: str, folder: int, stamp: Stamp) -> None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("it is a link or a special file")
    if (status.st_ino, status.st_mtime_ns, status.st_size) != (stamp.inode, stamp.mtime_ns, stamp.size):
        raise Refused("another process has just changed it")


def _numbered_names(file: str) -> Iterator[str]:
    yield file
    path = PurePosixPath(file)
    yield from (str(path.with_name(f"{path.stem}-{number}{path.suffix}")) for number in range(2, _MAX_COPIES))


class ArchiveJournal:
    """Journal of the archive; `by` is the author of new lines."""

    def __init__(self, paths: ProjectPaths, *, by: str = "") -> None:
        self._project = paths.project
        self._by = by
        self._log = AppendLog(paths.curation / JOURNAL)
        self.locked = self._log.locked

    def record(self, key: str, kind: str, moves: Iterable[FileMove], now: datetime) -> None:
        """Append a line per move; `key` is `_BEFORE` or `_AFTER`."""
        fields = {"at": iso(now), "by": self._by, key: kind}
        lines = [{**fields, "from": one.source, "to": one.target, "sessions": one.sessions} for one in moves]
        if lines:
            self._log.append([msgspec.json.encode(line) for line in lines])

    def complete_interrupted(self) -> None:
        """Append the missing second lines of moves during which the process was killed."""
        if interrupted := self._read()[1]:
            self._log.append([msgspec.json.encode(line) for line in interrupted])

    def newest(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the newest moves (`at`, `by`, `from`) by target, also interrupted ones."""
        done, interrupted = self._read()
        return {str(line.get("to")): line for line in (*done, *interrupted) if line.get(_AFTER) == kind}

    def _read(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the second lines of moves, and those missing, derived from the files."""
        done: list[dict[str, Any]] = []
        open_moves: dict[tuple[str, str], dict[str, Any]] = {}
        for line in decode_jsonl(self._log.read()[0])[0]:
            if isinstance(line.value, dict):
                key = str(line.value.get("from")), str(line.value.get("to"))
                if line.value.get(_BEFORE) in (ARCHIVED, RESTORED):
                    open_moves[key] = line.value
                else:
                    open_moves.pop(key, None)
                    done.append(line.value)
        interrupted = []
        for (source, target), fields in open_moves.items():
            is_moved = os.path.lexists(self._project / target) and not os.path.lexists(self._project / source)
            kind = fields[_BEFORE] if is_moved else _NOT_MOVED
            interrupted.append({**{name: fields[name] for name in fields if name != _BEFORE}, _AFTER: kind})
        return done, interrupted


# Files of the debug memory, and how long they are kept (docs/task-memory.md#retention)

HOME: Final = "debug-memory"
ARCHIVE: Final = "archive"
_ROOTS: Final = (".aiwg/ralph", ".aiwg/ralph-external")
_MAX_DEPTH: Final = 8  # maximum depth of folders in an archive that are searched
UNDATED: Final = "undated"  # rule for sessions without a time, which never expire


class DebugFiles(Struct, frozen=True, kw_only=True):
    """Sessions of all debug memory files that can be read completely."""

    sessions: Mapping[str, tuple[DebugSession, ...]]  # by file, without files that contain no session
    stamps: Mapping[str, Stamp]  # by file, when it was read
    called: Mapping[str, datetime]  # time of the last call that escalated a session, by session ID


def read_debug_files(paths: ProjectPaths) -> DebugFiles:
    """Read all debug memory files, and the times of all escalations."""
    sessions, stamps = {}, {}
    calls: list[Escalation] = []
    for file in scan(paths):
        if can_contain_sessions(file):
            found, stamp = read_session_file(paths, file)
            if found and stamp is not None:
                sessions[file], stamps[file] = found, stamp
        elif kind_of(file) is ESCALATION:
            raw = read_file(paths.project / file, paths.aiwg)
            if raw is not None and not isinstance(raw, Problem):
                calls += read_escalation(file, decode(file, raw.data).value)[0]
    called = {id: call.at for id, call in join_escalations(calls).items()}
    return DebugFiles(sessions=sessions, stamps=stamps, called=called)


def read_session_file(paths: ProjectPaths, file: str) -> tuple[tuple[DebugSession, ...], Stamp | None]:
    """Return the sessions of a file and its stamp; no stamp if it is incomplete."""
    raw = read_file(paths.project / file, paths.aiwg)
    if raw is None or isinstance(raw, Problem):
        return (), None
    decoded = decode(file, raw.data, every=True)
    if decoded.failed:
        return (), None
    is_torn = any(problem.severity is Severity.ERROR for problem in decoded.problems)
    if file.endswith(".jsonl"):
        is_torn = bool(decoded.problems) or not raw.data.endswith(b"\n")
    return read_sessions(file, normalize_keys(decoded.value))[0], None if is_torn else raw.stamp


def archived_files(paths: ProjectPaths) -> Iterator[str]:
    """Yield the project-relative paths of archived files that may contain sessions."""
    for home in _debug_memory_folders(paths):
        top = paths.project / home / ARCHIVE
        for folder, folders, names in os.walk(top) if not top.is_symlink() else ():
            below = Path(folder).relative_to(top)
            if len(below.parts) >= _MAX_DEPTH:
                folders.clear()
            for name in sorted(names):
                # An archived file may contain sessions if its original path allows them.
                if kind_of((PurePosixPath(home) / below / name).as_posix()):
                    yield (PurePosixPath(home, ARCHIVE) / below / name).as_posix()


def _debug_memory_folders(paths: ProjectPaths) -> Iterator[str]:
    for root in _ROOTS:
        for folder, folders, _ in os.walk(paths.project / root):
            relative = paths.relative(paths.project / folder)
            if HOME in folders:
                folders.remove(HOME)
                if not Path(folder, HOME).is_symlink():
                    yield f"{relative}/{HOME}"
            folders[:] = sorted(name for name in folders if can_contain_records(f"{relative}/{name}"))


def split_home(file: str) -> tuple[str, str]:
    """Split a path into its `debug-memory` folder and the path relative to it."""
    parts = file.split("/")
    depth = parts.index(HOME) + 1
    return "/".join(parts[:depth]), "/".join(parts[depth:])


def original_names(file: str, recorded: object) -> list[str]:
    """Return the paths to restore a file to, best first; `recorded` is untrusted."""
    home, inside = split_home(file)
    names = []
    if isinstance(recorded, str) and can_contain_sessions(recorded) and split_home(recorded)[0] == home:
        names.append(recorded)
    names.append(f"{home}/{PurePosixPath(*PurePosixPath(inside).parts[2:])}")
    return [name for name in dict.fromkeys(names) if can_contain_sessions(name)]


class RetentionPeriod(Struct, frozen=True, kw_only=True):
    """Period for which one session is kept."""

    session_id: str
    status: str
    rule: str  # the applicable setting with the most days, or `in_progress` or `undated`
    days: int | None = None  # number of days after the last change; None if the session never expires
    until: datetime | None = None  # end of the period; None if the session never expires

    def is_expired(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now


class RetentionPlan(Struct, frozen=True, kw_only=True):
    """Retention periods of a file's sessions; it is archived after the last of them."""

    file: str
    periods: tuple[RetentionPeriod, ...]

    def expired(self, now: datetime) -> tuple[RetentionPeriod, ...]:
        return tuple(period for period in self.periods if period.is_expired(now))

    def is_due(self, now: datetime) -> bool:
        return bool(self.periods) and len(self.expired(now)) == len(self.periods)


def retention_period(
    session: DebugSession,
    settings: DebugMemorySettings,
    restored_at: datetime | None = None,
    called_at: datetime | None = None,
) -> RetentionPeriod:
    """Return the longest retention period that applies to a session.

    It starts at the last change, restore or call. `restored_at` is the time when its file was restored from the
    archive, and `called_at` that of the last call that escalated it, whatever its status.
    """
    since = max(filter(None, (session.changed_at, restored_at, called_at)), default=None)
    days, until = None, None
    if session.status == IN_PROGRESS:
        rule = IN_PROGRESS
    elif since is None:
        rule = UNDATED
    else:
        applying = {"default_days": settings.default_days}
        if session.lessons:
            applying["on_learning_identified"] = settings.on_learning_identified
        if session.status == ESCALATED or called_at is not None:
            applying["on_escalation"] = settings.on_escalation
        rule = max(applying, key=lambda rule: applying[rule])
        days = applying[rule]
        with suppress(OverflowError):
            until = since + timedelta(days=days)
    return RetentionPeriod(session_id=session.id, status=session.status, rule=rule, days=days, until=until)
