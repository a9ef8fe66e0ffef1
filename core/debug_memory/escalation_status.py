"""Find escalated debug sessions (docs/debug-memory.md#escalation)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from core.debug_memory.index import STATUS, DebugIndex
from core.records.debug_sessions import ESCALATED, DebugSession, Escalation
from core.records.decisions import escalation_question_id
from core.records.snapshot import Snapshot

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class EscalatedSession(Struct, frozen=True, kw_only=True):
    """A session escalated by its status, or by `call`, its newest call."""

    session: DebugSession
    call: Escalation | None = None

    @property
    def at(self) -> datetime | None:
        """When it was escalated: the later of the call and the change of its status."""
        changed_at = self.session.changed_at if self.session.status == ESCALATED else None
        return max(filter(None, (changed_at, self.call.at if self.call else None)), default=None)

    @property
    def last_activity(self) -> datetime | None:
        return max(filter(None, (self.session.changed_at, self.call.at if self.call else None)), default=None)

    @property
    def reason(self) -> str:
        """Why the session needs a human, see `escalation_reason`; untrusted."""
        return escalation_reason(self.session, self.call)

    @property
    def question(self) -> str:
        """The ID of its review question; a new escalation of the session has another one."""
        return escalation_question_id(self.session.id, self.at)


def escalation_reason(session: DebugSession, call: Escalation | None) -> str:
    """The reason of the call, else a failure or root cause of the session."""
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
    """Type and message of the first failure, else the first root cause."""
    for execution in session.executions:
        for failure in execution.failures:
            return ": ".join(filter(None, (failure.error_type, failure.message or failure.test_name)))
    causes = (execution.analysis.root_cause for execution in session.executions if execution.analysis is not None)
    return next(causes, "")


def find_escalation(session: DebugSession, snapshot: Snapshot) -> EscalatedSession | None:
    """The escalation of a session; None without one, or if it was acknowledged."""
    found = EscalatedSession(session=session, call=snapshot.escalations.get(session.id))
    if session.status == ESCALATED:
        return found
    return found if found.call is not None and found.question not in snapshot.curation.dismissed else None


def find_recent_escalations(
    index: DebugIndex, snapshot: Snapshot, since: datetime | None = None
) -> tuple[EscalatedSession, ...]:
    """Sessions escalated after `since`, newest first and undated ones last."""
    called = (index.sessions[id] for id in snapshot.escalations if id in index.sessions)
    sessions = {session.id: session for session in (*index.find(STATUS, ESCALATED), *called)}
    found = (find_escalation(session, snapshot) for session in sessions.values())
    recent = [one for one in found if one and (since is None or (one.at or _EARLIEST) > since)]
    return tuple(sorted(recent, key=newest_escalation_first))


def newest_escalation_first(one: EscalatedSession) -> tuple[float, str]:
    """Sort key: most recently escalated first, undated last."""
    return -one.at.timestamp() if one.at is not None else float("inf"), one.session.id
