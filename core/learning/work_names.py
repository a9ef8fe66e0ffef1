"""IDs of work items: aliases of loops, and the loop that owns the uses of an attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from core.records.episodes import Task
from core.records.loops import Loop
from core.records.snapshot import Delta, Snapshot


class WorkNames:
    """The IDs and aliases of the loops, tasks and attempts of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self._snapshot.loops.values() for alias in loop.aliases}

    def row_id(self, work_id: str) -> str:
        """Return the ID of the loop with this ID or alias; else the ID itself."""
        return work_id if work_id in self._snapshot.loops else self._aliases.get(work_id, work_id)

    def of_row(self, row_id: str) -> list[str]:
        """Return all IDs that refer to this loop only."""
        loop = self._snapshot.loops.get(row_id)
        aliases = loop.aliases if loop else ()
        return [row_id, *(alias for alias in aliases if self.row_id(alias) == row_id)]

    def owner_id(self, work_id: str) -> str:
        """See `core.learning.recorded_uses.WorkItems`."""
        snapshot = self._snapshot
        row = self.row_id(work_id)
        if row in snapshot.loops:
            return row
        attempt = snapshot.attempts.get(work_id)
        named = self.row_id(_loop_of(snapshot.tasks.get(attempt.task_id if attempt else work_id)))
        return named if named in snapshot.loops else work_id

    def differ(self, after: WorkNames, delta: Delta, work_ids: Iterable[str]) -> bool:
        """Return whether any of `work_ids` refers to another loop, or has another owner, after a change."""
        old, new = self._snapshot, after._snapshot
        may = (
            any(_ids(old.loops.get(id)) != _ids(new.loops.get(id)) for id in delta.loops)
            or any(_loop_of(old.tasks.get(id)) != _loop_of(new.tasks.get(id)) for id in delta.tasks)
            or any((id in old.attempts) is not (id in new.attempts) for id in delta.attempts)
        )
        return may and any(
            self.row_id(work_id) != after.row_id(work_id) or self.owner_id(work_id) != after.owner_id(work_id)
            for work_id in set(work_ids)
        )


def _ids(loop: Loop | None) -> frozenset[str]:
    return frozenset((loop.id, *loop.aliases)) if loop is not None else frozenset()


def _loop_of(task: Task | None) -> str:
    return task.loop_id if task is not None else ""
