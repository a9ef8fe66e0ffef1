"""Which loop a name in the event log stands for, and whose the uses of an attempt are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from core.records.episodes import Task
from core.records.loops import Loop
from core.records.snapshot import Delta, Snapshot


class WorkNames:
    """What loops, tasks and attempts of a snapshot are called."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self._snapshot.loops.values() for alias in loop.aliases}

    def row_id(self, work_id: str) -> str:
        """The id of the loop that goes by this one as well; else the id itself."""
        return work_id if work_id in self._snapshot.loops else self._aliases.get(work_id, work_id)

    def of_row(self, row_id: str) -> list[str]:
        """The ids by which this loop and no other goes."""
        loop = self._snapshot.loops.get(row_id)
        aliases = loop.aliases if loop else ()
        return [row_id, *(alias for alias in aliases if self.row_id(alias) == row_id)]

    def user_id(self, work_id: str) -> str:
        """See `core.learning.recorded_uses.WorkItems`."""
        snapshot = self._snapshot
        row = self.row_id(work_id)
        if row in snapshot.loops:
            return row
        attempt = snapshot.attempts.get(work_id)
        named = self.row_id(_loop_of(snapshot.tasks.get(attempt.task_id if attempt else work_id)))
        return named if named in snapshot.loops else work_id

    def differ(self, after: WorkNames, delta: Delta, work_ids: Iterable[str]) -> bool:
        """Whether any of these stands for another loop, or is used by another one, after a change."""
        old, new = self._snapshot, after._snapshot
        may = (
            any(_ids(old.loops.get(id)) != _ids(new.loops.get(id)) for id in delta.loops)
            or any(_loop_of(old.tasks.get(id)) != _loop_of(new.tasks.get(id)) for id in delta.tasks)
            or any((id in old.attempts) is not (id in new.attempts) for id in delta.attempts)
        )
        return may and any(
            self.row_id(work_id) != after.row_id(work_id) or self.user_id(work_id) != after.user_id(work_id)
            for work_id in set(work_ids)
        )


def _ids(loop: Loop | None) -> frozenset[str]:
    return frozenset((loop.id, *loop.aliases)) if loop is not None else frozenset()


def _loop_of(task: Task | None) -> str:
    """The loop that the metadata of a task name, "" for none."""
    return task.loop_id if task is not None else ""
