"""Which debug sessions wait for a person: one rule for every list, question and notice (4) on_escalation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from core.debug_memory.index import STATUS, DebugIndex
from core.records.debug_sessions import ESCALATED, DebugSession, Escalation
from core.records.question_ids import escalation_question_id
from core.records.snapshot import Snapshot

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class EscalatedSession(Struct, frozen=True, kw_only=True):
    """A session that was escalated.

    Attributes:
        call: The newest call for a person, if there was one; whoever escalates a session may as well only say so in
            its status.
    """

    session: DebugSession
    call: Escalation | None = None

    @property
    def at(self) -> datetime | None:
        """When: at the call; where the status says so, when the session was changed if that was later."""
        told = [self.session.changed_at] if self.session.status == ESCALATED else []
        told += [self.call.at] if self.call is not None else []
        return max(filter(None, told), default=None)

    @property
    def last_activity(self) -> datetime | None:
        """When something was heard of it last: the call, or the newest change of the session."""
        told = (self.session.changed_at, self.call.at if self.call is not None else None)
        return max(filter(None, told), default=None)

    @property
    def reason(self) -> str:
        """Why a person should see it: the words of who called, else what stays unresolved, else the last root cause,
        else what failed; untrusted.
        """
        return escalation_reason(self.session, self.call)

    @property
    def question(self) -> str:
        """What answers are filed under: if the session is escalated anew, it is another question."""
        return escalation_question_id(self.session.id, self.at)


def escalation_reason(session: DebugSession, call: Escalation | None) -> str:
    """See `EscalatedSession.reason`; of a session that nobody escalated, what a person would see first."""
    if call is not None and call.reason:
        return call.reason
    for recurring in session.recurring:
        if recurring.resolution == ESCALATED:
            return recurring.notes or recurring.test
    for execution in reversed(session.executions):
        if execution.analysis is not None and execution.analysis.root_cause:
            return execution.analysis.root_cause
    return describe_first_failure(session) or "its agent gave it up"


def describe_first_failure(session: DebugSession) -> str:
    """Type and message of what failed first, else the first root cause."""
    for execution in session.executions:
        for failure in execution.failures:
            return ": ".join(filter(None, (failure.error_type, failure.message or failure.test_name)))
    causes = (execution.analysis.root_cause for execution in session.executions if execution.analysis is not None)
    return next(causes, "")


def find_escalation(session: DebugSession, snapshot: Snapshot) -> EscalatedSession | None:
    """The session as one that is escalated: its status says so, or an agent called and nobody has answered since."""
    found = EscalatedSession(session=session, call=snapshot.escalations.get(session.id))
    if session.status == ESCALATED:
        return found
    return found if found.call is not None and found.question not in snapshot.curation.dismissed else None


def find_recent_escalations(
    index: DebugIndex, snapshot: Snapshot, since: datetime | None = None
) -> tuple[EscalatedSession, ...]:
    """(4) recent_escalations: sessions escalated after `since`, newest first; of None all of them."""
    called = (index.sessions[id] for id in snapshot.escalations if id in index.sessions)
    sessions = {session.id: session for session in (*index.find(STATUS, ESCALATED), *called)}
    found = [one for session in sessions.values() if (one := find_escalation(session, snapshot)) is not None]
    found = [one for one in found if since is None or (one.at or _EARLIEST) > since]
    return tuple(sorted(found, key=newest_first))


def newest_first(one: EscalatedSession) -> tuple[float, str]:
    """A key to sort by: those escalated last first, undated ones last."""
    return -one.at.timestamp() if one.at is not None else float("inf"), one.session.id
