"""Evidence sums as arrays with a row per pattern; `Scoreboard` computes scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from core.learning.evidence import AGGREGATE, INVERSION, claimed_rate, successes_from_rate
from core.learning.maturity import SECONDS_PER_DAY
from core.records.team import NO_TEAM, TeamEvidence

if TYPE_CHECKING:
    from core.records.events import Observation
    from core.records.patterns import Pattern, RecordedCounts
    from core.records.team import TeamSums

HELPFUL, HARMFUL, NO_RESULT, INJECTED_ONLY = KINDS = range(4)
"""Kinds of entries: uses by their result, and injections that were not applied."""
REMOVED: Final = -1  # in `UseTimes.renumbered`: the row no longer exists
_COUNTS: Final = ("successes", "failures", "uses", "injected_only")
_FIXED: Final = ("undecayed", "fixed_helpful", "fixed_harmful", "fixed_injections")
_DECAYED: Final = ("helpful", "harmful", "injections")
_KINDS: Final = {True: HELPFUL, False: HARMFUL, None: NO_RESULT}
_WITHOUT_TIME: Final = (AGGREGATE, INVERSION)  # sources whose uses have an estimated time, or that of another pattern
_SIGHTING: Final = -1  # kind of a sighting, which is not a use
_FIELDS: Final = {
    "index": "i8",
    "at": "f8",
    "count": "i8",
    "weight": "f8",
    "kind": "i1",
    "is_dated": "?",
    "given": "i8",
    "seen": "i8",
}
"""Fields of a use in `ObservationSums`, and their types; `index` is that of the pattern, `at` is in epoch seconds."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

NO_PIN: Final = -1
_EMPTY: Final = {
    **dict.fromkeys(("rate", "last_used", "low", "high"), math.nan),
    "pin": NO_PIN,
    "snoozed_until": -math.inf,
}
"""Values of an empty row that are not 0 or False."""
_TYPES: Final = {"Ints": np.int64, "Floats": np.float64, "Codes": np.int8, "Flags": np.bool_}
_DERIVED: Final = ("low", "high")
_DECISIONS: Final = (
    *("pin", "pin_stale", "good_since_pin", "bad_since_pin", "inversion_pending", "snoozed_until"),
    *("quarantined", "held", "blocked", "warned", "unreviewed"),
)


@dataclass(slots=True)
class Columns:
    """One array per value, with one row per pattern.

    `helpful`, `harmful` and `injections` are decayed sums at the reference time; `fixed_*` are the parts that never
    decay, since their time is unknown. The sums of a row in `has_future` are recomputed for every moment. All values
    include the uses in the team's other projects.
    """

    successes: Ints
    failures: Ints
    uses: Ints
    injected_only: Ints
    given: Ints
    seen: Ints
    rate: Floats
    last_used: Floats
    helpful: Floats
    harmful: Floats
    fixed_helpful: Floats
    fixed_harmful: Floats
    injections: Floats  # uses with or without a result, and injections without result
    fixed_injections: Floats
    undecayed: Floats  # sum of all results without decay
    team_uses: Ints  # the part of `uses` that is of the team's other projects
    has_future: Flags  # whether a result is dated in the future
    pin: Codes  # state code of a pin, or `NO_PIN`
    pin_stale: Flags
    good_since_pin: Ints
    bad_since_pin: Ints
    inversion_pending: Flags
    snoozed_until: Floats  # epoch seconds; -inf without a snooze
    quarantined: Flags  # kept out of every context until a person decides about the text
    held: Flags  # quarantined only because the text gives orders that no person has approved
    blocked: Flags  # stopped by the safety scan; releasing or promoting needs a reason
    unreviewed: Flags  # no person has approved this text, which arrived by itself: at most established
    warned: Flags  # kept out of every context because of a warning against the same fix
    unnamed: Flags  # kept out of every context because the record has no ID
    from_lesson: Flags  # made of a lesson that a person accepted
    low: Floats  # ends of the interval of the success rate; NaN until they are computed
    high: Floats

    @classmethod
    def empty(cls, size: int) -> Columns:
        return cls(**{one.name: np.full(size, _EMPTY.get(one.name, 0), _TYPES[str(one.type)]) for one in fields(cls)})

    @classmethod
    def types(cls) -> dict[str, type]:
        """Return the type of the values of each array."""
        return {one.name: _TYPES[str(one.type)] for one in fields(cls)}

    def clear_decisions(self, rows: Ints) -> None:
        """Reset the columns that depend on decisions."""
        for name in _DECISIONS:
            getattr(self, name)[rows] = _EMPTY.get(name, 0)

    def differs(self, other: Columns) -> Flags:
        """Return whether each row differs from the same row of columns of equal length."""
        names = [one.name for one in fields(self) if one.name not in _DERIVED]
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        differs = np.zeros(len(self.uses), np.bool_)
        for one, two in pairs:
            differs |= (one != two) & ~((one != one) & (two != two))  # NaN equals NaN here
        return differs

    def select(self, keep: Flags, added: int) -> Columns:
        """Return the rows in `keep`, followed by `added` empty ones."""
        tail = Columns.empty(added)
        return Columns(*(np.concatenate([getattr(self, f.name)[keep], getattr(tail, f.name)]) for f in fields(self)))

    def put(self, rows: Ints, columns: Columns) -> None:
        """Replace some rows by those of other columns."""
        for one in fields(self):
            getattr(self, one.name)[rows] = getattr(columns, one.name)


