"""What the order of Review is worth, in registries whose truth is planted: failures spared by the first reviews.

Each pattern of a world has a true success rate and a true number of uses a week; its evidence is drawn from both, and
the scores and the queue are the product's own. A review finds out the true rate and puts the pattern into the right
state, so that it spares the loss of the wrong one, if it was in it. Every order is tried on the very same worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from core.config.settings import Settings
from core.learning.score_arrays import Floats, Ints
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.events import Event
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.review.impact import Stakes, good_enough
from core.review.queue import review_queue
from core.state.project_state import ProjectState
from tests.bench.measures import milliseconds

NOW: Final = datetime(2026, 7, 1, tzinfo=UTC)
SETTINGS: Final = Settings()
REVIEWS: Final = (10, 20, 50)
_WEEKS: Final = 26
"""How much of the past a world has, of which the last uses say most."""
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
"""True rates of worlds: the one is of the family of the prior that the product fits, the others are not."""


@dataclass(frozen=True)
class World:
    """One registry with its truth.

    Attributes:
        board, patterns: As the product sees it.
        spared: By row, the failures a week that a review spares.
    """

    board: Scoreboard
    patterns: Mapping[str, Pattern]
    spared: Floats

    @classmethod
    def made(cls, rates: Rates, size: int, seed: int) -> World:
        """Evidence is drawn from the truth: some uses have a result, most patterns few, some hundreds."""
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
        kept_out = Stakes.of(board, SETTINGS).kept_out
        limit = good_enough(SETTINGS)
        wrong = np.where(kept_out, true - limit, limit - true)
        return cls(board, patterns, weekly * np.maximum(wrong, 0.0))

    def orders(self, seed: int) -> dict[str, Ints]:
        """Rows in the order of each strategy, best first; ours is as long as the queue."""
        board = self.board
        stakes = Stakes.of(board, SETTINGS)
        low, high = board.interval
        queue = review_queue(self.patterns, board, CurationState(), NOW, SETTINGS)
        orders = {
            "ours": board.rows_of(item.subject for item in queue),
            "most used": np.argsort(-(board.uses + board.injected_only), kind="stable"),
            "lowest success": np.argsort(np.nan_to_num(board.rate, nan=2.0), kind="stable"),
            "uncertainty": np.argsort(np.abs(stakes.chance - 0.5), kind="stable"),
            "widest interval": np.argsort(low - high, kind="stable"),
            "random": np.random.default_rng(seed).permutation(len(board.ids)),
            "hindsight": np.argsort(-self.spared, kind="stable"),
        }
        # Whether to warn of a pattern is another question, with another gain, whoever asks it.
        return {name: rows[~board.inversion_pending[rows]] for name, rows in orders.items()}


def spared(rates: Rates, size: int, seeds: Sequence[int], reviews: Sequence[int] = REVIEWS) -> dict[str, list[float]]:
    """Failures a week spared by the first so many reviews of each order, on average over the seeds."""
    sums: dict[str, list[float]] = {}
    for seed in seeds:
        world = World.made(rates, size, seed)
        for name, rows in world.orders(seed).items():
            found = [float(world.spared[rows[:count]].sum()) / len(seeds) for count in reviews]
            sums[name] = [before + now for before, now in zip(sums.get(name, [0.0] * len(reviews)), found, strict=True)]
    return sums


def report(size: int, seeds: int) -> None:
    """Print a table for each kind of truth: what is spared, and how many times as much ours is."""
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


def weighing(view: ProjectState) -> str:
    """What is at stake in every pattern, from arrays that are there."""
    taken = milliseconds(lambda: Stakes.of(view.board, view.settings), 20)
    return f"{taken[-2]:.1f} ms"


def listing(view: ProjectState) -> str:
    """The queue as it is made after every change, once the scores are there."""

    def listed() -> int:
        board = view.board.rescored(view.now)
        return len(review_queue(view.snapshot.patterns, board, view.snapshot.curation, view.now, view.settings))

    count = listed()
    return f"{milliseconds(listed, 20)[-2]:.1f} ms, {count:,} questions"
