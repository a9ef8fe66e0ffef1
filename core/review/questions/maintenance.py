"""What keeps the registry in order: texts that say the same, triggers that fit everything, counts that disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.base.formatting import short_id
from core.base.text import plural, visible_line
from core.records.findings import Finding
from core.retrieval.similarity import cap_similarity
from core.review.impact import WASTED_USE
from core.review.priority import ImpactEstimator
from core.review.reading_time import chars_of, seconds
from core.state.review_items import BROAD, DUPLICATE, UNRECONCILED, ReviewItem


def duplicates(scales: ImpactEstimator, alike: Sequence[tuple[str, str, float]]) -> Iterator[ReviewItem]:
    """Of each pattern only the likest: when that is decided, the next one comes."""
    asked: set[str] = set()
    patterns, board = scales.patterns, scales.board
    for one, other, similarity in alike:
        if not asked.isdisjoint((one, other)) or one not in patterns or other not in patterns:
            continue
        if (
            not (patterns[one].is_registered and patterns[other].is_registered)
            or one not in board
            or other not in board
        ):
            continue
        kept, merged = sorted((one, other), key=lambda id: (_waits(scales, id), -scales.times(id), id))
        asked |= {kept, merged}
        yield scales.item(
            DUPLICATE,
            kept,
            question="Merge {}?",
            name=f"{short_id(merged)} into {short_id(kept)}",
            this="these two",
            reason=f"{cap_similarity(similarity):.0%} alike",
            place=f"{scales.given(kept)}, the other one {plural(scales.times(merged), 'time')}",
            impact=WASTED_USE * similarity * scales.uses(merged),
            seconds=seconds(DUPLICATE, chars_of(patterns[kept]) + chars_of(patterns[merged])),
            other=merged,
            similarity=similarity,
            evidence=int(board.uses[board.row(kept)] + board.uses[board.row(merged)]),
        )


def _waits(scales: ImpactEstimator, pattern_id: str) -> bool:
    """Whether a pattern is held or in quarantine: such a one is merged into the other one, whatever their uses."""
    return bool(scales.board.quarantined[scales.board.row(pattern_id)])


def broad(scales: ImpactEstimator, shares: Mapping[str, float]) -> Iterator[ReviewItem]:
    """Triggers that match nearly everything: loops get the pattern whatever they do."""
    for pattern_id, share in shares.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern_id not in scales.board:
            continue
        row = scales.board.row(pattern_id)
        if scales.stakes.kept_out[row]:
            continue
        yield scales.item(
            BROAD,
            pattern_id,
            question="The trigger of {} is too broad. Quarantine the pattern?",
            this="this pattern",
            reason=f"{visible_line(pattern.error_pattern or pattern.task_pattern, 80)} matches "
            f"{share:.0%} of everyday messages",
            place=scales.given(pattern_id),
            impact=WASTED_USE * share * scales.uses(pattern_id) + scales.held(pattern_id),
            seconds=seconds(BROAD, chars_of(pattern)),
        )


def unreconciled(scales: ImpactEstimator, doubts: Mapping[str, Finding]) -> Iterator[ReviewItem]:
    """Records whose own counts the evidence contradicts: other programs believe them."""
    for pattern_id, doubt in doubts.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is not None and pattern_id in scales.board:
            yield scales.item(
                UNRECONCILED,
                pattern_id,
                question="Usage counts of {} disagree. Leave them as they are?",
                this="this pattern",
                reason=visible_line(doubt.message, 160),
                place=scales.given(pattern_id),
                impact=scales.held(pattern_id),
                seconds=seconds(UNRECONCILED, chars_of(pattern)),
            )
