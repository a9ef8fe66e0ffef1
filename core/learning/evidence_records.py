"""Look-ups of evidence: records by what they name, events by pattern and work.

Look-ups are mappings, in memory or read from tables when they are used, and contain no rule of the evidence. An entry
that is not there may also be empty.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from core.base.steps import group_pairs
from core.learning.bursts import report_of_event, source_of
from core.learning.evidence import find_origin, is_about_pattern
from core.learning.experiments import text_key
from core.learning.outcomes import is_report
from core.records.events import ASSIGNED
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Attempt, Task
    from core.records.events import Event
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot

_AT: Final = attrgetter("at")
_Value = TypeVar("_Value")


class Link(IntEnum):
    """What a record can be found by, as it is stored."""

    USED = 0  # loops by a pattern that they list as injected
    FOUND = 1  # loops by a pattern that they record as new
    ALIAS = 2  # loops by alias
    TASK = 3  # tasks by the loop that they name
    ATTEMPT = 4  # attempts by task
    SESSION = 5  # attempts by the session of an agent that they name
    MENTION = 6  # debug sessions by the loop, task and attempt that they name
    WARNING = 7  # anti-patterns by the pattern that they were made from
    ORIGIN = 8  # patterns by the loop that found them first
    HEIR = 9  # patterns by the ID of one that was merged into them
    SCRIPT = 10  # patterns by the scripts other than Latin of their texts


Links: TypeAlias = Mapping[Link, Mapping[str, Sequence[str]]]
"""Sorted IDs of records, by kind of link and the name that they contain."""
_Names: TypeAlias = Iterator[tuple[Link, str]]


def _links_of_loop(loop: Loop) -> _Names:
    yield from ((Link.USED, use.pattern_id) for use in loop.injected)
    yield from ((Link.FOUND, entry.pattern_id) for entry in loop.extracted if entry.new)
    yield from ((Link.ALIAS, alias) for alias in loop.aliases)


def _links_of_pattern(pattern: Pattern) -> _Names:
    origin = find_origin(pattern)
    if origin is not None:
        yield Link.ORIGIN, origin.loop_id
    if pattern.type is PatternType.ANTI:
        yield Link.WARNING, pattern.inverted_from
    yield from ((Link.HEIR, alias) for alias in pattern.aliases)
    yield from ((Link.SCRIPT, script) for script in pattern.scripts)


def _links_of_task(task: Task) -> _Names:
    yield Link.TASK, task.loop_id


def _links_of_attempt(attempt: Attempt) -> _Names:
    yield Link.ATTEMPT, attempt.task_id
    yield Link.SESSION, attempt.loop_id


def _links_of_session(session: DebugSession) -> _Names:
    yield from ((Link.MENTION, name) for name in (session.loop_id, session.task_id, session.attempt_id))


WORK: Final = ("loops", "tasks", "attempts")
"""Collections whose records name each other."""
LINKED: Final[Mapping[str, Callable[[Any], _Names]]] = {
    "loops": _links_of_loop,
    "tasks": _links_of_task,
    "attempts": _links_of_attempt,
    "debug_sessions": _links_of_session,
    "patterns": _links_of_pattern,
}
"""Collections of a snapshot whose records are found by links, with what yields those of a record."""


def links_of(collection: str, record: object) -> set[tuple[Link, str]]:
    """Return the links of a record of a collection in `LINKED`; none without one."""
    return {link for link in LINKED[collection](record) if link[1]} if record is not None else set()


def build_links(snapshot: Snapshot, collections: Iterable[str] = LINKED) -> Links:
    """Build the links of all records of some collections."""
    found: dict[Link, defaultdict[str, list[str]]] = {link: defaultdict(list) for link in Link}
    for name in collections:
        records: Mapping[str, Any] = getattr(snapshot, name)
        for id, record in records.items():
            for link, key in links_of(name, record):
                found[link][key].append(id)
    return {link: {key: sorted(ids) for key, ids in keys.items()} for link, keys in found.items()}


def find_link_changes(
    before: Snapshot, after: Snapshot, delta: Delta
) -> Iterator[tuple[str, set[tuple[Link, str]], set[tuple[Link, str]]]]:
    """Yield the ID of each changed record with the links that it lost and gained."""
    for name in LINKED:
        for id in getattr(delta, name):
            old, new = (links_of(name, getattr(snapshot, name).get(id)) for snapshot in (before, after))
            if old != new:
                yield id, old - new, new - old


def change_links(links: Links, before: Snapshot, after: Snapshot, delta: Delta) -> Links:
    """Return the links of a later snapshot; the cost depends on what changed."""
    changed: dict[Link, dict[str, list[str]]] = {}
    for id, lost, gained in find_link_changes(before, after, delta):
        for link, key in (*lost, *gained):
            ids = changed.setdefault(link, {}).setdefault(key, [*links[link].get(key, ())])
            if (link, key) in lost:
                ids.remove(id)
            else:
                ids.append(id)
    return {
        link: _with_changes(keys, {key: sorted(ids) for key, ids in changed.get(link, {}).items()})
        for link, keys in links.items()
    }


def _with_changes(known: Mapping[str, _Value], changes: dict[str, _Value]) -> Mapping[str, _Value]:
    """Replace or add some entries of a mapping without reading the others."""
    # A ChainMap only writes to its first mapping, but is typed as if all were dicts.
    return ChainMap(changes, cast("dict[str, _Value]", known)) if changes else known


@dataclass(frozen=True)
class EventIndex:
    """Events, oldest first, by what they are about."""

    by_pattern: Mapping[str, Sequence[Event]]  # by the names of `pattern_names`
    by_work: Mapping[str, Sequence[Event]]  # by the names of `work_names`
    reports: Mapping[str, Sequence[Event]]  # those about a work item as a whole, by the work ID in them
    doubtful: Mapping[str, int]
    """By source, at least the number of its harmful reports and of its uses without a result."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventIndex:
        known = tuple(events)
        return cls(
            by_pattern=group_pairs((name, event) for event in known for name in pattern_names(event)),
            by_work=group_pairs((name, event) for event in known for name in work_names(event)),
            reports=group_pairs((event.loop_id, event) for event in known if is_report(event)),
            doubtful=Counter(source_of(event) for event in known if is_doubtful(event)),
        )

    def extended(self, events: Sequence[Event]) -> EventIndex:
        """Return the index of a log with more events."""
        added = EventIndex.of(events)
        doubtful = {name: self.doubtful.get(name, 0) + count for name, count in added.doubtful.items()}
        return EventIndex(
            by_pattern=_extend(self.by_pattern, added.by_pattern),
            by_work=_extend(self.by_work, added.by_work),
            reports=_extend(self.reports, added.reports),
            doubtful=_with_changes(self.doubtful, doubtful),
        )


