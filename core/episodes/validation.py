"""What an agent gives, checked before anything is written: nothing is cut without a word, nothing unknown is kept."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.base.validation import (
    check_amount,
    check_choice,
    check_count,
    check_flag,
    check_text,
    check_texts,
    format_value,
)
from core.config.paths import safe_component
from core.episodes.log_summary import ACTION_TYPES
from core.records.times import iso, parse_time
from core.sources.actions import MAX_TEXT as MAX_OUTPUT
from core.sources.episodes import MAX_ENTRIES
from core.sources.episodes import MAX_TEXT as MAX_CHARS
from core.storage.decoded import MAX_DEPTH
from core.storage.file_reader import MAX_BYTES
from core.storage.json_reader import is_nested_deeper

MAX_ACTIONS: Final = 100_000
"""Most actions in one call."""
MAX_ID: Final = 64
"""Longest id of a task or loop, longest name of an agent."""
MAX_ITERATION: Final = 1_000_000
MAX_PERCENT: Final = 100
MAX_SAID: Final = 1 << 20
"""Most bytes, as JSON, of what is said at once: the plan of an attempt, how it came out, what it reached, a reflection.

All of it, and the longest quality history, together fit into a file that is read.
"""
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
"""What a tool printed, of any length: of more than `MAX_OUTPUT` characters both ends are kept, and it is said so."""
_LEFT_OUT: Final = "\n[… {:,} characters left out …]\n"
_SHORT: Final = 1000
"""Characters of a text in the parameters of an action that it always keeps: paths, patterns, most commands."""


_MAX_NESTED: Final = MAX_DEPTH - 1
"""Levels of the parameters of an action, which is one itself."""


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


def check_total_size(value: Any, field: str) -> None:
    """`BadInput` for more than `MAX_SAID` bytes.

    Args:
        field: What it is, in the plural.
    """
    if (size := json_size(value)) > MAX_SAID:
        raise BadInput(f"{field} have {size:,} bytes as JSON; at most {MAX_SAID:,} are kept: say it shorter")


def json_size(value: Any) -> int:
    """The most bytes that a value takes in a file: a file in ASCII stays so."""
    return len(json.dumps(value, indent=2))


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
    if not isinstance(value, Mapping):
        raise BadInput(f"a milestone must be an object, not {format_value(value)}")
    unknown = value.keys() - {"timestamp", "event", "details"}
    if unknown or not value.get("event"):
        raise BadInput(f"a milestone has an event, and may have timestamp and details; not {format_value(dict(value))}")
    told = {"timestamp": iso(_time(value.get("timestamp")) or at), "event": text(value["event"], "event")}
    return told | ({"details": text(value["details"], "details")} if value.get("details") else {})


def milestones(values: Sequence[Mapping[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """Several of them, at most `MAX_ENTRIES` and `MAX_SAID`."""
    check_list(values, "milestones")
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"milestones has {len(values):,} entries; at most {MAX_ENTRIES:,} are kept")
    found = [milestone(value, at) for value in values]
    check_total_size(found, "milestones")
    return found


def check_list(value: Any, field: str) -> None:
    """`BadInput` unless `value` is a tuple or list."""
    if not isinstance(value, tuple | list):
        raise BadInput(f"{field} must be a list, not {format_value(value)}")


def results(values: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
    """Files by name, each no longer than what is read; `BadInput` for anything else."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise BadInput(f"results must be contents by name, not {format_value(values)}")
    for name, data in values.items():
        check_text(name, "the name of a result")
        if not isinstance(data, bytes):
            raise BadInput(f"result {format_value(name)} must be bytes, not {format_value(data)}")
        if len(data) > MAX_BYTES:
            raise BadInput(f"result {format_value(name)} has {len(data):,} bytes; at most {MAX_BYTES:,} are kept")
    return values


