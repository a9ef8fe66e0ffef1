"""The filter over tasks, attempts and debug sessions: `is:attempt outcome:failure cause:null_undefined oauth`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from core.debug_memory.escalation_status import escalated
from core.queries.filter import Query, Term, parse_query
from core.records.debug_sessions import ESCALATED, FAILED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus, by_task
from core.records.loops import Outcome
from core.records.snapshot import Snapshot

MEMORY_FIELDS: Final = ("is", "status", "outcome", "agent", "cause", "error", "loop", "task", "tag", "file")
"""Fields of a memory query; `is:` takes task, attempt, session, open, failed and escalated."""

_ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "is": ("task", "attempt", "session", "open", "failed", "escalated"),
    "outcome": tuple(outcome.value for outcome in Outcome),
}
"""Fields that take one of a few words, or the beginning of one."""

_Record = TypeVar("_Record", Task, Attempt, DebugSession)
_Texts: TypeAlias = Mapping[str, tuple[_Record, str]]


def parse_memory_query(text: str) -> Query:
    """Parse what a person typed; a word that a field does not take is a problem, and nothing has it."""
    query = parse_query(text, MEMORY_FIELDS)
    wrong = [
        f"{term.field}: is one of {', '.join(_ONE_OF[term.field])}"
        for term in query.terms
        if term.field in _ONE_OF and not any(word.startswith(term.value) for word in _ONE_OF[term.field])
    ]
    return replace(query, problems=(*query.problems, *wrong))


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task of which something matches.

    Attributes:
        own: Whether the task itself does, not only attempts at it.
        attempts: Those that match, by number.
    """

    task: Task
    own: bool
    attempts: tuple[Attempt, ...]


class MemoryCatalog:
    """All tasks, attempts and sessions, ready to be filtered; immutable.

    An attempt has the words, status, tags and loop of its task beside its own: what is true of the task is true of
    what was done for it.

    Args:
        snapshot: The records.
        before: The catalog of an earlier snapshot; the texts of records that are still the same are taken from it.

    Attributes:
        tasks: By id; also those of which nothing but an action log is there.
        attempts: Of each task, by number.
        sessions: By id.
        escalated: Those that are escalated, by id.
    """

    def __init__(self, snapshot: Snapshot, before: MemoryCatalog | None = None) -> None:
        self.attempts = by_task(snapshot.attempts.values())
        missing = {task_id: Task(id=task_id) for task_id in self.attempts.keys() - snapshot.tasks.keys()}
        self.tasks: Mapping[str, Task] = {**snapshot.tasks, **missing} if missing else snapshot.tasks
        self.sessions = snapshot.debug_sessions
        waiting = (escalated(session, snapshot) for session in self.sessions.values())
        self.escalated = {one.session.id: one for one in waiting if one is not None}
        self._task_texts: _Texts[Task] = _texts(self.tasks, _task_text, before._task_texts if before else {})
        self._attempt_texts: _Texts[Attempt] = _texts(
            snapshot.attempts, _attempt_text, before._attempt_texts if before else {}
        )
        self._session_texts: _Texts[DebugSession] = _texts(
            self.sessions, _session_text, before._session_texts if before else {}
        )

    def with_changed(self, snapshot: Snapshot, attempt_ids: Collection[str]) -> MemoryCatalog:
        """The catalog of a snapshot that differs in these attempts alone, none of which came or went.

        What one more action costs must not grow with the number of tasks.
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
        """The tasks that match or of which attempts do, in their own order."""
        terms = query.terms
        if not terms:
            return [FoundTask(task, True, self.attempts.get(task.id, ())) for task in self.tasks.values()]
        found: list[FoundTask] = []
        for task in self.tasks.values():
            own = all(self._task_has(task, term) != term.negated for term in terms)
            attempts = tuple(
                attempt
                for attempt in self.attempts.get(task.id, ())
                if all(self._attempt_has(attempt, task, term) != term.negated for term in terms)
            )
            if own or attempts:
                found.append(FoundTask(task, own, attempts))
        return found

    def select_sessions(self, query: Query) -> list[DebugSession]:
        """The sessions that match, in their own order."""
        return [
            session
            for session in self.sessions.values()
            if all(self._session_has(session, term) != term.negated for term in query.terms)
        ]

    def _task_has(self, task: Task, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                return _is(value, task=True, open=not task.status.ended, failed=task.status is TaskStatus.FAILED)
            case "outcome" | "cause" | "error" | "file":
                return False
            case "agent":
                tried = self.attempts.get(task.id, ())
                return value in task.agent.lower() or any(value in attempt.agent.lower() for attempt in tried)
            case "":
                return value in self._task_texts[task.id][1]
            case _:
                return _of_task(task, term)

    def _attempt_has(self, attempt: Attempt, task: Task, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                failed = attempt.outcome.value in {"failure", "timeout"}
                return _is(value, attempt=True, open=attempt.is_open, failed=failed)
            case "outcome":
                return attempt.outcome.value.startswith(value)
            case "cause" | "error" | "file":
                return False
            case "agent":
                return value in (attempt.agent or task.agent).lower()
            case "":
                return value in self._attempt_texts[attempt.id][1] or value in self._task_texts[task.id][1]
            case _:
                return _of_task(task, term)

    def _session_has(self, session: DebugSession, term: Term) -> bool:
        value = term.value
        match term.field:
            case "is":
                failed, waits = session.status == FAILED, session.id in self.escalated
                return _is(value, session=True, open=session.is_open, failed=failed, escalated=waits)
            case "status":
                waits = session.id in self.escalated and ESCALATED.startswith(value)
                return waits or session.status.startswith(value)
            case "cause":
                causes = (one.analysis.category for one in session.executions if one.analysis is not None)
                return any(cause.lower().startswith(value) for cause in causes)
            case "error":
                return any(
                    value in failure.error_type.lower() for one in session.executions for failure in one.failures
                )
            case "agent":
                return value in session.agent.lower()
            case "loop":
                return value in session.loop_id.lower()
            case "task":
                return value in session.task_id.lower()
            case "file":
                return value in session.file_path.lower()
            case "outcome" | "tag":
                return False
            case _:
                return value in self._session_texts[session.id][1]


def _is(word: str, **holds: bool) -> bool:
    return any(holding and name.startswith(word) for name, holding in holds.items())


def _of_task(task: Task, term: Term) -> bool:
    """What a task says for its attempts as well."""
    value = term.value
    match term.field:
        case "status":
            return task.status.value.startswith(value) or task.raw_status.lower().startswith(value)
        case "loop":
            return value in task.loop_id.lower()
        case "tag":
            return any(value in tag.lower() for tag in task.tags)
        case _:
            return value in task.id.lower()


def _texts(records: Mapping[str, _Record], text: Callable[[_Record], str], known: _Texts[_Record]) -> _Texts[_Record]:
    """What a word may be found in, in lower case, by id; made anew only for records that are others than before."""
    texts: dict[str, tuple[_Record, str]] = {}
    for key, record in records.items():
        before = known.get(key)
        texts[key] = before if before is not None and before[0] is record else (record, text(record).lower())
    return texts


def _task_text(task: Task) -> str:
    return "\n".join((task.id, task.description, task.criteria, task.raw_status, task.agent, *task.tags))


def _attempt_text(attempt: Attempt) -> str:
    told = (*attempt.worked, *attempt.failed, *attempt.suggestions)
    return "\n".join((attempt.id, attempt.plan, attempt.reason, attempt.agent, *told))


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
