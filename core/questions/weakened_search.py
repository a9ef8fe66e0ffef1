"""Search for tests that passed because they check less, one attempt at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.records.episodes import Attempt
    from core.state.review_items import WeakenedTest

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
