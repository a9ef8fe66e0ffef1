"""Which debug sessions wait for a person: one rule for every list, question and notice (4) on_escalation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from core.curation.rules import escalation_question
from core.debug_memory.index import STATUS, DebugIndex
from core.records.debug_sessions import ESCALATED, DebugSession, Escalation
from core.snapshot import Snapshot

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Escalated(Struct, frozen=True, kw_only=True):
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
    def question(self) -> str:
        """What answers are filed under: if the session is escalated anew, it is another question."""
        return escalation_question(self.session.id, self.at)


def escalated(session: DebugSession, snapshot: Snapshot) -> Escalated | None:
    """The session as one that is escalated: its status says so, or an agent called and nobody has answered since."""
    found = Escalated(session=session, call=snapshot.escalations.get(session.id))
    if session.status == ESCALATED:
        return found
    return found if found.call is not None and found.question not in snapshot.curation.dismissed else None


def recent_escalations(index: DebugIndex, snapshot: Snapshot, since: datetime | None = None) -> tuple[Escalated, ...]:
    """(4) recent_escalations: sessions escalated after `since`, newest first; of None all of them."""
    called = (index.sessions[id] for id in snapshot.escalations if id in index.sessions)
    sessions = {session.id: session for session in (*index.find(STATUS, ESCALATED), *called)}
    found = [one for session in sessions.values() if (one := escalated(session, snapshot)) is not None]
    found = [one for one in found if since is None or (one.at or _EARLIEST) > since]
    return tuple(sorted(found, key=_newest_first))


def _newest_first(one: Escalated) -> tuple[float, str]:
    return -one.at.timestamp() if one.at is not None else float("inf"), one.session.id
