"""Find escalated debug sessions, and save their context in escalation files.

See docs/task-memory.md#escalation. An escalation file records one call of the escalation command. It is never changed,
so it shows what was known at that time. The review queue asks about it.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, Refused, Unwritable
from core.base.masking import mask_values
from core.base.paths import ProjectPaths, is_safe_id
from core.base.text import visible_line
from core.files.atomic_write import rewrite, take_theirs
from core.files.file_access import check_writable
from core.files.file_reader import Problem, decode, decode_yaml, read_file
from core.records.debug_sessions import ESCALATED, DebugSession, Escalation
from core.records.decisions import escalation_question_id
from core.records.times import iso
from core.sources.debug_sessions import find_record
from core.sources.keys import normalize_keys
from core.tasks.debug_index import STATUS, DebugIndex

if TYPE_CHECKING:
    from core.records.extractions import Material
    from core.records.snapshot import Snapshot

ASKS_FOR: Final = timedelta(days=14)  # age up to which an escalation waits for an answer
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
FOLDER: Final = "escalations"
MAX_ITERATIONS: Final = 20  # number of the loop's last iterations that are saved
MAX_CALLS: Final = 1000  # maximum number of calls per session
_DIGEST_LENGTH: Final = 32


class EscalatedSession(Struct, frozen=True, kw_only=True):
    """A session that was escalated by its status or by a call; `call` is the newest.

    `has_ended` is whether its loop or attempt has ended, or went on and succeeded, so that no agent waits for a person.
    """

    session: DebugSession
    call: Escalation | None = None
    has_ended: bool = False

    @property
    def at(self) -> datetime | None:
        """Time of the escalation: of the call or the change of status, if that is later."""
        changed_at = self.session.changed_at if self.session.status == ESCALATED else None
        return max(filter(None, (changed_at, self.call.at if self.call else None)), default=None)

    @property
    def last_activity(self) -> datetime | None:
        return max(filter(None, (self.session.changed_at, self.call.at if self.call else None)), default=None)

    @property
    def reason(self) -> str:
        """Why the session needs a person, from `escalation_reason`; untrusted."""
        return escalation_reason(self.session, self.call)

    @property
    def question(self) -> str:
        """ID of the review question; a later escalation of the session has another ID."""
        return escalation_question_id(self.session.id, self.at)


def escalation_reason(session: DebugSession, call: Escalation | None) -> str:
    """Return the reason of the call, or a failure or root cause of the session."""
    if call is not None and call.reason:
        return call.reason
    for recurring in session.recurring:
        if recurring.resolution == ESCALATED:
            return recurring.notes or recurring.test
    for execution in reversed(session.executions):
        if execution.analysis is not None and execution.analysis.root_cause:
            return execution.analysis.root_cause
    return describe_first_failure(session) or "the agent gave up"


def describe_first_failure(session: DebugSession) -> str:
    """Return type and message of the first failure, or the first root cause, or ""."""
    for execution in session.executions:
        for failure in execution.failures:
            return (
                failure.summary if failure.message else ": ".join(filter(None, (failure.error_type, failure.test_name)))
            )
    causes = (execution.analysis.root_cause for execution in session.executions if execution.analysis is not None)
    return next(causes, "")


def find_escalation(session: DebugSession, snapshot: Snapshot) -> EscalatedSession | None:
    """Return the escalation of a session; None without one, or if acknowledged."""
    call = snapshot.escalations.get(session.id)
    found = EscalatedSession(session=session, call=call)
    found = msgspec.structs.replace(found, has_ended=_has_ended(found, snapshot))
    if session.status == ESCALATED:
        return found
    return found if found.call is not None and found.question not in snapshot.curation.dismissed else None


def _has_ended(one: EscalatedSession, snapshot: Snapshot) -> bool:
    """Return whether an escalation's loop, task or attempt ended, or succeeded since."""
    session = one.session
    at = one.at or _EARLIEST
    work_id = session.loop_id or session.task_id
    if (loop := snapshot.loops.get(work_id)) is not None:
        return loop.status.ended or any(step.has_succeeded and (step.at or _EARLIEST) > at for step in loop.iterations)
    if (task := snapshot.tasks.get(work_id)) is not None and task.status.ended:
        return True
    attempt = snapshot.attempts.get(session.attempt_id)
    return attempt is not None and not attempt.is_open


