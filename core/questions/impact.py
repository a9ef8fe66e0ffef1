"""Impact of review questions; see docs/curation.md#review-order.

A review decides whether a pattern is injected. Its success rate p is known as a Beta distribution of its raw counts. If
p is at least t (`good_enough`), it should be injected. Without a review the current state stays, which costs

    for each use of an injected pattern:          E[max(0, t - p)]
    for each use of a pattern not injected:       E[max(0, p - t)]

times the uses expected in a week: the value of perfect information about the pattern.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from core.learning.beta_distribution import beta_probabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.base.settings import Settings
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Flags, Floats, Ints

WEEK_DAYS: Final = 7.0
SECONDS_PER_HOUR: Final = 3600.0
UNSEEN_USES: Final = 0.5
"""Expected uses within a half-life of a text that was never injected, in a state with multiplier 1."""
WASTED_USE: Final = 0.05  # Failures that a duplicate or irrelevant entry of a context costs.
WARNED_SHARE: Final = 0.25  # Share of the uses of a pattern that repeat its approach if no warning exists, 0..1.
LEAST_RESULTS: Final = 2.0  # Minimum sum of both parameters: fewer results are as uncertain as none.
MOST_RESULTS: Final = 300.0
"""Maximum sum of both parameters: more results do not make a rate more certain, since rates change."""
_HALF_PRIORITY_AT: Final = 0.1  # Net impact with priority 1/2, failures a week.

_MOST_PLACES: Final = 1 << 18  # Largest table of all pairs of counts.
_PRIOR_MEAN: Final = 0.75  # Success rate of patterns in general, for a registry with little evidence.
_PRIOR_RESULTS: Final = 10.0  # Weight of `_PRIOR_MEAN`, in results.
_LEAST_MEAN, _MOST_MEAN = 0.15, 0.85  # Bounds of the mean, since the next pattern may differ.
_PRIOR_STRENGTH: Final = 4.0  # Prior strength, in results, if the registry has too little evidence to estimate it.
_MOST_STRENGTH: Final = 12.0  # Maximum prior strength.


@dataclass(frozen=True)
class PatternImpacts:
    """The cost of leaving patterns unreviewed; one row per pattern of the board.

    `uses` are those expected in a week if it may be injected. `below`, `above` and `chance` are E[max(0, t - p)],
    E[max(0, p - t)] and P(p < t), each 0..1; `since_pin` has them by row for contradicted pins, from the results since
    the pin alone. `is_withheld` is whether it is not injected. A text without evidence has `unjudged`, a pair
    `(below, above)`, and the Beta parameters `prior`. `threshold` is t.
    """

    uses: Floats
    below: Floats
    above: Floats
    chance: Floats
    since_pin: Mapping[int, tuple[float, float, float]]
    is_withheld: Flags
    unjudged: tuple[float, float]
    threshold: float
    prior: tuple[float, float]

    @classmethod
    def of(cls, board: Scoreboard, settings: Settings) -> Self:
        """Compute all rows at once; takes about 200 ns a pattern."""
        is_withheld = ~board.injectable | (board.effectiveness < settings.injection.min_success_rate)
        counted = np.where(is_withheld, settings.maturity.multiplier_established, board.multiplier)
        helpful, harmful = board.successes.astype(np.float64), board.failures.astype(np.float64)
        good, bad = _prior(helpful, harmful)
        threshold = good_enough(settings)
        # Most patterns share their counts with others.
        first, inverse = _distinct(board.successes, board.failures)
        pins = np.flatnonzero(board.contradicted)
        successes = np.concatenate((helpful[first], board.good_since_pin[pins], [0.0]))
        failures = np.concatenate((harmful[first], board.bad_since_pin[pins], [0.0]))
        losses = np.array(beta_losses(successes + good, failures + bad, threshold))
        below, above, chance = losses[:, inverse]
        since_pin = (tuple(found) for found in losses[:, len(first) : -1].T.tolist())
        return cls(
            uses=weekly(board.injections + UNSEEN_USES * counted, settings.maturity.half_life_days),
            below=below,
            above=above,
            chance=chance,
            since_pin=dict(zip(pins.tolist(), since_pin, strict=True)),
            is_withheld=is_withheld,
            unjudged=(float(losses[0, -1]), float(losses[1, -1])),
            threshold=threshold,
            prior=(good, bad),
        )

    @cached_property
    def unwarned(self) -> Floats:
        """Cost of a use without a warning: E[max(0, m - p)] where p < t, m the mean."""
        good, bad = self.prior
        return self.below + max(good / (good + bad) - self.threshold, 0.0) * self.chance

    @cached_property
    def held(self) -> Floats:
        """Impact of each pattern: failures a week that its present state may cost."""
        return self.uses * np.where(self.is_withheld, self.above, self.below)


def beta_losses(good: Floats, bad: Floats, threshold: float) -> tuple[Floats, Floats, Floats]:
    """Compute `(below, above, chance)` of p ~ Beta(good, bad) and a threshold t.

    These are E[max(0, t - p)], E[max(0, p - t)] and P(p < t), each 0..1. The parameters are > 0 and of equal length;
    their sum is limited to `LEAST_RESULTS`..`MOST_RESULTS`, and their mean does not change.
    """
    mean = good / (good + bad)
    total = np.clip(good + bad, LEAST_RESULTS, MOST_RESULTS)
    good, bad = total * mean, total * (1.0 - mean)
    chance, chance_after_success = beta_probabilities(good, bad, threshold)
    below = np.maximum(threshold * chance - mean * chance_after_success, 0.0)
    above = np.maximum(below + mean - threshold, 0.0)
    return below, above, chance


def _distinct(ones: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Return the rows of distinct pairs, and the place of each row's pair in them."""
    width = int(others.max(initial=0)) + 1
    highest = (int(ones.max(initial=0)) + 1) * width
    if highest > _MOST_PLACES:
        _, first, inverse = np.unique(ones + 1j * others, return_index=True, return_inverse=True)
        return first, inverse
    # Counts are usually small; then this takes a tenth of the time of sorting them.
    places = np.full(highest, -1)
    codes = ones * width + others
    places[codes] = np.arange(len(codes))
    found = np.flatnonzero(places >= 0)
    first = places[found]
    places[found] = np.arange(len(found))
    return first, places[codes]


