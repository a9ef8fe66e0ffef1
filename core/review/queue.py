"""The review queue: all pending questions in order; see docs/curation.md#review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from core.review.impact import net
from core.review.priority import ImpactEstimator, Questions
from core.review.questions.incoming import arrivals, bursts, escalations, held_texts, offered, recurring, suspected
from core.review.questions.registry import borderline, broad, duplicates, inversions, pins, unreconciled

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.debug_memory.escalations import EscalatedSession
    from core.extraction.clustering import Cluster
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState
    from core.records.extractions import Extraction
    from core.records.findings import Finding
    from core.records.patterns import Pattern
    from core.state.review_items import HeldText, ReviewItem


@dataclass(frozen=True, kw_only=True)
class Found:
    alike: Sequence[tuple[str, str, float]] = ()
    offers: Mapping[str, Extraction] = field(default_factory=lambda: MappingProxyType({}))
    recurring: Sequence[tuple[Cluster, Extraction]] = ()
    held: Sequence[HeldText] = ()
    broad: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    unreconciled: Mapping[str, Finding] = field(default_factory=lambda: MappingProxyType({}))


NOTHING_FOUND: Final = Found()


def review_queue(
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    curation: CurationState,
    now: datetime,
    settings: Settings,
    found: Found = NOTHING_FOUND,
    escalated: Iterable[EscalatedSession] = (),
    known: Questions | None = None,
) -> tuple[ReviewItem, ...]:
    """Return all questions that are pending at `now`, highest priority first.

    `known` has the questions of an earlier queue with the same settings; those of unchanged patterns are not made
    again. It is replaced by those of this queue.

    Blocked agents always come first. The others are sorted by `core.review.impact.net`, then by kind and subject. Of
    several questions with the same key, only the first is asked.
    """
    scales = ImpactEstimator(patterns, board, settings, dict(known or {}))
    items = [*inversions(scales, curation), *pins(scales, curation)]
    items += [*arrivals(scales, curation), *suspected(scales, curation)]
    asked = {item.subject for item in items}
    items += [
        *(item for item in borderline(scales, asked) if net(item.impact, item.seconds, settings) > 0),
        *bursts(scales),
        *duplicates(scales, found.alike),
        *offered(scales, found.offers),
        *recurring(scales, found.recurring),
        *held_texts(scales, curation, found.held),
        *broad(scales, curation, found.broad),
        *unreconciled(scales, found.unreconciled),
        *escalations(scales, escalated, now),
    ]
    others = [item for item in items if not item.is_urgent]
    others.sort(key=lambda item: (-net(item.impact, item.seconds, settings), item.kind, item.subject))
    items = [*(item for item in items if item.is_urgent), *others]
    if known is not None:
        known.clear()
        known.update(scales.asked)
    first = {item.question_key: item for item in reversed(items)}
    return tuple(item for item in _pending(items, curation, now) if first[item.question_key] is item)


def _pending(items: Iterable[ReviewItem], curation: CurationState, now: datetime) -> Iterator[ReviewItem]:
    """Yield questions that are neither dismissed nor snoozed."""
    for item in items:
        verdict = curation.inversions.get(item.question_key)
        snoozed = verdict is not None and verdict.is_snoozed(now, item.evidence)
        if not snoozed and item.question_key not in curation.dismissed:
            yield item
