"""Filter of tasks, attempts and debug sessions: `is:attempt outcome:failure oauth`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from core.debug_memory.escalations import find_escalation
from core.queries.filter_parser import FieldKind, Fields, Query, Term
from core.queries.record_filters import Tests
from core.records.debug_sessions import ESCALATED, FAILED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus, by_task
from core.records.loops import Outcome
from core.records.snapshot import Snapshot

MEMORY_FIELDS: Final[Fields] = {
    "is": ("task", "attempt", "session", "open", "failed", "escalated"),
    "status": FieldKind.TEXT,
    "outcome": tuple(outcome.value for outcome in Outcome),
    **dict.fromkeys(("agent", "cause", "error", "loop", "task", "tag", "file"), FieldKind.TEXT),
}

_Record = TypeVar("_Record", Task, Attempt, DebugSession)
_Texts: TypeAlias = Mapping[str, tuple[_Record, str]]


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task that matches itself (`own`) or has matching attempts (by number)."""

    task: Task
    own: bool
    attempts: tuple[Attempt, ...]


class MemoryCatalog:
    """All tasks, attempts and debug sessions, ready to be filtered; immutable.

    An attempt matches by its own words and by the words, status, tags and loop of its task. The texts of unchanged
    records are taken from the catalog `before`, of an earlier snapshot.

    `tasks` includes tasks without metadata. `attempts` are those of a task ID, in the order of their numbers.
    `escalated` contains the escalated sessions by ID.
    """

    def __init__(self, snapshot: Snapshot, before: MemoryCatalog | None = None) -> None:
        self.attempts = by_task(snapshot.attempts.values())
        missing = {task_id: Task(id=task_id) for task_id in self.attempts.keys() - snapshot.tasks.keys()}
        self.tasks: Mapping[str, Task] = {**snapshot.tasks, **missing} if missing else snapshot.tasks
        self.sessions = snapshot.debug_sessions
        escalations = (find_escalation(session, snapshot) for session in self.sessions.values())
        self.escalated = {one.session.id: one for one in escalations if one is not None}
        self._task_texts: _Texts[Task] = _texts(self.tasks, _task_text, before._task_texts if before else {})
        self._attempt_texts: _Texts[Attempt] = _texts(
            snapshot.attempts, _attempt_text, before._attempt_texts if before else {}
        )
        self._session_texts: _Texts[DebugSession] = _texts(
            self.sessions, _session_text, before._session_texts if before else {}
        )

    def with_changed(self, snapshot: Snapshot, attempt_ids: Collection[str]) -> MemoryCatalog:
        """The catalog of a snapshot in which only these attempts changed.

        The time does not grow with the number of tasks: it is spent for each logged action.
        """
        newer = copy(self)
        changed = {attempt_id: snapshot.attempts[attempt_id] for attempt_id in attempt_ids}
        tasks = {attempt.task_id for attempt in changed.values()}
        newer.attempts = {**self.attempts} | {
            task_id: tuple(changed.get(one.id, one) for one in self.attempts[task_id]) for task_id in tasks
        }
        newer._attempt_texts = {**self._attempt_texts, **_texts(changed, _attempt_text, self._attempt_texts)}
        return newer

    def select_tasks(self, query: Query) -> list[FoundTask]:
        """Tasks that match or have matching attempts, in their order."""
        terms = query.terms
        found: list[FoundTask] = []
        for task in self.tasks.values():
            own = all(self._task_matches(task, term) != term.negated for term in terms)
            attempts = tuple(
                attempt
                for attempt in self.attempts.get(task.id, ())
                if all(self._attempt_matches(attempt, task, term) != term.negated for term in terms)
            )
            if own or attempts:
                found.append(FoundTask(task, own, attempts))
        return found

    def select_sessions(self, query: Query) -> list[DebugSession]:
        """Matching debug sessions, in their order."""
        matches, terms = self._session_matches, query.terms
        return [one for one in self.sessions.values() if all(matches(one, term) != term.negated for term in terms)]

    def _task_matches(self, task: Task, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                failed = task.status is TaskStatus.FAILED
                return _matches_flag(value, task=True, open=not task.status.ended, failed=failed)
            case "agent":
                agents = (task.agent, *(attempt.agent for attempt in self.attempts.get(task.id, ())))
                return any(value in agent.lower() for agent in agents)
            case "":
                return value in self._task_texts[task.id][1]
            case field:
                return _TASK_TESTS[field](task, value)

    def _attempt_matches(self, attempt: Attempt, task: Task, term: Term) -> bool:
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
                return value in self._attempt_texts[attempt.id][1] or value in self._task_texts[task.id][1]
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


def _never(record: object, value: str) -> bool:
    return False


_TASK_TESTS: Final[Tests[Task]] = {
    **dict.fromkeys(("outcome", "cause", "error", "file"), _never),
    "status": lambda task, value: task.status.value.startswith(value) or task.raw_status.lower().startswith(value),
    "loop": lambda task, value: value in task.loop_id.lower(),
    "tag": lambda task, value: any(value in tag.lower() for tag in task.tags),
    "task": lambda task, value: value in task.id.lower(),
}
_SESSION_TESTS: Final[Tests[DebugSession]] = {
    **dict.fromkeys(("outcome", "tag"), _never),
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


def _texts(records: Mapping[str, _Record], text: Callable[[_Record], str], known: _Texts[_Record]) -> _Texts[_Record]:
    """Searched text of each record in lower case; from `known` if unchanged."""
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
