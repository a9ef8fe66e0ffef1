"""IDs and aliases of loops, tasks and attempts, and the loops that they belong to."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from core.base.grouping import group_pairs
from core.base.shared_map import with_changes
from core.records.episodes import Attempt, Task, group_by_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from core.records.debug_sessions import DebugSession
    from core.records.loops import Loop
    from core.records.snapshot import Delta, Snapshot

_BY_NUMBER: Final = attrgetter("number")
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class WorkNames:
    """Resolves IDs and aliases of the loops, tasks and attempts of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def updated(self, snapshot: Snapshot, delta: Delta) -> WorkNames:
        """Return the names of a later snapshot; the cost depends on what changed."""
        after, before = WorkNames(snapshot), self._snapshot
        known = self.__dict__
        if "_aliases" in known and not any(_has_other_names(before, snapshot, id) for id in delta.loops):
            after.__dict__["_aliases"] = self._aliases
        if "_tasks" in known and not any(_has_other_loop(before, snapshot, id) for id in delta.tasks):
            after.__dict__["_tasks"] = self._tasks
        if "_attempts_of_sessions" in known and not any(
            _has_other_session(before, snapshot, id) for id in delta.attempts
        ):
            after.__dict__["_attempts_of_sessions"] = self._attempts_of_sessions
        if "_attempts" in known:
            after.__dict__["_attempts"] = with_changes(self._attempts, self._changed_groups(snapshot, delta))
        return after

    def _changed_groups(self, snapshot: Snapshot, delta: Delta) -> dict[str, tuple[Attempt, ...]]:
        """Return the attempts at each task with a changed one."""
        groups: dict[str, list[Attempt]] = {}
        for attempts, is_new in ((self._snapshot.attempts, False), (snapshot.attempts, True)):
            for attempt in (attempts[id] for id in delta.attempts if id in attempts):
                task_id = attempt.task_id
                group = groups.setdefault(task_id, [*self._attempts.get(task_id, ())])
                group[:] = [*(one for one in group if one.id != attempt.id), *([attempt] if is_new else ())]
        return {task_id: tuple(sorted(group, key=_BY_NUMBER)) for task_id, group in groups.items()}

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self._snapshot.loops.values() for alias in loop.aliases}

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[Attempt]]:
        """Attempts by task ID."""
        return group_by_task(self._snapshot.attempts.values())

    @cached_property
    def _tasks(self) -> Mapping[str, Sequence[str]]:
        """Task IDs by the loop that the task names."""
        return group_pairs((task.loop_id, task.id) for task in self._snapshot.tasks.values() if task.loop_id)

    @cached_property
    def _attempts_of_sessions(self) -> Mapping[str, Sequence[str]]:
        """IDs of attempts by the session that the attempt names, if it is not that of its task."""
        return group_pairs((one.loop_id, one.id) for one in self._snapshot.attempts.values() if one.loop_id)

    def find_loop_id(self, work_id: str) -> str:
        """Return the ID of the loop with this ID or alias; else `work_id` itself."""
        return work_id if work_id in self._snapshot.loops else self._aliases.get(work_id, work_id)

    def loop_of_work(self, work_id: str) -> str:
        """Return the ID of the loop or session that did the work: a loop, task or attempt; "" if it is unknown."""
        snapshot = self._snapshot
        attempt = snapshot.attempts.get(work_id)
        task = snapshot.tasks.get(attempt.task_id if attempt else work_id)
        names = (work_id, attempt.loop_id if attempt else "", task.loop_id if task else "")
        return next((id for id in map(self.find_loop_id, names) if id in snapshot.loops), "")

    def is_recorded_as_tasks(self, loop: Loop) -> bool:
        """Return whether the work of an agent's session was recorded as tasks, whose attempts are scored instead."""
        if not loop.runner:
            return False
        names = (loop.id, *loop.aliases) if loop.runner == loop.owner else (loop.id,)
        return any(name in self._tasks or name in self._attempts_of_sessions for name in names)

    def attempts_of(self, loop: Loop) -> list[Attempt]:
        """Return the attempts that an agent's sessions made, oldest first."""
        names = (loop.id, *loop.aliases) if loop.runner else ()
        attempts = self._snapshot.attempts
        own = {id: attempts[id] for name in names for id in self._attempts_of_sessions.get(name, ())}
        for task_id in {task_id for name in names for task_id in self._tasks.get(name, ())}:
            own |= {one.id: one for one in self._attempts.get(task_id, ()) if not one.loop_id}
        return sorted(own.values(), key=lambda one: (one.started_at or _LONG_AGO, one.task_id, one.number))

    def works_of(self, loop: Loop) -> list[str]:
        """Return the IDs under which events name the work of a loop, also that of an agent's session."""
        names = self.names_of(loop.id)
        if loop.runner:
            tasks = (task_id for name in (loop.id, *loop.aliases) for task_id in self._tasks.get(name, ()))
            names += [*tasks, *(one.id for one in self.attempts_of(loop))]
        return list(dict.fromkeys(names))

    def loop_ids_of(self, loop_id: str) -> list[str]:
        """Return all IDs that refer to this loop and to no other."""
        loop = self._snapshot.loops.get(loop_id)
        aliases = loop.aliases if loop else ()
        return [loop_id, *(alias for alias in aliases if self.find_loop_id(alias) == loop_id)]

    def owner_id(self, work_id: str) -> str:
        """Return the ID of the loop or attempt; see `recorded_uses.WorkItems`."""
        snapshot = self._snapshot
        row = self.find_loop_id(work_id)
        if row in snapshot.loops:
            return row
        attempt = snapshot.attempts.get(work_id)
        task = snapshot.tasks.get(attempt.task_id if attempt else work_id)
        named = snapshot.loops.get(self.find_loop_id(task.loop_id)) if task is not None else None
        return named.id if named is not None and not named.runner else work_id  # attempts of a session are scored

    def names_of(self, owner_id: str) -> list[str]:
        """Return an owner's ID, and the other IDs of work whose uses count for it."""
        names = self.loop_ids_of(owner_id)
        if owner_id not in self._snapshot.loops:
            return names
        others = {*names, *self._works_of(names)} - {owner_id}
        return [owner_id, *sorted(name for name in others if self.owner_id(name) == owner_id)]

    def _works_of(self, loop_names: Iterable[str]) -> Iterator[str]:
        """Yield the tasks that name a loop, and the attempts at them."""
        for name in loop_names:
            for task_id in self._tasks.get(name, ()):
                yield task_id
                yield from (attempt.id for attempt in self._attempts.get(task_id, ()))

    def resolved_names(self, work_ids: Iterable[str]) -> Iterator[str]:
        """Yield those of `work_ids` that are not the ID of a loop, but belong to one."""
        attempts, tasks = self._snapshot.attempts, self._snapshot.tasks
        return (id for id in work_ids if id in self._aliases or id in attempts or id in tasks)

    def has_other_owners(self, after: WorkNames, delta: Delta, work_ids: Iterable[Mapping[str, object]]) -> bool:
        """Return whether a change assigns any key of `work_ids` to another loop or owner."""
        found = {*self._moved_names(after, delta), *after._moved_names(self, delta)}
        return any(
            self.find_loop_id(name) != after.find_loop_id(name) or self.owner_id(name) != after.owner_id(name)
            for name in found
            if any(name in known for known in work_ids)
        )

    def _moved_names(self, other: WorkNames, delta: Delta) -> Iterator[str]:
        """Yield the IDs of this snapshot whose owner may differ in the other one."""
        one, two = self._snapshot, other._snapshot
        for id in delta.loops:
            if _has_other_names(one, two, id) and (loop := one.loops.get(id)) is not None:
                names = (loop.id, *loop.aliases)
                yield from names
                yield from self._works_of(names)
        for id in delta.tasks:
            if _has_other_loop(one, two, id):
                yield id
                yield from (attempt.id for attempt in self._attempts.get(id, ()))
        yield from (id for id in delta.attempts if (id in one.attempts) is not (id in two.attempts))

    def group_sessions(self) -> dict[str, tuple[DebugSession, ...]]:
        """Group debug sessions by the ID of their loop or attempt, each session once.

        A session that was made from the log of an attempt belongs to it. Otherwise a loop that the session names has
        priority over a task; a session of a task belongs to the attempt that was running when it began, or to the only
        attempt if times are missing. Other sessions are left out.
        """
        pairs = ((self._session_owner(session), session) for session in self._snapshot.debug_sessions.values())
        return {work_id: tuple(sessions) for work_id, sessions in group_pairs(pairs).items() if work_id}

    def _session_owner(self, session: DebugSession) -> str:
        if session.attempt_id in self._snapshot.attempts:
            return self.owner_id(session.attempt_id)
        row = self.find_loop_id(session.loop_id)
        if row in self._snapshot.loops:
            return row
        for name in filter(None, (session.loop_id, session.task_id)):
            if name in self._snapshot.attempts:
                return name
            if self._attempts.get(name):
                return _running_at(self._attempts[name], _began(session))
        return ""


