"""Attempts: running, paused, left unfinished or ended; and replay step by step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from msgspec import Struct

from core.base.formatting import format_span
from core.base.text import ELLIPSIS, plural
from core.records.episodes import Action, Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.tasks.changes import DIFF_PARAMS, build_diff, has_diff_output

if TYPE_CHECKING:
    from core.base.settings import WatchSettings
    from core.sources.episodes import Actions
    from core.tasks.history import AttemptDetail


class AttemptState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    LEFT = "left unfinished"
    ENDED = "ended"

    @property
    def word(self) -> str:
        """The state for display."""
        return "unfinished" if self is AttemptState.LEFT else self.value


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


# Replay

MAX_PAUSE: Final = 5.0  # maximum pause between two actions in a replay, in seconds
MAX_OUTPUT_LINES: Final = 8  # number of lines of a shortened output: half from its beginning, half from its end
_MAX_OUTPUT: Final = 4096  # maximum length of a shortened output
_PAGE: Final = 256  # number of steps that are built at once when iterating
_MAX_SEARCHED_TIMES: Final = 100  # number of first actions that are searched for the first time


class Verdict(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class ReplayStep(Struct, frozen=True):
    """Action of an attempt with its times; every text is untrusted."""

    action: Action
    elapsed: float | None = None  # seconds since the start of the attempt, not negative; None if unknown
    pause: float | None = None  # seconds until the next action; None if unknown or if it is the last action
    begins_iteration: bool = False
    quality: float | None = None  # last known quality, 0..1; that of its own iteration only for the last action of it

    @property
    def verdict(self) -> Verdict:
        if self.action.has_failed:
            return Verdict.FAILED
        return Verdict.UNKNOWN if self.action.success is None else Verdict.SUCCEEDED

    @property
    def result(self) -> str:
        """The error or, without one, the output unless it is the diff."""
        return self.action.error.strip() or ("" if has_diff_output(self.action) else self.action.output)

    @property
    def real(self) -> str:
        """The result, shortened."""
        return shorten_output(self.result)

    @property
    def output(self) -> str:
        """The complete output if there is an error that differs from it; otherwise ""."""
        printed = self.action.output.strip()
        return printed if self.action.error.strip() not in ("", printed) else ""

    @property
    def params(self) -> tuple[tuple[str, str], ...]:
        """Parameters that are not shown in the summary line, reasoning or diff."""
        action = self.action
        known = {action.target, action.reasoning, action.about if "\n" not in action.about else ""}
        in_diff = DIFF_PARAMS if self.diff else frozenset[str]()
        return tuple((name, text) for name, text in action.params if name not in in_diff and text not in known)

    @property
    def diff(self) -> tuple[str, ...]:
        """Lines of a diff of the intended change, from `build_diff`; not cached."""
        return build_diff(self.action)


def shorten_output(text: str) -> str:
    """Shorten a text to its first and last lines, which usually contain the error."""
    text = text.strip()
    lines = text.splitlines()
    if len(text) <= _MAX_OUTPUT and len(lines) <= MAX_OUTPUT_LINES:
        return text
    width = _MAX_OUTPUT // min(len(lines), MAX_OUTPUT_LINES)
    half, more = MAX_OUTPUT_LINES // 2, len(lines) - MAX_OUTPUT_LINES
    if more > 0:
        lines = [*lines[:half], f"{ELLIPSIS} {plural(more, 'more line')} {ELLIPSIS}", *lines[-half:]]
    return "\n".join(line if len(line) <= width else line[: width - 1] + ELLIPSIS for line in lines)


class ReplaySteps(Sequence[ReplayStep]):
    """Sequence of the steps of an attempt, built on access; a slice is a tuple."""

    def __init__(self, detail: AttemptDetail) -> None:
        self.actions: Final[Actions] = detail.actions
        entries = enumerate(detail.attempt.quality, 1)
        measured = {place if one.iteration is None else one.iteration: one.quality for place, one in entries}
        self._iterations: Final = sorted(measured)
        self._measured: Final = measured
        times = [action.at for action in self.actions[:_MAX_SEARCHED_TIMES] if action.at is not None]
        started = [detail.attempt.started_at] if detail.attempt.started_at is not None else []
        self._start: Final[datetime | None] = min(started + times[:1], default=None)

    def __len__(self) -> int:
        return len(self.actions)

    @overload
    def __getitem__(self, place: int) -> ReplayStep: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ReplayStep, ...]: ...
    def __getitem__(self, place: int | slice) -> ReplayStep | tuple[ReplayStep, ...]:
        wanted = range(len(self))[place]
        if isinstance(wanted, int):
            return self._build(wanted, wanted + 1)[0]
        if not wanted:
            return ()
        first = min(wanted)
        built = self._build(first, max(wanted) + 1)
        return tuple(built[position - first] for position in wanted)

    def __iter__(self) -> Iterator[ReplayStep]:
        for start in range(0, len(self), _PAGE):
            yield from self[start : start + _PAGE]

    def _build(self, first: int, end: int) -> list[ReplayStep]:
        row: list[Action | None] = [*self.actions[max(first - 1, 0) : end + 1]]
        if first == 0:
            row.insert(0, None)
        if end == len(self):
            row.append(None)
        threes = zip(row[:-2], row[1:-1], row[2:], strict=True)
        return [self._step(before, action, after) for before, action, after in threes if action is not None]

    def _step(self, before: Action | None, action: Action, after: Action | None) -> ReplayStep:
        elapsed = _seconds(self._start, action.at)
        pause = _seconds(action.at, after.at) if after is not None else None
        return ReplayStep(
            action=action,
            elapsed=None if elapsed is None else max(elapsed, 0.0),
            pause=None if pause is None or pause < 0 else pause,
            begins_iteration=before is None or before.iteration != action.iteration,
            quality=self._quality(action.iteration, after is None or after.iteration != action.iteration),
        )

    def _quality(self, iteration: int | None, ended: bool) -> float | None:
        """Return quality at the end of an iteration if it has `ended`, else before it."""
        if iteration is None:
            return None
        known = bisect_right(self._iterations, iteration if ended else iteration - 1)
        return self._measured[self._iterations[known - 1]] if known else None


def find_next_error(steps: ReplaySteps, position: int) -> int | None:
    """Return the position (from 0) of the next failed step after `position`, or None."""
    errors = steps.actions.errors
    found = bisect_right(errors, position)
    return errors[found] if found < len(errors) else None


def pause_after(step: ReplayStep, speed: float) -> float:
    """Return the seconds to wait before the next step; 0 if `speed` is 0."""
    if step.pause is None or not speed > 0:
        return 0.0
    return min(min(step.pause, MAX_PAUSE) / speed, MAX_PAUSE)  # inner limit: a higher speed always shortens the pause


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
