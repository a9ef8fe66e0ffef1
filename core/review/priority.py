"""Weighs questions: every one with what is at stake, how long it takes, and why it has its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.base.formatting import short_id
from core.base.text import plural
from core.config.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.records.patterns import Pattern, PatternType
from core.review.beta import beta_losses
from core.review.impact import WARNED_SHARE, PatternImpacts, good_enough, priority, weekly
from core.state.review_items import ReviewItem


@dataclass(frozen=True)
class ImpactEstimator:
    """What questions about the patterns of one board weigh.

    Attributes:
        patterns, board, settings: What is known.
    """

    patterns: Mapping[str, Pattern]
    board: Scoreboard
    settings: Settings

    @cached_property
    def stakes(self) -> PatternImpacts:
        """Of all patterns."""
        return PatternImpacts.of(self.board, self.settings)

    def item(
        self,
        kind: str,
        subject: str,
        *,
        question: str,
        reason: str,
        place: str,
        impact: float,
        seconds: float,
        name: str = "",
        this: str = "this",
        **more: Any,
    ) -> ReviewItem:
        """A question, weighed; see `ReviewItem`.

        Args:
            question: What is asked, with `{}` for what it is asked about.
            place: Why at its place, in words.
            name, this: What stands there for who reads the question alone, and for who has it in front; the name is
                the subject, unless it is told.
            more: Further attributes of it. Its `evidence` is that of the pattern, unless it is told.
        """
        if subject in self.board:
            more.setdefault("evidence", int(self.board.uses[self.board.row(subject)]))
        return ReviewItem(
            kind=kind,
            subject=subject,
            question=question.replace("{}", name or short_id(subject), 1),
            asks=question.replace("{}", this, 1),
            reason=f"{reason}; {place}" if place else reason,
            priority=priority(impact, seconds, self.settings),
            impact=impact,
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
        return float(stakes.uses[row] * (stakes.above[row] + WARNED_SHARE * stakes.unwarned[row]))

    def either(self, pattern_id: str) -> float:
        """The same where nothing tells the wrong state from the right one."""
        row, stakes = self.board.row(pattern_id), self.stakes
        return float(stakes.uses[row] * (stakes.below[row] + stakes.above[row]))

    def unseen(self, pattern_id: str, *, kept_out: bool) -> float:
        """The same for a text on which what is known of the pattern says nothing."""
        below, above = self.stakes.unjudged
        return self.uses(pattern_id) * (above if kept_out else below)

    def new(self, uses: float) -> float:
        """The same for a text that is in no registry yet.

        Args:
            uses: Decayed uses that it would have had. It comes in as a candidate, which loops get less: a guess at what
                nobody has measured stands behind what is known to fail.
        """
        maturity = self.settings.maturity
        expected = weekly(np.array([uses * maturity.multiplier_candidate]), maturity.half_life_days)
        return float(expected[0]) * self.stakes.unjudged[1]

    def uses(self, pattern_id: str) -> float:
        """Uses expected in a week if loops may get the pattern."""
        return float(self.stakes.uses[self.board.row(pattern_id)])

    def given(self, pattern_id: str) -> str:
        """How often loops got a pattern, as half a sentence."""
        return f"loops got it {plural(self.times(pattern_id), 'time')}"

    def times(self, pattern_id: str) -> int:
        """How often loops were given a pattern or used it."""
        row = self.board.row(pattern_id)
        return int(self.board.uses[row] + self.board.injected_only[row])

    def place(self, pattern_id: str) -> str:
        """How often loops got a pattern, and how likely it is in the wrong state."""
        row = self.board.row(pattern_id)
        worse, kept_out = float(self.stakes.chance[row]), bool(self.stakes.kept_out[row])
        return f"{self.given(pattern_id)}; {self._chance(pattern_id, worse, kept_out)}"

    def _chance(self, pattern_id: str, worse: float, kept_out: bool) -> str:
        """How likely a state is the wrong one, from the chance that the pattern is not good enough."""
        better, poorer = ("right in more", "right in less") if self.is_warning(pattern_id) else ("better", "worse")
        chance, word = (1 - worse, better) if kept_out else (worse, poorer)
        return f"{_share(chance)} chance that it is {word} than {good_enough(self.settings):.0%}"

    def is_warning(self, pattern_id: str) -> bool:
        """Whether the pattern is one that warns: its successes are the times that the warning was right."""
        pattern = self.patterns.get(pattern_id)
        return pattern is not None and pattern.type is PatternType.ANTI

    def since(self, pattern_id: str, good: int, bad: int, *, kept_out: bool) -> tuple[float, str]:
        """Stake and place by what came since a decision alone: it contradicts what was before."""
        row, stakes = self.board.row(pattern_id), self.stakes
        likely, unlikely = stakes.prior
        below, above, worse = beta_losses(np.array([good + likely]), np.array([bad + unlikely]), stakes.threshold)
        loss = above if kept_out else below
        place = f"{self.given(pattern_id)}; {self._chance(pattern_id, float(worse[0]), kept_out)}"
        return float(stakes.uses[row] * loss[0]), place


def _share(chance: float) -> str:
    return f"{min(max(chance, 0.01), 0.99):.0%}"
