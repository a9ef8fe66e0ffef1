"""What a decision is worth: the failures that it is expected to spare loops, less the price of reading.

A review tells which of two states is right for a pattern: loops get it, or it is kept out. Its success rate p is known
only as well as its raw counts tell, as a Beta distribution; from t on, `good_enough`, loops should get it. Whoever
reads it and decides well ends up with no loss. Without that the state that holds stays, and costs

    for each use of a pattern that loops get:     E[max(0, t - p)]
    for each use of a pattern that is kept out:   E[max(0, p - t)]

which, times the uses expected in a week, is the value of perfect information on it: its stake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np

from core.config.settings import Settings
from core.learning.score_arrays import Flags, Floats
from core.learning.scoreboard import Scoreboard
from core.review.beta import LEAST_RESULTS, beta_losses

WEEK_DAYS: Final = 7.0
SECONDS_PER_HOUR: Final = 3600.0
UNSEEN_USES: Final = 0.5
"""Uses within a half-life that a text is expected to get which no loop was given yet, in a state that counts whole."""
WASTED_USE: Final = 0.05
"""Failures that a place in a context costs which says what another place says, or nothing to the task."""
WARNED_SHARE: Final = 0.25
"""Of the uses that a pattern had, so many go its way again where nothing warns of it, 0..1."""
_HALF_WORTH_AT: Final = 0.1
"""Failures a week, net, that make a worth of 1/2."""

_PRIOR_MEAN: Final = 0.75
"""Success rate of patterns in general, of which a registry that is nearly empty tells nothing."""
_PRIOR_RESULTS: Final = 10.0
"""So many results of a registry weigh as much as `_PRIOR_MEAN`."""
_LEAST_MEAN, _MOST_MEAN = 0.15, 0.85
"""However good or bad the patterns of a registry are, the next one may be another."""
_PRIOR_STRENGTH: Final = 4.0
"""Results that patterns in general weigh on one pattern, where the registry does not tell how alike they are."""
_MOST_STRENGTH: Final = 12.0
"""However alike the patterns of a registry are, each may be another."""


@dataclass(frozen=True)
class PatternImpacts:
    """What it costs that nobody has judged a pattern; one row per pattern of the board.

    Attributes:
        uses: Expected in a week, if loops may get it.
        below, above: E[max(0, t - p)] and E[max(0, p - t)], 0..1.
        chance: P(p < t), 0..1.
        kept_out: Whether loops do not get it.
        unjudged: `(below, above)` of a text of which nothing is known.
        threshold, prior: t, and the Beta parameters of a text of which nothing is known.
    """

    uses: Floats
    below: Floats
    above: Floats
    chance: Floats
    kept_out: Flags
    unjudged: tuple[float, float]
    threshold: float
    prior: tuple[float, float]

    @classmethod
    def of(cls, board: Scoreboard, settings: Settings) -> Self:
        """Of all patterns: one vector expression, some 200 ns a pattern."""
        kept_out = ~board.injectable | (board.effectiveness < settings.injection.min_success_rate)
        counted = np.where(kept_out, settings.maturity.multiplier_established, board.multiplier)
        helpful, harmful = board.successes.astype(np.float64), board.failures.astype(np.float64)
        good, bad = _prior(helpful, harmful)
        threshold = good_enough(settings)
        below, above, chance = beta_losses(helpful + good, harmful + bad, threshold)
        unjudged = beta_losses(np.array([good]), np.array([bad]), threshold)
        return cls(
            uses=weekly(board.injections + UNSEEN_USES * counted, settings.maturity.half_life_days),
            below=below,
            above=above,
            chance=chance,
            kept_out=kept_out,
            unjudged=(float(unjudged[0][0]), float(unjudged[1][0])),
            threshold=threshold,
            prior=(good, bad),
        )

    @cached_property
    def unwarned(self) -> Floats:
        """For each pattern that fails, E[max(0, m - p)] where p < t: what a use costs that a warning would have turned
        to what patterns in general come to, m.
        """
        good, bad = self.prior
        return self.below + max(good / (good + bad) - self.threshold, 0.0) * self.chance

    @cached_property
    def held(self) -> Floats:
        """The stake of each pattern: failures a week that its being in its state may cost."""
        return self.uses * np.where(self.kept_out, self.above, self.below)


def good_enough(settings: Settings) -> float:
    """The success rate from which on the rules let loops get a pattern on which there is evidence enough, 0..1."""
    return max(settings.injection.min_success_rate, 1.0 - settings.maturity.deprecation_threshold)


def weekly(decayed: Floats, half_life_days: float) -> Floats:
    """The uses a week of what happens as often as decayed sums tell: a steady stream of one a day sums up to
    `half_life_days / ln 2`.
    """
    return decayed * (math.log(2.0) / half_life_days * WEEK_DAYS)


def net(impact: float, seconds: float, settings: Settings) -> float:
    """A stake less the price of reading, failures a week; below 0 it is not worth the time."""
    return impact - seconds / SECONDS_PER_HOUR * settings.review.worthwhile_per_hour


def priority(impact: float, seconds: float, settings: Settings) -> float:
    """`net` as a share, 0..1, for people: 0 for what is not worth the time."""
    gain = max(net(impact, seconds, settings), 0.0)
    return gain / (gain + _HALF_WORTH_AT)


def _prior(helpful: Floats, harmful: Floats) -> tuple[float, float]:
    """The Beta distribution of the rates of this registry, by its moments.

    What the counts of its patterns vary beyond chance is what their rates vary.
    """
    total = helpful + harmful
    seen = float(total.sum())
    mean = (float(helpful.sum()) + _PRIOR_MEAN * _PRIOR_RESULTS) / (seen + _PRIOR_RESULTS)
    known = total > 0
    mean = min(max(mean, _LEAST_MEAN), _MOST_MEAN)
    count = int(known.sum()) - 1
    spread = seen - float((total**2).sum()) / seen - count if seen > 0 else 0.0
    strength = _PRIOR_STRENGTH
    if spread >= _PRIOR_RESULTS:
        rates = helpful[known] / total[known]
        varied = float((total[known] * (rates - mean) ** 2).sum()) / (mean * (1.0 - mean))
        alike = (varied - count) / spread
        strength = min(max(1.0 / alike - 1.0, LEAST_RESULTS), _MOST_STRENGTH) if alike > 0 else _MOST_STRENGTH
    return mean * strength, (1.0 - mean) * strength
