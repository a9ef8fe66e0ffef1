"""Determine whether an attempt is running, paused, left unfinished or ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.formatting import format_span
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome

if TYPE_CHECKING:
    from core.base.settings import WatchSettings


class AttemptState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    LEFT = "left unfinished"
    ENDED = "ended"


NOT_STARTED: Final = "not started"  # a running task without any attempt


def describe_state(task: Task, attempts: Sequence[Attempt]) -> str:
    """Return the state of a task for display: its status, or "not started"."""
    return NOT_STARTED if task.status is TaskStatus.RUNNING and not attempts else task.status.value


class AttemptCondition(NamedTuple):
    state: AttemptState
    reason: str


def assess_attempt(
    attempt: Attempt, task: Task | None, latest: int, now: datetime, settings: WatchSettings
) -> AttemptCondition:
    """Determine the state of an open or ended attempt, and the reason.

    An open attempt is left unfinished if its task has ended, if a later attempt exists (`latest` is the highest
    number), or if it has had no activity for `stale_after_minutes` and the task is not paused. `task` is None if no
    file describes it. `now` is aware UTC.
    """
    if not attempt.is_open:
        known = attempt.outcome is not Outcome.UNKNOWN
        return AttemptCondition(AttemptState.ENDED, str(attempt.outcome) if known else "ended without an outcome")
    status = task.status if task is not None else TaskStatus.UNKNOWN
    if status.ended:
        return AttemptCondition(AttemptState.LEFT, f"the task is {status}, and this attempt has no outcome")
    if latest > attempt.number:
        return AttemptCondition(AttemptState.LEFT, f"attempt {latest} was started later, and this one has no outcome")
    if status is TaskStatus.PAUSED:
        return AttemptCondition(AttemptState.PAUSED, "the task is paused")
    times = (attempt.last_activity, task.updated_at if task is not None else None)
    active_at = max(filter(None, times), default=None)
    if active_at is None:
        # Without any time, only the status of the task is known.
        if status is TaskStatus.RUNNING:
            return AttemptCondition(AttemptState.RUNNING, "the task is running; no activity is recorded")
        return AttemptCondition(AttemptState.LEFT, "no activity is recorded")
    silent = max(now - active_at, timedelta())
    if silent > timedelta(minutes=settings.stale_after_minutes):
        return AttemptCondition(AttemptState.LEFT, f"no activity for {format_span(silent.total_seconds())}")
    return AttemptCondition(AttemptState.RUNNING, f"last activity {format_span(silent.total_seconds())} ago")


def assess_attempts(
    tasks: Mapping[str, Task], attempts: Mapping[str, Attempt], now: datetime, settings: WatchSettings
) -> dict[str, AttemptCondition]:
    """Determine the state of every attempt, by ID, with `assess_attempt`."""
    latest: dict[str, int] = {}
    for attempt in attempts.values():
        latest[attempt.task_id] = max(latest.get(attempt.task_id, 0), attempt.number)
    return {
        id: assess_attempt(attempt, tasks.get(attempt.task_id), latest[attempt.task_id], now, settings)
        for id, attempt in attempts.items()
    }
