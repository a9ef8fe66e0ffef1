"""Scores of all patterns that do not depend on the time, one array per fact."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.learning.aggregate_evidence import AGGREGATE, claimed_rate, successes_from_rate
from core.records.events import Observation
from core.records.patterns import Pattern, RecordedCounts

HELPFUL, HARMFUL, NO_RESULT, INJECTED_ONLY = KINDS = range(4)
"""Kinds of an entry: a use by its result, and an injection that was not applied."""
_KINDS: Final = {True: HELPFUL, False: HARMFUL, None: NO_RESULT}
_FIELDS: Final = {"index": "i8", "at": "f8", "count": "i8", "weight": "f8", "kind": "i1", "is_dated": "?"}
"""Fields of a use in `ObservationSums`, and their types; `index` is that of the pattern, `at` in epoch seconds."""
REMOVED: Final = -1  # new row, in `UseTimes.renumbered`, of a row that no longer exists

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

NO_PIN: Final = -1
_EMPTY: Final = {"rate": math.nan, "last_used": math.nan, "pin": NO_PIN, "snoozed_until": -math.inf}
"""Values of an empty row; 0 or False where none is listed."""
_TYPES: Final = {"Ints": np.int64, "Floats": np.float64, "Codes": np.int8, "Flags": np.bool_}
_DECISIONS: Final = (
    *("pin", "pin_stale", "good_since_pin", "bad_since_pin", "inversion_pending", "snoozed_until"),
    *("quarantined", "held", "blocked"),
)


@dataclass(slots=True)
class Columns:
    """One array per fact, one row per pattern.

    `helpful`, `harmful` and `injections` are decayed sums at the reference time; `fixed_*` are the parts that never
    decay, since their time is unknown. The sums of a row in `has_future` are computed anew for every moment.
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
    injections: Floats  # uses with or without a result, and injections without result
    fixed_injections: Floats
    undecayed: Floats  # sum of all results without decay
    has_future: Flags  # rows with a result in the future
    pin: Codes  # state code of a pin, or `NO_PIN`
    pin_stale: Flags
    good_since_pin: Ints
    bad_since_pin: Ints
    inversion_pending: Flags
    snoozed_until: Floats  # epoch seconds; -inf without a snooze
    quarantined: Flags  # kept out of every context until a person decides about the text
    held: Flags  # quarantined only because the text gives orders that no person has approved
    blocked: Flags  # by the scan
    unnamed: Flags  # kept out of every context because the record has no ID

    @classmethod
    def empty(cls, size: int) -> Columns:
        return cls(**{one.name: np.full(size, _EMPTY.get(one.name, 0), _TYPES[str(one.type)]) for one in fields(cls)})

    def clear_decisions(self, rows: Ints) -> None:
        """Reset the columns that depend on decisions."""
        for name in _DECISIONS:
            getattr(self, name)[rows] = _EMPTY.get(name, 0)

    def map(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Columns:
        return Columns(*(change(getattr(self, one.name)) for one in fields(self)))

    def select(self, keep: Flags, added: int) -> Columns:
        """Keep some rows and append `added` empty ones."""
        tail = Columns.empty(added)
        return Columns(*(np.concatenate([getattr(self, f.name)[keep], getattr(tail, f.name)]) for f in fields(self)))


class ObservationSums:
    """Collects observations of patterns, and sums them up into columns at once.

    From `min_results` results, the counted rate replaces a claimed one.
    """

    def __init__(self, min_results: float) -> None:
        self._min_results = min_results
        self._patterns: list[Pattern] = []
        self._uses: list[tuple[int, float, int, float, int, bool]] = []

    def add(self, pattern: Pattern, observations: Iterable[Observation]) -> None:
        index = len(self._patterns)
        self._patterns.append(pattern)
        for use in observations:
            at = math.nan if use.at is None else use.at.timestamp()
            kind = INJECTED_ONLY if use.kind == "injected" else _KINDS[use.success]
            is_dated = use.at is not None and use.source != AGGREGATE
            self._uses.append((index, at, use.count, use.weight, kind, is_dated))

    def store(self, columns: Columns, rows: Ints, epoch: float, now: float, half_life: float) -> UseTimes:
        """Write the sums into `rows` of `columns`, which are in the order of `add`.

        `epoch` (the reference time of the sums), `now` and `half_life` are in seconds.
        """
        uses = np.array(self._uses, [*_FIELDS.items()])
        index, at, counts, weights, kinds, dated = (uses[name] for name in _FIELDS)
        values = counts * weights
        helpful, harmful = np.where(kinds == HELPFUL, values, 0.0), np.where(kinds == HARMFUL, values, 0.0)

        def total(amounts: NDArray[Any]) -> Floats:
            return np.bincount(index, amounts, minlength=len(rows)).astype(np.float64, copy=False)

        columns.successes[rows] = successes = total(np.where(kinds == HELPFUL, counts, 0)).astype(np.int64)
        columns.failures[rows] = failures = total(np.where(kinds == HARMFUL, counts, 0)).astype(np.int64)
        columns.uses[rows] = total(np.where(kinds == INJECTED_ONLY, 0, counts))
        columns.injected_only[rows] = total(np.where(kinds == INJECTED_ONLY, counts, 0))
        columns.rate[rows] = [
            shown_rate(pattern.recorded_counts, good, bad, self._min_results)
            for pattern, good, bad in zip(self._patterns, successes.tolist(), failures.tolist(), strict=True)
        ]
        last_used = np.array([one.last_used.timestamp() if one.last_used else math.nan for one in self._patterns])
        np.fmax.at(last_used, index, np.where(kinds == INJECTED_ONLY, math.nan, at))
        columns.last_used[rows] = last_used
        columns.undecayed[rows] = total(helpful + harmful)
        columns.has_future[rows] = total((at > now) & (helpful + harmful > 0)) > 0
        fixed = np.isnan(at)
        decay = np.where(fixed, 0.0, np.exp2((np.minimum(np.where(fixed, epoch, at), now) - epoch) / half_life))
        for name, amounts in (("helpful", helpful), ("harmful", harmful), ("injections", counts)):
            getattr(columns, name)[rows] = total(amounts * decay)
            getattr(columns, f"fixed_{name}")[rows] = total(np.where(fixed, amounts, 0.0))
        return UseTimes(rows[index[dated]].astype(np.int32), at[dated], kinds[dated], counts[dated])


def shown_rate(recorded_counts: RecordedCounts, successes: int, failures: int, min_results: float) -> float:
    """Return the rate to show and to rank by, 0..1; NaN if there is none.

    A claimed rate counts until there are `min_results` results. The recorded rate is used where its counts equal the
    evidence, since it has the digits that people know. Otherwise it is the counted rate.
    """
    total = successes + failures
    claimed = claimed_rate(recorded_counts)
    if claimed is not None and total < min_results:
        return claimed
    if not total:
        return math.nan
    rate = recorded_counts.rate
    same_uses = claimed is None and rate is not None and recorded_counts.uses == total
    if same_uses and rate is not None and successes == successes_from_rate(rate, total):
        return rate
    return successes / total


@dataclass(frozen=True, slots=True)
class UseTimes:
    """One entry per dated observation, unsorted.

    Uses that only the counts of a record show are left out: their time is a guess.
    """

    rows: NDArray[np.int32]  # of the pattern in the scoreboard
    at: NDArray[np.float64]  # epoch seconds; may be in the future
    kinds: NDArray[np.int8]  # one of `KINDS`
    counts: NDArray[np.int64]  # number of uses

    def renumbered(self, new_rows: NDArray[np.int64]) -> UseTimes:
        """Replace each row by `new_rows[row]`, without rows that map to `REMOVED`."""
        rows = new_rows[self.rows]
        left = rows != REMOVED
        return UseTimes(rows[left].astype(np.int32), self.at[left], self.kinds[left], self.counts[left])

    def __add__(self, other: UseTimes) -> UseTimes:
        """Join the entries of two disjoint sets of patterns."""
        return UseTimes(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))
