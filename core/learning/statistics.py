"""Intervals of success rates, and sample sizes; docs/scoring.md#intervals."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_REQUIRED: Final = 10_000  # larger estimates are reported as "more than" this
_DIGITS: Final = 12  # of the ends of intervals
_MOST_COUNTED: Final = 10_000  # results of a pattern up to which its interval is exact


def jeffreys_intervals(
    successes: NDArray[np.int64], failures: NDArray[np.int64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Jeffreys intervals: quantiles of Beta(successes + 1/2, failures + 1/2).

    The counts are arrays of equal length; `level` is the probability of the interval, 0..1. Returns the lower and the
    upper ends, 0..1. The lower end is 0 without any success, the upper end 1 without any failure, so that the observed
    rate is inside.
    """
    import numpy as np  # 0.06 s to import; some commands never need an interval

    # One complex number per pair sorts several times faster than a row of two.
    pairs, inverse = np.unique(successes + 1j * failures, return_inverse=True)
    good, bad = pairs.real, pairs.imag
    # The upper end is that of the failures, mirrored.
    ends = _lower_ends(np.concatenate((good, bad)), np.concatenate((bad, good)), (1.0 - level) / 2.0)
    low, high = ends[: len(good)], 1.0 - ends[len(good) :]
    return low[inverse], high[inverse]


def _lower_ends(good: NDArray[np.float64], bad: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Return the lower ends of intervals; a rate is below with probability `tail`.

    More than `_MOST_COUNTED` results count as this number, and the interval is narrowed by the root of the ratio; the
    error is below 1e-4.
    """
    import numpy as np

    from core.learning.beta_distribution import beta_quantiles

    total = np.maximum(good + bad, 1.0)
    rate, extra = good / total, np.maximum(total / _MOST_COUNTED, 1.0)
    quantiles = beta_quantiles(good / extra + 0.5, bad / extra + 0.5, tail)
    ends = rate - (rate - np.minimum(quantiles, rate)) / np.sqrt(extra)
    ends = np.round(ends, _DIGITS)  # the last digits of a quantile depend on which others are computed with it
    return np.where(good == 0, 0.0, np.clip(ends, 0.0, rate))


@lru_cache(4096)
def jeffreys_interval(successes: int, failures: int, level: float) -> tuple[float, float]:
    """Return the Jeffreys interval of one pattern: (low, high), 0..1."""
    import numpy as np

    low, high = jeffreys_intervals(np.array([successes]), np.array([failures]), level)
    return float(low[0]), float(high[0])


def round_percent(part: int, whole: int) -> int:
    """Return 100 * part / whole, rounded half up; 0 if `whole` is 0."""
    return (200 * part + whole) // (2 * whole) if whole else 0


def required_cases(difference: float, variance: float, level: float, power: float) -> int:
    """Estimate the cases per group for a conclusion; at most twice `MAX_REQUIRED`.

    `difference` is the difference of the two averages, and `variance` the variance of one case, equal in both groups.
    `level` is the level of the interval that should exclude 0, and `power` the probability that it does, both 0..1.
    """
    from statistics import NormalDist  # takes 3 ms to import, as it imports fractions and random

    normal = NormalDist()
    quantiles = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    cases = 2 * variance * quantiles**2 / difference**2 if difference else math.inf
    return 2 * MAX_REQUIRED if cases > 2 * MAX_REQUIRED else math.ceil(cases)


def student_quantile(freedom: float, probability: float) -> float:
    """Return Student's t quantile; `freedom` >= 1, `probability` from 0.5 to 1."""
    import numpy as np

    from core.learning.beta_distribution import beta_quantiles

    if freedom > _MOST_COUNTED:
        from statistics import NormalDist

        return NormalDist().inv_cdf(probability)
    share = float(beta_quantiles(np.array([freedom / 2]), np.array([0.5]), 2 * (1 - probability))[0])
    return math.sqrt(freedom * (1 - share) / share)


class Difference(Struct, frozen=True, kw_only=True):
    """The difference between two averages, with its interval."""

    difference: float | None = None  # first average minus second; None if a group is empty
    low: float | None = None  # ends of the interval; None if there are too few cases
    high: float | None = None
    needed: int = 0  # estimated further cases per group; 0 if the interval excludes 0

    @property
    def is_conclusive(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.needed == 0


def format_inconclusive(needed: int, noun: str) -> str:
    """Describe an inconclusive comparison, with the number of cases that are missing."""
    is_large = needed > MAX_REQUIRED
    cases = f"more than {MAX_REQUIRED:,} more {noun}s" if is_large else f"about {plural(needed, f'more {noun}')}"
    return f"not enough data: {cases} per group"
