"""What state an attempt is in: at work, waiting, left half finished, or ended; and why one thinks so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from core.base.text import plural
from core.config.settings import WatchSettings
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome


class AttemptState(StrEnum):
    """Whether somebody works at an attempt."""

    RUNNING = "running"
    PAUSED = "paused"
    LEFT = "left unfinished"
    ENDED = "ended"


NOT_STARTED: Final = "not started"
"""A task that is to be worked at and has no attempt yet, whatever its file says."""


def describe_state(task: Task, attempts: Sequence[Attempt]) -> str:
    """The state of a task for people: its status, or "not started"."""
    return NOT_STARTED if task.status is TaskStatus.RUNNING and not attempts else task.status.value


class AttemptCondition(NamedTuple):
    """The state of an attempt, and the reason in words of our own, on one line."""

    state: AttemptState
    reason: str


def assess_attempt(
    attempt: Attempt, task: Task | None, latest: int, now: datetime, settings: WatchSettings
) -> AttemptCondition:
    """The state of one attempt.

    What proves that nobody comes back to it is asked first: the end of the task, or a later attempt. A pause
    needs no sign of life.

    Args:
        attempt: Open or not.
        task: Its task, None where no file tells of it.
        latest: The highest number of an attempt at this task.
        now: Aware UTC.
        settings: `stale_after_minutes` without a sign of life mean that it was left.
    """
    if not attempt.is_open:
        known = attempt.outcome is not Outcome.UNKNOWN
        return AttemptCondition(AttemptState.ENDED, str(attempt.outcome) if known else "it has an end, but no outcome")
    status = task.status if task is not None else TaskStatus.UNKNOWN
    if status.ended:
        return AttemptCondition(AttemptState.LEFT, f"the task is {status}, and nobody said how this attempt came out")
    if latest > attempt.number:
        return AttemptCondition(
            AttemptState.LEFT, f"attempt {latest} came after it, and nobody said how this one came out"
        )
    if status is TaskStatus.PAUSED:
        return AttemptCondition(AttemptState.PAUSED, "the task is paused")
    return _by_signs(_last_sign(attempt, task), status, now, settings)


def assess_attempts(
    tasks: Mapping[str, Task], attempts: Mapping[str, Attempt], now: datetime, settings: WatchSettings
) -> dict[str, AttemptCondition]:
    """The state of every attempt, by its id; see `assess_attempt`."""
    latest: dict[str, int] = {}
    for attempt in attempts.values():
        latest[attempt.task_id] = max(latest.get(attempt.task_id, 0), attempt.number)
    return {
        id: assess_attempt(attempt, tasks.get(attempt.task_id), latest[attempt.task_id], now, settings)
        for id, attempt in attempts.items()
    }


def _last_sign(attempt: Attempt, task: Task | None) -> datetime | None:
    """When somebody last did anything, as far as the files tell."""
    told = (attempt.last_activity, task.updated_at if task is not None else None)
    return max(filter(None, told), default=None)


def _by_signs(sign: datetime | None, status: TaskStatus, now: datetime, settings: WatchSettings) -> AttemptCondition:
    if sign is None:
        # Without any time only the word of the task is left to go by.
        if status is TaskStatus.RUNNING:
            return AttemptCondition(AttemptState.RUNNING, "the task says so; no time tells of a sign of life")
        return AttemptCondition(AttemptState.LEFT, "nothing tells that somebody works at it")
    silent = max(now - sign, timedelta())
    if silent > timedelta(minutes=settings.stale_after_minutes):
        return AttemptCondition(AttemptState.LEFT, f"no sign of life for {_rough(silent)}")
    return AttemptCondition(AttemptState.RUNNING, f"last sign of life {_rough(silent)} ago")


def _rough(span: timedelta) -> str:
    """A length of time in its largest whole unit."""
    minutes = int(span.total_seconds() // 60)
    if minutes >= 48 * 60:
        return plural(minutes // (24 * 60), "day")
    if minutes >= 120:
        return plural(minutes // 60, "hour")
    return plural(minutes, "minute") if minutes else "less than a minute"
