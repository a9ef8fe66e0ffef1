"""(4) hooks on_escalation, preserve_full_context: everything around an escalated session, kept in one file.

`shared/curation/escalations/<session>.json` is written once and never again: it is what was known when the agent
gave up, whatever becomes of the files that it comes from. A further call for the session has a file of its own,
`<session>-2.json` and so on. Each file is also the record of its call, on which Review asks (notify_human).
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from core.base.errors import BadInput, Refused, Unwritable
from core.base.text import visible_line
from core.config.paths import SAFE_ID, ProjectPaths
from core.records.debug_sessions import DebugSession
from core.records.material import Material
from core.records.snapshot import Snapshot
from core.records.times import iso
from core.sources.debug_sessions import find_record
from core.sources.record_checks import normalized
from core.storage.atomic_write import rewrite, take_theirs
from core.storage.decoded import Problem
from core.storage.file_reader import decode, read_file
from core.storage.read_only import check_writable
from core.storage.yaml_reader import decode_yaml

FOLDER: Final = "escalations"
MAX_ITERATIONS: Final = 20
"""Last iterations of the loop that are kept."""
MAX_CALLS: Final = 1000
"""Calls for one session that are kept."""
_NAME_DIGITS: Final = 32


def context_file(paths: ProjectPaths, session_id: str, number: int = 1) -> Path:
    """Where the context of a session is kept; an id that cannot be a name is named by its hash.

    Args:
        number: Of the call, from 1 up; which session a file is about is told by what it holds.
    """
    safe = SAFE_ID.fullmatch(session_id) is not None and ".." not in session_id
    digest = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:_NAME_DIGITS]
    name = session_id if safe else f"session-{digest}"
    return paths.curation / FOLDER / (f"{name}.json" if number == 1 else f"{name}-{number}.json")


def preserve_context(
    paths: ProjectPaths,
    snapshot: Snapshot,
    session: DebugSession,
    material: Material | None,
    *,
    now: datetime,
    by: str,
    reason: str = "",
) -> Path:
    """Keep everything around a session; returns the new file, nothing that is there already is written over.

    Raises:
        Refused: So many calls are kept for this session that nobody answers any more.
        Unwritable: The disk or a permission forbids it, or a link leads to the folder.
    """
    document = {
        "session_id": session.id,
        "preserved_at": iso(now),
        "by": by,
        "reason": reason,
        "session_file": session.file,
        "session": _record(paths, session),
        **_around(snapshot, session, material),
    }
    # Texts of the files may hold half characters, which cannot be stored.
    data = json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    folder = paths.curation / FOLDER
    check_writable(folder)
    try:
        paths.unlinked(paths.relative(folder))
        folder.mkdir(parents=True, exist_ok=True)
    except BadInput as error:
        raise Unwritable(str(error)) from None
    except OSError as error:
        raise Unwritable(f"cannot make {folder}: {error.strerror}") from None
    for number in range(1, MAX_CALLS + 1):
        path = context_file(paths, session.id, number)
        if not os.path.lexists(path) and _put(path, data):
            return path
    raise Refused(f"{MAX_CALLS:,} calls for {visible_line(session.id, 80)} are kept already")


def _put(path: Path, data: bytes) -> bool:
    """Write a new file; False if somebody else has just made one of that name."""
    written = False

    def change(present: bytes | None) -> bytes | None:
        nonlocal written
        written = present in (None, data)
        return data if present is None else present

    rewrite(path, change, merge=take_theirs, retry_seconds=())
    return written


def _around(snapshot: Snapshot, session: DebugSession, material: Material | None) -> dict[str, Any]:
    """The loop that the session belongs to, and the open attempt at its task."""
    tasks = {session.task_id, session.loop_id} - {""}
    attempts = [one for one in snapshot.attempts.values() if one.task_id in tasks and one.is_open]
    told: dict[str, Any] = {"loop": None, "open_attempts": msgspec.to_builtins(attempts)}
    loop = material.loop if material is not None else None
    if material is not None and loop is not None:
        told["loop"] = {
            "id": loop.id,
            "task": loop.task,
            "status": loop.status.value,
            "iteration": loop.iteration,
            "files": loop.files,
            "injected_patterns": msgspec.to_builtins(loop.injected),
            "iterations": msgspec.to_builtins(material.iterations[-MAX_ITERATIONS:]),
            "errors": msgspec.to_builtins(material.errors),
            "reflections": msgspec.to_builtins(material.reflections),
        }
    return told


def _record(paths: ProjectPaths, session: DebugSession) -> Any:
    """The session as its file has it, with what ralphdeck does not know of; else as it was read."""
    raw = read_file(paths.project / session.file, paths.aiwg)
    if raw is not None and not isinstance(raw, Problem):
        is_yaml = session.file.endswith((".yaml", ".yml"))
        decoded = decode_yaml(raw.data, every=True, typed=True) if is_yaml else decode(session.file, raw.data)
        found = find_record(session.file, normalized(decoded.value), session.id)
        if found is not None:
            return found[1]
    return msgspec.to_builtins(session)
