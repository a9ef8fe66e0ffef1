"""Filter loops, reflections, decisions, tasks, attempts and debug sessions.

`filter_parser` parses the queries, such as `is:attempt outcome:failure oauth`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from msgspec import Struct

from core.queries.filter_parser import FieldKind, Fields, Query, Term
from core.records.debug_sessions import ESCALATED, FAILED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus, group_by_task
from core.records.lessons import LessonKind, LessonState
from core.records.loops import Loop, Outcome, StateSource
from core.records.waits import WAITS_FOR_YOU, needs_person

if TYPE_CHECKING:
    from core.records.decisions import Decision
    from core.records.lessons import JoinedLesson, Lesson
    from core.records.reflections import Reflection
    from core.records.snapshot import Snapshot

LOOP_FIELDS: Final[Fields] = {
    **dict.fromkeys(("status", "source", "runner", "id", "tag", "pattern", "agent", "model"), FieldKind.TEXT),
    "is": (
        *("archived", "live", "ended", "inferred", "waiting", "contradicted", "orphan", "unregistered"),
        *("archived-but-registered", "registered-only", "stale", "crashed", "status-disagrees", "id-disagrees"),
        *("no-limit", "two-sessions", "no-op", "completed-but-open", "success-contradicted"),
    ),
}
"""Fields of a loop query; `is:` also accepts badges that adapters of other packages add."""
REFLECTION_FIELDS: Final[Fields] = dict.fromkeys(("kind", "loop", "task", "effect", "shape", "outcome"), FieldKind.TEXT)
LESSON_FIELDS: Final[Fields] = {
    **dict.fromkeys(("runner", "file", "loop"), FieldKind.TEXT),
    "kind": tuple(kind.value for kind in LessonKind),
    "state": tuple(state.value for state in LessonState),
    "outcome": tuple(outcome.value for outcome in Outcome),
    "is": ("loaded", "contradicted", "cited"),
}
DECISION_FIELDS: Final[Fields] = dict.fromkeys(("verb", "by", "subject"), FieldKind.TEXT)


_Record = TypeVar("_Record")
Tests = Mapping[str, Callable[[_Record, str], bool]]  # (record, lower-case value) -> match, by field; "" for text
MEMORY_FIELDS: Final[Fields] = {
    "is": ("task", "attempt", "session", "open", "failed", "escalated"),
    "status": FieldKind.TEXT,
    "outcome": tuple(outcome.value for outcome in Outcome),
    **dict.fromkeys(("agent", "cause", "error", "loop", "task", "tag", "file"), FieldKind.TEXT),
    **dict.fromkeys(("in", "tool", "since", "until"), FieldKind.PALETTE),
}
_Texts: TypeAlias = Mapping[str, tuple[_Record, str]]
_TASK_TESTS: Final[Tests[Task]] = {
    **dict.fromkeys(("outcome", "cause", "error", "file"), lambda task, value: False),
    "status": lambda task, value: task.status.value.startswith(value) or task.raw_status.lower().startswith(value),
    "loop": lambda task, value: value in task.loop_id.lower(),
    "tag": lambda task, value: any(value in tag.lower() for tag in task.tags),
    "task": lambda task, value: value in task.id.lower(),
}
_SESSION_TESTS: Final[Tests[DebugSession]] = {
    **dict.fromkeys(("outcome", "tag"), lambda session, value: False),
    "cause": lambda session, value: any(
        run.analysis is not None and run.analysis.category.lower().startswith(value) for run in session.executions
    ),
    "error": lambda session, value: any(
        value in failure.error_type.lower() for run in session.executions for failure in run.failures
    ),
    "agent": lambda session, value: value in session.agent.lower(),
    "loop": lambda session, value: value in session.loop_id.lower(),
    "task": lambda session, value: value in session.task_id.lower(),
    "file": lambda session, value: value in session.file_path.lower(),
}


def _badges(loop: Loop) -> list[str]:
    inferred = loop.state_source is StateSource.INFERRED
    flags = {
        "archived": loop.archived,
        "live": loop.is_running,
        "ended": loop.status.ended,
        "inferred": inferred,
        "waiting": needs_person(loop),
        "contradicted": "success-contradicted" in loop.badges,
    }
    return [*loop.badges, *(word for word, is_set in flags.items() if is_set)]


def _status_words(loop: Loop) -> tuple[str, ...]:
    words = (loop.status.value, loop.raw_status.lower())
    return (*words, WAITS_FOR_YOU) if needs_person(loop) else words


def _reflection_text(reflection: Reflection) -> str:
    parts = (reflection.observation, reflection.analysis, reflection.learning)
    return "\n".join((*parts, reflection.loop_id, reflection.task_id, *reflection.actions)).lower()


def _lesson_text(lesson: Lesson) -> str:
    return "\n".join((lesson.id, lesson.text, lesson.title, lesson.trigger, lesson.why)).lower()


def _verb(decision: Decision) -> str:
    return decision.verb.value.replace("_", " ")


_LOOP_TESTS: Final[Tests[Loop]] = {
    "status": lambda loop, value: any(word.startswith(value) for word in _status_words(loop)),
    **dict.fromkeys(
        ("source", "runner"),
        lambda loop, value: any(source.startswith(value) for source in (loop.source_name, *loop.sources)),
    ),
    "agent": lambda loop, value: value in loop.agent.lower(),
    "model": lambda loop, value: value in loop.model.lower(),
    "id": lambda loop, value: value in loop.id.lower(),
    "tag": lambda loop, value: any(value in tag.lower() for tag in loop.tags),
    "is": lambda loop, value: any(word.startswith(value) for word in _badges(loop)),
    "": lambda loop, value: value in f"{loop.id}\n{loop.task}\n{loop.status}\n{loop.raw_status}\n{loop.owner}".lower(),
}
_REFLECTION_TESTS: Final[Tests[Reflection]] = {
    "kind": lambda reflection, value: reflection.kind.startswith(value.replace("-", "_")),
    "loop": lambda reflection, value: value in reflection.loop_id.lower(),
    "task": lambda reflection, value: value in reflection.task_id.lower(),
    "effect": lambda reflection, value: reflection.effectiveness.startswith(value),
    "shape": lambda reflection, value: reflection.shape.startswith(value),
    "outcome": lambda reflection, value: reflection.outcome.value.startswith(value),
    "": lambda reflection, value: value in _reflection_text(reflection),
}
_LESSON_TESTS: Final[Tests[JoinedLesson]] = {
    "runner": lambda joined, value: any(runner.startswith(value) for runner in joined.runners),
    "file": lambda joined, value: any(value in place.file.lower() for place in joined.places),
    "loop": lambda joined, value: any(value in place.loop_id.lower() for place in joined.places),
    "kind": lambda joined, value: joined.lesson.kind.startswith(value),
    "state": lambda joined, value: joined.state.startswith(value),
    "outcome": lambda joined, value: any(place.outcome.startswith(value) for place in joined.places),
    "is": lambda joined, value: _matches_flag(
        value, loaded=joined.is_loaded, contradicted=joined.is_contradicted, cited=bool(joined.uses)
    ),
    "": lambda joined, value: any(value in _lesson_text(place) for place in joined.places),
}
_DECISION_TESTS: Final[Tests[Decision]] = {
    "verb": lambda decision, value: _verb(decision).startswith(value.replace("_", " ").replace("-", " ")),
    "by": lambda decision, value: value in decision.by.lower(),
    "subject": lambda decision, value: value in decision.subject.lower(),
    "": lambda decision, value: (
        value in f"{_verb(decision)}\n{decision.by}\n{decision.subject}\n{decision.reason}".lower()
    ),
}


def select_loops(loops: Mapping[str, Loop], query: Query, patterns_of: Callable[[str], Iterable[str]]) -> list[str]:
    """Return the IDs of matching loops; `patterns_of` maps loop IDs to pattern IDs."""

    def uses_pattern(loop: Loop, value: str) -> bool:
        return any(value in pattern_id.lower() for pattern_id in patterns_of(loop.id))

    if not query.terms:
        return list(loops)
    tests = {**_LOOP_TESTS, "pattern": uses_pattern}
    return [key for key, loop in loops.items() if _matches(loop, query, tests)]


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """Return the IDs of matching reflections, in the given order."""
    return [key for key, reflection in reflections.items() if _matches(reflection, query, _REFLECTION_TESTS)]


def select_lessons(lessons: Iterable[JoinedLesson], query: Query) -> list[str]:
    """Return the IDs of matching lessons, in the given order."""
    return [one.id for one in lessons if _matches(one, query, _LESSON_TESTS)]


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """Return the IDs of matching decisions, in the given order."""
    return [decision.id for decision in decisions if _matches(decision, query, _DECISION_TESTS)]


def _matches(record: _Record, query: Query, tests: Tests[_Record]) -> bool:
    return all(tests.get(term.field, tests[""])(record, term.value) != term.negated for term in query.terms)


class FoundTask(Struct, frozen=True):
    """A task that matches (`own`) or has matching `attempts`, sorted by number."""

    task: Task
    own: bool
    attempts: tuple[Attempt, ...]


class MemoryCatalog:
    """All tasks, attempts and debug sessions, prepared for filtering; immutable.

    A session that was made from the log of an attempt is listed as that attempt (`of_attempts`), unless a person must
    decide about it.

    An attempt matches by its own text and by the text, status, tags and loop of its task. `before` is the catalog of an
    earlier snapshot, whose texts are reused for unchanged records.
    """

    def __init__(self, snapshot: Snapshot, before: MemoryCatalog | None = None) -> None:
        from core.debug_memory.escalations import find_escalation  # imports much; lists of loops need none

        self.attempts = group_by_task(snapshot.attempts.values())
        missing = {task_id: Task(id=task_id) for task_id in self.attempts.keys() - snapshot.tasks.keys()}
        self.tasks: Mapping[str, Task] = {**snapshot.tasks, **missing} if missing else snapshot.tasks
        escalations = (find_escalation(session, snapshot) for session in snapshot.debug_sessions.values())
        self.escalated = {one.session.id: one for one in escalations if one is not None}
        self.of_attempts: Mapping[str, DebugSession] = {
            session.attempt_id: session
            for session in snapshot.debug_sessions.values()
            if session.attempt_id in snapshot.attempts
        }
        views = {session.id for session in self.of_attempts.values()} - self.escalated.keys()
        self.sessions: Mapping[str, DebugSession] = (
            {id: one for id, one in snapshot.debug_sessions.items() if id not in views}
            if views
            else snapshot.debug_sessions
        )
        self._task_texts: _Texts[Task] = _texts(self.tasks, _task_text, before._task_texts if before else {})
        known_attempts = before._attempt_texts if before else {}
        self._attempt_texts: _Texts[Attempt] = _texts(snapshot.attempts, _attempt_text, known_attempts)
        known_sessions = before._session_texts if before else {}
        self._session_texts: _Texts[DebugSession] = _texts(self.sessions, _session_text, known_sessions)

    def with_changed(self, snapshot: Snapshot, attempt_ids: Collection[str]) -> MemoryCatalog:
        """Return the catalog of a snapshot in which only these attempts changed.

        Called for each logged action, so its time must not grow with the number of tasks.
        """
        newer = copy(self)
        changed = {attempt_id: snapshot.attempts[attempt_id] for attempt_id in attempt_ids}
        tasks = {attempt.task_id for attempt in changed.values()}
        newer.attempts = {**self.attempts} | {
            task_id: tuple(changed.get(one.id, one) for one in self.attempts[task_id]) for task_id in tasks
        }
        newer._attempt_texts = {**self._attempt_texts, **_texts(changed, _attempt_text, self._attempt_texts)}
        return newer

    def select_tasks(self, query: Query, found_ids: Container[str] = ()) -> list[FoundTask]:
        """Return the tasks that match or have matching attempts, in catalog order.

        All words of the query were found in other texts of the tasks and attempts with `found_ids`.
        """
        terms = query.terms
        found: list[FoundTask] = []
        for task in self.tasks.values():
            own = all(self._task_matches(task, term, found_ids) != term.negated for term in terms)
            attempts = tuple(
                attempt
                for attempt in self.attempts.get(task.id, ())
                if all(self._attempt_matches(attempt, task, term, found_ids) != term.negated for term in terms)
            )
            if own or attempts:
                found.append(FoundTask(task, own, attempts))
        return found

    def select_sessions(self, query: Query) -> list[DebugSession]:
        """Return the matching debug sessions, in catalog order."""
        matches, terms = self._session_matches, query.terms
        return [one for one in self.sessions.values() if all(matches(one, term) != term.negated for term in terms)]

    def _task_matches(self, task: Task, term: Term, found_ids: Container[str]) -> bool:
        value = term.value
        match term.field:
            case "is":
                failed = task.status is TaskStatus.FAILED
                return _matches_flag(value, task=True, open=not task.status.ended, failed=failed)
            case "agent":
                agents = (task.agent, *(attempt.agent for attempt in self.attempts.get(task.id, ())))
                return any(value in agent.lower() for agent in agents)
            case "":
                return value in self._task_texts[task.id][1] or (not term.negated and task.id in found_ids)
            case field:
                return _TASK_TESTS[field](task, value)

    def _attempt_matches(self, attempt: Attempt, task: Task, term: Term, found_ids: Container[str]) -> bool:
        value = term.value
        match term.field:
            case "is":
                failed = attempt.outcome.value in {"failure", "timeout"}
                return _matches_flag(value, attempt=True, open=attempt.is_open, failed=failed)
            case "outcome":
                return attempt.outcome.value.startswith(value)
            case "agent":
                return value in (attempt.agent or task.agent).lower()
            case "":
                known = value in self._attempt_texts[attempt.id][1] or value in self._task_texts[task.id][1]
                return known or (not term.negated and attempt.id in found_ids)
            case field:
                return _TASK_TESTS[field](task, value)

    def _session_matches(self, session: DebugSession, term: Term) -> bool:
        value = term.value
        is_escalated = session.id in self.escalated
        match term.field:
            case "is":
                failed = session.status == FAILED
                return _matches_flag(value, session=True, open=session.is_open, failed=failed, escalated=is_escalated)
            case "status":
                return (is_escalated and ESCALATED.startswith(value)) or session.status.startswith(value)
            case "":
                return value in self._session_texts[session.id][1]
            case field:
                return _SESSION_TESTS[field](session, value)


def _matches_flag(word: str, **flags: bool) -> bool:
    return any(is_set and name.startswith(word) for name, is_set in flags.items())


def _texts(records: Mapping[str, _Record], text: Callable[[_Record], str], known: _Texts[_Record]) -> _Texts[_Record]:
    """Map IDs to record and lower-case text; unchanged records are taken from `known`."""
    texts: dict[str, tuple[_Record, str]] = {}
    for key, record in records.items():
        before = known.get(key)
        texts[key] = before if before is not None and before[0] is record else (record, text(record).lower())
    return texts


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
