"""Find the files of the debug memory, and compute how long they are kept.

Sessions are in `debug-memory` folders below `.aiwg/ralph` and `.aiwg/ralph-external`. An archived file keeps its path
relative to this folder, below `debug-memory/archive/<YYYY-MM>/` (docs/debug-memory.md#retention).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.files.decoded import Problem
from core.files.file_reader import Stamp, decode, read_file
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, DebugSession, Escalation
from core.records.findings import Severity
from core.sources.debug_sessions import join_escalations, read_escalation, read_sessions
from core.sources.keys import normalize_keys
from core.sources.record_kinds import ESCALATION, can_contain_sessions, kind_of
from core.sources.sweep import can_contain_records, scan

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import DebugMemorySettings

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


def plan_retention(
    files: Mapping[str, Sequence[DebugSession]],
    settings: DebugMemorySettings,
    restored: Mapping[str, datetime],
    called: Mapping[str, datetime],
) -> tuple[RetentionPlan, ...]:
    """Return the retention periods of all files, sorted by path."""

    def period(file: str, session: DebugSession) -> RetentionPeriod:
        return retention_period(session, settings, restored.get(file), called.get(session.id))

    return tuple(
        RetentionPlan(file=file, periods=tuple(period(file, session) for session in files[file]))
        for file in sorted(files)
    )
