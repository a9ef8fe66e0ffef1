"""What somebody else waits for: marks that are held, agents that are stuck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from core.curation.rules import day, shown
from core.debug_memory.waiting import Escalated
from core.learning.decay import decayed_value
from core.review.items import BURST, ESCALATION, ReviewItem
from core.review.reading import seconds
from core.review.telling import burst_text, call_text, stuck_text
from core.review.weighing import Scales
from core.review.worth import STUCK
from core.text import plural, visible_line


def bursts(scales: Scales) -> Iterator[ReviewItem]:
    """Marks that are held. They blame what else is said to be good: until somebody looks, either may be wrong."""
    for burst in scales.board.bursts:
        count = len(burst.patterns)
        yield scales.item(
            BURST,
            burst.source,
            question=f"Do the {count:,} harmful marks of {shown(burst.source)} count?",
            reason=burst_text(burst),
            place="",
            stake=sum(scales.either(id) for id in burst.patterns if id in scales.board) / 2,
            seconds=seconds(BURST, 0, count),
            burst=burst,
            evidence=count,
        )


def escalations(scales: Scales, escalated: Iterable[Escalated], now: datetime) -> Iterator[ReviewItem]:
    """(4) on_escalation notify_human, whoever told that a session is escalated."""
    half_life = scales.settings.learning.half_life_days
    for one in escalated:
        session, at = one.session, one.at
        since = f", on {day(at)}" if at is not None else ""
        called = f"; {call_text(one.call)}" if one.call is not None else ""
        stuck = stuck_text(session)
        yield scales.item(
            ESCALATION,
            session.id,
            question=f"An agent is stuck at {visible_line(session.file_path, 80) or shown(session.id)}: seen?",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck}",
            place="",
            stake=STUCK * decayed_value(at or now, now, half_life),
            seconds=seconds(ESCALATION, len(stuck)),
            escalated=one,
            evidence=len(session.executions),
        )
