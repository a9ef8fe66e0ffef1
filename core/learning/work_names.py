"""Work items: IDs, aliases, and the owners of uses and debug sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from core.base.grouping import group_pairs
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task, by_task
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

    def group_sessions(self) -> dict[str, tuple[DebugSession, ...]]:
        """Group debug sessions by the ID of their loop or attempt, each session once.

        A loop that the session names has priority over a task. A session of a task belongs to the attempt that was
        running when it began, or to the only attempt if times are missing. Others are left out.
        """
        pairs = ((self._session_owner(session), session) for session in self._snapshot.debug_sessions.values())
        return {work_id: tuple(sessions) for work_id, sessions in group_pairs(pairs).items() if work_id}

    def _session_owner(self, session: DebugSession) -> str:
        row = self.row_id(session.loop_id)
        if row in self._snapshot.loops:
            return row
        for name in filter(None, (session.loop_id, session.task_id)):
            if name in self._snapshot.attempts:
                return name
            if name in self._attempts:
                return _running_at(self._attempts[name], _began(session))
        return ""

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[Attempt]]:
        """Attempts by task ID."""
        return by_task(self._snapshot.attempts.values())

    def differ(self, after: WorkNames, delta: Delta, work_ids: Iterable[str]) -> bool:
        """Return whether a change gives any of `work_ids` another loop or owner."""
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


def changes_owners(before: Snapshot, after: Snapshot, delta: Delta) -> bool:
    """Return whether a change may assign sessions to other work items."""
    if delta.debug_sessions or not after.debug_sessions:
        return bool(delta.debug_sessions)
    loops, attempts = (before.loops, after.loops), (before.attempts, after.attempts)
    return any(_ids(loops[0].get(id)) != _ids(loops[1].get(id)) for id in delta.loops) or any(
        _begin(attempts[0].get(id)) != _begin(attempts[1].get(id)) for id in delta.attempts
    )


def _running_at(attempts: Sequence[Attempt], at: datetime | None) -> str:
    """Return the ID of the attempt that was running at a time."""
    started = [attempt for attempt in attempts if attempt.started_at is not None]
    if at is None or not started:
        return attempts[0].id if len(attempts) == 1 else ""
    before = [(one.started_at, one.number, one.id) for one in started if one.started_at and one.started_at <= at]
    return max(before)[2] if before else ""


def _began(session: DebugSession) -> datetime | None:
    runs = (run.at for run in session.executions if run.at is not None)
    return session.created_at or min(runs, default=session.updated_at)


def _begin(attempt: Attempt | None) -> tuple[datetime | None] | None:
    return (attempt.started_at,) if attempt is not None else None
