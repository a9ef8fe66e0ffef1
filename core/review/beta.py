"""Losses under a Beta distribution, for as many patterns as there are, without a library that takes 0.1 s to load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

import numpy as np

from core.learning.score_arrays import Floats

LEAST_RESULTS, MOST_RESULTS = 2.0, 300.0
"""Both parameters together, as they are told apart: less is as good as nothing known; more does not make surer, since
rates move."""
_MEANS: Final = 121
_STRENGTHS: Final = 33
_STEPS: Final = 600
"""Places of the table of Beta losses by mean and by strength, and steps of its integrals."""
_FIRST: Final = math.log(LEAST_RESULTS)
_STEP: Final = (math.log(MOST_RESULTS) - _FIRST) / (_STRENGTHS - 1)


@dataclass(frozen=True)
class BetaLosses:
    """Losses under Beta distributions, read from a table: some 100 ns each, within 0.005 of the integrals for
    parameters from 0.3 up.

    Attributes:
        threshold: t, 0..1.
        below: E[max(0, t - p)], by strength and mean.
        chance: P(p < t), likewise.
    """

    threshold: float
    below: Floats
    chance: Floats

    @classmethod
    @lru_cache(maxsize=8)
    def at(cls, threshold: float) -> Self:
        """The table for one threshold: 60 ms, once."""
        # With p = sin(angle)^2 the density stays finite at both ends for every parameter from 1/2 up.
        angles = (np.arange(_STEPS) + 0.5) * (math.pi / 2 / _STEPS)
        rates = np.sin(angles) ** 2
        logs, log_rest = np.log(np.sin(angles)), np.log(np.cos(angles))
        below = np.empty((_STRENGTHS, _MEANS))
        chance = np.empty((_STRENGTHS, _MEANS))
        means = np.linspace(0.0, 1.0, _MEANS)[:, None]
        for row, strength in enumerate(_strengths().tolist()):
            powers = 2.0 * strength * (means * logs + (1.0 - means) * log_rest) - (logs + log_rest)
            density = np.exp(powers - powers.max(axis=1, keepdims=True))
            density /= density.sum(axis=1, keepdims=True)
            below[row] = density @ np.maximum(threshold - rates, 0.0)
            # A step that the threshold cuts counts in part.
            part = np.clip((math.asin(math.sqrt(threshold)) - angles) / (math.pi / 2 / _STEPS) + 0.5, 0.0, 1.0)
            chance[row] = density @ part
        return cls(threshold, below, chance)

    def of(self, good: Floats, bad: Floats) -> tuple[Floats, Floats, Floats]:
        """`(below, above, chance)` of Beta(good, bad): E[max(0, t - p)], E[max(0, p - t)], P(p < t).

        Args:
            good, bad: Parameters > 0, of equal length.
        """
        total = good + bad
        mean = good / total
        column = mean * (_MEANS - 1)
        left = np.minimum(column.astype(np.int64), _MEANS - 2)
        row = (np.log(np.clip(total, LEAST_RESULTS, MOST_RESULTS)) - _FIRST) / _STEP
        upper = np.minimum(row.astype(np.int64), _STRENGTHS - 2)
        right_share, lower_share = column - left, row - upper
        place = upper * _MEANS + left

        def between(table: Floats) -> Floats:
            flat = table.ravel()
            first = flat[place] + (flat[place + 1] - flat[place]) * right_share
            second = flat[place + _MEANS] + (flat[place + _MEANS + 1] - flat[place + _MEANS]) * right_share
            mixed: Floats = first + (second - first) * lower_share
            return mixed

        below = between(self.below)
        return below, np.maximum(below + mean - self.threshold, 0.0), between(self.chance)


def _strengths() -> Floats:
    strengths: Floats = np.exp(_FIRST + _STEP * np.arange(_STRENGTHS))
    return strengths
