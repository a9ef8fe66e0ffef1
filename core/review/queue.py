"""What a person should decide next, most worth deciding first (semantics 4, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from core.debug_memory.waiting import Escalated
from core.extraction.proposals import Extraction
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.patterns import Pattern
from core.review.alarms import bursts, escalations
from core.review.arrivals import arrivals, offered
from core.review.items import ReviewItem
from core.review.tidying import duplicates
from core.review.verdicts import inversions, pins
from core.settings import Settings


def review_queue(
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    curation: CurationState,
    now: datetime,
    settings: Settings,
    alike: Sequence[tuple[str, str, float]] = (),
    offers: Mapping[str, Extraction] = MappingProxyType({}),
    escalated: Iterable[Escalated] = (),
) -> tuple[ReviewItem, ...]:
    """Everything that waits for a decision and is not snoozed at `now`, most worth deciding first.

    Args:
        patterns, board, curation, settings: What is known.
        now: The present moment.
        alike: Pairs of patterns that say nearly the same, with their likeness, best first.
        offers: What could be extracted, by loop.
        escalated: The debug sessions that were escalated.
    """
    items = [
        item
        for item in (
            *inversions(board, curation, settings),
            *pins(board, curation),
            *bursts(board),
            *arrivals(patterns, board, curation),
            *duplicates(patterns, board, alike),
            *offered(offers),
            *escalations(escalated, now, settings),
        )
        if (not item.is_about_pattern or item.subject in patterns) and not _is_answered(item, curation, now)
    ]
    return tuple(sorted(items, key=lambda item: (-item.worth, item.kind, item.subject)))


def _is_answered(item: ReviewItem, curation: CurationState, now: datetime) -> bool:
    verdict = curation.inversions.get(item.question_key)
    snoozed = verdict is not None and verdict.until is not None and verdict.until > now
    return snoozed or item.question_key in curation.dismissed
