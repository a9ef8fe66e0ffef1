"""Evidence by week, trend of the success rate, and upcoming changes by decay.

See docs/metrics.md#upcoming-changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from core.learning.scoreboard import Scoreboard
from core.learning.scores import HARMFUL, HELPFUL, INJECTED_ONLY, KINDS, NO_RESULT, Flags, Ints
from core.learning.states import STATES
from core.learning.statistics import jeffreys_interval, jeffreys_intervals
from core.records.patterns import Maturity

WEEK: Final = timedelta(weeks=1)
Change = tuple[Maturity, Maturity]  # state before and after


class Week(Struct, frozen=True, kw_only=True):
    """Evidence of one week for all registered patterns."""

    start: datetime  # Monday, 00:00 UTC
    good: int  # uses that worked and uses that failed
    bad: int
    open: int  # uses without a result
    shown: int  # injections without a use
    low: float | None = None  # ends of the interval of the success rate, 0..1; None without results
    high: float | None = None

    @property
    def results(self) -> int:
        return self.good + self.bad

    @property
    def uses(self) -> int:
        return self.results + self.open

    @property
    def rate(self) -> float | None:
        """Success rate, 0..1; None without results."""
        return self.good / self.results if self.results else None


class Share(NamedTuple):
    """Success rate of a span of time, with its interval, 0..1."""

    good: int
    results: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Success rate, 0..1."""
        return self.good / self.results


class Trend(NamedTuple):
    """Success rates before and since the middle of the weeks since the first result."""

    since: datetime
    before: Share
    after: Share

    @property
    def is_significant(self) -> bool:
        """Whether the intervals do not overlap; stricter than a test of the difference."""
        return self.before.high < self.after.low or self.after.high < self.before.low


def list_week_starts(now: datetime, weeks: int) -> tuple[datetime, ...]:
    """Mondays, 00:00 UTC, of the last `weeks` weeks with the current one, in order."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - WEEK * back for back in range(weeks - 1, -1, -1))


def count_weekly(board: Scoreboard, registry: Flags, starts: Sequence[datetime]) -> tuple[Week, ...]:
    """Count the evidence of each week; evidence dated in the future counts as now.

    `registry` are the rows of the board that count, `starts` Mondays from `list_week_starts`.
    """
    places = find_weeks(board, starts)
    use_times = board.use_times
    counted = (places >= 0) & registry[use_times.rows]
    cells = places[counted] * len(KINDS) + use_times.kinds[counted]
    sums = np.bincount(cells, use_times.counts[counted], minlength=len(starts) * len(KINDS))
    counts = sums.astype(np.int64).reshape(-1, len(KINDS))
    low, high = jeffreys_intervals(counts[:, HELPFUL], counts[:, HARMFUL], board.settings.interval_level)
    return tuple(
        Week(
            start=start,
            good=row[HELPFUL],
            bad=row[HARMFUL],
            open=row[NO_RESULT],
            shown=row[INJECTED_ONLY],
            low=float(low[n]) if row[HELPFUL] + row[HARMFUL] else None,
            high=float(high[n]) if row[HELPFUL] + row[HARMFUL] else None,
        )
        for n, (start, row) in enumerate(zip(starts, counts.tolist(), strict=True))
    )


def list_used(board: Scoreboard, registry: Flags, start: datetime) -> tuple[str, ...]:
    """Patterns used or injected in the week from `start`, by number of uses."""
    places = find_weeks(board, (start,))
    use_times = board.use_times
    counted = (places == 0) & registry[use_times.rows]
    uses = np.where(use_times.kinds[counted] == INJECTED_ONLY, 0, use_times.counts[counted])
    rows, inverse = np.unique(use_times.rows[counted], return_inverse=True)
    order = np.argsort(-np.bincount(inverse, uses, minlength=len(rows)), kind="stable")
    return tuple(board.ids[row] for row in rows[order].tolist())


def find_weeks(board: Scoreboard, starts: Sequence[datetime]) -> Ints:
    """Number of the week of each entry of `use_times`; -1 or less outside."""
    at = np.minimum(board.use_times.at, board.now.timestamp())
    places = np.floor((at - starts[0].timestamp()) / WEEK.total_seconds()).astype(np.int64)
    return np.where(places < len(starts), places, -1)


def compute_trend(weeks: Sequence[Week], level: float) -> Trend | None:
    """Compare the success of both halves of the weeks; None if one has no result."""
    first = next((n for n, week in enumerate(weeks) if week.results), len(weeks))
    known = weeks[first:]
    middle = (len(known) + 1) // 2
    before, after = (_share(half, level) for half in (known[:middle], known[middle:]))
    return Trend(known[middle].start, before, after) if before is not None and after is not None else None


def _share(weeks: Sequence[Week], level: float) -> Share | None:
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    return Share(good, good + bad, *jeffreys_interval(good, bad, level)) if good + bad else None


class WeekAhead(Struct, frozen=True, kw_only=True):
    """Changes of one week if no evidence is added."""

    start: datetime  # Monday, or now for the rest of the current week; `end` is the next Monday
    end: datetime
    changes: dict[Change, tuple[str, ...]]  # pattern IDs by change, in the order of the board

    @property
    def count(self) -> int:
        return sum(map(len, self.changes.values()))


def find_upcoming(board: Scoreboard, registry: Flags, weeks: int) -> tuple[WeekAhead, ...]:
    """Find changes in `weeks` weeks from the current one on; pinned patterns stay."""
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
