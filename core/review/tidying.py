"""What keeps the registry in order: patterns that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.curation.rules import shown
from core.learning.scoreboard import Scoreboard
from core.records.patterns import Pattern
from core.review.items import (
    DUPLICATE,
    ReviewItem,
)
from core.review.telling import given, times
from core.review.worth import TIDYING_SHARE, exposure, worth


def duplicates(
    patterns: Mapping[str, Pattern], board: Scoreboard, alike: Sequence[tuple[str, str, float]]
) -> Iterator[ReviewItem]:
    """Of each pattern only the likest: when that is decided, the next one comes."""
    asked: set[str] = set()
    for one, other, likeness in alike:
        if not asked.isdisjoint((one, other)) or one not in patterns or other not in patterns:
            continue
        if patterns[one].mirror_of or patterns[other].mirror_of or one not in board or other not in board:
            continue
        kept, merged = sorted((one, other), key=lambda id: (-exposure(board, id), id))
        asked |= {kept, merged}
        yield ReviewItem(
            kind=DUPLICATE,
            subject=kept,
            question=f"Merge {shown(merged)} into {shown(kept)}?",
            reason=f"{likeness:.0%} alike; {given(board, kept)}, the other one {times(board, merged)}",
            worth=worth(board, kept, TIDYING_SHARE * likeness),
            other=merged,
            likeness=likeness,
        )
