"""Whether a person has seen that a test passed because it checks less: find it, ask, answer."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from core.base.text import visible_line
from core.questions.answer import NOT_YET_DAYS, Answer, dismissal, not_now
from core.records.decisions import ACKNOWLEDGE
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.questions.priority import ImpactEstimator
    from core.records.episodes import Attempt
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem, WeakenedTest

SEARCHED_ATTEMPTS: Final = 20  # Number of last ended attempts that are searched.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class WeakenedTestSearch:
    """Finds the weakened tests of the newest attempts; not thread-safe."""

    def __init__(self) -> None:
        self.found: tuple[WeakenedTest, ...] = ()
        self._attempts: Mapping[str, Attempt] | None = None
        self._newest: Sequence[Attempt] = ()
        self._searched: dict[str, tuple[Attempt, Sequence[WeakenedTest]]] = {}

    def look(
        self,
        attempts: Mapping[str, Attempt],
        find: Callable[[Attempt], Sequence[WeakenedTest]],
        is_ready: Callable[[], bool],
    ) -> bool | None:
        """Do one step; whether `found` changed, None if nothing is left to search.

        `find` reads the log of an attempt; `is_ready` prepares what it needs.
        """
        if self._attempts is not attempts:
            self._attempts = attempts
            ended = (one for one in attempts.values() if not one.is_open and one.errors != 0)
            self._newest = heapq.nlargest(SEARCHED_ATTEMPTS, ended, key=lambda one: one.last_activity or _EARLIEST)
            self._searched = {one.id: self._searched[one.id] for one in self._newest if one.id in self._searched}
        for attempt in self._newest:
            if attempt.id not in self._searched or self._searched[attempt.id][0] != attempt:
                if not is_ready():
                    return False
                self._searched[attempt.id] = attempt, find(attempt)
                return self._update()
        return self._update() or None

    def _update(self) -> bool:
        found = tuple(one for attempt in self._newest for one in self._searched.get(attempt.id, (None, ()))[1])
        changed, self.found = found != self.found, found
        return changed


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
