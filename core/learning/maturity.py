"""Pattern maturity: candidate, established, proven, deprecated, from decayed counts (2) State Transitions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.learning.decay import SECONDS_PER_DAY, decayed_value
from core.records.events import Observation
from core.records.patterns import Maturity
from core.settings import MaturitySettings

STATES: Final = (Maturity.CANDIDATE, Maturity.ESTABLISHED, Maturity.PROVEN, Maturity.DEPRECATED)
"""The states by their code in arrays."""
CODES: Final = {state: code for code, state in enumerate(STATES)}


def state_of(helpful: float, harmful: float, settings: MaturitySettings) -> Maturity:
    """The state for decayed sums, by the rules in the order of semantics 3.

    Totals within `total_tolerance` of a threshold reach it; ratios compare with `ratio_tolerance`.
    """
    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / total if total > 0 else 0.0
    if enough and ratio > settings.deprecation_threshold + settings.ratio_tolerance:
        return Maturity.DEPRECATED
    if not enough:
        return Maturity.CANDIDATE
    if (
        helpful >= settings.min_helpful - settings.total_tolerance
        and ratio < settings.max_harmful - settings.ratio_tolerance
    ):
        return Maturity.PROVEN
    return Maturity.ESTABLISHED


def state_codes(
    helpful: NDArray[np.float64], harmful: NDArray[np.float64], settings: MaturitySettings
) -> NDArray[np.int8]:
    """`state_of` for many patterns; indices into `STATES`."""
    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / np.where(total > 0, total, 1.0)
    deprecated = ratio > settings.deprecation_threshold + settings.ratio_tolerance
    proven = (helpful >= settings.min_helpful - settings.total_tolerance) & (
        ratio < settings.max_harmful - settings.ratio_tolerance
    )
    good = np.where(proven, CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED])
    judged = np.where(deprecated, CODES[Maturity.DEPRECATED], good)
    return np.where(enough, judged, CODES[Maturity.CANDIDATE]).astype(np.int8)


def multiplier(state: Maturity, settings: MaturitySettings | None = None) -> float:
    """What a state does to a pattern's score (2) Multipliers in Decomposition; the documents' by default."""
    return float(multipliers(settings or MaturitySettings())[CODES[state]])


def multipliers(settings: MaturitySettings) -> NDArray[np.float64]:
    """The multipliers in the order of `STATES`."""
    return np.array(
        [
            settings.multiplier_candidate,
            settings.multiplier_established,
            settings.multiplier_proven,
            settings.multiplier_deprecated,
        ]
    )


def decayed_counts(events: Iterable[Observation], now: datetime, settings: MaturitySettings) -> tuple[float, float]:
    """(helpful, harmful): what all results together are worth at `now`; an undated one does not decay."""
    helpful = harmful = 0.0
    for event in events:
        if event.success is None:
            continue
        worth = event.weight * event.count
        if event.at is not None:
            worth *= decayed_value(event.at, now, settings.half_life_days)
        if event.success:
            helpful += worth
        else:
            harmful += worth
    return helpful, harmful


def maturity_state(events: Iterable[Observation], now: datetime, settings: MaturitySettings) -> Maturity:
    """The state that the evidence amounts to at `now`."""
    return state_of(*decayed_counts(events, now, settings), settings)


def next_change(
    events: Iterable[Observation], now: datetime, settings: MaturitySettings
) -> tuple[datetime, Maturity] | None:
    """When decay alone changes the state, and to what; None if it never does.

    Events of a future time stand still until then, which cuts the time ahead into stretches.
    """
    known = [event for event in events if event.success is not None]
    state = maturity_state(known, now, settings)
    starts = sorted({event.at for event in known if event.at is not None and event.at > now})
    for start, end in zip([now, *starts], [*starts, None], strict=True):
        moving = [event for event in known if event.at is not None and event.at <= start]
        still = [event for event in known if event.at is None or event.at > start]
        sums = decayed_counts(moving, start, settings)
        found = change_within(state, sums, decayed_counts(still, start, settings), start, settings)
        if found is not None and (end is None or found[0] <= end):
            return found
    return None


def change_within(
    state: Maturity,
    moving: tuple[float, float],
    fixed: tuple[float, float],
    now: datetime,
    settings: MaturitySettings,
) -> tuple[datetime, Maturity] | None:
    """When the state changes while one part of the evidence decays and another stands still.

    All that decays shrinks by the same factor, so a sum reaches its threshold at
    `now + half_life * log2(sum / threshold)`, and without a fixed part the harmful ratio never changes.

    Args:
        state: The state at `now`.
        moving: Decaying (helpful, harmful) sums at `now`.
        fixed: Sums that do not decay.
    """
    crossings = {
        _factor(sum(moving), sum(fixed), settings.min_feedback, settings),
        _factor(moving[0], fixed[0], settings.min_helpful, settings),
        _ratio_factor(moving, fixed, settings.deprecation_threshold + settings.ratio_tolerance),
        _ratio_factor(moving, fixed, settings.max_harmful - settings.ratio_tolerance),
    }
    for factor in sorted((factor for factor in crossings if 0.0 < factor <= 1.0), reverse=True):
        # A hair beyond the crossing itself, so that the change is seen on the far side of rounding.
        after = factor * (1.0 - 1e-9)
        new = state_of(fixed[0] + moving[0] * after, fixed[1] + moving[1] * after, settings)
        if new != state:
            seconds = math.ceil(-math.log2(after) * settings.half_life_days * SECONDS_PER_DAY)
            try:
                return now + timedelta(seconds=seconds), new
            except OverflowError:
                return None
    return None


def _factor(moving: float, fixed: float, threshold: float, settings: MaturitySettings) -> float:
    """How far `moving` has to shrink until the sum falls to `threshold`; outside 0..1 if it never does."""
    return (threshold - settings.total_tolerance - fixed) / moving if moving > 0 else 0.0


def _ratio_factor(moving: tuple[float, float], fixed: tuple[float, float], limit: float) -> float:
    """How far `moving` has to shrink until a fixed part pulls the harmful ratio across `limit`."""
    slope = moving[1] - limit * sum(moving)
    return (limit * sum(fixed) - fixed[1]) / slope if slope else 0.0
