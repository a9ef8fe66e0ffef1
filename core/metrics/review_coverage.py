"""How much of what loops get a person has judged, and which questions are open."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final

import numpy as np
from msgspec import Struct

from core.learning.score_arrays import Flags, Floats
from core.learning.scoreboard import Scoreboard
from core.metrics.weekly import WEEK, places_of
from core.records.decisions import TURNS, CurationState, Decision, Verb
from core.state.review_items import ReviewItem

JUDGING: Final = frozenset(
    {
        Verb.PROMOTE,
        Verb.DEPRECATE,
        Verb.RESET,
        Verb.ACCEPT_INVERSION,
        Verb.REJECT_INVERSION,
        Verb.EXTRACT,
        Verb.MERGE,
        Verb.RESTORE,
        Verb.QUARANTINE,
        Verb.RELEASE,
    }
)
"""Decisions that nobody makes without having looked at the pattern."""
_NO_ANSWERS: Final = TURNS | {Verb.NOTE}


class JudgedWeek(Struct, frozen=True, kw_only=True):
    """How much of what loops got in one week a person had judged by its end.

    Attributes:
        start: Monday, 00:00 UTC.
        given: How often loops got a pattern of the registry.
        judged: How often one that a person had judged by then.
        decisions: What was decided in that week, and stands.
    """

    start: datetime
    given: int
    judged: int
    decisions: int

    @property
    def share(self) -> float | None:
        """0..1; None where loops got nothing."""
        return self.judged / self.given if self.given else None


class Open(Struct, frozen=True, kw_only=True):
    """The open questions of one kind.

    Attributes:
        share: 0..1, of what is at stake in all open questions.
        first: `question_key` of the one that is most worth deciding.
    """

    kind: str
    count: int
    share: float
    first: str


def judged_weekly(
    board: Scoreboard,
    registry: Flags,
    decisions: Iterable[Decision],
    curation: CurationState,
    starts: Sequence[datetime],
) -> tuple[JudgedWeek, ...]:
    """Week by week; a pin on a text that has changed since judges nothing.

    Args:
        registry: Which rows of the board count.
        starts: See `core.metrics.weekly.week_starts`.
    """
    standing = [decision for decision in decisions if decision.id not in curation.undone]
    since = _judged_since(board, standing)
    dated, week, first = board.dated, WEEK.total_seconds(), starts[0].timestamp()
    places = places_of(board, starts)
    counted = (places >= 0) & registry[dated.rows]
    places, counts = places[counted], dated.counts[counted]
    seen = since[dated.rows[counted]] < first + (places + 1) * week
    given = np.bincount(places, counts, minlength=len(starts)).astype(np.int64).tolist()
    judged = np.bincount(places, counts * seen, minlength=len(starts)).astype(np.int64).tolist()
    answers = [decision.at for decision in standing if decision.verb not in _NO_ANSWERS]
    return tuple(
        JudgedWeek(
            start=start,
            given=given[n],
            judged=judged[n],
            decisions=sum(start <= at < start + WEEK for at in answers),
        )
        for n, start in enumerate(starts)
    )


def _judged_since(board: Scoreboard, standing: Iterable[Decision]) -> Floats:
    """When each row was first judged, epoch seconds; infinity where nobody has."""
    since = np.full(len(board.ids), np.inf)
    for decision in standing:
        if decision.verb in JUDGING:
            several = decision.after.get("patterns")
            for id in (decision.subject, *(several if isinstance(several, list) else ())):
                if isinstance(id, str) and id in board:
                    row = board.row(id)
                    since[row] = min(since[row], decision.at.timestamp())
    return np.where(board.pin_stale, np.inf, since)


def open_questions(queue: Sequence[ReviewItem]) -> tuple[Open, ...]:
    """The open questions by kind, the kind in which most is at stake first.

    Args:
        queue: Most worth deciding first.
    """
    kinds: dict[str, list[ReviewItem]] = defaultdict(list)
    for item in queue:
        kinds[item.kind].append(item)
    whole = sum(item.stake for item in queue) or 1.0
    found = [
        Open(
            kind=kind,
            count=len(items),
            share=sum(item.stake for item in items) / whole,
            first=items[0].question_key,
        )
        for kind, items in kinds.items()
    ]
    return tuple(sorted(found, key=lambda open: (-open.share, open.kind)))


def first_half(queue: Sequence[ReviewItem]) -> int:
    """How many questions, in the order of the queue, hold half of what is at stake in all of them; those are left out
    that stand first because an agent waits.
    """
    sums = list(accumulate(item.stake for item in queue if not item.is_urgent))
    return bisect_left(sums, sums[-1] / 2) + 1 if sums and sums[-1] else 0
