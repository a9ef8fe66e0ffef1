"""Which patterns will turn in the weeks to come by decay alone (semantics 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import numpy as np
from msgspec import Struct

from core.learning.score_arrays import Flags
from core.learning.scoreboard import Scoreboard
from core.learning.states import STATES
from core.metrics.weekly import WEEK, week_starts
from core.records.patterns import Maturity

Change = tuple[Maturity, Maturity]
"""From one state to another."""


class WeekAhead(Struct, frozen=True, kw_only=True):
    """What turns in one week if nothing more happens.

    Attributes:
        start: The Monday, or now for the rest of the running week; `end` is the next Monday.
        turns: Pattern ids by change, in the order of the board.
    """

    start: datetime
    end: datetime
    turns: dict[Change, tuple[str, ...]]

    @property
    def count(self) -> int:
        """How many patterns turn."""
        return sum(map(len, self.turns.values()))


def coming(board: Scoreboard, registry: Flags, weeks: int) -> tuple[WeekAhead, ...]:
    """The running week and those after it, `weeks` of them; a pin keeps its pattern where it is.

    Args:
        registry: Which rows of the board count.
    """
    bounds = [board.now, *(week_starts(board.now, 1)[0] + WEEK * n for n in range(1, weeks + 1))]
    found = []
    before = board.state_codes
    for start, end in pairwise(bounds):
        after = board.rescored(end).state_codes
        turns: dict[Change, list[str]] = {}
        for row in np.flatnonzero((before != after) & registry).tolist():
            turns.setdefault((STATES[before[row]], STATES[after[row]]), []).append(board.ids[row])
        ordered = {change: tuple(turns[change]) for change in sorted(turns, key=_order)}
        found.append(WeekAhead(start=start, end=end, turns=ordered))
        before = after
    return tuple(found)


def changes_of(weeks: Sequence[WeekAhead]) -> dict[Change, int]:
    """How many patterns turn each way in all these weeks, in a fixed order."""
    counts: Counter[Change] = Counter()
    for week in weeks:
        counts.update({change: len(ids) for change, ids in week.turns.items()})
    return {change: counts[change] for change in sorted(counts, key=_order)}


def _order(change: Change) -> tuple[int, int]:
    """What loses most comes first."""
    return -STATES.index(change[0]), STATES.index(change[1])
