"""The files of the debug memory, and how long they are kept.

Sessions live in `debug-memory` folders below `.aiwg/ralph` and `.aiwg/ralph-external`; archived files keep their name
inside the folder, below `debug-memory/archive/<YYYY-MM>/` (docs/debug-memory.md#retention).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from core.config.paths import ProjectPaths
from core.config.settings import DebugMemorySettings
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, DebugSession, Escalation
from core.records.findings import Severity
from core.sources.debug_sessions import join_escalations, read_escalation, read_sessions
from core.sources.record_kinds import ESCALATION, can_contain_sessions, kind_of
from core.sources.sweep import can_contain_records, scan
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp, decode, read_file

HOME: Final = "debug-memory"
ARCHIVE: Final = "archive"
_ROOTS: Final = (".aiwg/ralph", ".aiwg/ralph-external")
_MAX_DEPTH: Final = 8  # folders below an archive that are searched
UNDATED: Final = "undated"  # the rule for sessions without a time, which never expire


class DebugFiles(Struct, frozen=True, kw_only=True):
    """Contents of all debug memory files that can be read completely."""

    sessions: Mapping[str, tuple[DebugSession, ...]]  # by file, for files with at least one session
    stamps: Mapping[str, Stamp]  # of these files when they were read
    called: Mapping[str, datetime]  # when sessions were last escalated by a call, by session ID


def read_debug_files(paths: ProjectPaths) -> DebugFiles:
    """Read all files of the debug memory and all escalations."""
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
    """The sessions of a file and its stamp, None if it cannot be read completely."""
    raw = read_file(paths.project / file, paths.aiwg)
    if raw is None or isinstance(raw, Problem):
        return (), None
    decoded = decode(file, raw.data, every=True)
    if decoded.failed:
        return (), None
    is_torn = any(problem.severity is Severity.ERROR for problem in decoded.problems)
    if file.endswith(".jsonl"):
        is_torn = bool(decoded.problems) or not raw.data.endswith(b"\n")
    return read_sessions(file, decoded.value)[0], None if is_torn else raw.stamp


def archived_files(paths: ProjectPaths) -> Iterator[str]:
    """Project-relative names of the files in all archives that can hold sessions."""
    for home in _debug_memory_folders(paths):
        top = paths.project / home / ARCHIVE
        for folder, folders, names in os.walk(top) if not top.is_symlink() else ():
            below = Path(folder).relative_to(top)
            if len(below.parts) >= _MAX_DEPTH:
                folders.clear()
            for name in sorted(names):
                # A file can hold sessions in the archive if it can hold them in its original place.
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
    """Split a file name into its `debug-memory` folder and the name inside it."""
    parts = file.split("/")
    depth = parts.index(HOME) + 1
    return "/".join(parts[:depth]), "/".join(parts[depth:])


def original_names(file: str, recorded: object) -> list[str]:
    """Names to restore a file to, best first; `recorded` is untrusted."""
    home, inside = split_home(file)
    names = []
    if isinstance(recorded, str) and can_contain_sessions(recorded) and split_home(recorded)[0] == home:
        names.append(recorded)
    names.append(f"{home}/{PurePosixPath(*PurePosixPath(inside).parts[2:])}")
    return [name for name in dict.fromkeys(names) if can_contain_sessions(name)]


class RetentionPeriod(Struct, frozen=True, kw_only=True):
    """How long one session is kept."""

    session_id: str
    status: str
    rule: str  # the setting with the most days of all that apply, `in_progress` or `undated`
    days: int | None = None  # after the last change; None if the session never expires
    until: datetime | None = None  # None if the period never ends

    def is_expired(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now


class RetentionPlan(Struct, frozen=True, kw_only=True):
    """The periods of all sessions of a file, archived when all have expired."""

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
    """The longest period that applies to a session, counted from its last event.

    `restored_at` is when its file was restored from the archive, and `called_at` when it was last escalated by a call,
    which counts whatever its status is.
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
    """The periods of the sessions of all files, sorted by file name."""

    def period(file: str, session: DebugSession) -> RetentionPeriod:
        return retention_period(session, settings, restored.get(file), called.get(session.id))

    return tuple(
        RetentionPlan(file=file, periods=tuple(period(file, session) for session in files[file]))
        for file in sorted(files)
    )