_Events: TypeAlias = Mapping[str, Sequence["Event"]]


def _extend(known: _Events, added: _Events) -> _Events:
    changed: dict[str, Sequence[Event]] = {
        name: sorted([*known.get(name, ()), *events], key=_AT) for name, events in added.items()
    }
    return _with_changes(known, changed)


def pattern_names(event: Event) -> tuple[str, ...]:
    """Return under which name an event is found by its pattern.

    Those of trials have another name than the others: there are many, and evidence, which hooks wait for, has none.
    """
    if not event.pattern_id:
        return ()
    return (name_of_trials(event.pattern_id),) if event.trial is not None else (event.pattern_id,)


def name_of_trials(pattern_id: str) -> str:
    return f"{pattern_id}\0trials"


def work_names(event: Event) -> tuple[str, ...]:
    """Return the index names of a pattern or reflection event: work ID and source.

    The source of a harmful report can have another name, see `source_of`. An event of the experiment is found under
    the text of its task, and one that a lesson was held out also under its work ID.
    """
    if event.trial is not None:
        is_shown = event.kind == ASSIGNED and event.trial.is_held_out and event.loop_id
        return (text_key(event.trial.task), event.loop_id) if is_shown else (text_key(event.trial.task),)
    names = (event.loop_id,) if event.loop_id and is_about_pattern(event) else ()
    if report_of_event(event) is not None and (source := source_of(event)) not in names:
        names = (*names, source)
    return names


