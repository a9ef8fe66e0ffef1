"""What a task, an attempt or a debug session belongs to: its loop, the patterns it gave or used, its reflections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from core.episodes.linking import LoopNames
from core.memory_query import MemoryCatalog
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task
from core.records.reflections import Reflection
from core.snapshot import Snapshot


class MemoryLinks:
    """The links of one snapshot, each kind worked out when it is first asked for; immutable.

    Args:
        snapshot: The records.
        catalog: Of the same snapshot.
    """

    def __init__(self, snapshot: Snapshot, catalog: MemoryCatalog) -> None:
        self._snapshot = snapshot
        self._catalog = catalog

    @cached_property
    def _names(self) -> LoopNames:
        return LoopNames(self._snapshot.loops.values())

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self._snapshot.loops.values() for alias in (*loop.aliases, loop.id)}

    @cached_property
    def _patterns(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of patterns by the loop, attempt or session that gave or used them, in the order of the registry."""
        found: dict[str, dict[str, None]] = {}
        patterns = self._snapshot.patterns
        for pattern in patterns.values():
            for source in pattern.source_loops:
                found.setdefault(source.loop_id, {})[pattern.id] = None
        for event in self._snapshot.events:
            if event.loop_id and event.pattern_id in patterns:
                found.setdefault(event.loop_id, {})[event.pattern_id] = None
        for loop in self._snapshot.loops.values():
            for pattern_id in (*(use.pattern_id for use in loop.injected), *(one.pattern_id for one in loop.extracted)):
                if pattern_id in patterns:
                    found.setdefault(loop.id, {})[pattern_id] = None
        return {key: tuple(ids) for key, ids in found.items()}

    @cached_property
    def _reflections(self) -> Mapping[str, tuple[Reflection, ...]]:
        """By the task or loop that they name."""
        found: dict[str, list[Reflection]] = {}
        for reflection in self._snapshot.reflections.values():
            for name in {reflection.task_id, reflection.loop_id} - {""}:
                found.setdefault(name, []).append(reflection)
        return {key: tuple(own) for key, own in found.items()}

    def loop_of_task(self, task: Task) -> tuple[str, str]:
        """The loop that a task records, and how that is known; two empty texts where it is not."""
        link = self._names.link(task)
        return (link.loop_id, link.how) if link is not None else ("", "")

    def loop_of_session(self, session: DebugSession) -> str:
        """The loop that a session belongs to, by its folder, its metadata or its task; "" where it is not known."""
        for name in (session.loop_id, session.task_id):
            if name in self._aliases:
                return self._aliases[name]
        task = self._catalog.tasks.get(session.task_id)
        return self.loop_of_task(task)[0] if task is not None else ""

    def patterns_of_task(self, task: Task) -> tuple[str, ...]:
        """What the attempts at a task gave or used, then what its loop did."""
        attempts = (attempt.id for attempt in self._catalog.attempts.get(task.id, ()))
        return self._patterns_of((task.id, *attempts, self.loop_of_task(task)[0]))

    def patterns_of_attempt(self, attempt: Attempt) -> tuple[str, ...]:
        """What an attempt itself gave or used; where nothing tells, what the loop of its task did."""
        own = self._patterns_of((attempt.id,))
        return own or self._patterns_of((self.loop_of_task(self._catalog.tasks[attempt.task_id])[0],))

    def patterns_of_session(self, session: DebugSession) -> tuple[str, ...]:
        """What was extracted from a session itself; where nothing was, what its loop gave or used."""
        return self._patterns_of((session.id,)) or self._patterns_of((self.loop_of_session(session),))

    def _patterns_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._gathered(names)))

    def _gathered(self, names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            yield from self._patterns.get(name, ())

    def reflections(self, task_id: str, attempt: int | None = None) -> tuple[Reflection, ...]:
        """The reflections on a task, or on one attempt at it, newest first."""
        own = self._reflections.get(task_id, ())
        return own if attempt is None else tuple(one for one in own if one.attempt == attempt)

    def reflections_of_session(self, session: DebugSession) -> tuple[Reflection, ...]:
        """The reflections on the task of a session, else those of its loop, newest first."""
        names = (session.task_id, session.loop_id, self.loop_of_session(session))
        return next((own for name in names if (own := self._reflections.get(name))), ())
