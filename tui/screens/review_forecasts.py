"""Forecasts of the answers to the current question and to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from tui.present.review_answers import Outlook
from tui.screens.question_order import Key, key_of

if TYPE_CHECKING:
    from core.forecast.forecast import Forecaster
    from core.questions.answers import Answer
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

_OUTDATED: Final = -1  # a number that no snapshot has


class Forecasts:
    """Cache of forecasts by question and answer. Outdated ones are kept until replaced."""

    def __init__(self) -> None:
        self._known: dict[tuple[Key, str, str], Outlook] = {}
        """Forecasts by identity and subject of the question, and action of the answer."""

    def of(self, item: ReviewItem, action: str) -> Outlook | None:
        return self._known.get((key_of(item), item.subject, action))

    def store(self, item: ReviewItem, action: str, outlook: Outlook) -> None:
        self._known[key_of(item), item.subject, action] = outlook

    def forget(self, item: ReviewItem, action: str) -> None:
        """Discard the forecast of an answer that has changed."""
        self._known.pop((key_of(item), item.subject, action), None)

    def mark_unembedded(self) -> None:
        """Mark forecasts that were made without embeddings as outdated."""
        for asked, outlook in self._known.items():
            if outlook.forecast is not None and outlook.forecast.by_words is not None:
                self._known[asked] = replace(outlook, number=_OUTDATED)

    def keep(self, items: Iterable[ReviewItem]) -> None:
        """Discard the forecasts of all other questions."""
        keys = {key_of(item) for item in items}
        self._known = {asked: outlook for asked, outlook in self._known.items() if asked[0] in keys}

    def missing(self, item: ReviewItem, answers: Sequence[Answer], number: int) -> list[tuple[ReviewItem, Answer]]:
        """Return the answers to forecast for a snapshot, those without any forecast first."""
        found = [(answer, self.of(item, answer.action)) for answer in answers if answer.matters and not answer.why_not]
        unknown = [answer for answer, outlook in found if outlook is None]
        outdated = [answer for answer, outlook in found if outlook is not None and outlook.number != number]
        return [(item, answer) for answer in unknown + outdated]


def compute_outlook(
    forecaster: Forecaster, view: ProjectState, item: ReviewItem, answer: Answer, stop: Callable[[], bool]
) -> Outlook | None:
    """Forecast one answer. Return None if `stop` returned True meanwhile."""
    number = view.snapshot.number
    try:
        found = forecaster.forecast(view, item, answer, stop=stop)
    except RalphdeckError as error:
        return Outlook(number, None, str(error))
    return Outlook(number, found) if found is not None else None
