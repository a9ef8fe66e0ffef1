"""Find the loop of each task, and the loops that no task records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.records.episodes import Task

if TYPE_CHECKING:
    from core.records.loops import Loop
    from core.records.reflections import MemoryTask

MAX_COMPARED: Final = 4_096  # number of characters of a description that are compared; tasks store at most this
BY_METADATA: Final = "named in the metadata"
BY_TAG: Final = "an id of the loop as a tag"
BY_ID: Final = "an id of the loop as its own"
BY_DESCRIPTION: Final = "the same description, as no other loop has"


class LoopLink(NamedTuple):
    """Link of a task to its loop; `how` is one of the `BY_` constants."""

    task_id: str
    loop_id: str
    how: str


class Coverage(Struct, frozen=True, kw_only=True):
    """IDs of loops by the memory that contains them."""

    tracked: tuple[str, ...] = ()  # in the task memory
    remembered: tuple[str, ...] = ()  # only in the cross-task memory
    missing: tuple[str, ...] = ()  # in neither

    @property
    def loops(self) -> int:
        return len(self.tracked) + len(self.remembered) + len(self.missing)

    @property
    def share(self) -> float | None:
        """Share of loops in the task memory, 0..1; None if there are no loops."""
        return len(self.tracked) / self.loops if self.loops else None


class LoopNames:
    def __init__(self, loops: Iterable[Loop]) -> None:
        self._loops = tuple(loops)

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """Loop IDs by ID and by unambiguous alias; an ID takes precedence."""
        found = _unambiguous((alias, loop.id) for loop in self._loops for alias in loop.aliases)
        return found | {loop.id: loop.id for loop in self._loops}

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return _unambiguous((_normalize(loop.task), loop.id) for loop in self._loops)

    def find(self, name: str) -> str:
        """Return the ID of the loop with this ID or unambiguous alias; "" without one."""
        return self._ids.get(name, "") if name else ""

    def link(self, task: Task | MemoryTask) -> LoopLink | None:
        """Return the link to the loop of a task; None if it is unknown or ambiguous."""
        named = self._ids.get(task.loop_id) if isinstance(task, Task) else None
        if named is not None:
            return LoopLink(task.id, named, BY_METADATA)
        tagged = {self._ids[tag] for tag in task.tags if tag in self._ids}
        if len(tagged) == 1:
            return LoopLink(task.id, tagged.pop(), BY_TAG)
        if task.id in self._ids:
            return LoopLink(task.id, self._ids[task.id], BY_ID)
        same = self._texts.get(_normalize(task.description))
        return None if same is None else LoopLink(task.id, same, BY_DESCRIPTION)


def link_tasks(tasks: Mapping[str, Task], loops: Mapping[str, Loop]) -> dict[str, LoopLink]:
    names = LoopNames(loops.values())
    return {id: link for id, task in tasks.items() if (link := names.link(task)) is not None}


def measure_coverage(
    tasks: Mapping[str, Task], memory_tasks: Mapping[str, MemoryTask], loops: Mapping[str, Loop]
) -> Coverage:
    """Determine which loops are in which memory; keep the order of `loops`."""
    names = LoopNames(loops.values())
    tracked = {link.loop_id for task in tasks.values() if (link := names.link(task)) is not None}
    remembered = {link.loop_id for task in memory_tasks.values() if (link := names.link(task)) is not None} - tracked
    recorded = tracked | remembered
    return Coverage(
        tracked=tuple(id for id in loops if id in tracked),
        remembered=tuple(id for id in loops if id in remembered),
        missing=tuple(id for id in loops if id not in recorded),
    )


def _normalize(text: str) -> str:
    """Normalize case, spaces and the final full stop of a description."""
    return " ".join(text[:MAX_COMPARED].split()).casefold().rstrip(" .")


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    shared = {""}
    for name, loop_id in pairs:
        if found.setdefault(name, loop_id) != loop_id:
            shared.add(name)
    return {name: loop_id for name, loop_id in found.items() if name not in shared}
