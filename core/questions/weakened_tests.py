"""Questions about tests that passed because they check less than before."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import visible_line
from core.index.review_items import WEAKENED, WeakenedTest
from core.records.episodes import Attempt

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.questions.offer import LoadExtractor

SEARCHED_ATTEMPTS: Final = 20  # Number of last ended attempts that are searched.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class WeakenedTests(Struct, frozen=True):
    """The weakened tests, and the attempts that were read for them."""

    found: tuple[WeakenedTest, ...] = ()
    read: tuple[Attempt, ...] = ()


def find_weakened_tests(view: ProjectState, before: WeakenedTests, load: LoadExtractor) -> Steps[WeakenedTests]:
    """Read the logs of the newest attempts that ended; one that is the same as `before` is not read again."""
    if not view.settings.extraction.enabled:
        return WeakenedTests()
    ended = (one for one in view.snapshot.attempts.values() if not one.is_open and one.errors != 0)
    newest = heapq.nlargest(SEARCHED_ATTEMPTS, ended, key=lambda one: one.last_activity or _EARLIEST)
    tests: list[WeakenedTest] = []
    for attempt in newest:
        if attempt in before.read:
            tests += (one for one in before.found if one.attempt_id == attempt.id)
        else:
            tests += (yield from load()).find_weakened_tests(attempt)
            yield
    return WeakenedTests(tuple(tests), tuple(newest))


def ask_weakened_tests(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about tests that passed because they check less; docs/extraction.md#weakened-tests."""
    for test in asker.found.weakened:
        command, failure = visible_line(test.command, 60), visible_line(test.failure, 120)
        files = visible_line(", ".join(test.files), 80) or "a test"
        by = f" by {visible_line(test.agent, 40)}" if test.agent else ""
        yield asker.item(
            WEAKENED,
            test.task_id,
            question=f"{{}} was {test.change} to pass. Have you seen it?",
            name=f"A test of {visible_line(test.attempt_id, 80)}",
            this="A test",
            reason=f"{files} was changed{by} after {command!r} failed: {failure}",
            place="",
            chars=len(test.diff),
            weakened=test,
        )
