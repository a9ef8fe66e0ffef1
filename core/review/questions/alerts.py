"""Alerts: suspicious harmful reports, and escalations of blocked agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.debug_memory.escalation_status import EscalatedSession
from core.learning.bursts import format_burst
from core.review.messages import call_text, stuck_text
from core.review.priority import ImpactEstimator
from core.state.review_items import BURST, ESCALATION, ReviewItem

STUCK: Final = timedelta(days=14)
"""Age at which an escalation stops being urgent."""
WAITS: Final = "an agent is blocked until a person helps"
"""Why an escalation comes first."""


def bursts(scales: ImpactEstimator) -> Iterator[ReviewItem]:
    """Suspicious reports, which do not count until a person decides."""
    for burst in scales.board.bursts:
        count = len(burst.patterns)
        yield scales.item(
            BURST,
            burst.source,
            question=f"Discard {plural(count, 'suspicious failure report')} of {{}}?",
            this="this loop",
            reason=format_burst(burst),
            place="",
            impact=sum(scales.either(id) for id in burst.patterns if id in scales.board) / 2,
            chars=0,
            further=count,
            burst=burst,
            evidence=count,
        )


def escalations(scales: ImpactEstimator, escalated: Iterable[EscalatedSession], now: datetime) -> Iterator[ReviewItem]:
    """Escalated debug sessions, newest first; only recent ones are urgent."""
    for one in sorted(escalated, key=lambda one: one.at or now, reverse=True):
        session, at = one.session, one.at
        since = f", on {format_day(at)}" if at is not None else ""
        called = f"; {call_text(one.call)}" if one.call is not None else ""
        stuck = stuck_text(session)
        is_stuck = at is None or now - at <= STUCK
        yield scales.item(
            ESCALATION,
            session.id,
            question="Escalated at {}: an agent needs help. Acknowledge?",
            name=visible_line(session.file_path, 80),
            this="this file" if session.file_path else "this",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck}",
            place=WAITS if is_stuck else "",
            is_urgent=is_stuck,
            impact=0.0,
            chars=len(stuck),
            escalated=one,
            evidence=len(session.executions),
        )
