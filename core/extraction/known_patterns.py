"""The registry, errors and tasks of a project, to compare new patterns with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from core.base.grouping import group_pairs
from core.base.text import safe_matcher
from core.extraction.errors import extract_message
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.retrieval.similarity import SimilarityIndex

_MAX_MESSAGES: Final = 1_000
"""Maximum number of messages that a trigger is tested on, evenly sampled."""
_MAX_MESSAGE: Final = 1_000


class KnownPatterns:
    """The patterns, errors and tasks of a project, collected on first use.

    Attributes:
        patterns: By ID.
        similar: Similarity index of these patterns.
        results: Returns successes and failures of a pattern.
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
        self._all_messages = messages
        self._all_tasks = tasks
        self.results = results
        self._shares: dict[str, float] = {}

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        similar: SimilarityIndex,
        results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0),
    ) -> KnownPatterns:
        """Use the records of a snapshot."""
        return cls(snapshot.patterns, similar, _messages(snapshot), _tasks(snapshot), results)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Known error messages, each once."""
        return _distinct(self._all_messages)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Descriptions of loops and tasks, each once."""
        return _distinct(self._all_tasks)

    def from_loop(self, loop_id: str, kind: PatternType) -> tuple[Pattern, ...]:
        """Return the patterns of a type with this source loop."""
        return tuple(pattern for pattern in self._of_loop.get(loop_id, ()) if pattern.type is kind)

    def share(self, regex: str) -> float:
        """Return the share, 0..1, of all known error messages that a regex matches."""
        if regex not in self._shares:
            self._shares[regex] = _share(regex, self.messages)
        return self._shares[regex]

    def share_of_tasks(self, regex: str) -> float:
        """Return the share, 0..1, of all known tasks that a regex matches."""
        return _share(regex, self.tasks)

    @cached_property
    def _of_loop(self) -> dict[str, list[Pattern]]:
        patterns = self.patterns.values()
        return group_pairs((id, one) for one in patterns for id in {source.loop_id for source in one.source_loops})


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
            yield extract_message(iteration.result)
