"""Weighs questions: every one with what is at stake, how long it takes, and why it has its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.learning.scoreboard import Scoreboard
from core.records.patterns import Pattern
from core.review.items import ReviewItem
from core.review.worth import WARNED_SHARE, Stakes, good_enough, worth
from core.settings import Settings
from core.text import plural


@dataclass(frozen=True)
class Scales:
    """What questions about the patterns of one board weigh.

    Attributes:
        patterns, board, settings: What is known.
    """

    patterns: Mapping[str, Pattern]
    board: Scoreboard
    settings: Settings

    @cached_property
    def stakes(self) -> Stakes:
        """Of all patterns."""
        return Stakes.of(self.board, self.settings)

    def item(
        self,
        kind: str,
        subject: str,
        *,
        question: str,
        reason: str,
        place: str,
        stake: float,
        seconds: float,
        **more: Any,
    ) -> ReviewItem:
        """A question, weighed; see `ReviewItem`.

        Args:
            place: Why at its place, in words.
            more: Further attributes of it. Its `evidence` is that of the pattern, unless it is told.
        """
        if subject in self.board:
            more.setdefault("evidence", int(self.board.uses[self.board.row(subject)]))
        return ReviewItem(
            kind=kind,
            subject=subject,
            question=question,
            reason=f"{reason}; {place}" if place else reason,
            worth=worth(stake, seconds, self.settings),
            stake=stake,
            seconds=seconds,
            position_reason=place,
            **more,
        )

    def held(self, pattern_id: str) -> float:
        """The stake of a pattern that is in the state that holds, failures a week."""
        row, stakes = self.board.row(pattern_id), self.stakes
        loss = stakes.above if stakes.kept_out[row] else stakes.below
        return float(stakes.uses[row] * loss[row])

    def unwarned(self, pattern_id: str) -> float:
        """The same of a pattern that waits to become a warning: it is kept out, and nothing warns of it."""
        row, stakes = self.board.row(pattern_id), self.stakes
        return float(stakes.uses[row] * (stakes.above[row] + WARNED_SHARE * stakes.below[row]))

    def either(self, pattern_id: str) -> float:
        """The same where nothing tells the wrong state from the right one."""
        row, stakes = self.board.row(pattern_id), self.stakes
        return float(stakes.uses[row] * (stakes.below[row] + stakes.above[row]))

    def unseen(self, pattern_id: str, *, kept_out: bool) -> float:
        """The same for a text on which what is known of the pattern says nothing."""
        below, above = self.stakes.unjudged
        return self.uses(pattern_id) * (above if kept_out else below)

    def uses(self, pattern_id: str) -> float:
        """Uses expected in a week if loops may get the pattern."""
        return float(self.stakes.uses[self.board.row(pattern_id)])

    def given(self, pattern_id: str) -> str:
        """How often loops got a pattern, as half a sentence."""
        return f"loops got it {plural(self.times(pattern_id), 'time')}"

    def times(self, pattern_id: str) -> int:
        """How often loops were given a pattern or used it."""
        row = self.board.row(pattern_id)
        return int(self.board.uses[row] + self.board.exposures[row])

    def place(self, pattern_id: str) -> str:
        """How often loops got a pattern, and how likely it is in the wrong state."""
        row = self.board.row(pattern_id)
        return (
            f"{self.given(pattern_id)}; {self.chance(float(self.stakes.chance[row]), bool(self.stakes.kept_out[row]))}"
        )

    def chance(self, worse: float, kept_out: bool) -> str:
        """How likely a state is the wrong one, from the chance that the pattern is not good enough."""
        limit = good_enough(self.settings)
        if kept_out:
            return f"{_share(1 - worse)} chance that it is better than {limit:.0%}"
        return f"{_share(worse)} chance that it is worse than {limit:.0%}"

    def since(self, pattern_id: str, good: int, bad: int, *, kept_out: bool) -> tuple[float, str]:
        """Stake and place by what came since a decision alone: it contradicts what was before."""
        row, stakes = self.board.row(pattern_id), self.stakes
        likely, unlikely = stakes.prior
        below, above, worse = stakes.losses.of(np.array([good + likely]), np.array([bad + unlikely]))
        loss = above if kept_out else below
        place = f"{self.given(pattern_id)}; {self.chance(float(worse[0]), kept_out)}"
        return float(stakes.uses[row] * loss[0]), place


def _share(chance: float) -> str:
    return f"{min(max(chance, 0.01), 0.99):.0%}"
