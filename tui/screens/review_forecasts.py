"""Forecasts of the answers to the question in front, then to the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from textual.worker import get_current_worker

from core.base.errors import RalphdeckError
from core.forecast.forecast import Forecaster
from core.review.answers import Answer
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from tui.present.review_answers import Outlook
from tui.screens.question_order import Key, key_of

Asked = tuple[Key, str, str]
"""Kind and key of a question, and the action of one answer."""
_OUTDATED: Final = -1
"""Number of no snapshot."""


class Forecasts:
    """Forecasts by question and answer; shown until there is a newer one."""

    def __init__(self) -> None:
        self._known: dict[Asked, Outlook] = {}

    def of(self, item: ReviewItem, action: str) -> Outlook | None:
        """The forecast of an answer, if known."""
        return self._known.get((key_of(item), item.subject, action))

    def take(self, item: ReviewItem, action: str, outlook: Outlook) -> None:
        """Store a forecast."""
        self._known[key_of(item), item.subject, action] = outlook

    def forget(self, item: ReviewItem, action: str) -> None:
        """Discard the forecast of an answer that has changed."""
        self._known.pop((key_of(item), item.subject, action), None)

    def doubt_words(self) -> None:
        """Mark forecasts that lacked embeddings as outdated."""
        for asked, outlook in self._known.items():
            if outlook.forecast is not None and outlook.forecast.by_words is not None:
                self._known[asked] = replace(outlook, number=_OUTDATED)

    def keep(self, items: Iterable[ReviewItem]) -> None:
        """Discard all but these questions."""
        keys = {key_of(item) for item in items}
        self._known = {asked: outlook for asked, outlook in self._known.items() if asked[0] in keys}

    def missing(self, item: ReviewItem, answers: Sequence[Answer], number: int) -> list[Answer]:
        """The answers to forecast for a snapshot; those without any forecast first."""
        found = [(answer, self.of(item, answer.action)) for answer in answers if answer.matters and not answer.why_not]
        unknown = [answer for answer, outlook in found if outlook is None]
        return unknown + [answer for answer, outlook in found if outlook is not None and outlook.number != number]


def work_out(
    jobs: Sequence[tuple[ReviewItem, Sequence[Answer]]], view: ProjectState, forecaster: Forecaster
) -> Iterator[tuple[ReviewItem, str, Outlook]]:
    """Compute forecasts one by one in a worker, until it is cancelled."""
    worker = get_current_worker()
    number = view.snapshot.number
    for item, answers in jobs:
        for answer in answers:
            try:
                found = forecaster.forecast(view, item, answer, stop=lambda: worker.is_cancelled)
            except RalphdeckError as error:
                yield item, answer.action, Outlook(number, None, str(error))
                continue
            if found is None:
                return
            yield item, answer.action, Outlook(number, found)
