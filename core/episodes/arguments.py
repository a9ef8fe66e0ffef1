"""What an agent gives, checked before anything is written: nothing is cut silently, nothing unknown is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from core.checks import check_amount, check_choice, check_count, check_flag, check_text, check_texts, shown
from core.episodes.log_summary import ACTION_TYPES
from core.errors import BadInput
from core.paths import safe_component
from core.records.times import iso, parse_time
from core.sources.actions import MAX_TEXT as MAX_OUTPUT
from core.sources.episodes import MAX_ENTRIES
from core.sources.episodes import MAX_TEXT as MAX_CHARS

MAX_ACTIONS: Final = 100_000
"""Most actions in one call."""
MAX_ID: Final = 64
"""Longest id of a task or loop, longest name of an agent."""
MAX_ITERATION: Final = 1_000_000
MAX_PERCENT: Final = 100
QUALITY: Final = "quality"
"""Beside the fields of (1): what the work was worth after an action, 0..1."""
FIELDS: Final = (
    "timestamp",
    "iteration",
    "type",
    "tool",
    "params",
    "success",
    "output",
    "error",
    "reasoning",
    "expected_outcome",
)
"""(1) `action`, in its order."""
_LONG: Final = frozenset({"output", "error"})


def text(value: Any, field: str, limit: int = MAX_CHARS) -> str:
    """A text of at most `limit` characters that a file can hold; `BadInput` for any other."""
    check_text(value, field)
    if len(value) > limit:
        raise BadInput(f"{field} has {len(value):,} characters; at most {limit:,} are kept")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{field} is no valid Unicode") from None
    return str(value)


def required_text(value: Any, field: str) -> str:
    """Such a text that is not empty."""
    if not text(value, field).strip():
        raise BadInput(f"{field} is empty")
    return str(value)


def task_id(value: str, field: str) -> str:
    """The id of a task, which can be part of a path."""
    return safe_component(text(value, field, MAX_ID))


def texts(values: Sequence[str], field: str) -> list[str]:
    """Several such texts, at most `MAX_ENTRIES`."""
    check_texts(values, field)
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"{field} has {len(values):,} entries; at most {MAX_ENTRIES:,} are kept")
    return [text(value, field) for value in values]


def quality(value: float | None, field: str = QUALITY) -> float | None:
    """0..1 or None; `BadInput` for anything else."""
    if value is not None:
        check_amount(value, field, 1)
    return value


def iteration(value: int | None) -> int | None:
    """The label of an iteration, from 1 up, or None; `BadInput` for anything else."""
    if value is not None:
        check_count(value, "iteration", MAX_ITERATION)
        if value == 0:
            raise BadInput("iteration counts from 1")
    return value


def percent(value: float | None) -> float | None:
    """0..100 or None; `BadInput` for anything else."""
    if value is not None:
        check_amount(value, "completion_percent", MAX_PERCENT)
    return value


def milestone(value: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """(1) `milestones`: an event with its time and details; `BadInput` for anything else."""
    unknown = value.keys() - {"timestamp", "event", "details"}
    if unknown or not value.get("event"):
        raise BadInput(f"a milestone has an event, and may have timestamp and details; not {shown(dict(value))}")
    told = {"timestamp": iso(_time(value.get("timestamp")) or at), "event": text(value["event"], "event")}
    return told | ({"details": text(value["details"], "details")} if value.get("details") else {})


def action(value: Mapping[str, Any], at: datetime, default_iteration: int) -> dict[str, Any]:
    """(1) `format_action_record`: a line of `actions.jsonl`; what is not told is left out.

    Args:
        value: Fields of `FIELDS`, and perhaps `QUALITY`, which is not part of the line.
        at: When it was done, unless it says so.
        default_iteration: In which iteration, unless it says so.

    Raises:
        BadInput: A field is unknown, too long or of another type; or the type is none of (1).
    """
    unknown = sorted(value.keys() - {*FIELDS, QUALITY})
    if unknown:
        raise BadInput(f"an action has no field {shown(unknown[0])}; it has {', '.join((*FIELDS, QUALITY))}")
    check_choice(value.get("type"), "type", ACTION_TYPES)
    told = {name: value[name] for name in FIELDS if value.get(name) not in (None, "")}
    told["timestamp"] = iso(_time(told.get("timestamp")) or at)
    told["iteration"] = iteration(told.get("iteration", default_iteration))
    if "success" in told:
        check_flag(told["success"], "success")
    if "params" in told:
        _check_params(told["params"])
    for name in ("tool", "output", "error", "reasoning", "expected_outcome"):
        if name in told:
            text(told[name], name, MAX_OUTPUT if name in _LONG else MAX_CHARS)
    return {name: told[name] for name in FIELDS if name in told}


def _check_params(params: Any) -> None:
    if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
        raise BadInput(f"params must be an object, not {shown(params)}")
    try:
        size = len(msgspec.json.encode(params))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput("params hold something that JSON does not") from None
    if size > MAX_OUTPUT:
        raise BadInput(f"params have {size:,} bytes; at most {MAX_OUTPUT:,} are kept")


def _time(value: Any) -> datetime | None:
    moment = parse_time(value)
    if value is not None and moment is None:
        raise BadInput(f"timestamp must be a time such as 2026-02-02T15:00:00Z, not {shown(value)}")
    return moment
