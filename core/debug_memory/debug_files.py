"""The files of the debug memory, their contents and their names in the archive.

Sessions live in `debug-memory` folders below `.aiwg/ralph` and `.aiwg/ralph-external`; archived files keep their name
inside the folder, below `debug-memory/archive/<YYYY-MM>/`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from core.config.paths import ProjectPaths
from core.records.debug_sessions import DebugSession, Escalation
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


class DebugFiles(Struct, frozen=True, kw_only=True):
    """Contents of all debug memory files that can be read completely.

    `sessions` and the `stamps` of files when they were read are given for files with at least one session. `called` is
    when sessions were last escalated by a call, by session ID.
    """

    sessions: Mapping[str, tuple[DebugSession, ...]]
    stamps: Mapping[str, Stamp]
    called: Mapping[str, datetime]


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


def archive_month(file: str) -> str:
    return split_home(file)[1].split("/")[1]


def original_names(file: str, recorded: object) -> list[str]:
    """Names to restore a file to, best first; `recorded` is untrusted."""
    home, inside = split_home(file)
    names = []
    if isinstance(recorded, str) and can_contain_sessions(recorded) and split_home(recorded)[0] == home:
        names.append(recorded)
    names.append(f"{home}/{PurePosixPath(*PurePosixPath(inside).parts[2:])}")
    return [name for name in dict.fromkeys(names) if can_contain_sessions(name)]
