"""What a person has decided since the desk was opened, how fast, and the time that is set for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

PAUSE: Final = timedelta(minutes=2)
"""What a decision may take at most in the count of decisions an hour: longer ones are a pause."""
LEAST_DECISIONS: Final = 3
"""Decisions from which a pace says something."""


@dataclass
class Sitting:
    """One sitting at the desk; it ends with the program.

    Attributes:
        decided: Decisions made, those taken back not among them.
        ends: When the time that was set is over; None without one.
        minutes: The time that was set, 0 without one.
    """

    decided: int = 0
    ends: datetime | None = None
    minutes: float = 0.0
    _since: datetime | None = None
    _spent: timedelta = timedelta()

    def look(self, now: datetime) -> None:
        """The first question is in front: from here on time is spent."""
        if self._since is None:
            self._since = now

    def count(self, now: datetime) -> None:
        """A decision was made."""
        self.decided += 1
        if self._since is not None:
            self._spent += min(max(now - self._since, timedelta()), PAUSE)
        self._since = now

    def take_back(self) -> None:
        """One was refused, or taken back."""
        self.decided = max(self.decided - 1, 0)

    def set_time(self, minutes: float, now: datetime) -> None:
        """Set the time for what comes, in minutes from now on; 0 takes it off."""
        self.minutes = minutes
        self.ends = now + timedelta(minutes=minutes) if minutes else None

    def minutes_left(self, now: datetime) -> float:
        """What is left of the time that was set, at least 0."""
        return max((self.ends - now).total_seconds() / 60, 0.0) if self.ends is not None else 0.0

    @property
    def per_hour(self) -> int | None:
        """Decisions an hour, pauses left out; None while there are too few to tell."""
        seconds = self._spent.total_seconds()
        return round(self.decided * 3600 / seconds) if self.decided >= LEAST_DECISIONS and seconds > 0 else None
