"""What a project knows already, for new patterns to be compared with (0) 6_check_for_duplicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from core.base.text import safe_matcher
from core.extraction.errors import message_in
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.retrieval.similarity import SimilarityIndex

_MAX_MESSAGES: Final = 1_000
"""Most messages that a trigger is tried on, evenly taken from all."""
_MAX_MESSAGE: Final = 1_000


class Known:
    """The patterns of a project, and the errors and tasks that its loops have met; gathered when first asked for.

    Attributes:
        patterns: By id.
        similar: The index of these patterns.
        results: Successes and failures of a pattern, by its evidence.
    """

    def __init__(
        self,
        patterns: Mapping[str, Pattern],
        similar: SimilarityIndex,
        messages: Iterable[str] = (),
        tasks: Iterable[str] = (),
        results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0),
    ) -> None:
        self.patterns = patterns
        self.similar = similar
        self._told_messages = messages
        self._told_tasks = tasks
        self.results = results
        self._shares: dict[str, float] = {}

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        similar: SimilarityIndex,
        results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0),
    ) -> Known:
        """What a snapshot knows.

        Args:
            snapshot: The project.
            similar: The index of the snapshot's patterns.
            results: Successes and failures of a pattern, by its evidence.
        """
        return cls(snapshot.patterns, similar, _messages(snapshot), _tasks(snapshot), results)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Known error messages, each once."""
        return _distinct(self._told_messages)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """What loops and tasks were to bring, each once."""
        return _distinct(self._told_tasks)

    def from_loop(self, loop_id: str, kind: PatternType) -> tuple[Pattern, ...]:
        """The patterns of a type that name a loop among their sources."""
        return tuple(pattern for pattern in self._of_loop.get(loop_id, ()) if pattern.type is kind)

    def share(self, regex: str) -> float:
        """The share 0..1 of all known error messages that a regex finds."""
        if regex not in self._shares:
            self._shares[regex] = _share(regex, self.messages)
        return self._shares[regex]

    def share_of_tasks(self, regex: str) -> float:
        """The share 0..1 of all known tasks that a regex finds."""
        return _share(regex, self.tasks)

    @cached_property
    def _of_loop(self) -> dict[str, list[Pattern]]:
        found: dict[str, list[Pattern]] = defaultdict(list)
        for pattern in self.patterns.values():
            for loop_id in {source.loop_id for source in pattern.source_loops}:
                found[loop_id].append(pattern)
        return found


def _share(regex: str, texts: tuple[str, ...]) -> float:
    found = safe_matcher(regex)
    return sum(map(found.matches, texts)) / len(texts) if texts else 0.0


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    every = sorted({text[:_MAX_MESSAGE] for text in texts} - {""})
    step = max(len(every) / _MAX_MESSAGES, 1)
    return tuple(every[int(place * step)] for place in range(min(len(every), _MAX_MESSAGES)))


def _tasks(snapshot: Snapshot) -> Iterator[str]:
    for loop in snapshot.loops.values():
        yield loop.task.strip()
    for task in snapshot.tasks.values():
        yield task.description.strip()


def _messages(snapshot: Snapshot) -> Iterator[str]:
    for event in snapshot.events:
        if event.error is not None:
            yield event.error.message.strip()
    for session in snapshot.debug_sessions.values():
        for run in session.executions:
            yield from (failure.message.strip() for failure in run.failures)
    for loop in snapshot.loops.values():
        for iteration in loop.iterations:
            yield from (failure.message.strip() for failure in iteration.failures)
            yield message_in(iteration.result)
