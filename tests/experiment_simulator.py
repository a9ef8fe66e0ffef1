"""Simulates experiments that hold lessons out by chance: `python -m tests.experiment_simulator` prints the figures.

The capital of the bets is computed from `core.learning.experiments.score_of` for all simulated years at once.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.learning.experiments import BETS, RATE_STEPS, Cell, TrialResult, required_trials, score_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LIMIT = 20.0  # 1 / (1 - LEVEL)


class Years(NamedTuple):
    """Simulated experiments: one row each, one column a trial."""

    is_given: NDArray[np.bool_]
    outcomes: Array
    share: float


def simulate(
    rate_held_out: float | Array, rate_given: float | Array, share: float, *, trials: int, years: int, seed: int = 1
) -> Years:
    """Simulate experiments; a rate is a number, or an array of one rate for each trial."""
    random = np.random.default_rng(seed)
    is_given = random.random((years, trials)) >= share
    outcomes = (random.random((years, trials)) < np.where(is_given, rate_given, rate_held_out)).astype(float)
    return Years(is_given, outcomes, share)


def trials_of(years: Years, row: int) -> list[TrialResult]:
    """Return one simulated experiment as the product reads it."""
    pairs = zip(years.is_given[row].tolist(), years.outcomes[row].tolist(), strict=True)
    return [
        TrialResult(task=f"t{number}", pattern="p", share=years.share, is_held_out=not is_given, outcome=outcome)
        for number, (is_given, outcome) in enumerate(pairs)
    ]


def capital_paths(years: Years, candidate: float = 0.0, signs: tuple[int, ...] = (-1, 1)) -> Array:
    """Return the capital of the bets against `candidate` after each trial."""
    before = np.arange(years.outcomes.shape[1])
    rates = np.round((np.cumsum(years.outcomes, 1) - years.outcomes + 0.5) / (before + 1) * RATE_STEPS)
    cells = np.clip(rates, 1, RATE_STEPS - 1).astype(int) * 4 + ~years.is_given * 2 + years.outcomes.astype(int)
    capital: Array = np.zeros(years.outcomes.shape)
    for sign in signs:
        scores = [
            score_of((Cell("p", years.share, max(cell // 4, 1), cell % 4 > 1, cell % 2),), candidate, sign)
            for cell in range(4 * RATE_STEPS)
        ]
        for bet, part in BETS:
            logs = np.log1p(sign * bet * np.array(scores))
            capital += part / len(signs) * np.exp(np.cumsum(logs[cells], 1))
    return capital


def share_ever_above(paths: Array, trials: int | None = None) -> float:
    """Return the share of the experiments whose capital reached the limit within the first trials."""
    return float((paths[:, :trials] >= LIMIT).any(1).mean())


def differences(years: Years, trials: int) -> Array:
    """Return the difference of the two means after a number of trials; NaN if an arm is empty."""
    given, outcomes = years.is_given[:, :trials], years.outcomes[:, :trials]
    with np.errstate(invalid="ignore"):
        means: Array = (outcomes * given).sum(1) / given.sum(1) - (outcomes * ~given).sum(1) / (~given).sum(1)
    return means


def naive_false_alarms(years: Years) -> float:
    """Return the share of the experiments in which a test for one fixed time was ever significant at 0.05."""
    with np.errstate(invalid="ignore", divide="ignore"):
        n1, n0 = np.cumsum(years.is_given, 1), np.cumsum(~years.is_given, 1)
        s1, s0 = np.cumsum(years.outcomes * years.is_given, 1), np.cumsum(years.outcomes * ~years.is_given, 1)
        pooled = (s1 + s0) / (n1 + n0)
        z = (s1 / n1 - s0 / n0) / np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n0))
    return float(((np.abs(z) > 1.96) & (n1 >= 5) & (n0 >= 5)).any(1).mean())


def main() -> None:
    sys.stdout.write("False alarms within 1,095 trials, with a look after each; of a test for one fixed time\n")
    for share in (0.5, 0.2, 0.1):
        for rate in (0.05, 0.2, 0.5, 0.8):
            years = simulate(rate, rate, share, trials=1095, years=2000)
            found, naive = share_ever_above(capital_paths(years)), naive_false_alarms(years)
            sys.stdout.write(f"  share {share}, rate {rate:.2f}: {found:.3f}; {naive:.3f}\n")
    sys.stdout.write("Trials of a test that looks once; share found within 1, 1.5 and 2 times as many;\n")
    sys.stdout.write("multiple with which 80 % are found; coverage; mean difference at the end, at the first verdict\n")
    for held_out, given in ((0.5, 0.1), (0.5, 0.2), (0.6, 0.8), (0.7, 0.8)):
        for share in (0.5, 0.2, 0.1):
            once = required_trials(held_out, given, share)
            years = simulate(held_out, given, share, trials=3 * once, years=1000)
            paths = capital_paths(years)
            shares = " ".join(f"{share_ever_above(paths, int(factor * once)):.2f}" for factor in (1, 1.5, 2))
            stops = np.where((paths >= LIMIT).any(1), (paths >= LIMIT).argmax(1) + 1, 10**9)
            covered = 1 - share_ever_above(capital_paths(years, given - held_out))
            first = [differences(years, stop)[row] for row, stop in enumerate(stops[:200]) if stop < 10**9]
            sys.stdout.write(
                f"  {held_out} -> {given}, share {share}: {once}; {shares}; {np.quantile(stops, 0.8) / once:.2f}; "
                f"{covered:.3f}; {np.nanmean(differences(years, 3 * once)):+.3f}, {np.mean(first):+.3f}\n"
            )


if __name__ == "__main__":
    main()
