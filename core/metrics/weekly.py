"""Evidence week by week: uses with their results, exposures, and whether success rises or falls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from core.learning.score_arrays import Flags, Ints
from core.learning.scoreboard import Scoreboard
from core.learning.statistics import jeffreys_interval, jeffreys_intervals
from core.learning.use_times import BAD, GOOD, KINDS, OPEN, SHOWN

WEEK: Final = timedelta(weeks=1)


class Week(Struct, frozen=True, kw_only=True):
    """What happened in one week to all patterns of the registry.

    Attributes:
        start: Monday, 00:00 UTC.
        good, bad: Uses that worked, that failed.
        open: Uses without a result.
        shown: Exposures without use.
        low, high: Ends of the interval of the success rate, 0..1; None without any result, which is no zero.
    """

    start: datetime
    good: int
    bad: int
    open: int
    shown: int
    low: float | None = None
    high: float | None = None

    @property
    def results(self) -> int:
        """Uses with a result."""
        return self.good + self.bad

    @property
    def uses(self) -> int:
        """Uses, whatever came of them."""
        return self.results + self.open

    @property
    def rate(self) -> float | None:
        """0..1; None without any result."""
        return self.good / self.results if self.results else None


class Share(NamedTuple):
    """Successes among results, with the interval of the rate, 0..1."""

    good: int
    results: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """0..1."""
        return self.good / self.results


class Trend(NamedTuple):
    """Success before some day and since then.

    Attributes:
        since: The Monday that halves the weeks from the first result on.
    """

    since: datetime
    before: Share
    after: Share

    @property
    def tells(self) -> bool:
        """Whether the intervals lie apart, which is a stricter test than that of the difference."""
        return self.before.high < self.after.low or self.after.high < self.before.low


def week_starts(now: datetime, weeks: int) -> tuple[datetime, ...]:
    """The Mondays, 00:00 UTC, of the running week and of those before it, oldest first; `weeks` of them."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - WEEK * back for back in range(weeks - 1, -1, -1))


def weekly(board: Scoreboard, registry: Flags, starts: Sequence[datetime]) -> tuple[Week, ...]:
    """The evidence of these weeks. What is told of the future happened now, as everywhere (semantics 3).

    Args:
        registry: Which rows of the board count.
        starts: See `week_starts`.
    """
    places = places_of(board, starts)
    dated = board.dated
    counted = (places >= 0) & registry[dated.rows]
    cells = places[counted] * len(KINDS) + dated.kinds[counted]
    sums = np.bincount(cells, dated.counts[counted], minlength=len(starts) * len(KINDS))
    counts = sums.astype(np.int64).reshape(-1, len(KINDS))
    low, high = jeffreys_intervals(counts[:, GOOD], counts[:, BAD], board.settings.interval_level)
    return tuple(
        Week(
            start=start,
            good=row[GOOD],
            bad=row[BAD],
            open=row[OPEN],
            shown=row[SHOWN],
            low=float(low[n]) if row[GOOD] + row[BAD] else None,
            high=float(high[n]) if row[GOOD] + row[BAD] else None,
        )
        for n, (start, row) in enumerate(zip(starts, counts.tolist(), strict=True))
    )


def used_in(board: Scoreboard, registry: Flags, start: datetime) -> tuple[str, ...]:
    """The patterns that were used or shown in the week from `start` on, those with most uses first."""
    places = places_of(board, (start,))
    dated = board.dated
    counted = (places == 0) & registry[dated.rows]
    worth = np.where(dated.kinds[counted] == SHOWN, 0, dated.counts[counted])
    rows, inverse = np.unique(dated.rows[counted], return_inverse=True)
    order = np.argsort(-np.bincount(inverse, worth, minlength=len(rows)), kind="stable")
    return tuple(board.ids[row] for row in rows[order].tolist())


def places_of(board: Scoreboard, starts: Sequence[datetime]) -> Ints:
    """In which of the weeks each entry of the board lies; below 0 if in none."""
    at = np.minimum(board.dated.at, board.now.timestamp())
    places = np.floor((at - starts[0].timestamp()) / WEEK.total_seconds()).astype(np.int64)
    return np.where(places < len(starts), places, -1)


def trend_of(weeks: Sequence[Week], level: float) -> Trend | None:
    """Success in the later half of the weeks against that in the earlier one; None if either has no result.

    Args:
        level: Probability inside the intervals, 0..1.
    """
    first = next((n for n, week in enumerate(weeks) if week.results), len(weeks))
    told = weeks[first:]
    middle = (len(told) + 1) // 2
    halves = [_share(half, level) for half in (told[:middle], told[middle:])]
    before, after = halves
    return Trend(told[middle].start, before, after) if before is not None and after is not None else None


def _share(weeks: Sequence[Week], level: float) -> Share | None:
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    return Share(good, good + bad, *jeffreys_interval(good, bad, level)) if good + bad else None
