"""Uses that only sums tell of: the trend's snapshots and the record's own counts (semantics 1, 4-5)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from core.records.events import Observation
from core.records.patterns import Pattern, RecordedCounts

TREND: Final = "trend"
AGGREGATE: Final = "aggregate"

_ROUNDING: Final = 1e-9

MAX_COUNT: Final = 10**15
"""Larger claims are read as this: beyond it a float no longer holds every whole number."""
RATE_TOLERANCE: Final = 0.05
"""Largest distance of a rate from the ratio of counts that it expresses: a rate may be rounded to a tenth."""


@dataclass(slots=True)
class Counts:
    """So many successes and failures among so many uses; `uses` may exceed their sum."""

    successes: int
    failures: int
    uses: int
    derived: bool = False

    @classmethod
    def claimed(cls, recorded_counts: RecordedCounts) -> Counts | None:
        """What a record counts, explicit counts before rates; None if it counts nothing.

        A rate gives results only if it is a ratio of whole counts: see `successes_from_rate`.
        """
        uses = None if recorded_counts.uses is None else _whole(recorded_counts.uses)
        if recorded_counts.successes is not None or recorded_counts.failures is not None:
            good = None if recorded_counts.successes is None else _whole(recorded_counts.successes)
            bad = None if recorded_counts.failures is None else _whole(recorded_counts.failures)
            if good is None:
                good = max((uses or 0) - (bad or 0), 0)
            if bad is None:
                bad = max((uses or 0) - good, 0)
            return cls(good, bad, max(uses or 0, good + bad))
        if uses is None:
            return None
        good = successes_from_rate(recorded_counts.rate, uses)
        return cls(0, 0, uses, derived=True) if good is None else cls(good, uses - good, uses, derived=True)

    @property
    def has_results(self) -> bool:
        """Whether any use has a result; the results of the others are unknown."""
        return self.successes + self.failures > 0

    def less(self, observations: Iterable[Observation]) -> Counts:
        """What is left when `observations` are taken off, nothing below 0 and no more results than uses.

        A recorded use without a result is one of the counted ones, nobody knows which; the results left over
        are then scaled to the uses left over, in their own proportion.
        """
        good, bad, uses = self.successes, self.failures, self.uses
        for observation in observations:
            if observation.kind == "injected":
                continue
            uses -= observation.count
            if observation.success is True:
                good -= observation.count
            elif observation.success is False:
                bad -= observation.count
        good, bad, uses = max(good, 0), max(bad, 0), max(uses, 0)
        if good + bad > uses:
            share = (2 * good * uses + good + bad) // (2 * (good + bad))
            good, bad = share, uses - share
        return Counts(good, bad, uses, self.derived)


def _whole(count: int) -> int:
    return min(max(count, 0), MAX_COUNT)


def rounded(value: float) -> int:
    """Half up, as the documents round (formats C25)."""
    return math.floor(value + 0.5)


def successes_from_rate(rate: float | None, uses: int) -> int | None:
    """The successes among `uses` that a rate expresses; None if it is not a ratio of whole counts.

    0.92 of 12 uses are 11 successes. 0.85 of 4 uses is an estimate: neither 3 nor 4 of 4 are near it
    (docs/scoring.md#claimed-rates).
    """
    if rate is None or not uses or not 0.0 <= rate <= 1.0:
        return None
    good = min(rounded(rate * uses), uses)
    return good if abs(good / uses - rate) <= RATE_TOLERANCE + _ROUNDING else None


def claimed_rate(recorded_counts: RecordedCounts) -> float | None:
    """The rate, 0..1, that a record claims without the counts for it; None if its counts give it or it has none.

    A rate over zero uses says nothing and is not a claim.
    """
    if recorded_counts.claimed is not None:
        return recorded_counts.claimed
    rate, counts = recorded_counts.rate, Counts.claimed(recorded_counts)
    if rate is None or not 0.0 <= rate <= 1.0 or (counts is not None and not counts.uses):
        return None
    if counts is None or not counts.has_results:
        return rate
    share = counts.successes / (counts.successes + counts.failures)
    return None if abs(share - rate) <= RATE_TOLERANCE + _ROUNDING else rate


def unrecorded(pattern: Pattern, recorded: Sequence[Observation], recorded_counts: Counts | None) -> list[Observation]:
    """Sources 4 and 5: the uses that no record tells of."""
    added: list[Observation] = []
    if pattern.trend:
        steps = _trend_steps(pattern)
        total = Counts(
            sum(step.successes for step in steps),
            sum(step.failures for step in steps),
            sum(step.uses for step in steps),
            derived=True,
        )
        if recorded_counts is None or recorded_counts.uses < total.uses:
            recorded_counts = total
        elif not recorded_counts.has_results:
            recorded_counts = replace(recorded_counts, successes=total.successes, failures=total.failures)
        added = _trend_observations(pattern, steps, recorded, recorded_counts)
    if recorded_counts is None:
        return added
    return added + aggregates(pattern, recorded_counts.less((*recorded, *added) if added else recorded))


def aggregates(pattern: Pattern, left: Counts) -> list[Observation]:
    """Source 5: what a record claims beyond all else, dated by its last use."""
    at = pattern.last_used or _newest(pattern)
    unknown = left.uses - left.successes - left.failures
    return [
        Observation(
            pattern_id=pattern.id,
            kind="aggregate",
            source=AGGREGATE,
            at=at,
            success=success,
            count=count,
            derived=left.derived,
        )
        for success, count in ((True, left.successes), (False, left.failures), (None, unknown))
        if count
    ]


def _newest(pattern: Pattern) -> datetime | None:
    """The newest time that the record gives at all, for a type that has no `last_used`."""
    times = [source.at for source in pattern.source_loops if source.at]
    times += [point.at for point in pattern.trend if point.at]
    return max(times, default=pattern.first_discovered)


@dataclass(slots=True)
class _Step:
    """What happened between the snapshot before and `at`."""

    at: datetime
    successes: int
    failures: int

    @property
    def uses(self) -> int:
        return self.successes + self.failures


def usable_trend(pattern: Pattern) -> list[tuple[datetime, int, float]]:
    """The usable snapshots as (time, sample size, rate) in order of time, without those that do not grow."""
    points = sorted(
        (point.at, _whole(point.sample_size), point.rate)
        for point in pattern.trend
        if point.at and point.sample_size and point.rate is not None and 0.0 <= point.rate <= 1.0
    )
    growing: list[tuple[datetime, int, float]] = []
    for point in points:
        if not growing or point[1] > growing[-1][1]:
            growing.append(point)
    return growing


def _trend_steps(pattern: Pattern) -> list[_Step]:
    steps: list[_Step] = []
    size_before = good_before = 0
    for at, size, rate in usable_trend(pattern):
        good = min(max(rounded(rate * size), good_before), good_before + size - size_before)
        steps.append(_Step(at, good - good_before, size - size_before - (good - good_before)))
        size_before, good_before = size, good
    return steps


def _trend_observations(
    pattern: Pattern, steps: list[_Step], recorded: Sequence[Observation], recorded_counts: Counts
) -> list[Observation]:
    """Dated counts for what the recorded uses leave unexplained.

    A recorded use explains one of its own step's; what the claim then has no room for is taken off the newest
    steps, since snapshots lag behind.
    """
    times = [step.at for step in steps]
    for observation in recorded:
        if observation.at is None or observation.kind == "injected":
            continue
        place = bisect_left(times, observation.at)
        if place == len(steps):
            continue
        if observation.success is True and steps[place].successes:
            steps[place].successes -= 1
        elif observation.success is False and steps[place].failures:
            steps[place].failures -= 1
    room = recorded_counts.less(recorded)
    good, bad = room.successes, room.failures
    for step in steps:
        step.successes = min(step.successes, good)
        step.failures = min(step.failures, bad)
        good -= step.successes
        bad -= step.failures
    return [
        Observation(
            pattern_id=pattern.id,
            kind="trend",
            source=TREND,
            at=step.at,
            success=success,
            count=count,
            derived=True,
        )
        for step in steps
        for success, count in ((True, step.successes), (False, step.failures))
        if count
    ]