def _has_other_names(before: Snapshot, after: Snapshot, loop_id: str) -> bool:
    """Return whether a loop was added or removed, or may have lost or won an alias."""
    return _names(before.loops.get(loop_id)) != _names(after.loops.get(loop_id))


def _names(loop: Loop | None) -> tuple[object, ...]:
    # Of loops with the same alias, the one that started first has it.
    return () if loop is None else (loop.id, loop.aliases, loop.started_at if loop.aliases else None)


def _has_other_loop(before: Snapshot, after: Snapshot, task_id: str) -> bool:
    return _loop_of(before.tasks.get(task_id)) != _loop_of(after.tasks.get(task_id))


def _loop_of(task: Task | None) -> str:
    return task.loop_id if task is not None else ""


def _has_other_session(before: Snapshot, after: Snapshot, attempt_id: str) -> bool:
    return _session_of(before.attempts.get(attempt_id)) != _session_of(after.attempts.get(attempt_id))


def _session_of(attempt: Attempt | None) -> str:
    return attempt.loop_id if attempt is not None else ""


def changes_owners(before: Snapshot, after: Snapshot, delta: Delta) -> bool:
    """Return whether sessions may belong to other work items after a change."""
    if delta.debug_sessions or not after.debug_sessions:
        return bool(delta.debug_sessions)
    attempts = before.attempts, after.attempts
    names = any(_has_other_names(before, after, id) for id in delta.loops)
    tasks = any(_has_other_loop(before, after, id) for id in delta.tasks)
    return names or tasks or any(_begin(attempts[0].get(id)) != _begin(attempts[1].get(id)) for id in delta.attempts)


def _running_at(attempts: Sequence[Attempt], at: datetime | None) -> str:
    """Return the ID of the attempt that was running at a time, or ""."""
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
