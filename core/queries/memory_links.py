"""What a task, an attempt or a debug session belongs to: its loop, the patterns it gave or used, its reflections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from core.episodes.loop_links import LoopNames
from core.queries.memory_filter import MemoryCatalog
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task
from core.records.reflections import Reflection
from core.records.snapshot import Delta, Snapshot

Remembered: TypeAlias = Task | Attempt | DebugSession

_MADE_OF: Final = {"_names": "loops", "_aliases": "loops", "_given": "patterns", "_used": "events"} | {
    "_reflections": "reflections"
}
"""Each part of the links, and what of a snapshot it is made of, as a delta names it."""


class MemoryLinks:
    """The links of one snapshot, each part made when it is first asked for; immutable.

    Args:
        snapshot: The records.
        catalog: Of the same snapshot; None where nobody asks for the patterns of a whole task.
    """

    def __init__(self, snapshot: Snapshot, catalog: MemoryCatalog | None) -> None:
        self.snapshot = snapshot
        self._catalog = catalog

    def updated(self, snapshot: Snapshot, catalog: MemoryCatalog | None, delta: Delta) -> MemoryLinks:
        """The links of a newer snapshot; parts that the delta does not touch are taken over."""
        newer = MemoryLinks(snapshot, catalog)
        kept = {part for part, kind in _MADE_OF.items() if not getattr(delta, kind)}
        newer.__dict__.update({part: made for part, made in self.__dict__.items() if part in kept})
        return newer

    @cached_property
    def _names(self) -> LoopNames:
        return LoopNames(self.snapshot.loops.values())

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self.snapshot.loops.values() for alias in (*loop.aliases, loop.id)}

    @cached_property
    def _given(self) -> Mapping[str, dict[str, None]]:
        """Ids of patterns by the loop, attempt or session that they were extracted from."""
        found: dict[str, dict[str, None]] = {}
        for pattern in self.snapshot.patterns.values():
            for source in pattern.source_loops:
                found.setdefault(source.loop_id, {})[pattern.id] = None
        return found

    @cached_property
    def _used(self) -> Mapping[str, dict[str, None]]:
        """Ids of patterns by the loop or attempt for which the event log tells of them."""
        found: dict[str, dict[str, None]] = {}
        for event in self.snapshot.events:
            if event.loop_id and event.pattern_id:
                found.setdefault(event.loop_id, {})[event.pattern_id] = None
        return found

    @cached_property
    def _reflections(self) -> Mapping[str, tuple[Reflection, ...]]:
        """By the task or loop that they name, newest first."""
        found: dict[str, list[Reflection]] = {}
        for reflection in self.snapshot.reflections.values():
            for name in {reflection.task_id, reflection.loop_id} - {""}:
                found.setdefault(name, []).append(reflection)
        return {name: tuple(own) for name, own in found.items()}

    def task_loop(self, task: Task) -> tuple[str, str]:
        """The loop that a task records, and how that is known; two empty texts where it is not."""
        link = self._names.link(task)
        return (link.loop_id, link.how) if link is not None else ("", "")

    def loop_of(self, record: Remembered) -> str:
        """The id of the loop: of a session by its folder, its metadata or its task; "" where it is not known."""
        if isinstance(record, DebugSession):
            for name in (record.loop_id, record.task_id):
                if name in self._aliases:
                    return self._aliases[name]
        if isinstance(record, Task):
            return self.task_loop(record)[0]
        task = self.snapshot.tasks.get(record.task_id)
        if task is None and (isinstance(record, Attempt) or self._tried(record.task_id)):
            task = Task(id=record.task_id)  # nothing but a log of what was done is there of it
        return self.task_loop(task)[0] if task is not None else ""

    def _tried(self, task_id: str) -> Sequence[Attempt]:
        return self._catalog.attempts.get(task_id, ()) if self._catalog is not None else ()

    def patterns_of(self, record: Remembered) -> tuple[str, ...]:
        """Ids of the patterns that it gave or used itself, a task's attempts among them; else those of its loop.

        A task has those of its loop in any case: it records the whole of it.
        """
        names = [record.id]
        if isinstance(record, Task):
            names += (attempt.id for attempt in self._tried(record.id))
            return tuple(self._gathered((*names, self.loop_of(record))))
        return tuple(self._gathered(names)) or tuple(self._gathered((self.loop_of(record),)))

    def _gathered(self, names: Iterable[str]) -> dict[str, None]:
        known = self.snapshot.patterns
        return {pattern_id: None for name in names for pattern_id in self._told_of(name) if pattern_id in known}

    def _told_of(self, name: str) -> Iterator[str]:
        yield from self._given.get(name, ())
        yield from self._used.get(name, ())
        loop = self.snapshot.loops.get(name)
        if loop is not None:
            yield from (use.pattern_id for use in loop.injected)
            yield from (gained.pattern_id for gained in loop.extracted)

    def reflections_of(self, record: Remembered) -> tuple[Reflection, ...]:
        """On the task or attempt, newest first; of a session those on its task, else those of its loop."""
        if isinstance(record, Task):
            return self._reflections.get(record.id, ())
        if isinstance(record, Attempt):
            own = self._reflections.get(record.task_id, ())
            return tuple(one for one in own if one.attempt == record.number)
        names = (record.task_id, record.loop_id, self.loop_of(record))
        return next(filter(None, (self._reflections.get(name, ()) for name in names)), ())
