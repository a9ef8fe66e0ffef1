"""Ignores deciding keys typed before the user can have seen the screen."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

SECONDS: Final = 0.5
"""How long deciding keys are ignored after another screen has appeared."""


class JumpGuard:
    """Armed when another screen or question appears.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = -inf

    def arm(self) -> None:
        self._until = self._clock() + SECONDS

    def blocks(self, typed_at: float | None) -> bool:
        """Whether a deciding key is ignored.

        Args:
            typed_at: When the key was typed; None = now, for a click.
        """
        return (self._clock() if typed_at is None else typed_at) < self._until