def find_recent_escalations(
    index: DebugIndex, snapshot: Snapshot, since: datetime | None = None
) -> tuple[EscalatedSession, ...]:
    """Return the sessions escalated after `since`, newest first, undated last."""
    called = (index.sessions[id] for id in snapshot.escalations if id in index.sessions)
    sessions = {session.id: session for session in (*index.find(STATUS, ESCALATED), *called)}
    found = (find_escalation(session, snapshot) for session in sessions.values())
    recent = [one for one in found if one and (since is None or (one.at or _EARLIEST) > since)]
    return tuple(sorted(recent, key=newest_escalation_first))


def newest_escalation_first(one: EscalatedSession) -> tuple[float, str]:
    """Return the sort key for most recently escalated first, undated last."""
    return -one.at.timestamp() if one.at is not None else float("inf"), one.session.id


def context_file(paths: ProjectPaths, session_id: str, number: int = 1) -> Path:
    """Return the path of escalation file `number` (from 1); hash an unsafe ID."""
    is_safe = is_safe_id(session_id)
    digest = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:_DIGEST_LENGTH]
    name = session_id if is_safe else f"session-{digest}"
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
    """Write the context of a session to a new escalation file; return its path.

    `material` contains the records of the session's loop, or is None if it has no loop. Raises Refused if the session
    has too many calls, and Unwritable if the file cannot be written or the folder is a link.
    """
    tasks = {session.task_id, session.loop_id} - {""}
    document: dict[str, Any] = {
        "session_id": session.id,
        "preserved_at": iso(now),
        "by": by,
        "reason": reason,
        "session_file": session.file,
        "session": _session_record(paths, session),
        "loop": None,
        "open_attempts": [one for one in snapshot.attempts.values() if one.task_id in tasks and one.is_open],
    }
    if material is not None and (loop := material.loop) is not None:
        document["loop"] = {
            **{name: getattr(loop, name) for name in ("id", "task", "status", "iteration", "files")},
            "injected_patterns": loop.injected,
            "iterations": material.iterations[-MAX_ITERATIONS:],
            "errors": material.errors,
            "reflections": material.reflections,
        }
    # Texts from files may contain lone surrogates, which UTF-8 cannot encode.
    text = json.dumps(mask_values(msgspec.to_builtins(document)), indent=2, ensure_ascii=False)
    data = text.encode("utf-8", "replace") + b"\n"
    folder = paths.curation / FOLDER
    check_writable(folder)
    try:
        paths.unlinked(paths.relative(folder))
        folder.mkdir(parents=True, exist_ok=True)
    except BadInput as error:
        raise Unwritable(str(error)) from None
    except OSError as error:
        raise Unwritable(f"cannot create {folder}: {error.strerror}") from None
    for number in range(1, MAX_CALLS + 1):
        path = context_file(paths, session.id, number)
        if not os.path.lexists(path) and _write_new(path, data):
            return path
    raise Refused(f"{visible_line(session.id, 80)} was already escalated {MAX_CALLS:,} times, the maximum number")


def _write_new(path: Path, data: bytes) -> bool:
    """Write a new file; return False if another process has just created it."""
    written = False

    def change(present: bytes | None) -> bytes | None:
        nonlocal written
        written = present in (None, data)
        return data if present is None else present

    rewrite(path, change, merge=take_theirs, retry_seconds=())
    return written


def _session_record(paths: ProjectPaths, session: DebugSession) -> Any:
    """Return a session from its file with unknown fields; if unreadable, as parsed."""
    raw = read_file(paths.project / session.file, paths.aiwg)
    if raw is not None and not isinstance(raw, Problem):
        is_yaml = session.file.endswith((".yaml", ".yml"))
        decoded = decode_yaml(raw.data, every=True, typed=True) if is_yaml else decode(session.file, raw.data)
        found = find_record(session.file, normalize_keys(decoded.value), session.id)
        if found is not None:
            return found[1]
    return msgspec.to_builtins(session)