def is_unresolved(event: Event) -> bool:
    """Return whether an event reports a pattern as applied without a result."""
    return event.success is None and event.kind == "applied" and bool(event.pattern_id and event.loop_id)


def is_doubtful(event: Event) -> bool:
    """Return whether an event is a harmful report, or becomes one if its work fails."""
    return report_of_event(event) is not None or is_unresolved(event)


_BY_NUMBER: Final = attrgetter("number")
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class WorkNames:
    """Resolves IDs and aliases of the loops, tasks and attempts of a snapshot."""

    def __init__(self, snapshot: Snapshot, links: Links | None = None) -> None:
        self._snapshot = snapshot
        self._links = build_links(snapshot, WORK) if links is None else links
        self._owners: dict[str, str] = {}

    def _task_ids(self, loop_name: str) -> Sequence[str]:
        """IDs of the tasks that name a loop, sorted."""
        return self._links[Link.TASK].get(loop_name, ())

    def attempts_at(self, task_id: str) -> list[Attempt]:
        """Return the attempts at a task by number."""
        found = (self._snapshot.attempts[id] for id in self._links[Link.ATTEMPT].get(task_id, ()))
        return sorted(found, key=_BY_NUMBER)

    def find_loop_id(self, work_id: str) -> str:
        """Return the ID of the loop with this ID or alias; else `work_id` itself.

        Of loops with the same alias, the one that started first has it.
        """
        loops = self._snapshot.loops
        if work_id in loops:
            return work_id
        aliased = self._links[Link.ALIAS].get(work_id, ())
        return newest_first(loops[id] for id in aliased)[-1].id if aliased else work_id

    def loop_of_work(self, work_id: str) -> str:
        """Return the loop or session ID of a loop, task or attempt; "" if unknown."""
        snapshot = self._snapshot
        attempt = snapshot.attempts.get(work_id)
        task = snapshot.tasks.get(attempt.task_id if attempt else work_id)
        names = (work_id, attempt.loop_id if attempt else "", task.loop_id if task else "")
        return next((id for id in map(self.find_loop_id, names) if id in snapshot.loops), "")

    def is_recorded_as_tasks(self, loop: Loop) -> bool:
        """Return whether a session's work was recorded as tasks with scored attempts."""
        if not loop.runner:
            return False
        names = (loop.id, *loop.aliases) if loop.runner == loop.owner else (loop.id,)
        return any(self._task_ids(name) or self._links[Link.SESSION].get(name) for name in names)

    def attempts_of(self, loop: Loop) -> list[Attempt]:
        """Return the attempts that an agent's sessions made, oldest first."""
        names = (loop.id, *loop.aliases) if loop.runner else ()
        attempts = self._snapshot.attempts
        own = {id: attempts[id] for name in names for id in self._links[Link.SESSION].get(name, ())}
        for task_id in {task_id for name in names for task_id in self._task_ids(name)}:
            own |= {one.id: one for one in self.attempts_at(task_id) if not one.loop_id}
        return sorted(own.values(), key=lambda one: (one.started_at or _LONG_AGO, one.task_id, one.number))

    def works_of(self, loop: Loop) -> list[str]:
        """Return all IDs under which events name a loop's or an agent session's work."""
        names = self.names_of(loop.id)
        if loop.runner:
            tasks = (task_id for name in (loop.id, *loop.aliases) for task_id in self._task_ids(name))
            names += [*tasks, *(one.id for one in self.attempts_of(loop))]
        return list(dict.fromkeys(names))

    def loop_ids_of(self, loop_id: str) -> list[str]:
        """Return all IDs that refer to this loop and to no other."""
        loop = self._snapshot.loops.get(loop_id)
        aliases = loop.aliases if loop else ()
        return [loop_id, *(alias for alias in aliases if self.find_loop_id(alias) == loop_id)]

    def owner_id(self, work_id: str) -> str:
        """Return the ID of the loop or attempt; see `evidence.WorkItems`."""
        owner = self._owners.get(work_id)
        if owner is None:
            owner = self._owners[work_id] = self._find_owner(work_id)
        return owner

    def _find_owner(self, work_id: str) -> str:
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
            for task_id in self._task_ids(name):
                yield task_id
                yield from (attempt.id for attempt in self.attempts_at(task_id))

    def sessions_of(self, work_id: str) -> tuple[DebugSession, ...]:
        """Return the debug sessions of a loop or attempt, each session once.

        A session that was made from the log of an attempt belongs to it. Otherwise a loop that the session names has
        priority over a task; a session of a task belongs to the attempt that was running when it began, or to the only
        attempt if times are missing. Other sessions belong to nothing.
        """
        sessions = self._snapshot.debug_sessions
        if not sessions:
            return ()
        attempt = self._snapshot.attempts.get(work_id)
        names = {*self.names_of(work_id), *([attempt.task_id] if attempt else [])}
        found = sorted({id for name in names for id in self._links[Link.MENTION].get(name, ())})
        return tuple(sessions[id] for id in found if self.session_owner(sessions[id]) == work_id)

    def session_owner(self, session: DebugSession) -> str:
        """Return the ID of the loop or attempt that a debug session belongs to, or ""."""
        if session.attempt_id in self._snapshot.attempts:
            return self.owner_id(session.attempt_id)
        row = self.find_loop_id(session.loop_id)
        if row in self._snapshot.loops:
            return row
        for name in filter(None, (session.loop_id, session.task_id)):
            if name in self._snapshot.attempts:
                return name
            if attempts := self.attempts_at(name):
                return _running_at(attempts, _began(session))
        return ""

    def changed_names(self, before: WorkNames, delta: Delta) -> Iterator[str]:
        """Yield IDs of both snapshots whose work may differ: loops, tasks, attempts."""
        for names in (before, self):
            one, two = names._snapshot, (before if names is self else self)._snapshot
            for id in delta.loops:
                if _has_other_names(one, two, id) and (loop := one.loops.get(id)) is not None:
                    loop_names = (loop.id, *loop.aliases)
                    yield from loop_names
                    yield from names._works_of(loop_names)
            for id in delta.tasks:
                if _loop_of(one.tasks.get(id)) != _loop_of(two.tasks.get(id)):
                    yield id
                    yield from (attempt.id for attempt in names.attempts_at(id))
            for id in delta.attempts:
                if (attempt := one.attempts.get(id)) is not None and _begin(attempt) != _begin(two.attempts.get(id)):
                    yield id
                    yield attempt.task_id

    def loops_recorded_as_tasks(self, delta: Delta) -> Iterator[str]:
        """Yield the sessions of agents that changed tasks and attempts name."""
        snapshot = self._snapshot
        records = (snapshot.tasks.get(id) for id in delta.tasks), (snapshot.attempts.get(id) for id in delta.attempts)
        for record in chain(*records):
            if record is not None and record.loop_id:
                loop = snapshot.loops.get(self.find_loop_id(record.loop_id))
                if loop is not None and loop.runner:
                    yield loop.id

    def mentioned_in(self, names: Iterable[str]) -> Iterator[str]:
        """Yield IDs of debug sessions that name these loops, tasks or attempts."""
        for name in names if self._snapshot.debug_sessions else ():
            yield from self._links[Link.MENTION].get(name, ())


def newest_first(loops: Iterable[Loop]) -> list[Loop]:
    """Sort loops by start, then by ID, as in a snapshot."""
    by_id = sorted(loops, key=lambda loop: loop.id)
    return sorted(by_id, key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)


def _has_other_names(before: Snapshot, after: Snapshot, loop_id: str) -> bool:
    """Return whether a loop was added or removed, or may have lost or won an alias."""
    return _names(before.loops.get(loop_id)) != _names(after.loops.get(loop_id))


def _names(loop: Loop | None) -> tuple[object, ...]:
    # Of loops with the same alias, the one that started first has it.
    return () if loop is None else (loop.id, loop.runner, loop.aliases, loop.started_at if loop.aliases else None)


def _loop_of(task: Task | None) -> str | None:
    return task.loop_id if task is not None else None


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
