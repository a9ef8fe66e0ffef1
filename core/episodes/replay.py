"""An attempt step by step: what was done and why, what was expected, what came of it, and when (1). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, overload

from core.base.text import ELLIPSIS, plural
from core.episodes.diffs import TOLD_BY_DIFF, build_diff
from core.episodes.history import AttemptDetail
from core.records.episodes import Action
from core.sources.actions import Actions

MAX_PAUSE: Final = 5.0
"""What an agent takes from one action to the next counts for so many seconds at most: nobody watches it think."""
MAX_REAL_LINES: Final = 8
"""Of an output or an error so many lines are the real outcome, half of them its first ones and half its last."""
_MAX_REAL: Final = 4096
_PAGE: Final = 256
"""Steps that are made at once where all of them are gone through."""
_FIRST_TIME_AMONG: Final = 100
"""Where the attempt does not tell its start, the first time among so many actions is taken for it."""


class Verdict(StrEnum):
    """How an action came out."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNTOLD = "not told"


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One action in its place; every text is untrusted.

    Attributes:
        elapsed: Seconds since the attempt began, never negative; None where the action tells no time.
        pause: Seconds until the next action; None for the last one, and where a time is missing or runs backwards.
        begins_iteration: Whether it is the first action of its iteration.
        quality: 0..1 as measured last: at the end of an earlier iteration or, with its last action, of this one.
    """

    action: Action
    elapsed: float | None = None
    pause: float | None = None
    begins_iteration: bool = False
    quality: float | None = None

    @property
    def verdict(self) -> Verdict:
        """How it came out."""
        if self.action.has_failed:
            return Verdict.FAILED
        return Verdict.UNTOLD if self.action.success is None else Verdict.SUCCEEDED

    @property
    def expected(self) -> str:
        """What it was to bring; "" where nobody told."""
        return self.action.expected

    @property
    def real(self) -> str:
        """What it did bring: its error, else its output, in an excerpt."""
        return shorten_output(self.action.error.strip() or self.action.output)

    @property
    def output(self) -> str:
        """What it printed where its error is the real outcome, whole; "" where the two are the same."""
        printed = self.action.output.strip()
        return printed if self.action.error.strip() not in ("", printed) else ""

    @property
    def params(self) -> tuple[tuple[str, str], ...]:
        """What it was called with, but for what `about` tells on a line, the reasoning and what the diff is made of."""
        action = self.action
        known = {action.target, action.reasoning, action.about if "\n" not in action.about else ""}
        in_diff = TOLD_BY_DIFF if self.diff else frozenset[str]()
        return tuple((name, text) for name, text in action.params if name not in in_diff and text not in known)

    @property
    def diff(self) -> tuple[str, ...]:
        """What it changed, or was to change; see `core.episodes.diffs.diff_of`. Made anew each time."""
        return build_diff(self.action)


def shorten_output(text: str) -> str:
    """A text of a few lines as it is; of a longer one its first and last lines: what went wrong is told in either."""
    text = text.strip()
    lines = text.splitlines()
    if len(text) <= _MAX_REAL and len(lines) <= MAX_REAL_LINES:
        return text
    width = _MAX_REAL // min(len(lines), MAX_REAL_LINES)
    half, more = MAX_REAL_LINES // 2, len(lines) - MAX_REAL_LINES
    between = (
        [*lines[:half], f"{ELLIPSIS} {plural(more, 'more line')} {ELLIPSIS}", *lines[-half:]] if more > 0 else lines
    )
    return "\n".join(line if len(line) <= width else line[: width - 1] + ELLIPSIS for line in between)


class ReplaySteps(Sequence[ReplayStep]):
    """The steps of one attempt, each made when it is looked at; a slice is a tuple."""

    def __init__(self, detail: AttemptDetail) -> None:
        self.actions: Final[Actions] = detail.actions
        entries = enumerate(detail.attempt.quality, 1)
        measured = {place if one.iteration is None else one.iteration: one.quality for place, one in entries}
        self._iterations: Final = sorted(measured)
        self._measured: Final = measured
        times = [action.at for action in self.actions[:_FIRST_TIME_AMONG] if action.at is not None]
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
            return self._made(wanted, wanted + 1)[0]
        if not wanted:
            return ()
        first = min(wanted)
        made = self._made(first, max(wanted) + 1)
        return tuple(made[position - first] for position in wanted)

    def __iter__(self) -> Iterator[ReplayStep]:
        for start in range(0, len(self), _PAGE):
            yield from self[start : start + _PAGE]

    def _made(self, first: int, end: int) -> list[ReplayStep]:
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
        """The newest measurement before an iteration, or at its end."""
        if iteration is None:
            return None
        known = bisect_right(self._iterations, iteration if ended else iteration - 1)
        return self._measured[self._iterations[known - 1]] if known else None


def steps(detail: AttemptDetail) -> ReplaySteps:
    """The actions of an attempt in their places."""
    return ReplaySteps(detail)


def find_next_error(steps: ReplaySteps, position: int) -> int | None:
    """The position (from 0) of the next step after `position` that went wrong; None if there is none."""
    errors = steps.actions.errors
    found = bisect_right(errors, position)
    return errors[found] if found < len(errors) else None


def pause_after(step: ReplayStep, speed: float) -> float:
    """Seconds to wait before the next step is shown, when time runs `speed` times as fast; at speed 0 none.

    A gap counts for `MAX_PAUSE` at most before it is divided, so that a faster replay is faster however long the gaps.
    """
    if step.pause is None or not speed > 0:
        return 0.0
    return min(min(step.pause, MAX_PAUSE) / speed, MAX_PAUSE)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
