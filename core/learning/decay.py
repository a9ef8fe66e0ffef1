"""Confidence decay: what was seen long ago says less (2) Half-Life Formula."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BadInput
from core.learning.checks import check_amount, shown
from core.records.times import parse_time

SECONDS_PER_DAY: Final = 86_400.0


def decayed_value(timestamp: str | datetime, now: str | datetime, half_life_days: float) -> float:
    """What one event of weight 1 is still worth: `0.5 ** (age_days / half_life_days)`, 0..1.

    A time after `now` counts as now, so that no clock can make an event worth more than 1.

    Raises:
        BadInput: A time that can't be parsed, or a half-life that is not a finite number above 0.
    """
    check_half_life(half_life_days)
    age = (moment(now, "now") - moment(timestamp, "timestamp")).total_seconds()
    return float(0.5 ** (max(age, 0.0) / SECONDS_PER_DAY / half_life_days))


def decay_factors(at: NDArray[np.float64], now: float, half_life_days: float) -> NDArray[np.float64]:
    """`decayed_value` for many times at once.

    Args:
        at: Epoch seconds; NaN where no time is known, which does not decay.
        now: Epoch seconds.
    """
    ages = np.maximum(now - at, 0.0)
    ages[np.isnan(ages)] = 0.0
    return np.exp2(ages / (-half_life_days * SECONDS_PER_DAY))


def decayed_sums(
    rows: NDArray[np.int64],
    at: NDArray[np.float64],
    weights: NDArray[np.float64],
    now: float,
    half_life_days: float,
    size: int,
) -> NDArray[np.float64]:
    """Decayed sum per pattern over events in any order, summed directly.

    Args:
        rows: Pattern row of each event, 0..size-1.
        at: Epoch seconds of each event.
        weights: Worth of each event when it was new.
        size: Number of patterns; the length of the result.
    """
    worth = weights * decay_factors(at, now, half_life_days)
    return np.bincount(rows, worth, minlength=size).astype(np.float64, copy=False)


def check_half_life(half_life_days: Any) -> None:
    """`BadInput` unless `half_life_days` is a finite number above 0."""
    check_amount(half_life_days, "half_life_days")
    if not half_life_days:
        raise BadInput("half_life_days must be a number of days above 0, not 0")


def moment(value: str | datetime, field: str) -> datetime:
    """`value` as an aware UTC time, else `BadInput` naming the field."""
    parsed = parse_time(value)
    if parsed is None:
        raise BadInput(f"{field} must be an ISO-8601 time, not {shown(value)}")
    return parsed
