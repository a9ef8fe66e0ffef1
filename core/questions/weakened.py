"""Whether a person has seen that a test passed because it checks less: find it, ask, answer."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import visible_line
from core.index import review_items as kinds
from core.index.review_items import WeakenedTest
from core.questions.answer import NOT_YET_DAYS, Answer, dismissal, not_now
from core.records.decisions import ACKNOWLEDGE
from core.records.episodes import Attempt

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.offer import LoadOffers
    from core.questions.priority import ImpactEstimator

SEARCHED_ATTEMPTS: Final = 20  # Number of last ended attempts that are searched.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class WeakenedTests(Struct, frozen=True):
    """The weakened tests, and the attempts that were read for them."""

    found: tuple[WeakenedTest, ...] = ()
    read: tuple[Attempt, ...] = ()


def find_weakened_tests(view: ProjectState, before: WeakenedTests, load: LoadOffers) -> Steps[WeakenedTests]:
    """Read the logs of the newest attempts that ended; one that is the same as `before` is not read again."""
    if not view.settings.extraction.enabled:
        return WeakenedTests()
    ended = (one for one in view.snapshot.attempts.values() if not one.is_open and one.errors != 0)
    newest = heapq.nlargest(SEARCHED_ATTEMPTS, ended, key=lambda one: one.last_activity or _EARLIEST)
    found: list[WeakenedTest] = []
    for attempt in newest:
        if attempt in before.read:
            found += (one for one in before.found if one.attempt_id == attempt.id)
        else:
            found += (yield from load()).find_weakened_tests(attempt)
            yield
    return WeakenedTests(tuple(found), tuple(newest))


def weakened_tests(scales: ImpactEstimator, found: Sequence[WeakenedTest]) -> Iterator[ReviewItem]:
    """Ask about tests that passed because they check less; docs/extraction.md#weakened-tests."""
    for one in found:
        command, failure = visible_line(one.command, 60), visible_line(one.failure, 120)
        files = visible_line(", ".join(one.files), 80) or "a test"
        by = f" by {visible_line(one.agent, 40)}" if one.agent else ""
        yield scales.item(
            kinds.WEAKENED,
            one.task_id,
            question=f"{{}} was {one.change} to pass. Have you seen it?",
            name=f"A test of {visible_line(one.attempt_id, 80)}",
            this="A test",
            reason=f"{files} was changed{by} after {command!r} failed: {failure}",
            place="",
            chars=len(one.diff),
            weakened=one,
        )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which acknowledges, and no, which asks again tomorrow."""
    yield dismissal(item, "accept", ACKNOWLEDGE.word, f"{ACKNOWLEDGE.past} {visible_line(item.about, 120)}")
    yield not_now(item, state, "not yet", NOT_YET_DAYS)