def good_enough(settings: Settings) -> float:
    """Return the minimum success rate, 0..1, to inject a pattern."""
    return max(settings.injection.min_success_rate, 1.0 - settings.maturity.deprecation_threshold)


def weekly(decayed: Floats, half_life_days: float) -> Floats:
    """Convert decayed sums to uses a week; one use a day is `half_life_days / ln 2`."""
    return decayed * (math.log(2.0) / half_life_days * WEEK_DAYS)


def net(impact: float, seconds: float, settings: Settings) -> float:
    """Return impact minus cost of reading, failures a week; below 0 if not worth it."""
    return impact - seconds / SECONDS_PER_HOUR * settings.review.worthwhile_per_hour


def priority(impact: float, seconds: float, settings: Settings) -> float:
    """Scale `net` to 0..1; 0 if the question is not worth the time."""
    gain = max(net(impact, seconds, settings), 0.0)
    return gain / (gain + _HALF_PRIORITY_AT)


def _prior(helpful: Floats, harmful: Floats) -> tuple[float, float]:
    """Estimate the Beta parameters of success rates by the method of moments.

    Variance of the counts beyond chance is taken as variance of the rates.
    """
    total = helpful + harmful
    results = float(total.sum())
    mean = (float(helpful.sum()) + _PRIOR_MEAN * _PRIOR_RESULTS) / (results + _PRIOR_RESULTS)
    known = total > 0
    mean = min(max(mean, _LEAST_MEAN), _MOST_MEAN)
    count = int(known.sum()) - 1
    spread = results - float((total**2).sum()) / results - count if results > 0 else 0.0
    strength = _PRIOR_STRENGTH
    if spread >= _PRIOR_RESULTS:
        rates = helpful[known] / total[known]
        varied = float((total[known] * (rates - mean) ** 2).sum()) / (mean * (1.0 - mean))
        alike = (varied - count) / spread
        strength = min(max(1.0 / alike - 1.0, LEAST_RESULTS), _MOST_STRENGTH) if alike > 0 else _MOST_STRENGTH
    return mean * strength, (1.0 - mean) * strength
