"""Review session: number and pace of decisions, and time budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural
from core.questions.session import ENOUGH_PAUSES, SECONDS_PER_MINUTE, Plan
from tui.present.numbers import percent

if TYPE_CHECKING:
    from core.state.review_items import ReviewItem

PAUSE: Final = timedelta(minutes=2)  # Maximum time counted for one decision; more than that is a pause.


@dataclass
class ReviewSession:
    """A review session, from the first question until the dashboard is closed.

    `decided` counts decisions that were not undone. `plan` and `ends` are the questions and the end of the time budget,
    or None. `goes_on`: the user continues after the budget.
    """

    decided: int = 0
    plan: Plan | None = None
    ends: datetime | None = None
    goes_on: bool = False
    _since: datetime | None = None
    _spent: timedelta = timedelta()

    def start(self, now: datetime) -> None:
        if self._since is None:
            self._since = now

    def count(self, now: datetime) -> None:
        self.decided += 1
        if self._since is not None:
            self._spent += min(max(now - self._since, timedelta()), PAUSE)
        self._since = now

    def uncount(self) -> None:
        """Remove a refused or undone decision from the count."""
        self.decided = max(self.decided - 1, 0)

    def follow(self, plan: Plan | None, now: datetime) -> None:
        """Start a time budget now, or remove it with None."""
        self.plan, self.goes_on = plan, False
        self.ends = now + timedelta(minutes=plan.minutes) if plan is not None else None

    def extend(self, items: Sequence[ReviewItem]) -> None:
        """Add questions of a planned row to the plan."""
        if self.plan is not None:
            self.plan = replace(self.plan, items=(*self.plan.items, *items))

    def minutes_left(self, now: datetime) -> float:
        """Return the rest of the time budget, at least 0."""
        return max((self.ends - now).total_seconds() / SECONDS_PER_MINUTE, 0.0) if self.ends is not None else 0.0

    def planned(self, pending: Sequence[ReviewItem]) -> int:
        keys = {item.question_key for item in self.plan.items} if self.plan is not None else set()
        return sum(item.question_key in keys for item in pending)

    def is_over(self, pending: Sequence[ReviewItem], now: datetime) -> bool:
        """Whether the user can stop: all planned questions are answered or time is up."""
        if self.plan is None or self.goes_on:
            return False
        return not self.planned(pending) or not self.minutes_left(now)

    @property
    def per_hour(self) -> int | None:
        """Decisions per hour without pauses; None while there are too few."""
        seconds = self._spent.total_seconds()
        return round(self.decided * 3600 / seconds) if self.decided >= ENOUGH_PAUSES and seconds > 0 else None


def pace_text(session: ReviewSession) -> Content:
    pace = f", {session.per_hour:,} per hour" if session.per_hour is not None else ""
    return Content.styled(f"{session.decided:,} decided{pace}", "$quiet")


def budget_text(
    session: ReviewSession, offer: Plan, pending: Sequence[ReviewItem], now: datetime, key: str, *, short: bool = False
) -> Content:
    """Return the progress of the time budget; without one, what `offer` would cover."""
    plan = session.plan
    if plan is None:
        count = len(offer.items)
        if not count:
            return Content("")
        covered = f"{count:,} of {len(pending):,}{'' if short else ' questions'}, {percent(offer.share)} of impact"
        return Content.assemble((key, "$accent"), (f" {offer.minutes:g} min: {covered}", "$quiet"))
    total = len(plan.items)
    done = total - session.planned(pending)
    left = f"{session.minutes_left(now):.0f} of {plan.minutes:g} min left: {done} of {total}"
    return Content.styled(f"{left}{'' if short else ' questions'}, {percent(plan.share)} of impact", "$accent")


def stop_lines(pending: Sequence[ReviewItem], plan: Plan, key: str) -> list[Content]:
    """Suggest to stop and name the impact that is left; `key` continues."""
    if not pending:
        return [Content.styled("All questions are answered.", "bold")]
    left, planned = sum(item.impact for item in pending), sum(item.impact for item in plan.items)
    total = planned / plan.share if plan.share else left
    share = percent(min(left / total, 1.0) if total else 0.0)
    return [
        Content.styled("You can stop here.", "bold"),
        Content(f"{plural(len(pending), 'question')} left: {share} of the impact."),
        Content.assemble((key, "$accent bold"), " continues"),
    ]
