from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings, WatchSettings
from core.index.refresh import Index
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.tasks.attempts import AttemptState, assess_attempt, assess_attempts

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
WATCH = WatchSettings(stale_after_minutes=30)
EXAMPLES = ProjectPaths(Path(__file__).parents[2] / "trees/spec-examples")


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def state(attempt: Attempt, task: Task | None = None, latest: int = 1) -> tuple[AttemptState, str]:
    return assess_attempt(attempt, task, latest, NOW, WATCH)


def attempt(**fields: Any) -> Attempt:
    return Attempt(task_id="t", number=1, **fields)


def test_attempt_with_an_outcome_has_ended() -> None:
    timed_out = attempt(outcome=Outcome.TIMEOUT, last_action_at=NOW)
    assert state(timed_out, Task(id="t", status=TaskStatus.RUNNING), 3) == (AttemptState.ENDED, "timeout")
    assert state(attempt(ended_at=NOW)) == (AttemptState.ENDED, "ended without an outcome")


@pytest.mark.parametrize("status", [TaskStatus.COMPLETED, TaskStatus.FAILED])
def test_open_attempt_of_an_ended_task_is_left_unfinished(status: TaskStatus) -> None:
    found = state(attempt(last_action_at=NOW), Task(id="t", status=status))
    assert found == (AttemptState.LEFT, f"the task is {status}, and this attempt has no outcome")


def test_open_attempt_before_a_later_one_is_left_unfinished_even_if_the_task_is_paused() -> None:
    found, reason = state(attempt(last_action_at=NOW), Task(id="t", status=TaskStatus.PAUSED), latest=2)
    assert (found, reason.split(",")[0]) == (AttemptState.LEFT, "attempt 2 was started later")


def test_paused_attempt_needs_no_activity() -> None:
    assert state(attempt(), Task(id="t", status=TaskStatus.PAUSED)) == (AttemptState.PAUSED, "the task is paused")


def test_attempt_without_recent_activity_is_left_unfinished() -> None:
    task = Task(id="t", status=TaskStatus.RUNNING, updated_at=minutes_ago(300))
    assert state(attempt(last_action_at=minutes_ago(30)), task)[0] is AttemptState.RUNNING
    assert state(attempt(last_action_at=minutes_ago(31)), task) == (
        AttemptState.LEFT,
        "no activity for 31 m",
    )
    assert state(attempt(started_at=minutes_ago(60 * 24 * 3)), None) == (
        AttemptState.LEFT,
        "no activity for 3 d",
    )


def test_activity_in_the_future_counts_as_recent() -> None:
    found = state(attempt(last_action_at=minutes_ago(-600)))
    assert found == (AttemptState.RUNNING, "last activity 0 s ago")


def test_status_of_the_task_decides_without_any_time() -> None:
    assert state(attempt(), Task(id="t", status=TaskStatus.RUNNING))[0] is AttemptState.RUNNING
    assert state(attempt(), Task(id="t"))[0] is AttemptState.LEFT
    assert state(attempt())[0] is AttemptState.LEFT


def test_attempts_of_the_example_have_ended() -> None:
    snapshot = Index(EXAMPLES, Settings(), clock=lambda: NOW, is_kept=False).load()
    found = assess_attempts(snapshot.tasks, snapshot.attempts, NOW, WATCH)
    assert {id: (result.state.value, result.reason) for id, result in found.items()} == {
        "task-001.1": ("ended", "timeout"),
        "task-001.2": ("ended", "failure"),
        "task-001.3": ("ended", "success"),
    }
