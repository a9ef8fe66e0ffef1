"""Find the loop, patterns and reflections of a task, attempt or debug session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task
from core.tasks.task_links import LoopNames

if TYPE_CHECKING:
    from core.records.reflections import Reflection
    from core.records.snapshot import Delta, Snapshot
    from core.show.work import WorkCatalog

Remembered: TypeAlias = Task | Attempt | DebugSession

_SOURCES: Final = {
    "_names": "loops",
    "_aliases": "loops",
    "_extracted": "patterns",
    "_used": "events",
    "_reflections": "reflections",
}  # for each cached index, the field of `Delta` that reports changes of its source


class WorkLinks:
    """Links between records of one snapshot; immutable, indexes are built on first use."""

    def __init__(self, snapshot: Snapshot, catalog: WorkCatalog | None) -> None:
        self.snapshot = snapshot
        self._catalog = catalog  # of the same snapshot; needed for the attempts of a task

    def updated(self, snapshot: Snapshot, catalog: WorkCatalog | None, delta: Delta) -> WorkLinks:
        """Return links of a newer snapshot; reuse indexes not affected by `delta`."""
        newer = WorkLinks(snapshot, catalog)
        unchanged = {part for part, kind in _SOURCES.items() if not getattr(delta, kind)}
        newer.__dict__.update({part: index for part, index in self.__dict__.items() if part in unchanged})
        return newer

    @cached_property
    def _names(self) -> LoopNames:
        return LoopNames(self.snapshot.loops.values())

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self.snapshot.loops.values() for alias in (*loop.aliases, loop.id)}

    @cached_property
    def _extracted(self) -> Mapping[str, dict[str, None]]:
        """Pattern IDs by the ID of the loop, attempt or session they were extracted from."""
        found: dict[str, dict[str, None]] = {}
        for pattern in self.snapshot.patterns.values():
            for source in pattern.source_loops:
                found.setdefault(source.loop_id, {})[pattern.id] = None
        return found

    @cached_property
    def _used(self) -> Mapping[str, dict[str, None]]:
        """Pattern IDs by the ID of the loop or attempt in their events."""
        found: dict[str, dict[str, None]] = {}
        for event in self.snapshot.events:
            if event.loop_id and event.pattern_id:
                found.setdefault(event.loop_id, {})[event.pattern_id] = None
        return found

    @cached_property
    def _reflections(self) -> Mapping[str, tuple[Reflection, ...]]:
        """Reflections by task ID and by loop ID, newest first."""
        found: dict[str, list[Reflection]] = {}
        for reflection in self.snapshot.reflections.values():
            for name in {reflection.task_id, reflection.loop_id} - {""}:
                found.setdefault(name, []).append(reflection)
        return {name: tuple(own) for name, own in found.items()}

    def task_loop(self, task: Task) -> tuple[str, str]:
        """Return the loop ID of a task and how the link was found; both "" if unknown."""
        link = self._names.link(task)
        return (link.loop_id, link.how) if link is not None else ("", "")

    def loop_of(self, record: Remembered) -> str:
        """Return the loop ID of a record; "" if unknown."""
        if isinstance(record, DebugSession):
            for name in (record.loop_id, record.task_id):
                if name in self._aliases:
                    return self._aliases[name]
        if isinstance(record, Task):
            return self.task_loop(record)[0]
        task = self.snapshot.tasks.get(record.task_id)
        if task is None and (isinstance(record, Attempt) or self._attempts(record.task_id)):
            task = Task(id=record.task_id)  # a task without metadata
        return self.task_loop(task)[0] if task is not None else ""

    def _attempts(self, task_id: str) -> Sequence[Attempt]:
        return self._catalog.attempts.get(task_id, ()) if self._catalog is not None else ()

    def patterns_of(self, record: Remembered) -> tuple[str, ...]:
        """Return the IDs of patterns that a record used or that were extracted from it.

        A task includes those of its attempts and its loop; a record without any has those of its loop.
        """
        names = [record.id]
        if isinstance(record, Task):
            names += (attempt.id for attempt in self._attempts(record.id))
            return tuple(self._collect((*names, self.loop_of(record))))
        return tuple(self._collect(names)) or tuple(self._collect((self.loop_of(record),)))

    def _collect(self, names: Iterable[str]) -> dict[str, None]:
        found: dict[str, None] = {}
        for name in names:
            found |= dict.fromkeys((*self._extracted.get(name, ()), *self._used.get(name, ())))
            if loop := self.snapshot.loops.get(name):
                found |= dict.fromkeys(use.pattern_id for use in loop.injected)
                found |= dict.fromkeys(gained.pattern_id for gained in loop.extracted)
        return {pattern_id: None for pattern_id in found if pattern_id in self.snapshot.patterns}

    def reflections_of(self, record: Remembered) -> tuple[Reflection, ...]:
        """Return the reflections on a record, newest first."""
        if isinstance(record, Task):
            return self._reflections.get(record.id, ())
        if isinstance(record, Attempt):
            own = self._reflections.get(record.task_id, ())
            return tuple(one for one in own if one.attempt == record.number)
        names = (record.task_id, record.loop_id, self.loop_of(record))
        return next(filter(None, (self._reflections.get(name, ()) for name in names)), ())
