"""Upcoming changes: patterns whose state will change by decay alone (docs/metrics.md#upcoming-changes)."""

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
from core.metrics.weekly import WEEK, list_week_starts
from core.records.patterns import Maturity

Change = tuple[Maturity, Maturity]
"""State before and after."""


class WeekAhead(Struct, frozen=True, kw_only=True):
    """Changes of one week if no evidence is added.

    Attributes:
        start: Monday, or now for the rest of the current week; `end` is the next Monday.
        changes: Pattern IDs by change, in the order of the board.
    """

    start: datetime
    end: datetime
    changes: dict[Change, tuple[str, ...]]

    @property
    def count(self) -> int:
        """Number of patterns that change."""
        return sum(map(len, self.changes.values()))


def find_upcoming(board: Scoreboard, registry: Flags, weeks: int) -> tuple[WeekAhead, ...]:
    """Find the changes of the current week and the following ones; pinned patterns do not change.

    Args:
        registry: Rows of the board that count.
        weeks: Number of weeks, with the current one.
    """
    bounds = [board.now, *(list_week_starts(board.now, 1)[0] + WEEK * n for n in range(1, weeks + 1))]
    found = []
    before = board.state_codes
    for start, end in pairwise(bounds):
        after = board.rescored(end).state_codes
        changes: dict[Change, list[str]] = {}
        for row in np.flatnonzero((before != after) & registry).tolist():
            changes.setdefault((STATES[before[row]], STATES[after[row]]), []).append(board.ids[row])
        ordered = {change: tuple(changes[change]) for change in sorted(changes, key=_order)}
        found.append(WeekAhead(start=start, end=end, changes=ordered))
        before = after
    return tuple(found)


def count_changes(weeks: Sequence[WeekAhead]) -> dict[Change, int]:
    """Number of patterns per change in all weeks, in a fixed order."""
    counts: Counter[Change] = Counter()
    for week in weeks:
        counts.update({change: len(ids) for change, ids in week.changes.items()})
    return {change: counts[change] for change in sorted(counts, key=_order)}


def _order(change: Change) -> tuple[int, int]:
    """Sort key: the largest loss first."""
    return -STATES.index(change[0]), STATES.index(change[1])
