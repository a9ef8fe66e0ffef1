"""What a decision is worth."""

from __future__ import annotations

from typing import Final

from core.learning.scoreboard import Scoreboard

HALF_WORTH_AT: Final = 10
"""A pattern that loops were given so often has half the weight of one that every loop gets."""
UNSEEN_SHARE: Final = 0.5
"""Failure share of a text that nobody has judged yet."""
TIDYING_SHARE: Final = 0.25
"""What a question weighs that keeps the registry tidy: nothing fails while it waits."""
STUCK_WORTH: Final = 0.9
"""What an escalation weighs when it is new: an agent is stuck until somebody looks. It decays like outcomes."""


def exposure(board: Scoreboard, pattern_id: str) -> int:
    """How often loops were given it or used it."""
    row = board.row(pattern_id)
    return int(board.uses[row] + board.exposures[row])


def worth(board: Scoreboard, pattern_id: str, failure_share: float) -> float:
    """0..1: how often loops get it times how badly it does."""
    given = exposure(board, pattern_id)
    return failure_share * given / (given + HALF_WORTH_AT)
