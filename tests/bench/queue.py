"""Value of the order of the review queue in simulated registries: failures avoided by the first reviews.

Each simulated pattern has a true success rate and a true number of uses per week; its evidence is drawn from both.
Scores and queue are the product's own. A review reveals the true rate and sets the right state, which avoids the loss
of the wrong one. Every order is tried on the same registries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from core.base.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.learning.scores import Floats, Ints
from core.questions.asking import QueueRecords
from core.questions.impact import PatternImpacts, good_enough
from core.questions.queue import review_queue
from core.records.events import Event
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot

NOW: Final = datetime(2026, 7, 1, tzinfo=UTC)
SETTINGS: Final = Settings()
REVIEWS: Final = (10, 20, 50)
_WEEKS: Final = 26
"""Weeks of history; the last weeks count most."""
_TEXT_CHARS: Final = 300

Rates = Callable[[np.random.Generator, int], Floats]
TRUTHS: Final[Mapping[str, Rates]] = {
    "as the prior has it": lambda random, size: random.beta(3.0, 1.0, size),
    "most good, few bad": lambda random, size: np.where(
        random.random(size) < 0.1, random.uniform(0.2, 0.5, size), random.uniform(0.85, 0.98, size)
    ),
    "good or bad": lambda random, size: np.where(random.random(size) < 0.5, 0.9, 0.4),
    "anything": lambda random, size: random.random(size),
    "extremes": lambda random, size: random.beta(0.4, 0.4, size),
    "all near the border": lambda random, size: random.normal(0.7, 0.08, size).clip(0.0, 1.0),
}
"""True rates: the first kind comes from the family that the product's prior is fitted to, the others do not."""


@dataclass(frozen=True)
class World:
    """A registry with its true rates.

    Attributes:
        board, patterns: What the product sees.
        spared: By row, the failures per week that a review avoids.
    """

    board: Scoreboard
    patterns: Mapping[str, Pattern]
    spared: Floats

    @classmethod
    def made(cls, rates: Rates, size: int, seed: int) -> World:
        """Draw evidence from the true rates: few results for most patterns, hundreds for some."""
        random = np.random.default_rng(seed)
        true = rates(random, size)
        weekly = random.lognormal(-1.6, 1.3, size)
        uses = random.poisson(weekly * _WEEKS)
        events = []
        for row, count in enumerate(uses.tolist()):
            ages = random.uniform(0.0, _WEEKS * 7.0, count).tolist()
            reported = (random.random(count) < 0.6).tolist()
            good = (random.random(count) < true[row]).tolist()
            events += [
                Event(
                    id=f"{row}-{number}",
                    at=NOW - timedelta(days=ages[number]),
                    kind="applied" if reported[number] else "injected",
                    pattern_id=f"p{row:05}",
                    loop_id=f"loop-{row}-{number}",
                    success=good[number] if reported[number] else None,
                )
                for number in range(count)
            ]
        patterns = {
            f"p{row:05}": Pattern(id=f"p{row:05}", type=PatternType.SUCCESS, title="x" * _TEXT_CHARS)
            for row in range(size)
        }
        board = Scoreboard.build(Snapshot(patterns=patterns, events=tuple(events)), NOW, SETTINGS)
        is_withheld = PatternImpacts.of(board, SETTINGS).is_withheld
        limit = good_enough(SETTINGS)
        wrong = np.where(is_withheld, true - limit, limit - true)
        return cls(board, patterns, weekly * np.maximum(wrong, 0.0))

    def orders(self, seed: int) -> dict[str, Ints]:
        """Rows in the order of each strategy, best first; the product's is as long as its queue."""
        board = self.board
        stakes = PatternImpacts.of(board, SETTINGS)
        low, high = board.interval
        snapshot = Snapshot(patterns=self.patterns)
        queue = review_queue(QueueRecords.of(snapshot, board, NOW, SETTINGS))
        orders = {
            "ours": board.rows_of(item.subject for item in queue),
            "most used": np.argsort(-(board.uses + board.injected_only), kind="stable"),
            "lowest success": np.argsort(np.nan_to_num(board.rate, nan=2.0), kind="stable"),
            "uncertainty": np.argsort(np.abs(stakes.chance - 0.5), kind="stable"),
            "widest interval": np.argsort(low - high, kind="stable"),
            "random": np.random.default_rng(seed).permutation(len(board.ids)),
            "hindsight": np.argsort(-self.spared, kind="stable"),
        }
        # Whether to invert a pattern is a different question with a different gain.
        return {name: rows[~board.inversion_pending[rows]] for name, rows in orders.items()}


def spared(rates: Rates, size: int, seeds: Sequence[int], reviews: Sequence[int] = REVIEWS) -> dict[str, list[float]]:
    """Average over the seeds of failures per week avoided by the first reviews of each order."""
    sums: dict[str, list[float]] = {}
    for seed in seeds:
        world = World.made(rates, size, seed)
        for name, rows in world.orders(seed).items():
            found = [float(world.spared[rows[:count]].sum()) / len(seeds) for count in reviews]
            sums[name] = [before + now for before, now in zip(sums.get(name, [0.0] * len(reviews)), found, strict=True)]
    return sums


def report(size: int, seeds: int) -> None:
    """Print a table for each kind of true rates: failures avoided, and the ratio to the product's order."""
    for name, rates in TRUTHS.items():
        found = spared(rates, size, range(seeds))
        print(f"\ntrue rates {name}: {size:,} patterns, {seeds} worlds; failures a week spared by so many reviews")
        print(f"{'order':<16}" + "".join(f"{count:>9}{'ours x':>8}" for count in REVIEWS))
        for order, values in found.items():
            cells = zip(values, found["ours"], strict=True)
            print(
                f"{order:<16}"
                + "".join(f"{value:>9.2f}{ours / value if value else np.inf:>8.1f}" for value, ours in cells)
            )
