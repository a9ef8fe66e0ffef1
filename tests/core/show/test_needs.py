from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.index.project_state import ProjectState
from core.records.debug_sessions import ESCALATED, DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import CHECK_FAILED, Iteration, Loop, LoopStatus, Outcome, Progress
from core.records.snapshot import Snapshot
from core.show.needs import NeedKind, describe_need, find_need, find_needs, need_sign, time_since, why_no_need
from tests.factories import NOW, SETTINGS

MINUTE = timedelta(minutes=1)
TIMEOUT = Failure(error_type="TimeoutError", message="no answer within 30 s")


def state_of(*loops: Loop, **records: Any) -> ProjectState:
    return ProjectState.open(Snapshot(loops={loop.id: loop for loop in loops}, **records), SETTINGS, NOW)


def need_of(loop: Loop, **records: Any) -> Any:
    return find_need(state_of(loop, **records), loop)


def running(**fields: Any) -> Loop:
    return Loop(id="a", **{"status": LoopStatus.RUNNING, "last_activity": NOW - MINUTE, **fields})


def failing(count: int, *failures: Failure) -> tuple[Iteration, ...]:
    return tuple(Iteration(number=n, at=NOW - (count - n) * MINUTE, failures=failures) for n in range(count))


def test_a_waiting_session_asks() -> None:
    loop = Loop(id="a", runner="x", status=LoopStatus.WAITING, question="Which side?", last_activity=NOW - 59 * MINUTE)
    need = need_of(loop)
    assert need.kind is NeedKind.ASKS and need.text == "Which side?"
    assert describe_need(need, NOW) == "asked 59 m ago: Which side?"


def test_an_escalation_of_a_running_loop_asks_and_one_of_an_ended_loop_does_not() -> None:
    session = DebugSession(id="s", loop_id="a", status=ESCALATED, updated_at=NOW - 5 * MINUTE, executions=())
    sessions = {"s": session}
    assert need_of(running(), debug_sessions=sessions).kind is NeedKind.ASKS
    ended = Loop(id="a", status=LoopStatus.FAILED, ended_at=NOW - MINUTE)
    assert need_of(ended, debug_sessions=sessions) is None


def test_the_same_error_in_the_last_iterations_is_counted() -> None:
    need = need_of(running(iterations=(Iteration(number=9), *failing(4, TIMEOUT))))
    assert (need.kind, need.count, need.text) == (NeedKind.SAME_ERROR, 4, TIMEOUT.summary)
    assert need_sign(need, NOW).text == "same error x4"


@pytest.mark.parametrize(
    "iterations",
    [
        failing(2, TIMEOUT),
        (*failing(3, TIMEOUT), Iteration(outcome=Outcome.SUCCESS)),
        (*failing(2, TIMEOUT), *failing(1, Failure(message="another"))),
    ],
    ids=["too few", "resolved since", "another error"],
)
def test_other_iterations_do_not_repeat_an_error(iterations: tuple[Iteration, ...]) -> None:
    assert need_of(running(iterations=iterations)) is None


def test_the_iteration_at_work_does_not_end_a_repetition() -> None:
    assert need_of(running(iterations=(*failing(3, TIMEOUT), Iteration(number=4)))).count == 3


def test_the_same_failure_in_the_test_runs_of_an_open_debug_session_counts() -> None:
    runs = tuple(Execution(attempt=n, failures=(TIMEOUT,)) for n in range(3))
    session = DebugSession(id="s", loop_id="a", executions=runs)
    assert need_of(running(), debug_sessions={"s": session}).kind is NeedKind.SAME_ERROR


