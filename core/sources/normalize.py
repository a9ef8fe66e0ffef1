"""Normalize words and spellings (docs/file-formats.md#words-and-spellings).

Every function accepts any decoded value, and returns None, "" or () for an invalid one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from core.base.validation import MAX_COUNT
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
LEARNINGS: Final = ("learnings", "accumulatedLearnings")

_STATUS: Final = {
    word: status
    for status, words in {
        LoopStatus.RUNNING: "running in_progress active starting analyzing resumed",
        LoopStatus.WAITING: "waiting pending queued",
        LoopStatus.PAUSED: "paused interrupted shutting_down",
        LoopStatus.COMPLETING: "completing",
        LoopStatus.RECOVERING: "recovering",
        LoopStatus.COMPLETED: "completed complete success succeeded done passed",
        LoopStatus.PARTIAL: "partial partial_success partially_completed",
        LoopStatus.FAILED: "failed failure error blocked",
        LoopStatus.LIMIT: "limit_reached max_iterations timeout budget_exceeded",
        LoopStatus.ABORTED: "aborted cancelled canceled",
        LoopStatus.CRASHED: "crashed",
    }.items()
    for word in words.split()
}
_OUTCOME: Final = {
    word: outcome
    for outcome, words in {
        Outcome.SUCCESS: "success passed completed complete succeeded done",
        Outcome.PARTIAL: "partial partial_success incomplete",
        Outcome.FAILURE: "failure failed error crashed",
        Outcome.TIMEOUT: "timeout",
        Outcome.SKIPPED: "skipped",
    }.items()
    for word in words.split()
}
_KINDS: Final = frozenset(
    {"error_analysis", "strategy_change", "success_pattern", "constraint_discovery", "process_improvement"}
)
_EFFECTIVENESS: Final = {"helpful": "helpful", "neutral": "neutral", "unhelpful": "unhelpful", "harmful": "unhelpful"}
_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_FRACTION: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")
_PERCENT_FROM: Final = 10
"""A fraction between 1 and this is neither a rate nor a likely percentage."""


def first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first value of `names` in the record that is not null; None without one."""
    for name in names:
        value = record.get(name)
        if value is not None:
            return value
    return None


def text(value: Any) -> str:
    """A string as it is, a number as its digits, any other value as ""."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text as a list of one, without empty ones."""
    values = value if isinstance(value, list) else [value]
    return tuple(found for item in values if (found := text(item).strip()))


def lines(value: Any) -> tuple[str, ...]:
    """Learnings as lines without headings such as `### Iteration 2`."""
    return tuple(
        line
        for item in texts(value)
        for part in item.splitlines()
        if (line := part.strip()) and not line.startswith("### ")
    )


def number(value: Any) -> float | None:
    """A finite number, also if written as text."""
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
    """A number >= 0 in any unit."""
    found = number(value)
    return found if found is not None and 0 <= found <= MAX_COUNT else None


def count(value: Any) -> int | None:
    """A whole number from 0 to 10^15; `3.0` counts as well."""
    if type(value) is int:  # the common case, several times faster than by way of floats
        return value if 0 <= value <= MAX_COUNT else None
    found = number(value)
    if found is None or not 0 <= found <= MAX_COUNT or found != int(found):
        return None
    return int(found)


def rate(value: Any) -> float | None:
    """A rate 0..1, also written as 75, "75%" or "3/4" (docs/file-formats.md#rates).

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
    """True or False, also if written as text; None for any other value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().casefold()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def word(value: Any) -> str:
    """A word for comparison: case folded, `-` and space as `_`."""
    if type(value) is str and value.isascii() and value.islower() and value.isidentifier():
        return value  # already in that form
    return text(value).strip().casefold().replace("-", "_").replace(" ", "_")


def loop_status(value: Any) -> LoopStatus:
    """The status of a loop; `unknown` for any other word."""
    return _STATUS.get(word(value), LoopStatus.UNKNOWN)


def outcome(value: Any) -> Outcome:
    """The outcome of an iteration, attempt, task or use; `unknown` for another word."""
    return _OUTCOME.get(word(value), Outcome.UNKNOWN)


def reflection_kind(value: Any) -> str:
    """One of the five kinds of reflection, or ""."""
    kind = word(value)
    return kind if kind in _KINDS else ""


def effectiveness(value: Any) -> str:
    """helpful, neutral, unhelpful or ""; harmful counts as unhelpful."""
    return _EFFECTIVENESS.get(word(value), "")
