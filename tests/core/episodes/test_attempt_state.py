from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.config.paths import ProjectPaths
from core.config.settings import Settings, WatchSettings
from core.episodes.attempt_state import AttemptState, assess_attempt, assess_attempts
from core.project.index import Library
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
WATCH = WatchSettings(stale_after_minutes=30)
EXAMPLES = ProjectPaths(Path(__file__).parents[2] / "trees/spec-examples")


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def state(attempt: Attempt, task: Task | None = None, latest: int = 1) -> tuple[AttemptState, str]:
    return assess_attempt(attempt, task, latest, NOW, WATCH)


def attempt(**fields: Any) -> Attempt:
    return Attempt(task_id="t", number=1, **fields)


def test_what_came_out_has_ended_whatever_else_is_told() -> None:
    came_out = attempt(outcome=Outcome.TIMEOUT, last_action_at=NOW)
    assert state(came_out, Task(id="t", status=TaskStatus.RUNNING), 3) == (AttemptState.ENDED, "timeout")
    assert state(attempt(ended_at=NOW)) == (AttemptState.ENDED, "it ended without an outcome")


@pytest.mark.parametrize("status", [TaskStatus.COMPLETED, TaskStatus.FAILED])
def test_an_open_attempt_of_a_task_that_has_ended_was_left(status: TaskStatus) -> None:
    found = state(attempt(last_action_at=NOW), Task(id="t", status=status))
    assert found == (AttemptState.LEFT, f"the task is {status}, and this attempt has no outcome")


def test_an_open_attempt_before_a_later_one_was_left_though_the_task_is_paused() -> None:
    found, reason = state(attempt(last_action_at=NOW), Task(id="t", status=TaskStatus.PAUSED), latest=2)
    assert (found, reason.split(",")[0]) == (AttemptState.LEFT, "attempt 2 was started later")


def test_a_pause_needs_no_sign_of_life() -> None:
    assert state(attempt(), Task(id="t", status=TaskStatus.PAUSED)) == (AttemptState.PAUSED, "the task is paused")


def test_silence_longer_than_the_setting_means_that_it_was_left() -> None:
    task = Task(id="t", status=TaskStatus.RUNNING, updated_at=minutes_ago(300))
    assert state(attempt(last_action_at=minutes_ago(30)), task)[0] is AttemptState.RUNNING
    assert state(attempt(last_action_at=minutes_ago(31)), task) == (
        AttemptState.LEFT,
        "no activity for 31 minutes",
    )
    assert state(attempt(started_at=minutes_ago(60 * 24 * 3)), None) == (
        AttemptState.LEFT,
        "no activity for 3 days",
    )


def test_a_clock_ahead_is_no_silence() -> None:
    found = state(attempt(last_action_at=minutes_ago(-600)))
    assert found == (AttemptState.RUNNING, "last activity less than a minute ago")


def test_without_any_time_the_word_of_the_task_counts() -> None:
    assert state(attempt(), Task(id="t", status=TaskStatus.RUNNING))[0] is AttemptState.RUNNING
    assert state(attempt(), Task(id="t"))[0] is AttemptState.LEFT
    assert state(attempt())[0] is AttemptState.LEFT


def test_the_attempts_of_the_example_have_ended() -> None:
    snapshot = Library(EXAMPLES, Settings(), clock=lambda: NOW, cache=False).load()
    found = assess_attempts(snapshot.tasks, snapshot.attempts, NOW, WATCH)
    assert {id: (told.state.value, told.reason) for id, told in found.items()} == {
        "task-001.1": ("ended", "timeout"),
        "task-001.2": ("ended", "failure"),
        "task-001.3": ("ended", "success"),
    }
