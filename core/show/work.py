"""Loops with their attempts and debug sessions as one tree, and its filter.

Work of no known loop is listed beside the loops: tasks with their attempts, and debug sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from msgspec import Struct

from core.records.debug_sessions import ESCALATED, FAILED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus, group_by_task
from core.records.loops import CONTRADICTED, WAITS_FOR_YOU, Loop, LoopStatus, Outcome, StateSource, needs_person
from core.show.filter_parser import FieldKind, Fields, Query, Term, Tests, matches_flag
from core.tasks.task_links import LoopNames

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.evidence import LoopPatterns
    from core.records.reflections import Reflection
    from core.records.snapshot import Delta, Snapshot
    from core.tasks.escalations import EscalatedSession


FIELDS: Final[Fields] = {
    **dict.fromkeys(("status", "source", "runner", "id", "tag", "pattern", "agent", "model"), FieldKind.TEXT),
    **dict.fromkeys(("cause", "error", "loop", "task", "file"), FieldKind.TEXT),
    "is": (
        *("stuck", "live", "ended", "archived", "waiting", "inferred", "contradicted", "failed", "open"),
        *("task", "attempt", "session", "escalated", "orphan", "unregistered", "stale", "crashed"),
        *("archived-but-registered", "registered-only", "status-disagrees", "id-disagrees"),
        *("no-limit", "two-sessions", "no-op", "completed-but-open", CONTRADICTED),
    ),
    "outcome": tuple(outcome.value for outcome in Outcome),
    **dict.fromkeys(("in", "tool", "since", "until"), FieldKind.PALETTE),
}
"""Fields of a filter of loops; `is:` also accepts badges that adapters of other packages add."""
LAST_ROWS: Final = 6  # newest attempts, or iterations, of an unfolded row; earlier ones are hidden in one row

_Record = TypeVar("_Record")
_Texts: TypeAlias = Mapping[str, tuple[_Record, str]]
_TASK, _ATTEMPT, _SESSION, _ITERATION, _LESSON, _EARLIER = (
    "task",
    "attempt",
    "session",
    "iteration",
    "lesson",
    "earlier",
)

task_key: Final = f"{_TASK}/{{}}".format  # Return the key of the row of a task.
attempt_key: Final = f"{_ATTEMPT}/{{}}".format
session_key: Final = f"{_SESSION}/{{}}".format
earlier_key: Final = f"{_EARLIER}/{{}}".format  # of the row for the earlier attempts of a loop or task


def iteration_key(loop_id: str, place: int) -> str:
    return f"{_ITERATION}/{place}/{loop_id}"


def lesson_key(loop_id: str, pattern_id: str) -> str:
    return f"{_LESSON}/{pattern_id}/{loop_id}"


class Row(Struct, frozen=True):
    """The target of a row's key: a kind such as `loop`, and the ID of its record.

    Of an iteration or a lesson, the ID is that of the loop; `place` is the index of the iteration, and `pattern_id` the
    lesson.
    """

    kind: str
    id: str
    place: int = 0
    pattern_id: str = ""


def parse_key(key: str) -> Row:
    """Return the target of a key; a key without a known kind is that of a loop."""
    kind, _, rest = key.partition("/")
    if rest and kind in (_TASK, _ATTEMPT, _SESSION, _EARLIER):
        return Row(kind, rest)
    name, _, loop_id = rest.partition("/")
    if kind == _ITERATION and name.isdecimal() and loop_id:
        return Row(kind, loop_id, place=int(name))
    if kind == _LESSON and loop_id:
        return Row(kind, loop_id, pattern_id=name)
    return Row("loop", key)


class FoundWork(Struct, frozen=True):
    """A top row that matches (`own`), or attempts and debug sessions `below` it do."""

    key: str
    own: bool = True
    below: tuple[str, ...] = ()


class WorkCatalog:
    """Loops, tasks, attempts and debug sessions, prepared for filtering; immutable.

    `attempts` are grouped by task, `attempts_of` and `sessions_of` by the key of the row above: a loop or a free task.
    `homes` has the loop of each task that has one, `above` the key of the row above each attempt and debug session.
    `earlier_of` has the sessions with earlier attempts at the same task, by the newest one, which has the attempts of
    all of them; each of these is in `above`. A debug session that was made from the log of an attempt is listed as that
    attempt (`of_attempts`), unless a person must decide about it. `before` is the catalog of an earlier snapshot, whose
    texts are reused for unchanged records.
    """

    def __init__(self, snapshot: Snapshot, before: WorkCatalog | None = None) -> None:
        from core.tasks.escalations import find_escalation  # imports much; many projects need none

        self.loops: Mapping[str, Loop] = dict(snapshot.loops.items())
        self.attempts = group_by_task(snapshot.attempts.values())
        missing = {task_id: Task(id=task_id) for task_id in self.attempts.keys() - snapshot.tasks.keys()}
        self.tasks: Mapping[str, Task] = {**snapshot.tasks, **missing} if missing else snapshot.tasks
        self.homes: dict[str, str] = {}
        self.free_tasks: dict[str, Task] = {}
        self.attempts_of: dict[str, list[Attempt]] = {}
        self.above: dict[str, str] = {}
        names = LoopNames(self.loops.values())
        for task_id, task in self.tasks.items():
            self._place_task(task, self.attempts.get(task_id, ()), names)
        self.earlier_of: dict[str, list[str]] = {}
        for task_id, attempts in self.attempts.items():
            self._join_sessions(task_id, attempts)
        escalations = (find_escalation(session, snapshot) for session in snapshot.debug_sessions.values())
        self.escalated: Mapping[str, EscalatedSession] = {one.session.id: one for one in escalations if one is not None}
        self.of_attempts: dict[str, DebugSession] = {}
        self.sessions: dict[str, DebugSession] = {}
        self.sessions_of: dict[str, list[str]] = {}  # IDs; "" for sessions of no known work
        for session in snapshot.debug_sessions.values():
            if session.attempt_id in snapshot.attempts:
                self.of_attempts[session.attempt_id] = session
                if session.id not in self.escalated:
                    continue
            self.sessions[session.id] = session
            home = self.above[session_key(session.id)] = self._home_of(session, names)
            self.sessions_of.setdefault(home, []).append(session.id)
        self._free: dict[str, Task | DebugSession] = {task_key(id): task for id, task in self.free_tasks.items()}
        self._free |= {session_key(id): self.sessions[id] for id in self.sessions_of.get("", ())}
        self._task_texts: _Texts[Task] = _texts(self.tasks, _task_text, before._task_texts if before else {})
        known_attempts = before._attempt_texts if before else {}
        self._attempt_texts: _Texts[Attempt] = _texts(snapshot.attempts, _attempt_text, known_attempts)
        known_sessions = before._session_texts if before else {}
        self._session_texts: _Texts[DebugSession] = _texts(self.sessions, _session_text, known_sessions)

    def _place_task(self, task: Task, attempts: Sequence[Attempt], names: LoopNames) -> None:
        """Put attempts below the loop that made them, else below the loop of the task."""
        link = names.link(task)
        home = link.loop_id if link is not None else ""
        for attempt in attempts:
            owner = names.find(attempt.loop_id) or home
            self.above[attempt_key(attempt.id)] = owner or task_key(task.id)
            self.attempts_of.setdefault(owner or task_key(task.id), []).append(attempt)
            if owner:
                self.homes[task.id] = owner
        if home:
            self.homes[task.id] = home
        if not home and (not attempts or task_key(task.id) in self.attempts_of):
            self.free_tasks[task.id] = task

    def _join_sessions(self, task_id: str, attempts: Sequence[Attempt]) -> None:
        """Put ended sessions that attempted only this task below its newest session."""
        owners = [*dict.fromkeys(self.above[attempt_key(attempt.id)] for attempt in attempts)]
        for owner in owners[:-1]:
            loop, own = self.loops.get(owner), self.attempts_of[owner]
            is_joined = loop is not None and loop.is_agent_session and loop.is_over and owners[-1] in self.loops
            if not is_joined or any(attempt.task_id != task_id for attempt in own):
                continue
            newest = self.homes[task_id] = owners[-1]
            del self.attempts_of[owner]
            self.attempts_of[newest] = sorted(
                (*own, *self.attempts_of[newest]), key=lambda one: (one.task_id, one.number)
            )
            self.above |= {owner: newest, **{attempt_key(attempt.id): newest for attempt in own}}
            self.earlier_of.setdefault(newest, []).append(owner)

    def _home_of(self, session: DebugSession, names: LoopNames) -> str:
        """Return the key of the row above a debug session; "" if its work is not known."""
        if owner := names.find(session.loop_id):
            return self.above.get(owner, owner)
        for name in (session.loop_id, session.task_id):
            if name in self.homes:
                return self.homes[name]
            if name in self.free_tasks:
                return task_key(name)
        return ""

    def with_changes(
        self, snapshot: Snapshot, loop_ids: Collection[str] = (), attempt_ids: Collection[str] = ()
    ) -> WorkCatalog:
        """Return the catalog of a snapshot where only these changed, each in its place.

        Called for each logged action, so its time must not grow with the number of tasks.
        """
        newer = copy(self)
        newer.loops = {**self.loops, **{loop_id: snapshot.loops[loop_id] for loop_id in loop_ids}}
        changed = {attempt_id: snapshot.attempts[attempt_id] for attempt_id in attempt_ids}
        if changed:
            tasks = {attempt.task_id for attempt in changed.values()}
            newer.attempts = {**self.attempts} | {
                task_id: tuple(changed.get(one.id, one) for one in self.attempts[task_id]) for task_id in tasks
            }
            newer.attempts_of = {**self.attempts_of} | {
                key: [changed.get(one.id, one) for one in self.attempts_of[key]]
                for key in {self.above[attempt_key(attempt_id)] for attempt_id in changed}
            }
            newer._attempt_texts = {**self._attempt_texts, **_texts(changed, _attempt_text, self._attempt_texts)}
        return newer

    @property
    def top_loops(self) -> Iterable[str]:
        """IDs of the loops that are rows at the top."""
        return (id for id in self.loops if id not in self.above) if self.earlier_of else self.loops

    @property
    def free_keys(self) -> Collection[str]:
        """Keys of the rows at the top that are not loops."""
        return self._free.keys()

    def free_record(self, key: str) -> Task | DebugSession:
        """Return the task or debug session of no known loop with this key."""
        return self._free[key]

    def row_above(self, key: str) -> str:
        """Return the key of the row above a row; "" if it is at the top or unknown."""
        row = parse_key(key)
        if row.kind == _EARLIER:
            return row.id.partition("/")[2]
        return row.id if row.kind in (_ITERATION, _LESSON) else self.above.get(key, "")

    def select(
        self,
        query: Query,
        needs: Container[str] = (),
        patterns_of: Callable[[str], Iterable[str]] = lambda _: (),
        found_ids: Collection[str] = (),
    ) -> list[FoundWork]:
        """Return matching top rows in order: loops, tasks and debug sessions of no loop.

        `needs` are the IDs of the loops that need a person, and `patterns_of` returns the IDs of a loop's patterns. All
        words of the query were found in other texts of the tasks and attempts with `found_ids`.
        """
        keys = (*self.top_loops, *self._free)
        if not query.terms:
            return [FoundWork(key) for key in keys]
        matching = _Matching(self, query.terms, needs, patterns_of, found_ids)
        found = []
        for key in keys:
            if matching.top(key):
                found.append(FoundWork(key))
            elif below := matching.below(key):
                found.append(FoundWork(key, False, below))
        return found


def select_loops(state: ProjectState, query: Query, needs: Container[str]) -> list[Loop]:
    """Return loops that match, also by rows below, as on the screen; newest first."""
    loops = state.snapshot.loops
    if not query.terms:
        return list(loops.values())
    catalog = WorkCatalog(state.snapshot)
    matching = _Matching(catalog, query.terms, needs, lambda key: state.loop_patterns(key).injected_ids)
    return [loop for id, loop in catalog.loops.items() if matching.top(id) or matching.below(id)]


def select_tasks(snapshot: Snapshot, query: Query) -> Collection[str]:
    """Return the IDs of the tasks that match by themselves or by an attempt."""
    if not query.terms:
        return snapshot.tasks.keys()
    catalog = WorkCatalog(snapshot)
    matching = _Matching(catalog, query.terms)
    return {id for id in snapshot.tasks if matching.task(id)}


def select_debug_sessions(snapshot: Snapshot, query: Query) -> Collection[str]:
    """Return IDs of matching debug sessions, also of those that are rows of attempts."""
    if not query.terms:
        return snapshot.debug_sessions.keys()
    matching = _Matching(WorkCatalog(snapshot), query.terms)
    return {id for id, session in snapshot.debug_sessions.items() if matching.session(session)}


class _Matching:
    """The rows that match the terms of one query."""

    def __init__(
        self,
        catalog: WorkCatalog,
        terms: Sequence[Term],
        needs: Container[str] = (),
        patterns_of: Callable[[str], Iterable[str]] = lambda _: (),
        found_ids: Collection[str] = (),
    ) -> None:
        self._catalog = catalog
        self._terms = terms
        self._needs = needs
        self._patterns_of = patterns_of
        self._found_ids = found_ids
        self._found_loops = {catalog.homes[id] for id in found_ids if id in catalog.homes}
        self._loops_with_tasks = frozenset(catalog.homes.values())

    def top(self, key: str) -> bool:
        """Return whether a row at the top matches all terms."""
        return all(self._top_matches(key, term) != term.negated for term in self._terms)

    def below(self, key: str) -> tuple[str, ...]:
        """Return matching keys below a row: earlier sessions, attempts, debug sessions."""
        catalog = self._catalog
        earlier = [id for id in catalog.earlier_of.get(key, ()) if self.top(id)]
        attempts = [attempt_key(one.id) for one in catalog.attempts_of.get(key, ()) if self.attempt(one, key)]
        sessions = [
            session_key(id) for id in catalog.sessions_of.get(key, ()) if self.session(catalog.sessions[id], key)
        ]
        return (*earlier, *attempts, *sessions)

    def task(self, id: str) -> bool:
        """Return whether a task or attempt matches all terms, the task no negated one."""
        key = task_key(id)
        if any(term.negated and self._top_matches(key, term) for term in self._terms):
            return False
        return self.top(key) or any(self.attempt(one, key) for one in self._catalog.attempts.get(id, ()))

    def attempt(self, attempt: Attempt, above: str) -> bool:
        """Return whether an attempt below the row `above` matches all terms."""
        return all(self._attempt_matches(attempt, above, term) != term.negated for term in self._terms)

    def session(self, session: DebugSession, above: str = "") -> bool:
        """Return whether a debug session matches all terms."""
        return all(self._session_matches(session, above, term) != term.negated for term in self._terms)

    def _top_matches(self, key: str, term: Term) -> bool:
        row = parse_key(key)
        if row.kind == _SESSION:
            return self._session_matches(self._catalog.sessions[row.id], "", term)
        if row.kind == _TASK and key not in self._catalog.loops:
            return self._task_matches(self._catalog.tasks[row.id], term)
        return self._loop_matches(self._catalog.loops[key], term)

    def _loop_matches(self, loop: Loop, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                is_stuck, has_task = loop.id in self._needs, loop.id in self._loops_with_tasks
                return matches_flag(value, stuck=is_stuck, task=has_task, **_loop_flags(loop))
            case "pattern":
                return any(value in pattern_id.lower() for pattern_id in self._patterns_of(loop.id))
            case "task":
                homes = self._catalog.homes
                return loop.id in self._loops_with_tasks and any(
                    value in task_id.lower() for task_id, home in homes.items() if home == loop.id
                )
            case "":
                return value in _loop_text(loop).lower() or (not term.negated and loop.id in self._found_loops)
            case field:
                return _LOOP_TESTS[field](loop, value)

    def _task_matches(self, task: Task, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                flags = {"task": True, "open": not task.status.ended, "failed": task.status is TaskStatus.FAILED}
                return matches_flag(value, ended=task.status.ended, **flags)
            case "agent":
                agents = (task.agent, *(attempt.agent for attempt in self._catalog.attempts.get(task.id, ())))
                return any(value in agent.lower() for agent in agents)
            case "":
                text = self._catalog._task_texts[task.id][1]
                return value in text or (not term.negated and task.id in self._found_ids)
            case field:
                return _TASK_TESTS[field](task, value)

    def _attempt_matches(self, attempt: Attempt, above: str, term: Term) -> bool:
        value, catalog = term.value, self._catalog
        task = catalog.tasks[attempt.task_id]
        match term.field:
            case "is":
                failed = attempt.outcome.value in {"failure", "timeout"}
                return matches_flag(value, attempt=True, open=attempt.is_open, failed=failed)
            case "outcome":
                return attempt.outcome.value.startswith(value)
            case "agent":
                return value in (attempt.agent or task.agent).lower()
            case "":
                known = value in catalog._attempt_texts[attempt.id][1] or value in catalog._task_texts[task.id][1]
                known = known or (not term.negated and attempt.id in self._found_ids)
                return known or self._top_matches(above, term)
            case "cause" | "error":
                return False
            case field:
                return _TASK_TESTS[field](task, value) or self._top_matches(above, term)

    def _session_matches(self, session: DebugSession, above: str, term: Term) -> bool:
        value, catalog = term.value, self._catalog
        is_escalated = session.id in catalog.escalated
        match term.field:
            case "is":
                is_stuck = is_escalated and not catalog.escalated[session.id].has_ended
                failed, is_open = session.status == FAILED, session.is_open
                flags = {"session": True, "open": is_open, "failed": failed, "escalated": is_escalated}
                return matches_flag(value, stuck=is_stuck, **flags)
            case "status":
                return (is_escalated and ESCALATED.startswith(value)) or session.status.startswith(value)
            case "":
                text = catalog._session_texts.get(session.id)
                known = value in (text[1] if text is not None else _session_text(session).lower())
                return known or (bool(above) and self._top_matches(above, term))
            case field:
                return _SESSION_TESTS[field](session, value)


class Tree(Struct, frozen=True):
    """The keys of the visible rows in order.

    `headings` are the rows that do not match themselves, and `earlier` has the number of rows that a row of earlier
    attempts or iterations hides.
    """

    keys: tuple[str, ...] = ()
    headings: frozenset[str] = frozenset()
    earlier: Mapping[str, int] = {}


def build_tree(
    catalog: WorkCatalog,
    found: Sequence[FoundWork],
    unfolded: Collection[str],
    patterns_of: Callable[[str], LoopPatterns],
) -> Tree:
    """Build the rows that match, and below an unfolded one all that it consists of.

    A row that only matches by rows below it is followed by these.
    """
    keys: list[str] = []
    headings: set[str] = set()
    earlier: dict[str, int] = {}
    if not unfolded and all(one.own for one in found):  # the common case, also of very many rows
        return Tree(tuple(one.key for one in found))
    for one in found:
        keys.append(one.key)
        if one.key in unfolded:
            keys += _rows_below(catalog, one.key, unfolded, patterns_of, earlier)
        elif not one.own:
            keys += one.below
        if not one.own:
            headings.add(one.key)
    return Tree(tuple(keys), frozenset(headings | earlier.keys()), earlier)


def has_rows_below(catalog: WorkCatalog, key: str, patterns: LoopPatterns) -> bool:
    """Return whether a top row can be unfolded; `patterns` are those of its loop."""
    if key in catalog.above:
        return False
    if key in catalog.attempts_of or key in catalog.sessions_of:
        return True
    loop = catalog.loops.get(key)
    return loop is not None and bool(
        _shown_iterations(loop) or patterns.uses or patterns.extracted or patterns.held_out
    )


def _rows_below(
    catalog: WorkCatalog,
    key: str,
    unfolded: Container[str],
    patterns_of: Callable[[str], LoopPatterns],
    earlier: dict[str, int],
) -> list[str]:
    """Return a row's parts: sessions, attempts, iterations, debug sessions, lessons.

    Adds the rows that hide earlier ones to `earlier`.
    """
    loop = catalog.loops.get(key)
    attempts = [attempt_key(attempt.id) for attempt in catalog.attempts_of.get(key, ())]
    iterations = [iteration_key(key, place) for place in range(_shown_iterations(loop))] if loop is not None else []
    rows: list[str] = [*catalog.earlier_of.get(key, ())]
    for kind, own in ((_ATTEMPT, attempts), (_ITERATION, iterations)):
        hidden = len(own) - LAST_ROWS
        if hidden > 1:
            heading = earlier_key(f"{kind}/{key}")
            earlier[heading] = hidden
            rows += [heading, *(own if heading in unfolded else own[hidden:])]
        else:
            rows += own
    rows += [session_key(id) for id in catalog.sessions_of.get(key, ())]
    if loop is not None:
        patterns = patterns_of(key)
        found = (one.pattern_id for one in patterns.extracted)
        ids = dict.fromkeys((*patterns.injected_ids, *patterns.held_out, *found))
        rows += [lesson_key(key, pattern_id) for pattern_id in ids]
    return rows


def _shown_iterations(loop: Loop) -> int:
    """Return the number of iterations as rows; 0 if only hooks recorded the session."""
    return 0 if loop.is_from_hooks_alone else len(loop.iterations)


def _loop_flags(loop: Loop) -> dict[str, bool]:
    return {
        **dict.fromkeys(loop.badges, True),
        "archived": loop.archived,
        "live": loop.is_running,
        "ended": loop.is_over,
        "open": not loop.is_over,
        "failed": loop.status in (LoopStatus.FAILED, LoopStatus.CRASHED),
        "inferred": loop.state_source is StateSource.INFERRED,
        "waiting": needs_person(loop),
        "contradicted": CONTRADICTED in loop.badges,
    }


def _status_words(loop: Loop) -> tuple[str, ...]:
    words = (loop.status.value, loop.raw_status.lower())
    return (*words, WAITS_FOR_YOU) if needs_person(loop) else words


def _outcome_of(loop: Loop) -> Outcome:
    if loop.status is LoopStatus.PARTIAL:
        return Outcome.PARTIAL
    return {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.UNKNOWN}[loop.success]


def _mentions_error(loop: Loop, value: str) -> bool:
    failures = (failure for iteration in loop.iterations for failure in iteration.failures)
    return any(value in failure.summary.lower() for failure in failures)


_LOOP_TESTS: Final[Tests[Loop]] = {
    "status": lambda loop, value: any(word.startswith(value) for word in _status_words(loop)),
    **dict.fromkeys(
        ("source", "runner"),
        lambda loop, value: any(source.startswith(value) for source in (loop.source_name, *loop.sources)),
    ),
    "agent": lambda loop, value: value in loop.agent.lower(),
    "model": lambda loop, value: value in loop.model.lower(),
    **dict.fromkeys(
        ("id", "loop"), lambda loop, value: any(value in name.lower() for name in (loop.id, *loop.aliases))
    ),
    "tag": lambda loop, value: any(value in tag.lower() for tag in loop.tags),
    "outcome": lambda loop, value: _outcome_of(loop).value.startswith(value),
    "cause": lambda loop, value: False,
    "error": _mentions_error,
    "file": lambda loop, value: any(value in file.lower() for file in loop.files),
}
_TASK_TESTS: Final[Tests[Task]] = {
    **dict.fromkeys(
        ("outcome", "cause", "error", "file", "source", "runner", "model", "pattern"), lambda task, value: False
    ),
    "status": lambda task, value: task.status.value.startswith(value) or task.raw_status.lower().startswith(value),
    "loop": lambda task, value: value in task.loop_id.lower(),
    "tag": lambda task, value: any(value in tag.lower() for tag in task.tags),
    **dict.fromkeys(("task", "id"), lambda task, value: value in task.id.lower()),
}
_SESSION_TESTS: Final[Tests[DebugSession]] = {
    **dict.fromkeys(("outcome", "tag", "source", "runner", "model", "pattern"), lambda session, value: False),
    "cause": lambda session, value: any(
        run.analysis is not None and run.analysis.category.lower().startswith(value) for run in session.executions
    ),
    "error": lambda session, value: any(
        value in failure.error_type.lower() for run in session.executions for failure in run.failures
    ),
    "agent": lambda session, value: value in session.agent.lower(),
    "id": lambda session, value: value in session.id.lower(),
    "loop": lambda session, value: value in session.loop_id.lower(),
    "task": lambda session, value: value in session.task_id.lower(),
    "file": lambda session, value: value in session.file_path.lower(),
}


def _texts(records: Mapping[str, _Record], text: Callable[[_Record], str], known: _Texts[_Record]) -> _Texts[_Record]:
    """Map IDs to record and lower-case text; `known` ones are used if unchanged."""
    texts: dict[str, tuple[_Record, str]] = {}
    for key, record in records.items():
        before = known.get(key)
        texts[key] = before if before is not None and before[0] is record else (record, text(record).lower())
    return texts


def _loop_text(loop: Loop) -> str:
    return f"{loop.id}\n{loop.task}\n{loop.status}\n{loop.raw_status}\n{loop.owner}"


def _task_text(task: Task) -> str:
    return "\n".join((task.id, task.description, task.criteria, task.raw_status, task.agent, *task.tags))


def _attempt_text(attempt: Attempt) -> str:
    lists = (*attempt.worked, *attempt.failed, *attempt.suggestions)
    return "\n".join((attempt.id, attempt.plan, attempt.reason, attempt.agent, *lists))


def _session_text(session: DebugSession) -> str:
    parts = [session.id, session.file_path, session.agent, session.task_id, session.loop_id, *session.recommendations]
    for execution in session.executions:
        if execution.analysis is not None:
            analysis = execution.analysis
            parts += (analysis.root_cause, analysis.category, analysis.strategy)
        if execution.fix is not None:
            parts += (execution.fix.description, *execution.fix.files)
        for failure in execution.failures:
            parts += (failure.error_type, failure.message, failure.test_name, failure.file)
    parts += [lesson.pattern for lesson in session.lessons]
    return "\n".join(parts)


Remembered: TypeAlias = Task | Attempt | DebugSession

_SOURCES: Final = {
    "_names": "loops",
    "_aliases": "loops",
    "_extracted": "patterns",
    "_used": "events",
    "_reflections": "reflections",
}  # for each cached index, the field of `Delta` that reports changes of its source


class WorkLinks:
    """Links between records of one snapshot; immutable, with indexes built on demand."""

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
