"""What a person has decided since the desk was opened, how fast, and how far the time goes that is set for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from textual.content import Content

from core.base.text import plural
from core.review.session import ENOUGH_PAUSES, SECONDS_PER_MINUTE, Plan
from core.state.review_items import ReviewItem
from tui.present.numbers import percent

PAUSE: Final = timedelta(minutes=2)
"""What a decision may take at most in the count of decisions an hour: longer ones are a pause."""


@dataclass
class Sitting:
    """One sitting at the desk; it ends with the program.

    Attributes:
        decided: Decisions made, those taken back not among them.
        plan: What the time is for that was set; None without one.
        ends: When that is over.
        goes_on: The person goes on although the plan is done or the time is over.
    """

    decided: int = 0
    plan: Plan | None = None
    ends: datetime | None = None
    goes_on: bool = False
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

    def follow(self, plan: Plan | None, now: datetime) -> None:
        """Set the time for what comes, from now on; None takes it off."""
        self.plan, self.goes_on = plan, False
        self.ends = now + timedelta(minutes=plan.minutes) if plan is not None else None

    def minutes_left(self, now: datetime) -> float:
        """What is left of the time that was set, at least 0."""
        return max((self.ends - now).total_seconds() / SECONDS_PER_MINUTE, 0.0) if self.ends is not None else 0.0

    def planned(self, waiting: Sequence[ReviewItem]) -> int:
        """How many of the planned decisions are still to be made."""
        keys = {item.question_key for item in self.plan.items} if self.plan is not None else set()
        return sum(item.question_key in keys for item in waiting)

    def is_over(self, waiting: Sequence[ReviewItem], now: datetime) -> bool:
        """Whether the person can stop here: what was planned is decided, or the time is up."""
        if self.plan is None or self.goes_on:
            return False
        return not self.planned(waiting) or not self.minutes_left(now)

    @property
    def per_hour(self) -> int | None:
        """Decisions an hour, pauses left out; None while there are too few to tell."""
        seconds = self._spent.total_seconds()
        return round(self.decided * 3600 / seconds) if self.decided >= ENOUGH_PAUSES and seconds > 0 else None


def pace_text(sitting: Sitting) -> Content:
    """What was decided since the desk was opened, and how fast."""
    pace = f", {sitting.per_hour:,} an hour" if sitting.per_hour is not None else ""
    return Content.styled(f"{sitting.decided:,} decided{pace}", "$quiet")


def budget_text(
    sitting: Sitting, offer: Plan, waiting: Sequence[ReviewItem], now: datetime, key: str, *, short: bool = False
) -> Content:
    """The time that is set and how far it has gone; else what a sitting of the usual length would cover.

    Args:
        offer: The plan of such a sitting.
        key: The key that sets the time, for people.
        short: Numbers without words.
    """
    plan = sitting.plan
    if plan is None:
        count = offer.weighed
        if not count:
            return Content("")
        questions = f"{count:,} of {len(waiting):,}"
        covers = questions if short else f"{questions} questions, {percent(offer.share)} of the impact"
        return Content.assemble((key, "$accent"), (f" {offer.minutes:g} min: {covers}", "$quiet"))
    count = len(plan.items)
    done = count - sitting.planned(waiting)
    left = f"{sitting.minutes_left(now):.0f} of {plan.minutes:g} min left"
    if short:
        return Content.styled(f"{left}: {done} of {count}", "$accent")
    return Content.styled(f"{left}: {done} of {count}, together {percent(plan.share)} of the impact", "$accent")


def stop_lines(waiting: Sequence[ReviewItem], plan: Plan, key: str) -> list[Content]:
    """Where one can stop, and what is left.

    Args:
        plan: What was planned; its share is of all that was at stake then.
        key: The key that goes on, for people.
    """
    left = sum(item.stake for item in waiting)
    planned = sum(item.stake for item in plan.items)
    total = planned / plan.share if plan.share else left
    share = min(left / total, 1.0) if total else 0.0
    if not waiting:
        return [Content.styled("All questions are answered.", "bold")]
    return [
        Content.styled("You can stop here.", "bold"),
        Content(f"What is left, {plural(len(waiting), 'question')}, is {percent(share)} of the impact."),
        Content.assemble((key, "$accent bold"), " goes on"),
    ]
