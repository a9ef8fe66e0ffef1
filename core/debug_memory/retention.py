"""How long debug sessions are kept (4) `retention`. No file is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from core.config.settings import DebugMemorySettings
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, DebugSession

DEFAULT: Final = "default_days"
ESCALATION: Final = "on_escalation"
LEARNING: Final = "on_learning_identified"
UNDATED: Final = "undated"
"""The rules that a term can rest on: the settings of (4); what is not dated, and what is `IN_PROGRESS`, stays."""


class RetentionPeriod(Struct, frozen=True, kw_only=True):
    """How long one session is kept.

    Attributes:
        rule: What the term rests on: of all settings that apply the longest one, `in_progress` or `undated`.
        days: For so long after its last change; None for ever.
        until: When that ends; None for never.
    """

    session_id: str
    status: str
    rule: str
    days: int | None = None
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Whether the session is due at `now`."""
        return self.until is not None and self.until <= now


class RetentionPlan(Struct, frozen=True, kw_only=True):
    """One file of the debug memory, with the terms of its sessions; it is archived when all of them are over."""

    file: str
    terms: tuple[RetentionPeriod, ...]

    def over(self, now: datetime) -> tuple[RetentionPeriod, ...]:
        """The terms that are over at `now`."""
        return tuple(term for term in self.terms if term.is_over(now))

    def is_due(self, now: datetime) -> bool:
        """Whether the file can be archived at `now`."""
        return bool(self.terms) and len(self.over(now)) == len(self.terms)


def term(
    session: DebugSession,
    settings: DebugMemorySettings,
    restored_at: datetime | None = None,
    called_at: datetime | None = None,
) -> RetentionPeriod:
    """How long a session is kept: the longest of all terms that apply, from the last that happened to it on.

    A session in progress is kept, and so is one that nothing dates.

    Args:
        restored_at: When its file came back from the archive.
        called_at: When a person was called to it last: that escalates it, whatever its status says.
    """
    if session.status == IN_PROGRESS:
        return RetentionPeriod(session_id=session.id, status=session.status, rule=IN_PROGRESS)
    since = max(filter(None, (session.changed_at, restored_at, called_at)), default=None)
    if since is None:
        return RetentionPeriod(session_id=session.id, status=session.status, rule=UNDATED)
    applying = {DEFAULT: settings.default_days}
    if session.lessons:
        applying[LEARNING] = settings.on_learning_identified
    if session.status == ESCALATED or called_at is not None:
        applying[ESCALATION] = settings.on_escalation
    rule = max(applying, key=lambda rule: applying[rule])
    days = applying[rule]
    try:
        until = since + timedelta(days=days)
    except OverflowError:
        return RetentionPeriod(session_id=session.id, status=session.status, rule=rule, days=days)
    return RetentionPeriod(session_id=session.id, status=session.status, rule=rule, days=days, until=until)


def plan(
    memory: Mapping[str, Sequence[DebugSession]],
    settings: DebugMemorySettings,
    restored: Mapping[str, datetime],
    called: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[RetentionPlan, ...]:
    """The terms of all files, in the order of their names.

    Args:
        memory: The sessions of each file.
        settings: The days.
        restored: When files came back from the archive: from then on they are kept as long again.
        called: When a person was called last, by the id of the session.
    """
    return tuple(
        RetentionPlan(
            file=file,
            terms=tuple(
                term(session, settings, restored.get(file), called.get(session.id)) for session in memory[file]
            ),
        )
        for file in sorted(memory)
    )
