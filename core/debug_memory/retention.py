"""How long debug sessions are kept (docs/debug-memory.md#retention)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from core.config.settings import DebugMemorySettings
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, DebugSession

DEFAULT: Final = "default_days"
ESCALATION: Final = "on_escalation"
LEARNING: Final = "on_learning_identified"
UNDATED: Final = "undated"
"""The rules: names of settings, or `undated` and `IN_PROGRESS` for sessions that never expire."""


class RetentionPeriod(Struct, frozen=True, kw_only=True):
    """How long one session is kept.

    `rule` is the setting with the most days of all that apply, `in_progress` or `undated`. `days` count from the last
    change; they are None if the session never expires, and `until` if the period never ends.
    """

    session_id: str
    status: str
    rule: str
    days: int | None = None
    until: datetime | None = None

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
        applying = {DEFAULT: settings.default_days}
        if session.lessons:
            applying[LEARNING] = settings.on_learning_identified
        if session.status == ESCALATED or called_at is not None:
            applying[ESCALATION] = settings.on_escalation
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
    """The periods of the sessions of all files, sorted by file name.

    `restored` is when files were restored from the archive; their periods start again then. `called` is when sessions
    were last escalated by a call, by session ID.
    """

    def period(file: str, session: DebugSession) -> RetentionPeriod:
        return retention_period(session, settings, restored.get(file), called.get(session.id))

    return tuple(
        RetentionPlan(file=file, periods=tuple(period(file, session) for session in files[file]))
        for file in sorted(files)
    )
