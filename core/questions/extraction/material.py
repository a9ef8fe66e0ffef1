"""Records that patterns are extracted from; docs/extraction.md#material."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.grouping import group_in_steps, group_pairs
from core.base.text import visible_line
from core.questions.extraction.control_texts import clean_material
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, group_by_task
from core.records.events import Event
from core.records.extractions import LoggedAttempt, Material
from core.records.reflections import Reflection
from core.sources.loops import read_loop_details
from core.tasks.history import read_attempt
from core.tasks.task_links import collect_past_tasks, link_tasks

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.steps import Steps
    from core.records.loops import Iteration, Loop, LoopDetails
    from core.records.snapshot import Snapshot

_Record = TypeVar("_Record", Event, Reflection, DebugSession)
MAX_RECORDS: Final = 500  # maximum number of iterations, reflections and errors of one loop, the newest ones
MAX_ATTEMPTS: Final = 20  # maximum number of attempts at the tasks of one loop, the newest ones
MAX_ACTIONS: Final = 2_000  # maximum number of actions of these attempts together, the newest ones
MAX_SESSIONS: Final = 20
MAX_RUNS: Final = 50  # maximum number of executions of one session, the last ones
MAX_FAILURES: Final = 20  # maximum number of failures of one iteration or execution
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Materials:
    """Collects material from one snapshot; reads further files when needed.

    `read_details` reads the details of a loop, by default from the files in `.aiwg`.
    """

    def __init__(
        self, paths: ProjectPaths, snapshot: Snapshot, read_details: Callable[[Loop], LoopDetails] | None = None
    ) -> None:
        self._paths = paths
        self._read_details = read_details or partial(read_loop_details, paths)
        self._snapshot = snapshot

    def read(self, source_id: str) -> Material:
        """Return the material of a loop, task or debug session; raises UnknownRecord."""
        return replace(self._read(source_id), root=str(self._paths.project))

    def _read(self, source_id: str) -> Material:
        snapshot = self._snapshot
        if source_id in snapshot.loops:
            return self._of_loop(snapshot.loops[source_id])
        if source_id in snapshot.debug_sessions:
            session = snapshot.debug_sessions[source_id]
            if (own := self._of_attempt(session)) is not None:
                return own
            home = self._source(session)
            loop = snapshot.loops.get(home)
            own_task = snapshot.tasks.get(home) if loop is None else None
            return Material(source_id=session.id, loop=loop, task=own_task, sessions=(_cut_session(session),))
        if source_id in snapshot.tasks:
            task = snapshot.tasks[source_id]
            loop = snapshot.loops.get(self._links.get(task.id, ""))
            material = Material(
                source_id=task.id, loop=loop, task=task, attempts=self._logged(self._attempts_at(task.id))
            )
            return material if loop is not None else self._with_records(material)  # its other records are the loop's
        if source_id in self._ids:
            return self._of_loop(snapshot.loops[self._ids[source_id]])
        asked = visible_line(source_id, 120)
        raise UnknownRecord(f"no loop, task or debug session {asked!r} in {self._paths.project}")

    def _of_attempt(self, session: DebugSession) -> Material | None:
        """Return the material of a session that was made from the log of an attempt; None without that log."""
        attempt = self._snapshot.attempts.get(session.attempt_id)
        if attempt is None or (task := self._snapshot.tasks.get(attempt.task_id)) is None:
            return None
        logged = self._read_logs([attempt])
        loop = self._snapshot.loops.get(self._links.get(task.id, ""))
        return (
            Material(source_id=session.id, loop=loop, task=task, attempts=logged)
            if logged and logged[0].actions
            else None
        )

    def _of_loop(self, loop: Loop) -> Material:
        is_session = loop.is_from_hooks_alone or loop.is_agent_session
        of_tasks = self._attempts_at(*self._tasks.get(loop.id, ()))
        attempts = self._logged(self._attempts_of_sessions.get(loop.id, ()) if is_session else of_tasks)
        if loop.is_from_hooks_alone:
            return Material(source_id=loop.id, loop=loop, attempts=attempts)
        newest = self._read_details(loop).iterations[-MAX_RECORDS:]
        iterations = tuple(replace(one, failures=one.failures[:MAX_FAILURES]) for one in newest)
        if loop.is_agent_session:
            iterations = _without_logged(iterations, attempts)
        material = Material(source_id=loop.id, loop=loop, iterations=iterations, attempts=attempts)
        return self._with_records(clean_material(material))

    def _with_records(self, material: Material) -> Material:
        id = material.loop_id
        own = self._sessions.get(id, ())
        made = {one.attempt.id: bool(one.actions) for one in material.attempts}
        if material.loop is not None and material.loop.is_agent_session:  # without attempts of others at its tasks
            own = [one for one in own if one.attempt_id in made or one.attempt_id not in self._snapshot.attempts]
        own = [one for one in own if not made.get(one.attempt_id)]  # a view of a log adds nothing to it
        sessions = sorted(own, key=lambda one: (one.created_at or one.updated_at or _EARLIEST, one.id))
        return replace(
            material,
            sessions=tuple(map(_cut_session, sessions[-MAX_SESSIONS:])),
            reflections=tuple(self._reflections.get(id, ())[:MAX_RECORDS]),
            errors=tuple(self._errors.get(id, ())[-MAX_RECORDS:]),
            resolved=tuple(self._resolved.get(id, ())),
        )

    def _attempts_at(self, *task_ids: str) -> Iterator[Attempt]:
        return (attempt for id in task_ids for attempt in self._attempts.get(id, ()))

    def _logged(self, attempts: Iterable[Attempt]) -> tuple[LoggedAttempt, ...]:
        """Return the newest attempts, oldest first, with at most `MAX_ACTIONS` actions."""
        ordered = sorted(
            attempts, key=lambda one: (one.started_at or one.ended_at or _EARLIEST, one.task_id, one.number)
        )
        return self._read_logs(ordered[-MAX_ATTEMPTS:])

    def _read_logs(self, attempts: Sequence[Attempt]) -> tuple[LoggedAttempt, ...]:
        found: list[LoggedAttempt] = []
        left = MAX_ACTIONS
        for attempt in reversed(attempts):
            try:
                detail = read_attempt(self._paths, attempt.task_id, attempt.number)
            except UnknownRecord:  # its folder was removed since the lists were read
                continue
            actions = detail.actions[max(len(detail.actions) - left, 0) :]
            left -= len(actions)
            found.append(LoggedAttempt(attempt=attempt, steps=detail.steps, actions=actions))
        return tuple(reversed(found))

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """Loop IDs by ID and alias."""
        return {alias: loop.id for loop in self._own_loops.values() for alias in (*loop.aliases, loop.id)}

    @cached_property
    def _sessions(self) -> Mapping[str, list[DebugSession]]:
        return self._by_source(self._snapshot.debug_sessions.values())

    @cached_property
    def _reflections(self) -> Mapping[str, list[Reflection]]:
        return self._by_source(self._snapshot.reflections.values())

    @cached_property
    def _errors(self) -> Mapping[str, list[Event]]:
        return self._by_source(event for event in self._snapshot.events if event.kind == "error")

    @cached_property
    def _resolved(self) -> Mapping[str, list[Event]]:
        return self._by_source(event for event in self._snapshot.events if event.kind == "resolved")

    @cached_property
    def descriptions(self) -> Mapping[str, str]:
        """Descriptions of loops and tasks by ID."""
        tasks = {id: task.description for id, task in collect_past_tasks(self._snapshot).items()}
        return tasks | {id: loop.task for id, loop in self._snapshot.loops.items()}

    @cached_property
    def _own_loops(self) -> Mapping[str, Loop]:
        """Loops with records of their own, which sessions that are known only by their tasks do not have."""
        return {id: loop for id, loop in self._snapshot.loops.items() if not loop.is_from_hooks_alone}

    @cached_property
    def _links(self) -> Mapping[str, str]:
        """Loop IDs by task ID."""
        links = link_tasks(self._snapshot.tasks, self._own_loops)
        return {task_id: link.loop_id for task_id, link in links.items()}

    @cached_property
    def _tasks(self) -> Mapping[str, list[str]]:
        """Task IDs by loop ID."""
        return group_pairs((loop_id, task_id) for task_id, loop_id in self._links.items())

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[Attempt]]:
        """Attempts by task ID."""
        return group_by_task(self._snapshot.attempts.values())

    @cached_property
    def _attempts_of_sessions(self) -> Mapping[str, list[Attempt]]:
        """Attempts by the session that made them: that of the attempt, else that of its task."""
        homes = {id: self._links.get(id, task.loop_id) for id, task in self._snapshot.tasks.items()}
        made = ((one.loop_id or homes.get(one.task_id, ""), one) for one in self._snapshot.attempts.values())
        return group_pairs((self._ids.get(loop_id, loop_id), attempt) for loop_id, attempt in made if loop_id)

    def prepare_in_steps(self) -> Steps[None]:
        """Group the records of the project step by step."""
        self._reflections = yield from group_in_steps(self._with_source(self._snapshot.reflections.values()))
        events = self._snapshot.events
        self._errors = yield from group_in_steps(self._with_source(one for one in events if one.kind == "error"))
        self._resolved = yield from group_in_steps(self._with_source(one for one in events if one.kind == "resolved"))

    def _by_source(self, records: Iterable[_Record]) -> Mapping[str, list[_Record]]:
        return group_pairs(self._with_source(records))

    def _with_source(self, records: Iterable[_Record]) -> Iterator[tuple[str, _Record]]:
        return ((source, record) for record in records if (source := self._source(record)))

    def _source(self, record: _Record) -> str:
        """Return the loop ID of a record; its task ID if no loop is known; else ""."""
        own = (record.loop_id, "" if isinstance(record, Event) else record.task_id)
        names = [name for name in own if name]
        found = next((self._ids[name] for name in names if name in self._ids), "")
        if found:
            return found
        attempts, tasks = self._snapshot.attempts, self._snapshot.tasks
        task_ids = (attempts[name].task_id if name in attempts else name for name in names)
        task_id = next((id for id in task_ids if id in tasks), "")
        return self._links.get(task_id, task_id)


def _without_logged(turns: tuple[Iteration, ...], attempts: Sequence[LoggedAttempt]) -> tuple[Iteration, ...]:
    """Return the turns of a session before its first attempt with a log, which has more of the later ones."""
    begins = [at for one in attempts if one.actions and (at := one.attempt.started_at or one.actions[0].at) is not None]
    begin = min(begins, default=None)
    return turns if begin is None else tuple(turn for turn in turns if turn.at is not None and turn.at < begin)


def _cut_session(session: DebugSession) -> DebugSession:
    runs = (replace(run, failures=run.failures[:MAX_FAILURES]) for run in session.executions[-MAX_RUNS:])
    return replace(session, executions=tuple(runs))
