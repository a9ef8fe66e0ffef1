"""Debug sessions by work item, and the errors that they add."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import msgspec
import pytest

from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import WorkNames
from core.learning.scoreboard import Scoreboard
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task
from core.records.loops import Loop, LoopStatus, Outcome, Progress
from core.records.snapshot import Delta, Snapshot
from tests.drawn_snapshots import same
from tests.factories import NOW, SETTINGS, days_ago, make_event, make_pattern

FIRST = Attempt(task_id="task", number=1, started_at=days_ago(9), ended_at=days_ago(8))
SECOND = Attempt(task_id="task", number=2, started_at=days_ago(4))


def work_id_of(session: DebugSession, *attempts: Attempt) -> str:
    snapshot = Snapshot(
        loops={"x": Loop(id="x", aliases=("uuid",))},
        attempts={attempt.id: attempt for attempt in attempts},
        debug_sessions={session.id: session},
    )
    inputs = EvidenceInputs.of(snapshot, SETTINGS.learning)
    owner = inputs.names.session_owner(session)
    works = [id for id in ("x", *snapshot.attempts) if inputs.names.sessions_of(id)]
    assert works == ([owner] if owner else [])
    return owner


def made(loop_id: str = "", task_id: str = "", at: datetime | None = None) -> DebugSession:
    return DebugSession(id="s", loop_id=loop_id, task_id=task_id, created_at=at)


def test_a_loop_has_priority_over_a_task() -> None:
    assert work_id_of(made("uuid", "task.1"), FIRST) == "x"
    assert work_id_of(made("gone", "task.1"), FIRST) == "task.1"
    assert work_id_of(made("gone", "gone too"), FIRST) == ""
    assert work_id_of(made()) == ""


@pytest.mark.parametrize(
    ("days", "attempt"), [(10, ""), (9, "task.1"), (8.5, "task.1"), (6, "task.1"), (4, "task.2"), (0, "task.2")]
)
def test_a_session_of_a_task_belongs_to_the_running_attempt(days: float, attempt: str) -> None:
    assert work_id_of(made("task", "task", days_ago(days)), FIRST, SECOND) == attempt


def test_a_session_made_from_an_attempt_belongs_to_it() -> None:
    session = msgspec.structs.replace(made("task", "task", days_ago(9)), attempt=2)
    assert work_id_of(session, FIRST, SECOND) == "task.2"
    assert work_id_of(session, FIRST) == "task.1"  # its attempt is gone


def test_without_times_only_a_single_attempt_is_matched() -> None:
    assert work_id_of(made("task"), FIRST) == "task.1"
    assert work_id_of(made("task"), FIRST, SECOND) == ""
    assert work_id_of(made("task", at=NOW), Attempt(task_id="task", number=7)) == "task.7"


def failure(test_name: str) -> Failure:
    return Failure(test_name=test_name, message="null")


def test_a_new_session_changes_the_result_of_applied_patterns() -> None:
    """A slow success is helpful; with more than two errors it is neutral."""
    pattern = make_pattern()
    loop = Loop(id="x", status=LoopStatus.COMPLETED, started_at=days_ago(2), ended_at=days_ago(1))
    applied = (make_event(1, "applied", days_ago(1), loop_id="x"),)
    before = Snapshot(patterns={pattern.id: pattern}, loops={"x": loop}, events=applied)
    board = Scoreboard.build(before, NOW, SETTINGS)
    assert board.assessment(pattern.id).successes == 1
    session = DebugSession(id="s", loop_id="x", executions=(Execution(failures=tuple(map(failure, "abc"))),))
    after = replace(before, debug_sessions={"s": session})
    updated = board.updated(after, Delta(debug_sessions=frozenset("s")), NOW)
    same(updated, Scoreboard.build(after, NOW, SETTINGS))
    assert updated.assessment(pattern.id).successes == 0
    found = updated.outcome("x")
    assert found is not None and found[0].error_count == 3


def test_the_work_of_an_agents_session_is_scored_once_as_the_attempts_of_its_tasks() -> None:
    session = Loop(
        id="claude:s1",
        runner="claude",
        status=LoopStatus.COMPLETED,
        ended_at=NOW,
        progress=Progress(test_passed=True),
    )
    attempt = Attempt(task_id="task", number=1, started_at=days_ago(1), ended_at=NOW, outcome=Outcome.SUCCESS)
    pattern = make_pattern()
    applied = (make_event(1, "applied", NOW, loop_id="task.1"),)
    alone = Snapshot(patterns={pattern.id: pattern}, loops={session.id: session}, events=applied)
    recorded = replace(alone, tasks={"task": Task(id="task", loop_id="claude:s1")}, attempts={attempt.id: attempt})
    assert list(Scoreboard.build(alone, NOW, SETTINGS).finished()) == ["claude:s1"]
    board = Scoreboard.build(recorded, NOW, SETTINGS)
    assert list(board.finished()) == ["task.1"]
    assert [(use.loop_id, use.success) for use in board.observations(pattern.id)] == [("task.1", True)]
    joined = msgspec.structs.replace(session, id="ralph:1", runner="ralph", aliases=("claude:s1",))
    board = Scoreboard.build(replace(recorded, loops={joined.id: joined}), NOW, SETTINGS)
    assert list(board.finished()) == ["ralph:1", "task.1"]


def test_the_loop_of_a_work_is_found_by_its_task_and_attempt() -> None:
    session = Loop(id="claude:s1", runner="claude")
    again = Loop(id="claude:s2", runner="claude")
    first = Attempt(task_id="task", number=1)
    second = Attempt(task_id="task", number=2, loop_id="claude:s2")
    names = WorkNames(
        Snapshot(
            loops={session.id: session, again.id: again},
            tasks={"task": Task(id="task", loop_id="claude:s1")},
            attempts={first.id: first, second.id: second},
        )
    )
    works = ("claude:s1", "task", "task.1", "task.2", "bd-1")
    assert [names.loop_of_work(id) for id in works] == ["claude:s1", "claude:s1", "claude:s1", "claude:s2", ""]