def test_a_running_loop_without_activity_is_silent_for_a_limited_time() -> None:
    need = need_of(running(last_activity=NOW - 40 * MINUTE))
    assert need_sign(need, NOW).text == "silent 40 m"
    assert need_of(running(last_activity=NOW - timedelta(days=9))) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"progress": Progress(test_passed=False), "status": LoopStatus.COMPLETED, "runner": "claude"},
        {"end_reason": CHECK_FAILED, "runner": "claude"},
    ],
    ids=["test run", "hook"],
)
def test_a_session_that_ended_with_failing_tests_needs_a_person_for_a_limited_time(fields: dict[str, Any]) -> None:
    known = {"status": LoopStatus.FAILED, **fields}
    need = need_of(Loop(id="a", ended_at=NOW - 120 * MINUTE, **known))
    assert describe_need(need, NOW) == "ended with failing tests, 2 h ago"
    assert need_of(Loop(id="a", ended_at=NOW - timedelta(days=4), **known)) is None


@pytest.mark.parametrize(
    ("later", "changes", "reason"),
    [
        (Outcome.SUCCESS, {}, "a later attempt at the task worked"),
        (Outcome.FAILURE, {}, ""),
        (Outcome.FAILURE, {"ended_at": NOW - timedelta(days=4)}, "it ended more than 3 days ago"),
        (Outcome.FAILURE, {"archived": True}, "it is archived"),
    ],
    ids=["worked", "failed again", "old", "archived"],
)
def test_failing_tests_need_no_action_once_another_session_has_solved_the_task(
    later: Outcome, changes: dict[str, Any], reason: str
) -> None:
    attempts = [
        Attempt(task_id="t", number=1, outcome=Outcome.FAILURE, loop_id="claude:1", started_at=NOW - 9 * MINUTE),
        Attempt(task_id="t", number=2, outcome=later, loop_id="claude:2", started_at=NOW - 5 * MINUTE),
    ]
    known = {"ended_at": NOW - 8 * MINUTE, "status": LoopStatus.FAILED, "end_reason": CHECK_FAILED, **changes}
    loop = Loop(id="claude:1", runner="claude", owner="claude", **known)
    task = Task(id="t", loop_id="claude:1")
    state = state_of(loop, tasks={"t": task}, attempts={one.id: one for one in attempts})
    assert (find_need(state, loop) is None) is bool(reason)
    assert why_no_need(state, loop) == reason


def test_of_two_sessions_that_failed_at_a_task_the_later_one_needs_a_person() -> None:
    known: dict[str, Any] = {"ended_at": NOW - 8 * MINUTE, "status": LoopStatus.FAILED, "end_reason": CHECK_FAILED}
    loops = [Loop(id=f"claude:{n}", runner="claude", owner="claude", **known) for n in (1, 2)]
    attempts = [Attempt(task_id="t", number=n, outcome=Outcome.FAILURE, loop_id=f"claude:{n}") for n in (1, 2)]
    state = state_of(*loops, tasks={"t": Task(id="t")}, attempts={one.id: one for one in attempts})
    assert [one.loop_id for one in find_needs(state)] == ["claude:2"]


def test_an_archived_loop_has_no_needs() -> None:
    assert need_of(running(archived=True, last_activity=NOW - 40 * MINUTE)) is None


def test_the_most_urgent_need_is_first_and_escalations_of_no_loop_are_included() -> None:
    silent = running(last_activity=NOW - 40 * MINUTE)
    asking = Loop(id="b", runner="x", status=LoopStatus.WAITING, last_activity=NOW - MINUTE)
    session = DebugSession(id="s", task_id="t", status=ESCALATED, updated_at=NOW - 2 * MINUTE)
    ended = DebugSession(id="e", loop_id="done", status=ESCALATED, updated_at=NOW)
    tasks = {"done": Task(id="done", status=TaskStatus.FAILED)}
    state = state_of(silent, asking, debug_sessions={"s": session, "e": ended}, tasks=tasks)
    assert [(one.loop_id, one.session_id) for one in find_needs(state)] == [("b", ""), ("", "s"), ("a", "")]


def test_time_since_has_one_unit() -> None:
    texts = [time_since(NOW - span, NOW) for span in (MINUTE, 100 * MINUTE, timedelta(days=3))]
    assert texts == ["1 m", "1 h", "3 d"]
