"""Expected losses under Beta distributions."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.learning.score_arrays import Floats

LEAST_RESULTS: Final = 2.0
"""Minimum sum of both parameters: fewer results are as uncertain as none."""
MOST_RESULTS: Final = 300.0
"""Maximum sum of both parameters: more results do not make a rate more certain, since rates change."""


def beta_losses(good: Floats, bad: Floats, threshold: float) -> tuple[Floats, Floats, Floats]:
    """Compute `(below, above, chance)` of p ~ Beta(good, bad) and a threshold t.

    The sum of both parameters is limited to `LEAST_RESULTS`..`MOST_RESULTS`; the mean stays.

    Args:
        good, bad: Parameters > 0, of equal length.
        threshold: t, 0..1.

    Returns:
        E[max(0, t - p)], E[max(0, p - t)] and P(p < t), each 0..1.
    """
    from scipy.special import betainc  # 0.1 s to import; most commands never need a loss

    # Most patterns share their counts with others; one complex number per pair sorts faster than a row of two.
    pairs, inverse = np.unique(good + 1j * bad, return_inverse=True)
    mean = pairs.real / (pairs.real + pairs.imag)
    total = np.clip(pairs.real + pairs.imag, LEAST_RESULTS, MOST_RESULTS)
    good, bad = total * mean, total * (1.0 - mean)
    chance = betainc(good, bad, threshold)
    below = np.maximum(threshold * chance - mean * betainc(good + 1.0, bad, threshold), 0.0)
    above = np.maximum(below + mean - threshold, 0.0)
    return below[inverse], above[inverse], chance[inverse]
