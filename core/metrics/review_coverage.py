"""Review coverage: reviewed share of injected patterns, and open questions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final

import numpy as np
from msgspec import Struct

from core.base.grouping import group_pairs
from core.learning.scoreboard import Scoreboard
from core.learning.scores import Flags, Floats
from core.metrics.weekly import WEEK, find_weeks
from core.records.decisions import TURNS, CurationState, Decision, Verb
from core.state.review_items import ReviewItem

REVIEW_VERBS: Final = frozenset(
    {
        *(Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION),
        *(Verb.EXTRACT, Verb.MERGE, Verb.RESTORE, Verb.QUARANTINE, Verb.RELEASE),
    }
)
"""Decisions that show that a person has read the pattern."""
_NO_ANSWERS: Final = TURNS | {Verb.NOTE}


class CoverageWeek(Struct, frozen=True, kw_only=True):
    """Review coverage of one week."""

    start: datetime  # Monday, 00:00 UTC
    injected: int  # number of injections, used or not, of registered patterns
    reviewed: int  # injections of patterns that a person had reviewed by the end of the week
    decisions: int  # decisions of the week that are in effect

    @property
    def share(self) -> float | None:
        """`reviewed / injected`, 0..1; None without injections."""
        return self.reviewed / self.injected if self.injected else None


class OpenKind(Struct, frozen=True, kw_only=True):
    """The open questions of one kind."""

    kind: str
    count: int
    share: float  # part of the expected impact of all open questions, 0..1
    first: str  # `question_key` of the question with the highest priority


def compute_coverage(
    board: Scoreboard,
    registry: Flags,
    decisions: Iterable[Decision],
    curation: CurationState,
    starts: Sequence[datetime],
) -> tuple[CoverageWeek, ...]:
    """Compute weekly coverage; a pin does not cover a text edited after it.

    `registry` are the rows of the board that count, `starts` Mondays from `list_week_starts`.
    """
    effective = [decision for decision in decisions if decision.id not in curation.undone]
    since = _reviewed_since(board, effective)
    use_times, week, first = board.use_times, WEEK.total_seconds(), starts[0].timestamp()
    places = find_weeks(board, starts)
    counted = (places >= 0) & registry[use_times.rows]
    places, counts = places[counted], use_times.counts[counted]
    is_reviewed = since[use_times.rows[counted]] < first + (places + 1) * week
    injected = np.bincount(places, counts, minlength=len(starts)).astype(np.int64).tolist()
    reviewed = np.bincount(places, counts * is_reviewed, minlength=len(starts)).astype(np.int64).tolist()
    answers = [decision.at for decision in effective if decision.verb not in _NO_ANSWERS]
    return tuple(
        CoverageWeek(
            start=start,
            injected=injected[n],
            reviewed=reviewed[n],
            decisions=sum(start <= at < start + WEEK for at in answers),
        )
        for n, start in enumerate(starts)
    )


def _reviewed_since(board: Scoreboard, effective: Iterable[Decision]) -> Floats:
    """Time of the first review of each row, epoch seconds; infinity without one."""
    since = np.full(len(board.ids), np.inf)
    for decision in effective:
        if decision.verb in REVIEW_VERBS:
            several = decision.after.get("patterns")
            for id in (decision.subject, *(several if isinstance(several, list) else ())):
                if isinstance(id, str) and id in board:
                    row = board.row(id)
                    since[row] = min(since[row], decision.at.timestamp())
    return np.where(board.pin_stale, np.inf, since)


def count_questions(queue: Sequence[ReviewItem]) -> tuple[OpenKind, ...]:
    """Count the questions, given by priority, by kind; highest expected impact first."""
    kinds = group_pairs((item.kind, item) for item in queue)
    whole = sum(item.impact for item in queue) or 1.0
    found = []
    for kind, items in kinds.items():
        share, first = sum(item.impact for item in items) / whole, items[0].question_key
        found.append(OpenKind(kind=kind, count=len(items), share=share, first=first))
    return tuple(sorted(found, key=lambda open: (-open.share, open.kind)))


def count_first_half(queue: Sequence[ReviewItem]) -> int:
    """Number of first questions with half of the impact; urgent ones do not count."""
    sums = list(accumulate(item.impact for item in queue if not item.is_urgent))
    return bisect_left(sums, sums[-1] / 2) + 1 if sums and sums[-1] else 0
