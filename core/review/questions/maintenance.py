"""Maintenance of the registry: duplicates, broad triggers, counts that disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.base.formatting import shorten_id
from core.base.text import plural, visible_line
from core.records.findings import Finding
from core.retrieval.similarity import cap_similarity
from core.review.impact import WASTED_USE
from core.review.priority import ImpactEstimator, chars_of
from core.state.review_items import BROAD, DUPLICATE, UNRECONCILED, ReviewItem


def duplicates(scales: ImpactEstimator, alike: Sequence[tuple[str, str, float]]) -> Iterator[ReviewItem]:
    """Duplicate pairs; of each pattern only the most similar one at a time."""
    asked: set[str] = set()
    patterns, board = scales.patterns, scales.board
    for one, other, similarity in alike:
        pair = {one, other}
        if not asked.isdisjoint(pair) or not pair <= patterns.keys():
            continue
        if not all(patterns[id].is_registered and id in board for id in pair):
            continue
        target, merged = sorted((one, other), key=lambda id: (_is_quarantined(scales, id), -scales.times(id), id))
        asked |= {target, merged}
        yield scales.item(
            DUPLICATE,
            target,
            question="Merge {}?",
            name=f"{shorten_id(merged)} into {shorten_id(target)}",
            this="these two",
            reason=f"{cap_similarity(similarity):.0%} similar",
            place=f"{scales.given(target)}, the other one {plural(scales.times(merged), 'time')}",
            impact=WASTED_USE * similarity * scales.uses(merged),
            chars=chars_of(patterns[target]) + chars_of(patterns[merged]),
            other=merged,
            similarity=similarity,
            evidence=int(board.uses[board.row(target)] + board.uses[board.row(merged)]),
        )


def _is_quarantined(scales: ImpactEstimator, pattern_id: str) -> bool:
    return bool(scales.board.quarantined[scales.board.row(pattern_id)])


def broad(scales: ImpactEstimator, shares: Mapping[str, float]) -> Iterator[ReviewItem]:
    """Patterns with a trigger that matches most common messages."""
    for pattern_id, share in shares.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern_id not in scales.board:
            continue
        row = scales.board.row(pattern_id)
        if scales.stakes.is_withheld[row]:
            continue
        yield scales.item(
            BROAD,
            pattern_id,
            question="The trigger of {} is too broad. Quarantine the pattern?",
            reason=f"{visible_line(pattern.error_pattern or pattern.task_pattern, 80)} matches "
            f"{share:.0%} of common messages",
            impact=WASTED_USE * share * scales.uses(pattern_id) + scales.held(pattern_id),
        )


def unreconciled(scales: ImpactEstimator, doubts: Mapping[str, Finding]) -> Iterator[ReviewItem]:
    """Records whose counts the evidence contradicts; other programs rely on them."""
    for pattern_id, doubt in doubts.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is not None and pattern_id in scales.board:
            yield scales.item(
                UNRECONCILED,
                pattern_id,
                question="Usage counts of {} disagree. Leave them as they are?",
                reason=visible_line(doubt.message, 160),
                impact=scales.held(pattern_id),
            )
