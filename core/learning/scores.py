"""Scores of all patterns at one moment, one expression over all rows for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import numpy as np

from core.config.settings import Settings
from core.learning.decay import SECONDS_PER_DAY
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.score_arrays import NO_PIN, Codes, Columns, Flags, Floats, Ints, UseTimes
from core.learning.states import CODES, decayed_counts, multipliers, state_codes
from core.learning.statistics import jeffreys_intervals
from core.records.decisions import CurationState
from core.records.patterns import Maturity, Pattern

_Array = TypeVar("_Array")


class _Column(Generic[_Array]):
    """The column of the same name, which does not depend on the time."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, scores: Any, owner: type) -> _Array:
        return cast(_Array, getattr(scores._columns, self._name))


@dataclass(frozen=True)
class Scores:
    """Arrays with one row per pattern; times are epoch seconds, NaN if unknown."""

    ids: tuple[str, ...]  # pattern IDs in the order of the rows
    now: datetime
    settings: Settings  # the thresholds in use
    _rows: Mapping[str, int]
    _inputs: EvidenceInputs
    _columns: Columns
    _epoch: float  # reference time of the decayed sums in `_columns`
    _filled: float  # newest moment at which evidence was summed up; the sums are valid from there
    use_times: UseTimes  # times of all uses

    successes = _Column[Ints]()  # raw counts
    failures = _Column[Ints]()
    uses = _Column[Ints]()  # uses without a result included
    injected_only = _Column[Ints]()  # injections that were not applied
    rate = _Column[Floats]()  # success rates as shown, 0..1; NaN without any result
    last_used = _Column[Floats]()  # time of the newest use
    pin_stale = _Column[Flags]()  # pins that a person set on a different text
    quarantined = _Column[Flags]()  # kept out of contexts until a person decides about the text
    held = _Column[Flags]()  # quarantined only because the text gives orders that no person has approved
    blocked = _Column[Flags]()  # by the safety scan
    inversion_pending = _Column[Flags]()  # kept out of contexts until a person decides about it; snoozed ones too

    @property
    def _patterns(self) -> Mapping[str, Pattern]:
        return self._inputs.snapshot.patterns

    @property
    def _curation(self) -> CurationState:
        return self._inputs.snapshot.curation

    @property
    def _half_life(self) -> float:
        """Seconds."""
        return self.settings.maturity.half_life_days * SECONDS_PER_DAY

    @property
    def _decay(self) -> float:
        """Factor from the reference time to now."""
        return float(2.0 ** ((self._epoch - self.now.timestamp()) / self._half_life))

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the intervals of the rates, 0..1."""
        return jeffreys_intervals(self.successes, self.failures, self.settings.interval_level)

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        columns = self._columns
        helpful = columns.helpful * self._decay + columns.fixed_helpful
        harmful = columns.harmful * self._decay + columns.fixed_harmful
        for row in np.flatnonzero(columns.has_future).tolist():
            observations = self._inputs.observations(self._patterns[self.ids[row]])
            helpful[row], harmful[row] = decayed_counts(observations, self.now, self.settings.maturity)
        return helpful, harmful

    @property
    def helpful(self) -> Floats:
        """Decayed sums."""
        return self._sums[0]

    @property
    def harmful(self) -> Floats:
        """Decayed sums."""
        return self._sums[1]

    @cached_property
    def injections(self) -> Floats:
        """Decayed sums of uses and injections: how often loops got each pattern recently."""
        injections: Floats = self._columns.injections * self._decay + self._columns.fixed_injections
        return injections

    @cached_property
    def computed_codes(self) -> Codes:
        """States by the rules alone; indices into `core.learning.states.STATES`."""
        return state_codes(self.helpful, self.harmful, self.settings.maturity)

    @cached_property
    def state_codes(self) -> Codes:
        """States in effect, pins and quarantine included; indices into `STATES`."""
        columns = self._columns
        unread = columns.pin_stale | columns.quarantined
        decided = np.where(unread, CODES[Maturity.CANDIDATE], columns.pin).astype(np.int8)
        return np.where((columns.pin == NO_PIN) & ~columns.quarantined, self.computed_codes, decided)

    @cached_property
    def faded(self) -> Flags:
        """Candidates only because their evidence is old."""
        enough = self.settings.maturity.min_feedback - self.settings.maturity.total_tolerance
        candidate: Flags = self.computed_codes == CODES[Maturity.CANDIDATE]
        return candidate & (self._columns.undecayed >= enough)

    @cached_property
    def contradicted(self) -> Flags:
        """Pins that later evidence contradicts; docs/scoring.md#contradicted-pins."""
        columns, settings = self._columns, self.settings.maturity
        later = columns.good_since_pin + columns.bad_since_pin
        enough = later >= settings.min_feedback
        bad = columns.bad_since_pin > (settings.deprecation_threshold + settings.ratio_tolerance) * later
        computed = self.computed_codes
        against_promotion = (enough & bad) | ((columns.bad_since_pin > 0) & (computed == CODES[Maturity.DEPRECATED]))
        against_deprecation = enough & ~bad & (computed == CODES[Maturity.PROVEN])
        against: Flags = np.where(
            columns.pin == CODES[Maturity.DEPRECATED], against_deprecation, (columns.pin != NO_PIN) & against_promotion
        )
        return against & ~columns.pin_stale

    @property
    def pinned(self) -> Flags:
        """Patterns with a pin, stale or not."""
        pinned: Flags = self._columns.pin != NO_PIN
        return pinned

    @cached_property
    def multiplier(self) -> Floats:
        return multipliers(self.settings.maturity)[self.state_codes]

    @cached_property
    def effectiveness(self) -> Floats:
        """Success rates, 0..1; without any result 1 if a person promoted it, else 0."""
        promoted = (self._columns.pin == CODES[Maturity.PROVEN]) & ~self._columns.pin_stale
        return np.where(np.isnan(self.rate), promoted.astype(np.float64), self.rate)

    @cached_property
    def score(self) -> Floats:
        return self.effectiveness * self.multiplier

    @cached_property
    def inversion_due(self) -> Flags:
        """Patterns with an open inversion proposal that is not snoozed."""
        return self._columns.inversion_pending & (self._columns.snoozed_until <= self.now.timestamp())

    @cached_property
    def injectable(self) -> Flags:
        """Patterns that may enter a context."""
        allowed: Flags = (self.state_codes != CODES[Maturity.DEPRECATED]) & ~self._columns.unnamed
        return allowed & ~self._columns.quarantined & ~self._columns.inversion_pending