@dataclass(frozen=True, slots=True)
class TeamColumns:
    """Sums of some patterns; `sums` are arrays by the names in `Columns`."""

    index: NDArray[np.int64]  # places of the patterns in the arrays of `add_to`
    sums: dict[str, NDArray[Any]]
    last_used: NDArray[np.float64]  # epoch seconds; NaN if unknown
    has_future: NDArray[np.bool_]

    @classmethod
    def of(
        cls, found: Sequence[tuple[int, TeamSums]], team: TeamEvidence, epoch: float, now: float, half_life: float
    ) -> TeamColumns:
        """Convert sums to the reference time `epoch`; times and half-life in seconds."""

        def column(name: str, dtype: Any) -> NDArray[Any]:
            return np.fromiter(map(attrgetter(name), records), dtype, len(records))

        records = [sums for _, sums in found]
        sums: dict[str, NDArray[Any]] = {name: column(name, np.int64) for name in _COUNTS}
        sums |= {name: column(name, np.float64) for name in _FIXED}
        times = (one.last_used for one in records)
        last_used = np.fromiter((at.timestamp() if at else math.nan for at in times), np.float64, len(records))
        last_use = np.where(np.isnan(last_used), team.epoch.timestamp(), last_used)
        factor = (team.epoch.timestamp() - last_use) / (team.half_life_days * SECONDS_PER_DAY)
        factor += (np.minimum(last_use, now) - epoch) / half_life
        all_uses = sums["uses"] + sums["injected_only"]
        limits = {"helpful": sums["undecayed"], "harmful": sums["undecayed"], "injections": all_uses}
        for name in _DECAYED:
            with np.errstate(divide="ignore"):  # the logarithm of 0 becomes 0 again
                power = np.log2(column(name, np.float64)) + factor
                most = np.log2(limits[name]) + (now - epoch) / half_life  # the value now of uses that are all new
            sums[name] = np.exp2(np.minimum(power, most))
        has_future = (last_used > now) & (sums["helpful"] + sums["harmful"] > 0)
        index = np.fromiter((row for row, _ in found), np.int64, len(found))
        sums |= {"team_uses": sums["uses"], "given": sums["injected_only"]}
        return cls(index, sums, last_used, has_future)

    def add_to(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add these sums to arrays with a row per pattern."""
        for name, values in self.sums.items():
            columns[name][self.index] += values
        columns["last_used"][self.index] = np.fmax(columns["last_used"][self.index], self.last_used)
        columns["has_future"][self.index] |= self.has_future


class ObservationSums:
    """Collects observations of patterns, and sums them up in one pass.

    With at least `min_results` results, the counted rate replaces a claimed one. `team` describes the sums in `add`.
    """

    def __init__(self, min_results: float, team: TeamEvidence = NO_TEAM) -> None:
        self._min_results = min_results
        self._team = team
        self._patterns: list[Pattern] = []
        self._uses: list[tuple[int, float, int, float, int, bool, int, int]] = []
        self._of_team: list[tuple[int, TeamSums]] = []

    def add(self, pattern: Pattern, observations: Iterable[Observation], team: TeamSums | None = None) -> None:
        """Add a pattern with its observations and any sums of the other team projects."""
        index = len(self._patterns)
        self._patterns.append(pattern)
        if team is not None:
            self._of_team.append((index, team))
        for use in observations:
            at = math.nan if use.at is None else use.at.timestamp()
            kind = INJECTED_ONLY if use.kind == "injected" else _SIGHTING if use.is_sighting else _KINDS[use.success]
            is_dated = use.at is not None and use.source not in _WITHOUT_TIME and kind != _SIGHTING
            self._uses.append((index, at, use.count, use.weight, kind, is_dated, use.given, use.seen))

    def store(self, columns: Columns, rows: Ints, epoch: float, now: float, half_life: float) -> UseTimes:
        """Write the sums of the nth added pattern to the row `rows[n]` of `columns`.

        `epoch` (the reference time of the sums), `now` and `half_life` are in seconds.
        """
        uses = np.array(self._uses, [*_FIELDS.items()])
        index, at, counts, weights, kinds, dated, given, seen = (uses[name] for name in _FIELDS)
        values = counts * weights
        helpful, harmful = np.where(kinds == HELPFUL, values, 0.0), np.where(kinds == HARMFUL, values, 0.0)

        def total(amounts: NDArray[Any]) -> Floats:
            return np.bincount(index, amounts, minlength=len(rows)).astype(np.float64, copy=False)

        def count(amounts: NDArray[Any]) -> Ints:
            return total(amounts).astype(np.int64)

        last_used = np.array([one.last_used.timestamp() if one.last_used else math.nan for one in self._patterns])
        np.fmax.at(last_used, index, np.where(kinds == INJECTED_ONLY, math.nan, at))
        found: dict[str, NDArray[Any]] = {
            "successes": count(np.where(kinds == HELPFUL, counts, 0)),
            "failures": count(np.where(kinds == HARMFUL, counts, 0)),
            "uses": count(np.where((kinds == INJECTED_ONLY) | (kinds == _SIGHTING), 0, counts)),
            "injected_only": count(np.where(kinds == INJECTED_ONLY, counts, 0)),
            "given": count(given),
            "seen": count(seen),
            "last_used": last_used,
            "undecayed": total(helpful + harmful),
            "has_future": total((at > now) & (helpful + harmful > 0)) > 0,
            "team_uses": np.zeros(len(rows), np.int64),
            "low": np.full(len(rows), math.nan),
            "high": np.full(len(rows), math.nan),
        }
        fixed = np.isnan(at)
        decay = np.where(fixed, 0.0, np.exp2((np.minimum(np.where(fixed, epoch, at), now) - epoch) / half_life))
        injections = np.where(kinds == _SIGHTING, 0, counts)
        for name, amounts in (("helpful", helpful), ("harmful", harmful), ("injections", injections)):
            found[name] = total(amounts * decay)
            found[f"fixed_{name}"] = total(np.where(fixed, amounts, 0.0))
        if self._of_team:
            TeamColumns.of(self._of_team, self._team, epoch, now, half_life).add_to(found)
        found["rate"] = np.array(
            [
                shown_rate(pattern.recorded_counts, good, bad, self._min_results)
                for pattern, good, bad in zip(
                    self._patterns, found["successes"].tolist(), found["failures"].tolist(), strict=True
                )
            ]
        )
        for name, values in found.items():
            getattr(columns, name)[rows] = values
        return UseTimes(rows[index[dated]].astype(np.int32), at[dated], kinds[dated], counts[dated])


def shown_rate(recorded_counts: RecordedCounts, successes: int, failures: int, min_results: float) -> float:
    """Return the rate to display and rank by, 0..1; NaN if there is none.

    A claimed rate is used until there are `min_results` results. The recorded rate is used if its counts equal the
    evidence, so that people see the digits of the file. Otherwise the rate is computed from the evidence.
    """
    total = successes + failures
    claimed = claimed_rate(recorded_counts)
    if claimed is not None and total < min_results:
        return claimed
    if not total:
        return math.nan
    rate = recorded_counts.rate
    if rate is None or claimed is not None or recorded_counts.uses != total:
        return successes / total
    return rate if successes == successes_from_rate(rate, total) else successes / total


@dataclass(frozen=True, slots=True)
class UseTimes:
    """Dated uses and injections, unsorted; each array has one entry per observation.

    Uses that only the counts of a record contain are left out, since their time is estimated.
    """

    rows: NDArray[np.int32]  # row of the pattern in the scoreboard
    at: NDArray[np.float64]  # epoch seconds; may be in the future
    kinds: NDArray[np.int8]  # one of `KINDS`
    counts: NDArray[np.int64]  # number of uses

    @classmethod
    def empty(cls) -> UseTimes:
        return cls(np.empty(0, np.int32), np.empty(0), np.empty(0, np.int8), np.empty(0, np.int64))

    def renumbered(self, new_rows: NDArray[np.int64]) -> UseTimes:
        """Replace each row by `new_rows[row]`; drop entries whose new row is `REMOVED`."""
        rows = new_rows[self.rows]
        left = rows != REMOVED
        return UseTimes(rows[left].astype(np.int32), self.at[left], self.kinds[left], self.counts[left])

    def load(self) -> UseTimes:
        return self


class StoredTimes(Protocol):
    """Use times that are read when they are needed."""

    def load(self) -> UseTimes: ...


@dataclass(frozen=True, slots=True)
class ReplacedTimes:
    """Use times where `times` replaces some rows; `new_rows` are the rows of others."""

    before: StoredTimes
    new_rows: NDArray[np.int64]  # see `UseTimes.renumbered`
    times: UseTimes

    def load(self) -> UseTimes:
        parts = self.before.load().renumbered(self.new_rows), self.times
        return UseTimes(*(np.concatenate([getattr(one, f.name) for one in parts]) for f in fields(UseTimes)))
