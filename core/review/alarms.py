"""What somebody else waits for: marks that are held, agents that are stuck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from core.curation.rules import day, shown
from core.debug_memory.waiting import Escalated
from core.learning.decay import decayed_value
from core.learning.scoreboard import Scoreboard
from core.review.items import (
    BURST,
    ESCALATION,
    ReviewItem,
)
from core.review.telling import burst_text, call_text, stuck_text
from core.review.worth import HALF_WORTH_AT, STUCK_WORTH
from core.settings import Settings
from core.text import plural, visible_line


def bursts(board: Scoreboard) -> Iterator[ReviewItem]:
    for burst in board.bursts:
        count = len(burst.patterns)
        yield ReviewItem(
            kind=BURST,
            subject=burst.source,
            question=f"Do the {count:,} harmful marks of {shown(burst.source)} count?",
            reason=burst_text(burst),
            worth=count / (count + HALF_WORTH_AT),
            burst=burst,
        )


def escalations(escalated: Iterable[Escalated], now: datetime, settings: Settings) -> Iterator[ReviewItem]:
    """(4) on_escalation notify_human, whoever told that a session is escalated."""
    for one in escalated:
        session, at = one.session, one.at
        since = f", on {day(at)}" if at is not None else ""
        called = f"; {call_text(one.call)}" if one.call is not None else ""
        yield ReviewItem(
            kind=ESCALATION,
            subject=session.id,
            question=f"An agent is stuck at {visible_line(session.file_path, 80) or shown(session.id)}: seen?",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck_text(session)}",
            worth=STUCK_WORTH * decayed_value(at or now, now, settings.learning.half_life_days),
            escalated=one,
        )
