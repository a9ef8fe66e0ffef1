"""Context sections of decomposition strategies (docs/retrieval.md#decomposition)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from core.base.context_blocks import NO_BLOCKS, Blocks
from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.learning.reference.patterns import (
    MAX_CHARS,
    ObservedPattern,
    format_anti_patterns,
    format_successful_patterns,
)
from core.records.patterns import DECOMPOSITION_TAG, Pattern, PatternType
from core.retrieval.rendering import count_tokens
from core.scanning.context_scan import find_combined_harm, find_harm_when_cut

if TYPE_CHECKING:
    from core.config.settings import InjectionSettings
    from core.learning.scoreboard import Scoreboard
    from core.retrieval.index import PatternIndex

STRATEGY_PART: Final = "decomposition"  # name of the only part of the relevance of strategies
RELEVANCE: Final = 1.0  # relevance of a strategy for a decomposition task; its text is not compared


class Strategies(Struct, frozen=True, kw_only=True):
    """Decomposition sections of one context."""

    blocks: Blocks = NO_BLOCKS  # injected texts
    pattern_ids: tuple[str, ...] = ()  # patterns in the text, best first: warnings, then strategies that worked
    left_out: dict[str, str] = {}  # reasons by pattern ID


def find_strategy_rows(index: PatternIndex) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the rows of decomposition strategies and of warnings about strategies."""
    rows = index.tags.get(DECOMPOSITION_TAG)
    if rows is None:
        return np.empty(0, np.int32)
    kinds = [code for code, kind in enumerate(PatternType) if kind in (PatternType.SUCCESS, PatternType.ANTI)]
    found: np.ndarray[tuple[int], np.dtype[np.int32]] = rows[np.isin(index.types[rows], kinds)]
    return found


def choose_strategies(
    index: PatternIndex, patterns: Mapping[str, Pattern], board: Scoreboard, settings: InjectionSettings
) -> Strategies:
    """Choose the best strategies within their budget; at most half are warnings."""
    if not settings.enabled or not settings.include_decomposition:
        return Strategies()
    ids = [index.ids[row] for row in find_strategy_rows(index).tolist() if index.ids[row] in board]
    most = max(min(settings.top_k_patterns, settings.max_patterns_injected), 0)
    budget = int(settings.max_tokens * settings.decomposition_share)
    limit = min(settings.max_field_chars, MAX_CHARS)
    left_out: dict[str, str] = {}
    ranked = sorted(ids, key=lambda id: (-float(board.score[board.row(id)]), -board.assessment(id).uses, id))
    chosen: list[Pattern] = []
    blocks = NO_BLOCKS
    # Warnings first: a failure costs more than a success brings.
    for kind, is_on in (
        (PatternType.ANTI, settings.include_anti_patterns),
        (PatternType.SUCCESS, settings.include_success_patterns),
    ):
        quota = -(-most // 2) if kind is PatternType.ANTI else most
        for pattern in (patterns[id] for id in ranked if patterns[id].type is kind):
            reason = "switched off" if not is_on else _why_unfit(pattern, board, settings)
            if not reason and len(chosen) >= quota:
                reason = f"below the top {quota}"
            longer = NO_BLOCKS if reason else render_strategies([*chosen, pattern], board, limit)
            orders = board.stops_orders(pattern.id)
            text = longer.fenced()
            # The fences count only towards the budget of the whole context.
            if count_tokens(longer.approved + longer.unreviewed) > budget or count_tokens(text) > settings.max_tokens:
                reason = "over the token budget of decomposition strategies"
            if not reason and (does := find_harm_when_cut(pattern, limit, orders=orders)):
                reason = f"when cut to {limit} characters, it {does}"
            if not reason and (does := find_combined_harm(text, [*chosen, pattern], orders=orders)):
                reason = f"together with the strategies before it, the context {does}"
            if reason:
                left_out[pattern.id] = reason
                continue
            chosen.append(pattern)
            blocks = longer
    return Strategies(blocks=blocks, pattern_ids=tuple(pattern.id for pattern in chosen), left_out=left_out)


def render_strategies(chosen: list[Pattern], board: Scoreboard, limit: int) -> Blocks:
    """Render in each block warnings, then strategies; cuts each to `limit`, at most `MAX_CHARS`."""
    approved = [pattern for pattern in chosen if board.is_approved(pattern.id)]
    others = [pattern for pattern in chosen if pattern not in approved]
    return Blocks(_render_lines(approved, board, limit), _render_lines(others, board, limit))


def _render_lines(chosen: list[Pattern], board: Scoreboard, limit: int) -> str:
    observed = [
        ObservedPattern(
            id=pattern.id,
            content=visible_line((pattern.description or pattern.title).strip(), limit),
            is_negative=pattern.type is PatternType.ANTI,
            success_count=board.assessment(pattern.id).successes,
            failure_count=board.assessment(pattern.id).failures,
        )
        for pattern in chosen
    ]
    parts = (format_anti_patterns(observed), format_successful_patterns(observed, 0.0))
    return "".join(f"{part}\n" for part in ("\n\n".join(filter(None, parts)),) if part)


def _why_unfit(pattern: Pattern, board: Scoreboard, settings: InjectionSettings) -> str:
    found = board.assessment(pattern.id)
    if not found.injectable:
        return f"{found.shown}, by {found.decided_by}"
    if pattern.type is PatternType.ANTI:
        return ""
    if not found.successes + found.failures:
        return "no result yet"
    rate = found.rate or 0.0
    low = settings.min_success_rate
    return f"below min success rate {format_decimal(low)} ({format_decimal(rate)})" if rate < low else ""
