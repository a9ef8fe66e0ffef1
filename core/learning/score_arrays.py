"""The scoreboard's numbers that do not depend on the time, one array per fact."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.learning.aggregate_evidence import claimed_rate, successes_from_rate
from core.records.events import Observation
from core.records.patterns import Pattern, RecordedCounts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

NO_PIN: Final = -1


@dataclass(slots=True)
class Columns:
    """One array per fact, one row per pattern; everything in it is true whatever the time is.

    `helpful`, `harmful` and `given` are the decaying sums at the reference time, `fixed_*` what never decays. A row in
    `ahead` had evidence of a future time when it was summed; its sums are made anew for every moment.
    """

    successes: Ints
    failures: Ints
    uses: Ints
    injected_only: Ints
    rate: Floats
    last_used: Floats
    helpful: Floats
    harmful: Floats
    fixed_helpful: Floats
    fixed_harmful: Floats
    given: Floats
    """Uses and exposures, with a result or without."""
    fixed_given: Floats
    fresh: Floats
    """What all results together were worth when they were new."""
    ahead: Flags
    pin: Codes
    """State code of a pin, or `NO_PIN`."""
    pin_stale: Flags
    later_good: Ints
    """Results since the pin."""
    later_bad: Ints
    inversion_pending: Flags
    snoozed_until: Floats
    """Epoch seconds; -inf without a snooze."""
    quarantined: Flags
    """Kept out of every context until a person has decided about the text."""
    held: Flags
    """Quarantined only because the text gives orders that no person has approved."""
    blocked: Flags
    """The scan blocks the text."""
    unnamed: Flags
    """Kept out of every context because the record has no ID."""

    @classmethod
    def empty(cls, size: int) -> Columns:
        def zeros(kind: type) -> NDArray[Any]:
            return np.zeros(size, kind)

        return cls(
            successes=zeros(np.int64),
            failures=zeros(np.int64),
            uses=zeros(np.int64),
            injected_only=zeros(np.int64),
            rate=np.full(size, np.nan),
            last_used=np.full(size, np.nan),
            helpful=zeros(np.float64),
            harmful=zeros(np.float64),
            fixed_helpful=zeros(np.float64),
            fixed_harmful=zeros(np.float64),
            given=zeros(np.float64),
            fixed_given=zeros(np.float64),
            fresh=zeros(np.float64),
            ahead=zeros(np.bool_),
            pin=np.full(size, NO_PIN, np.int8),
            pin_stale=zeros(np.bool_),
            later_good=zeros(np.int64),
            later_bad=zeros(np.int64),
            inversion_pending=zeros(np.bool_),
            snoozed_until=np.full(size, -np.inf),
            quarantined=zeros(np.bool_),
            held=zeros(np.bool_),
            blocked=zeros(np.bool_),
            unnamed=zeros(np.bool_),
        )

    def clear_decisions(self, rows: Ints) -> None:
        """As if nobody had decided anything about these rows."""
        self.pin[rows] = NO_PIN
        self.pin_stale[rows] = False
        self.later_good[rows] = self.later_bad[rows] = 0
        self.inversion_pending[rows] = False
        self.snoozed_until[rows] = -np.inf
        self.quarantined[rows] = self.held[rows] = self.blocked[rows] = False

    def mapped(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Columns:
        """Every column through `change`."""
        return Columns(*(change(getattr(self, field.name)) for field in fields(self)))

    def taken(self, keep: Flags, added: int) -> Columns:
        """The rows to keep, then `added` empty ones."""
        tail = Columns.empty(added)
        return Columns(
            *(np.concatenate([getattr(self, field.name)[keep], getattr(tail, field.name)]) for field in fields(self))
        )


class Tally:
    """Collects what is known of some patterns, in flat lists, and stores it into columns at once.

    Args:
        enough: Number of results at which the counted rate takes the place of a claimed one.
    """

    def __init__(self, enough: float) -> None:
        self._enough = enough
        self._counts: list[tuple[int, int, int, int]] = []
        self._rates: list[float] = []
        self._last_used: list[float] = []
        self._rows: list[int] = []
        self._at: list[float] = []
        self._helpful: list[float] = []
        self._harmful: list[float] = []
        self._given: list[int] = []

    def add(self, pattern: Pattern, observations: Iterable[Observation]) -> None:
        """Count one pattern."""
        row = len(self._counts)
        successes = failures = uses = injected_only = 0
        last_used = math.nan if pattern.last_used is None else pattern.last_used.timestamp()
        for observation in observations:
            count = observation.count
            at = math.nan if observation.at is None else observation.at.timestamp()
            success = observation.success if observation.kind != "injected" else None
            self._rows.append(row)
            self._at.append(at)
            self._given.append(count)
            self._helpful.append(observation.weight * count if success else 0.0)
            self._harmful.append(observation.weight * count if success is False else 0.0)
            if observation.kind == "injected":
                injected_only += count
                continue
            uses += count
            last_used = at if math.isnan(last_used) else max(last_used, at)
            successes += count if success else 0
            failures += count if success is False else 0
        self._counts.append((successes, failures, uses, injected_only))
        self._rates.append(shown_rate(pattern.recorded_counts, successes, failures, self._enough))
        self._last_used.append(last_used)

    def store(self, columns: Columns, rows: Ints, epoch: float, now: float, half_life: float) -> None:
        """Write what was counted into `rows` of `columns`, in the order in which the patterns were added."""
        counts = np.array(self._counts, np.int64).reshape(-1, 4)
        columns.successes[rows], columns.failures[rows] = counts[:, 0], counts[:, 1]
        columns.uses[rows], columns.injected_only[rows] = counts[:, 2], counts[:, 3]
        columns.rate[rows] = self._rates
        columns.last_used[rows] = self._last_used
        places = np.array(self._rows, np.int64)
        at = np.array(self._at, np.float64)
        helpful, harmful = np.array(self._helpful), np.array(self._harmful)
        given = np.array(self._given, np.float64)

        def summed(weights: Floats) -> Floats:
            return np.bincount(places, weights, minlength=len(rows)).astype(np.float64, copy=False)

        columns.fresh[rows] = summed(helpful + harmful)
        columns.ahead[rows] = summed(((at > now) & (helpful + harmful > 0)).astype(np.float64)) > 0
        fixed = np.isnan(at)
        columns.fixed_helpful[rows] = summed(np.where(fixed, helpful, 0.0))
        columns.fixed_harmful[rows] = summed(np.where(fixed, harmful, 0.0))
        worth = np.where(fixed, 0.0, np.exp2((np.minimum(np.where(fixed, epoch, at), now) - epoch) / half_life))
        columns.helpful[rows] = summed(helpful * worth)
        columns.harmful[rows] = summed(harmful * worth)
        columns.given[rows] = summed(given * worth)
        columns.fixed_given[rows] = summed(np.where(fixed, given, 0.0))


def shown_rate(recorded_counts: RecordedCounts, successes: int, failures: int, enough: float) -> float:
    """The rate to show and to rank by, 0..1; NaN for none (docs/scoring.md#claimed-rates).

    The record's own rate where its counts are exactly the evidence's, since it has the digits that people know;
    a claimed rate until there are `enough` results; else the counted one.
    """
    total = successes + failures
    claimed = claimed_rate(recorded_counts)
    if claimed is not None and total < enough:
        return claimed
    if not total:
        return math.nan
    rate = recorded_counts.rate
    if (
        claimed is None
        and rate is not None
        and recorded_counts.uses == total
        and successes == successes_from_rate(rate, total)
    ):
        return rate
    return successes / total
