from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.queries.filter_parser import parse_query
from core.queries.record_filters import MEMORY_FIELDS, MemoryCatalog
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.records.snapshot import Snapshot

TASKS = {
    "task-001": Task(
        id="task-001", description="Add OAuth", status=TaskStatus.COMPLETED, tags=("auth",), loop_id="ralph-a1"
    ),
    "task-002": Task(id="task-002", description="Speed up reports", status=TaskStatus.RUNNING),
}
ATTEMPTS = {
    attempt.id: attempt
    for attempt in (
        Attempt(task_id="task-001", number=2, outcome=Outcome.SUCCESS, agent="implementer"),
        Attempt(task_id="task-001", number=1, outcome=Outcome.TIMEOUT, plan="types last", agent="architect"),
        Attempt(task_id="task-002", number=1),
        Attempt(task_id="task-009", number=1, outcome=Outcome.FAILURE),
    )
}
SESSIONS = {
    "dm-1": DebugSession(
        id="dm-1",
        status="passed",
        file_path="src/auth/validate.ts",
        executions=(
            Execution(
                failures=(Failure(error_type="TypeError", message="no length of null"),),
                analysis=Analysis(category="null_undefined_access"),
            ),
        ),
    ),
    "dm-2": DebugSession(id="dm-2", status="escalated", agent="debugger"),
    "dm-3": DebugSession(id="dm-3", status="in_progress", task_id="task-001", loop_id="ralph-b2"),
}
CATALOG = MemoryCatalog(Snapshot(tasks=TASKS, attempts=ATTEMPTS, debug_sessions=SESSIONS))


def found(text: str, catalog: MemoryCatalog = CATALOG) -> set[str]:
    """IDs of the tasks, attempts and sessions that match themselves."""
    query = parse_query(text, MEMORY_FIELDS)
    assert not query.problems
    tasks = catalog.select_tasks(query)
    return {
        *(one.task.id for one in tasks if one.own),
        *(attempt.id for one in tasks for attempt in one.attempts),
        *(session.id for session in catalog.select_sessions(query)),
    }


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("oauth", {"task-001", "task-001.1", "task-001.2"}),
        ("oauth -is:task", {"task-001.1", "task-001.2"}),
        ("types", {"task-001.1"}),
        ("is:task", {"task-001", "task-002", "task-009"}),
        ("is:session", {"dm-1", "dm-2", "dm-3"}),
        ("is:open", {"task-002", "task-002.1", "task-009", "dm-3"}),
        ("is:failed", {"task-001.1", "task-009.1"}),
        ("is:escalated", {"dm-2"}),
        ("outcome:success", {"task-001.2"}),
        ("outcome:timeout agent:arch", {"task-001.1"}),
        ("agent:arch", {"task-001", "task-001.1"}),
        ("status:run", {"task-002", "task-002.1"}),
        ("status:passed", {"dm-1"}),
        ("tag:auth", {"task-001", "task-001.1", "task-001.2"}),
        ("loop:ralph", {"task-001", "task-001.1", "task-001.2", "dm-3"}),
        ("task:001", {"task-001", "task-001.1", "task-001.2", "dm-3"}),
        ("cause:null", {"dm-1"}),
        ("error:typeerror", {"dm-1"}),
        ("file:validate", {"dm-1"}),
        ("length", {"dm-1"}),
        ("nowhere", set()),
    ],
)
def test_memory_filter(text: str, ids: set[str]) -> None:
    assert found(text) == ids


def test_attempts_are_sorted_by_number_and_tasks_without_metadata_exist() -> None:
    assert [attempt.number for attempt in CATALOG.attempts["task-001"]] == [1, 2]
    assert CATALOG.tasks["task-009"].status is TaskStatus.UNKNOWN


def test_task_is_selected_by_a_matching_attempt() -> None:
    (one,) = CATALOG.select_tasks(parse_query("outcome:success", MEMORY_FIELDS))
    assert (one.task.id, one.own) == ("task-001", False)


def test_later_catalog_contains_changed_texts() -> None:
    tasks = {**TASKS, "task-002": replace(TASKS["task-002"], description="Slow reports")}
    later = MemoryCatalog(Snapshot(tasks=tasks, attempts=ATTEMPTS, debug_sessions=SESSIONS), CATALOG)
    assert found("speed", later) == set()
    assert found("slow", later) == {"task-002", "task-002.1"}
    assert found("oauth", later) == found("oauth")


def test_catalog_with_changed_attempts_equals_a_rebuilt_catalog() -> None:
    before = Snapshot(tasks=TASKS, attempts=ATTEMPTS, debug_sessions=SESSIONS)
    changed = replace(ATTEMPTS["task-001.1"], plan="types first", outcome=Outcome.SUCCESS)
    after = Snapshot(tasks=TASKS, attempts=ATTEMPTS | {changed.id: changed}, debug_sessions=SESSIONS)
    known = MemoryCatalog(before)
    newer, rebuilt = known.with_changed(after, {changed.id}), MemoryCatalog(after)
    assert newer.attempts == rebuilt.attempts and known.attempts == MemoryCatalog(before).attempts
    for text in ("first", "last", "outcome:success"):
        query = parse_query(text, MEMORY_FIELDS)
        assert newer.select_tasks(query) == rebuilt.select_tasks(query)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("is:banana oauth", "is: must be one of task, attempt"),
        ("outcome:bad", "outcome: must be one of success"),
        ("is:att", ""),
        ("in:errors oauth", "in: works in the command palette, not in this filter"),
        ("tool:bash", "tool: works in the command palette"),
        (
            "inn:errors",
            "unknown field 'inn' in inn:errors; use agent, cause, error, file, is, loop, outcome, status, tag, task",
        ),
    ],
)
def test_invalid_word_is_a_problem(text: str, problem: str) -> None:
    query = parse_query(text, MEMORY_FIELDS)
    assert all(term.field not in {"in", "tool"} for term in query.terms)
    assert " ".join(query.problems).startswith(problem) and bool(query.problems) == bool(problem)


def test_a_session_made_from_an_attempt_is_listed_as_the_attempt_unless_it_needs_a_person() -> None:
    attempt = Attempt(task_id="task-001", number=1)
    session = DebugSession(id="s", task_id="task-001", attempt=1, status="passed")
    snapshot = Snapshot(attempts={attempt.id: attempt}, debug_sessions={"s": session})
    catalog = MemoryCatalog(snapshot)
    assert (catalog.sessions, catalog.of_attempts) == ({}, {"task-001.1": session})
    stuck = replace(session, status="escalated")
    assert MemoryCatalog(Snapshot(attempts=snapshot.attempts, debug_sessions={"s": stuck})).sessions == {"s": stuck}
    assert MemoryCatalog(Snapshot(debug_sessions={"s": session})).sessions == {"s": session}