def similar(values: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of a task and what it taught; `BadInput` for anything else."""
    check_list(values, "similar")
    for pair in values:
        check_texts(pair, "similar")
        if len(pair) != 2:
            raise BadInput(f"similar must be pairs of a task and a learning, not {format_value(pair)}")
    return list(values)


def action(value: Mapping[str, Any], at: datetime, default_iteration: int) -> dict[str, Any]:
    """(1) `format_action_record`: a line of `actions.jsonl`; what is not told is left out.

    Args:
        value: Fields of `FIELDS`, and perhaps `QUALITY`, which is not part of the line.
        at: When it was done, unless it says so.
        default_iteration: In which iteration, unless it says so.

    Raises:
        BadInput: A field is unknown, too long or of another type; or the type is none of (1).
    """
    if not isinstance(value, Mapping):
        raise BadInput(f"an action must be an object, not {format_value(value)}")
    unknown = next((name for name in value if name not in (*FIELDS, QUALITY)), None)
    if unknown is not None:
        raise BadInput(f"an action has no field {format_value(unknown)}; it has {', '.join((*FIELDS, QUALITY))}")
    check_choice(value.get("type"), "type", ACTION_TYPES)
    told = {name: value[name] for name in FIELDS if value.get(name) not in (None, "")}
    told["timestamp"] = iso(_time(told.get("timestamp")) or at)
    told["iteration"] = iteration(told.get("iteration", default_iteration))
    if "success" in told:
        check_flag(told["success"], "success")
    if "params" in told:
        told["params"] = _kept_params(told["params"])
    for name in ("tool", "output", "error", "reasoning", "expected_outcome"):
        if name in told:
            whole = ends(told[name], MAX_OUTPUT) if name in _LONG and isinstance(told[name], str) else told[name]
            told[name] = text(whole, name, MAX_OUTPUT if name in _LONG else MAX_CHARS)
    return {name: told[name] for name in FIELDS if name in told}


def ends(value: str, limit: int) -> str:
    """The beginning and the end of a text of more than `limit` characters, where errors and their summary stand; a
    mark between them says how many are left out.
    """
    if len(value) <= limit:
        return value
    half = (limit - len(_LEFT_OUT.format(len(value)))) // 2
    return f"{value[:half]}{_LEFT_OUT.format(len(value) - 2 * half)}{value[-half:]}"


def actions(
    values: Sequence[Mapping[str, Any]], at: datetime, default_iteration: int
) -> tuple[list[dict[str, Any]], list[float | None]]:
    """The lines of several actions, see `action`, and what the work was worth after each.

    Raises:
        BadInput: One of them is wrong; the message says which.
    """
    lines, worth = [], []
    for number, value in enumerate(values, 1):
        try:
            lines.append(action(value, at, default_iteration))
            worth.append(quality(value.get(QUALITY)))
        except BadInput as error:
            if len(values) == 1:
                raise
            raise BadInput(f"action {number:,} of {len(values):,}: {error}; nothing was logged") from None
    return lines, worth


def _kept_params(params: Any) -> dict[str, Any]:
    """Parameters that fit into an action: of their long texts, such as the content of a file that is written, both
    ends are kept, as much of each as there is room for; a long value that is no text becomes its JSON where that is
    not enough, as one does that is nested deeper than is read.
    """
    if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
        raise BadInput(f"params must be an object, not {format_value(params)}")
    try:
        if is_nested_deeper(msgspec.json.encode(params), _MAX_NESTED):
            params = {name: _spelled_if_deep(value) for name, value in params.items()}
        size = _size(params)
        if size <= MAX_OUTPUT:
            return dict(params)
        spelled = {
            name: value if _size(value) <= _SHORT else msgspec.json.encode(value).decode()
            for name, value in params.items()
            if not isinstance(value, str)
        }
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput("params hold something that JSON does not") from None
    for whole in (params, {**params, **spelled}):
        if _is_small(_shortened(whole, _SHORT)):
            return _fitting(whole)
    raise BadInput(f"params have {size:,} bytes, in {len(params):,} parameters; at most {MAX_OUTPUT:,} are kept")


def _spelled_if_deep(value: Any) -> Any:
    data = msgspec.json.encode(value)
    return data.decode() if is_nested_deeper(data, _MAX_NESTED - 1) else value


def _fitting(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters whose long texts have as much of both ends as there is room for."""
    limits = range(_SHORT + 1, MAX_OUTPUT)
    fits = bisect_left(limits, True, key=lambda limit: not _is_small(_shortened(params, limit)))
    kept: dict[str, Any] = _shortened(params, _SHORT + fits)
    return kept


def _is_small(value: Any) -> bool:
    return _size(value) <= MAX_OUTPUT


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _shortened(value: Any, limit: int) -> Any:
    """A JSON value with both ends of its long texts."""
    if isinstance(value, str):
        return ends(value, limit)
    if isinstance(value, dict):
        return {name: _shortened(item, limit) for name, item in value.items()}
    return [_shortened(item, limit) for item in value] if isinstance(value, list | tuple) else value


def _time(value: Any) -> datetime | None:
    moment = parse_time(value)
    if value is not None and moment is None:
        raise BadInput(f"timestamp must be a time such as 2026-02-02T15:00:00Z, not {format_value(value)}")
    return moment
