"""States of patterns from decayed counts; docs/scoring.md#states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from core.base.validation import check_choice
from core.config.settings import MaturitySettings
from core.learning.decay import decayed_value, parse_moment
from core.records.patterns import Maturity

STATES: Final = (Maturity.CANDIDATE, Maturity.ESTABLISHED, Maturity.PROVEN, Maturity.DEPRECATED)
"""The states in the order of their codes in arrays."""
CODES: Final = {state: code for code, state in enumerate(STATES)}

_DEFAULTS: Final = MaturitySettings()
_MAX_EXACT_COUNT: Final = 2**53  # a float cannot represent every whole number above this


class Result(Protocol):
    """A piece of evidence for or against a pattern."""

    @property
    def pattern_id(self) -> str: ...
    @property
    def at(self) -> datetime | None: ...  # a result without a time does not decay
    @property
    def success(self) -> bool | None: ...  # helpful or harmful; None for neither
    @property
    def weight(self) -> float: ...  # 0..1
    @property
    def count(self) -> int: ...  # the number of uses that it represents


def parse_state(value: str, field: str) -> Maturity:
    """Parse the name of a state; raises BadInput if it is not one of `STATES`."""
    check_choice(value, field, STATES)
    return Maturity(value)


def state_of(helpful: float, harmful: float, settings: MaturitySettings) -> Maturity:
    """Return the state for decayed sums; docs/scoring.md#states and #thresholds."""
    total = helpful + harmful
    if total < settings.min_feedback - settings.total_tolerance:
        return Maturity.CANDIDATE
    ratio = harmful / total if total > 0 else 0.0
    if ratio > settings.deprecation_threshold + settings.ratio_margin:
        return Maturity.DEPRECATED
    enough = helpful >= settings.min_helpful - settings.total_tolerance
    return Maturity.PROVEN if enough and ratio < settings.max_harmful - settings.ratio_margin else Maturity.ESTABLISHED


def state_codes(
    helpful: NDArray[np.float64], harmful: NDArray[np.float64], settings: MaturitySettings
) -> NDArray[np.int8]:
    """`state_of` for arrays; returns indices into `STATES`."""
    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / np.where(total > 0, total, 1.0)
    deprecated = ratio > settings.deprecation_threshold + settings.ratio_margin
    proven = helpful >= settings.min_helpful - settings.total_tolerance
    proven &= ratio < settings.max_harmful - settings.ratio_margin
    good = np.where(proven, CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED])
    judged = np.where(deprecated, CODES[Maturity.DEPRECATED], good)
    return np.where(enough, judged, CODES[Maturity.CANDIDATE]).astype(np.int8)


def multiplier(state: Maturity | str, settings: MaturitySettings = _DEFAULTS) -> float:
    """Return the factor of a state in scores; docs/scoring.md#multipliers.

    Raises BadInput if `state` is not a state or the name of one.
    """
    return float(multipliers(settings)[CODES[parse_state(state, "state")]])


def multipliers(settings: MaturitySettings) -> NDArray[np.float64]:
    """Return the multipliers in the order of `STATES`."""
    return np.array([getattr(settings, f"multiplier_{state}") for state in STATES])


def find_flips(base: tuple[float, float], step: tuple[float, float], settings: MaturitySettings) -> Iterator[float]:
    """Yield every x at which `state_of` may change for the sums `base + x * step`.

    Each condition compares a sum with a threshold, or one sum with a share of another, and so changes at most once.
    """
    yield from _root(sum(base), sum(step), settings.min_feedback - settings.total_tolerance)
    yield from _root(base[0], step[0], settings.min_helpful - settings.total_tolerance)
    for limit in (settings.deprecation_threshold + settings.ratio_margin, settings.max_harmful - settings.ratio_margin):
        yield from _root(base[1] - limit * sum(base), step[1] - limit * sum(step), 0.0)


def _root(base: float, step: float, threshold: float) -> Iterator[float]:
    if step and math.isfinite(x := (threshold - base) / step):
        yield x


def fewest_results(
    state: Maturity, helpful: float, harmful: float, good: float, bad: float, settings: MaturitySettings = _DEFAULTS
) -> int | None:
    """Return how many results of (good, bad) each lead to `state`; None if none do."""
    counts = {0}
    for flip in find_flips((helpful, harmful), (good, bad), settings):
        if 0.0 <= flip < _MAX_EXACT_COUNT:
            counts.update(range(max(math.floor(flip) - 1, 0), math.floor(flip) + 3))  # both sides of rounding
    for count in sorted(counts):
        if state_of(helpful + good * count, harmful + bad * count, settings) is state:
            return count
    return None


def decayed_counts(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[float, float]:
    """Return the decayed sums (helpful, harmful); docs/scoring.md#half-life.

    Raises BadInput if a time can't be parsed.
    """
    now = parse_moment(now, "now")
    helpful: list[float] = []
    harmful: list[float] = []
    for event in events:
        if event.success is None:
            continue
        value = event.weight * event.count
        if (at := event.at) is not None:
            value *= decayed_value(at, now, settings.half_life_days)
        (helpful if event.success else harmful).append(value)
    # fsum rounds once, so that the order of the events does not matter.
    return math.fsum(helpful), math.fsum(harmful)
