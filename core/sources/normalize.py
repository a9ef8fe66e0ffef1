"""Normalize words and spellings (docs/file-formats.md#words-and-spellings).

Every function accepts any decoded value and returns None, "" or () for an invalid one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from core.base.validation import MAX_COUNT
from core.records.episodes import TaskStatus
from core.records.loops import LoopStatus, Outcome

LOOP_ID: Final = ("loop_id", "loopId", "id")
TASK: Final = ("task", "objective", "task_description", "task_summary", "description")
CRITERIA: Final = ("completion", "completion_criteria", "completionCriteria")
ITERATION: Final = ("currentIteration", "current_iteration", "iteration")
ITERATION_NUMBER: Final = ("number", "iteration", "iteration_number")
MAX_ITERATIONS: Final = ("maxIterations", "max_iterations")
STARTED: Final = ("startTime", "started_at", "start_time", "startedAt", "startTimeMs", "startTimestamp")
UPDATED: Final = ("lastUpdate", "last_updated", "updated_at", "updatedAt")
ENDED: Final = ("endTime", "completed_at", "completedAt", "end_time", "endTimestamp")
_T = TypeVar("_T")


def _by_word(convert: Callable[[str], _T], **words: str) -> dict[str, _T]:
    """Map each spelling to the value that it means."""
    return {word: convert(value) for value, spellings in words.items() for word in spellings.split()}


_LOOP_STATUSES: Final = _by_word(
    LoopStatus,
    running="running in_progress active starting analyzing resumed",
    waiting="waiting pending queued",
    paused="paused interrupted shutting_down",
    completing="completing",
    recovering="recovering",
    completed="completed complete success succeeded done passed",
    partial="partial partial_success partially_completed",
    failed="failed failure error blocked",
    limit="limit_reached max_iterations timeout budget_exceeded",
    aborted="aborted cancelled canceled",
    crashed="crashed",
)
_TASK_STATUSES: Final = _by_word(
    TaskStatus,
    running="running active in_progress",
    paused="paused waiting",
    completed="completed success done complete",
    failed="failed failure timeout",
    unknown="unknown",
)
_OUTCOMES: Final = _by_word(
    Outcome,
    success="success passed completed complete succeeded done",
    partial="partial partial_success incomplete",
    failure="failure failed error crashed",
    timeout="timeout",
    skipped="skipped",
)
_REFLECTION_KINDS: Final = frozenset(
    ("error_analysis", "strategy_change", "success_pattern", "constraint_discovery", "process_improvement")
)
_EFFECTIVENESS: Final = _by_word(str, helpful="helpful", neutral="neutral", unhelpful="unhelpful harmful")
_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_FRACTION: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")
_PERCENT_FROM: Final = 10  # Minimum percentage with decimals; lower values above 1 are not accepted as rates.


def first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value of `names` that is not null; None if there is none."""
    for name in names:
        value = record.get(name)
        if value is not None:
            return value
    return None


def text(value: Any) -> str:
    """Return a string unchanged, a number as its digits, and "" for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, or a single text, without empty texts."""
    if type(value) is str:  # nearly all
        return (found,) if (found := value.strip()) else ()
    if value is None:
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    return tuple([found for item in values if (found := text(item).strip())])


def lines(value: Any) -> tuple[str, ...]:
    """Split learnings into lines, without headings such as `### Iteration 2`."""
    found = [line for item in texts(value) for part in item.splitlines() if (line := part.strip())]
    return tuple([line for line in found if not line.startswith("### ")])


def number(value: Any) -> float | None:
    """Return a finite number, which may be written as text."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        if not 0 < len(value) <= 40:
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def duration(value: Any) -> float | None:
    """Return a number of at least 0 in any unit."""
    found = number(value)
    return found if found is not None and 0 <= found <= MAX_COUNT else None


def count(value: Any) -> int | None:
    """Return a whole number from 0 to 10^15; `3.0` is accepted."""
    if type(value) is int:  # the common case, several times faster than by way of floats
        return value if 0 <= value <= MAX_COUNT else None
    found = number(value)
    if found is None or not 0 <= found <= MAX_COUNT or found != int(found):
        return None
    return int(found)


def rate(value: Any) -> float | None:
    """Return 0.75 for 0.75, 75, "75%" or "3/4" (docs/file-formats.md#rates).

    1 means 100 %. A plain number above 1 is a percentage only if it is whole or at least 10, so 1.4 is not a rate.
    """
    if isinstance(value, str):
        value = value.strip()
        if parts := _FRACTION.fullmatch(value):
            part, whole = int(parts[1]), int(parts[2])
            return part / whole if 0 < whole >= part else None
        if value.endswith("%"):
            percent = number(value[:-1])
            return percent / 100 if percent is not None and 0 <= percent <= 100 else None
    found = number(value)
    if found is None or not 0 <= found <= 100:
        return None
    if found <= 1:
        return found
    return found / 100 if found >= _PERCENT_FROM or found.is_integer() else None


def flag(value: Any) -> bool | None:
    """Return True or False, which may be written as text; None for any other value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().casefold()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def word(value: Any) -> str:
    """Prepare a word for comparison: case folded, with `_` for `-` and space."""
    if type(value) is str and value.isascii() and value.islower() and value.isidentifier():
        return value  # already in that form
    return text(value).strip().casefold().replace("-", "_").replace(" ", "_")


def loop_status(value: Any) -> LoopStatus:
    """Return the status of a loop; `unknown` for an unknown word."""
    return _LOOP_STATUSES.get(word(value), LoopStatus.UNKNOWN)


def task_status(value: Any) -> TaskStatus:
    """Return the status of a task; `unknown` for an unknown word."""
    return _TASK_STATUSES.get(word(value), TaskStatus.UNKNOWN)


def outcome(value: Any) -> Outcome:
    """Return an outcome (of an iteration, attempt, task or use); may be `unknown`."""
    return _OUTCOMES.get(word(value), Outcome.UNKNOWN)


def reflection_kind(value: Any) -> str:
    """Return one of the five kinds of reflection, or ""."""
    return kind if (kind := word(value)) in _REFLECTION_KINDS else ""


def effectiveness(value: Any) -> str:
    """Return helpful, neutral, unhelpful or ""; harmful is read as unhelpful."""
    return _EFFECTIVENESS.get(word(value), "")
