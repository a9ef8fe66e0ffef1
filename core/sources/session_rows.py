"""Sessions that hooks recorded as rows among the loops of adapters (docs/adapters.md#sessions-of-hooks)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from core.records.agent_sessions import SESSION_TAG
from core.records.loops import Liveness, Loop
from core.sources.session_states import Moment, SessionWork, build_session_loop, join_session

if TYPE_CHECKING:
    from core.records.agent_sessions import AgentSession
    from core.records.episodes import Attempt, Task

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_OPEN: Final = frozenset({Liveness.ALIVE, Liveness.FRESH, Liveness.STALE, Liveness.IDLE})
"""Sessions that can end with time alone."""


class SessionRows:
    """Loops of adapters and of hooks in one mapping; the two of one session are one row.

    Each change costs about what it affects, and the same mapping is returned until something changes.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, dict[str, Attempt]] = {}  # by task and ID
        self._works: dict[str, dict[str, tuple[Task, tuple[Attempt, ...]]]] = {}  # by loop and task
        self._loops_of: dict[str, tuple[str, ...]] = {}  # IDs of the loops of each task
        self._rows: dict[str, Loop] = {}
        self._open: set[str] = set()  # IDs of the rows that can end with time alone
        self._adapted: Mapping[str, Loop] = {}
        self._names: dict[str, str] = {}  # ID of the adapter's loop by ID and alias
        self._parts: dict[str, dict[str, None]] = {}  # IDs of the rows in each loop of an adapter
        self._joined: dict[str, tuple[Loop, Loop, Loop]] = {}  # by ID: loop of an adapter, row, and both
        self._all: Mapping[str, Loop] = {}

    def replace_attempts(self, ids: Iterable[str], attempts: Mapping[str, Attempt]) -> set[str]:
        """Take changed attempts; returns the IDs of their tasks."""
        touched = set()
        for id in ids:
            task_id = id.rpartition(".")[0]
            touched.add(task_id)
            if (attempt := attempts.get(id)) is not None:
                self._attempts.setdefault(task_id, {})[id] = attempt
            elif task_id in self._attempts:
                self._attempts[task_id].pop(id, None)
        return touched

    def replace_tasks(self, ids: Iterable[str], tasks: Mapping[str, Task]) -> set[str]:
        """Take changed tasks, or those with changed attempts; returns the IDs of the affected loops."""
        changed: set[str] = set()
        for id in ids:
            for loop_id in self._loops_of.pop(id, ()):
                del self._works[loop_id][id]
                changed.add(loop_id)
            task = tasks.get(id)
            if task is None or SESSION_TAG not in task.tags or not all(task.loop_id.partition(":")):
                continue
            groups: dict[str, list[Attempt]] = {task.loop_id: []}
            for attempt in sorted(self._attempts.get(id, {}).values(), key=lambda one: one.number):
                groups.setdefault(attempt.loop_id or task.loop_id, []).append(attempt)
            for loop_id, own in groups.items():
                self._works.setdefault(loop_id, {})[id] = task, tuple(own)
            self._loops_of[id] = tuple(groups)
            changed.update(groups)
        return changed

    def join(
        self,
        adapted: Mapping[str, Loop],
        changed: Iterable[str],
        records: Mapping[str, AgentSession],
        moment: Moment,
    ) -> Mapping[str, Loop]:
        """Return the loops of adapters with those of hooks.

        `changed` are the IDs of loops whose tasks or records changed; sessions that are open are checked, too.
        """
        updated = set()
        for id in {*changed, *self._open}:
            row = self._build(id, records, moment)
            if row is not None and row.liveness in _OPEN:
                self._open.add(id)
            else:
                self._open.discard(id)
            if row != self._rows.get(id):
                updated.add(id)
                if row is None:
                    del self._rows[id]
                else:
                    self._rows[id] = row
        if adapted is not self._adapted:
            self._take_adapted(adapted)
        elif updated:
            self._all = self._with_rows({**self._all}, updated)
        return self._all

    def _build(self, id: str, records: Mapping[str, AgentSession], moment: Moment) -> Loop | None:
        record, tasks = records.get(id), [*self._works.get(id, {}).values()]
        has_work = any(attempts for _, attempts in tasks)
        if not has_work and not (record is not None and record.prompt):
            return None
        return build_session_loop(SessionWork(id, record, tasks), moment)

    def _take_adapted(self, adapted: Mapping[str, Loop]) -> None:
        self._adapted = adapted
        self._names = {alias: loop.id for loop in adapted.values() for alias in loop.aliases}
        self._names |= {id: id for id in adapted}
        self._parts = {}
        self._joined = {id: joined for id, joined in self._joined.items() if adapted.get(id) is joined[0]}
        self._all = self._with_rows({**adapted}, self._rows)

    def _with_rows(self, loops: dict[str, Loop], ids: Iterable[str]) -> Mapping[str, Loop]:
        """Return the loops with some rows, each as a loop of its own or in that of an adapter."""
        targets: dict[str, None] = {}
        for id in ids:
            target = self._names.get(id, "")
            if target:
                self._parts.setdefault(target, {})[id] = None
                targets[target] = None
            elif id in self._rows:
                loops[id] = self._rows[id]
            else:
                loops.pop(id, None)
        for target in targets:
            loops[target] = self._join_parts(target)
        return loops

    def _join_parts(self, target: str) -> Loop:
        """Return a loop of an adapter with the newest of its rows."""
        loop = self._adapted[target]
        rows: Sequence[Loop] = [self._rows[id] for id in self._parts[target] if id in self._rows]
        if not rows:
            self._joined.pop(target, None)
            return loop
        newest = max(rows, key=lambda row: (row.last_activity or _LONG_AGO, row.id))
        known = self._joined.get(target)
        if known is None or known[0] is not loop or known[1] is not newest:
            known = self._joined[target] = loop, newest, join_session(loop, newest)
        return known[2]
