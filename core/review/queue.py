"""What a person should decide next, most worth deciding first (semantics 4, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

from core.config.settings import Settings
from core.debug_memory.escalation_status import EscalatedSession
from core.extraction.clustering import Cluster
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.extractions import Extraction
from core.records.findings import Finding
from core.records.patterns import Pattern
from core.review.impact import net
from core.review.priority import ImpactEstimator
from core.review.questions.alerts import bursts, escalations
from core.review.questions.incoming import arrivals, held_texts, offered, recurring, suspected
from core.review.questions.maintenance import broad, duplicates, unreconciled
from core.review.questions.states import borderline, inversions, pins
from core.state.review_items import HeldText, ReviewItem


@dataclass(frozen=True, kw_only=True)
class Found:
    """What has to be worked out in idle moments before it can be asked.

    Attributes:
        alike: Pairs of patterns that say nearly the same, with their likeness, best first.
        offers: What could be extracted, by loop.
        recurring: Learnings that several loops told and no pattern covers, with the pattern that each would give.
        held: Reflections that give orders, and that running loops or the last tasks would get.
        broad: By pattern, which share of everyday messages its trigger matches, 0..1, where that is too much.
        unreconciled: By pattern, how its record's counts and the evidence disagree.
    """

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
) -> tuple[ReviewItem, ...]:
    """Everything that waits for a decision and is not snoozed at `now`, most worth deciding first.

    Where an agent waits for a person comes first. The order of all else is that of `core.review.impact.net`: what is at
    stake less the price of reading; ties by kind, then by subject. Of several questions that one answer would be filed
    under, only the weightiest is asked.

    Args:
        patterns, board, curation, settings: What is known.
        now: The present moment.
        found: What idle moments have brought.
        escalated: The debug sessions that were escalated.
    """
    scales = ImpactEstimator(patterns, board, settings)
    items = [
        *inversions(scales, curation),
        *pins(scales, curation),
        *arrivals(scales, curation),
        *suspected(scales, curation),
    ]
    asked = {item.subject for item in items}
    items += [
        *(item for item in borderline(scales, asked) if net(item.impact, item.seconds, settings) > 0),
        *bursts(scales),
        *duplicates(scales, found.alike),
        *offered(scales, found.offers),
        *recurring(scales, found.recurring),
        *held_texts(scales, curation, found.held),
        *broad(scales, found.broad),
        *unreconciled(scales, found.unreconciled),
        *escalations(scales, escalated, now),
    ]
    others = [item for item in items if not item.is_urgent]
    others.sort(key=lambda item: (-net(item.impact, item.seconds, settings), item.kind, item.subject))
    items = [*(item for item in items if item.is_urgent), *others]
    first = {item.question_key: item for item in reversed(items)}
    return tuple(item for item in _open(items, curation, now) if first[item.question_key] is item)


def _open(items: Iterable[ReviewItem], curation: CurationState, now: datetime) -> Iterator[ReviewItem]:
    """Those that nobody has answered or put off."""
    for item in items:
        verdict = curation.inversions.get(item.question_key)
        snoozed = verdict is not None and verdict.is_snoozed(now, item.evidence)
        if not snoozed and item.question_key not in curation.dismissed:
            yield item
