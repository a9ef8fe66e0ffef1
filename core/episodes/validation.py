"""Validate the arguments of the agent protocol before writing."""

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

MAX_ACTIONS: Final = 100_000  # actions in one call
MAX_ID: Final = 64  # length of the ID of a task or loop, and of the name of an agent
MAX_ITERATION: Final = 1_000_000
MAX_PERCENT: Final = 100
MAX_TOTAL_SIZE: Final = 1 << 20
"""Bytes, as JSON, of the texts of one call; with the longest quality history they fit into a readable file."""
QUALITY: Final = "quality"  # a field of an action that is not part of its line: the quality of the work after it, 0..1
FIELDS: Final = (
    *("timestamp", "iteration", "type", "tool", "params", "success", "output", "error"),
    *("reasoning", "expected_outcome"),
)  # of an action, in order

_LEFT_OUT: Final = "\n[… {:,} characters left out …]\n"
_SHORT: Final = 1000  # characters of a text in the parameters of an action that are always kept
_MAX_NESTED: Final = MAX_DEPTH - 1  # nesting levels of the parameters of an action


def validate_text(value: Any, field: str, limit: int = MAX_CHARS) -> str:
    """A text of at most `limit` characters that can be encoded, else `BadInput`."""
    check_text(value, field)
    if len(value) > limit:
        raise BadInput(f"{field} has {len(value):,} characters; at most {limit:,} are kept")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{field} is not valid Unicode") from None
    return str(value)


def check_total_size(value: Any, field: str) -> None:
    """Raise `BadInput` for more than `MAX_TOTAL_SIZE` bytes of `field`."""
    if (size := json_size(value)) > MAX_TOTAL_SIZE:
        raise BadInput(f"{field} have {size:,} bytes as JSON; at most {MAX_TOTAL_SIZE:,} are kept: shorten them")


def json_size(value: Any) -> int:
    """The maximum size of a value in a file, in bytes (ASCII, indented)."""
    return len(json.dumps(value, indent=2))


def validate_task_id(value: str, field: str) -> str:
    """The ID of a task, safe as part of a path."""
    return safe_component(validate_text(value, field, MAX_ID))


def validate_texts(values: Sequence[str], field: str) -> list[str]:
    """A list of texts, at most `MAX_ENTRIES`."""
    check_texts(values, field)
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"{field} has {len(values):,} entries; at most {MAX_ENTRIES:,} are kept")
    return [validate_text(value, field) for value in values]


def validate_amount(value: float | None, field: str, most: float = 1) -> float | None:
    """A number 0..`most` or None."""
    if value is not None:
        check_amount(value, field, most)
    return value


def validate_iteration(value: int | None) -> int | None:
    """A number from 1 or None."""
    if value is not None:
        check_count(value, "iteration", MAX_ITERATION)
        if value == 0:
            raise BadInput("iteration counts from 1")
    return value


def validate_milestones(values: Sequence[Mapping[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """A list of milestones, at most `MAX_ENTRIES` and `MAX_TOTAL_SIZE`."""
    check_list(values, "milestones")
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"milestones has {len(values):,} entries; at most {MAX_ENTRIES:,} are kept")
    found = []
    for value in values:
        if not isinstance(value, Mapping):
            raise BadInput(f"a milestone must be an object, not {format_value(value)}")
        if value.keys() - {"timestamp", "event", "details"} or not value.get("event"):
            shown = format_value(dict(value))
            raise BadInput(f"a milestone has an event, and may have timestamp and details; not {shown}")
        milestone = {"timestamp": iso(_parse_timestamp(value.get("timestamp")) or at)}
        milestone["event"] = validate_text(value["event"], "event")
        if value.get("details"):
            milestone["details"] = validate_text(value["details"], "details")
        found.append(milestone)
    check_total_size(found, "milestones")
    return found


def check_list(value: Any, field: str) -> None:
    if not isinstance(value, tuple | list):
        raise BadInput(f"{field} must be a list, not {format_value(value)}")


def validate_results(values: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
    """Contents of files by name, none longer than readers accept."""
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


def validate_similar(values: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    check_list(values, "similar")
    for pair in values:
        check_texts(pair, "similar")
        if len(pair) != 2:
            raise BadInput(f"similar must be pairs of a task and a learning, not {format_value(pair)}")
    return list(values)


def validate_action(value: Mapping[str, Any], at: datetime, default_iteration: int) -> dict[str, Any]:
    """Validate an action and format it as a line of the log, without `QUALITY`.

    `at` is its time unless it has a timestamp, and `default_iteration` its iteration unless it has one. Raises BadInput
    if a field is unknown, too long or of another type, or the action type is unknown.
    """
    if not isinstance(value, Mapping):
        raise BadInput(f"an action must be an object, not {format_value(value)}")
    unknown = next((name for name in value if name not in (*FIELDS, QUALITY)), None)
    if unknown is not None:
        raise BadInput(f"an action has no field {format_value(unknown)}; it has {', '.join((*FIELDS, QUALITY))}")
    check_choice(value.get("type"), "type", ACTION_TYPES)
    fields = {name: value[name] for name in FIELDS if value.get(name) not in (None, "")}
    fields["timestamp"] = iso(_parse_timestamp(fields.get("timestamp")) or at)
    fields["iteration"] = validate_iteration(fields.get("iteration", default_iteration))
    if "success" in fields:
        check_flag(fields["success"], "success")
    if "params" in fields:
        fields["params"] = _fit_params(fields["params"])
    for name in ("tool", "reasoning", "expected_outcome"):
        if name in fields:
            fields[name] = validate_text(fields[name], name)
    for name in ("output", "error"):  # of a long one, only both ends are kept
        if name in fields:
            text = fields[name]
            text = keep_ends(text, MAX_OUTPUT) if isinstance(text, str) else text
            fields[name] = validate_text(text, name, MAX_OUTPUT)
    return {name: fields[name] for name in FIELDS if name in fields}


def keep_ends(value: str, limit: int) -> str:
    """A text without its middle if it is longer than `limit`, with a note."""
    if len(value) <= limit:
        return value
    half = (limit - len(_LEFT_OUT.format(len(value)))) // 2
    return f"{value[:half]}{_LEFT_OUT.format(len(value) - 2 * half)}{value[-half:]}"


def validate_actions(
    values: Sequence[Mapping[str, Any]], at: datetime, default_iteration: int
) -> tuple[list[dict[str, Any]], list[float | None]]:
    """The lines of several actions and the quality after each, else `BadInput`."""
    lines, qualities = [], []
    for number, value in enumerate(values, 1):
        try:
            lines.append(validate_action(value, at, default_iteration))
            qualities.append(validate_amount(value.get(QUALITY), QUALITY))
        except BadInput as error:
            if len(values) == 1:
                raise
            raise BadInput(f"action {number:,} of {len(values):,}: {error}; nothing was logged") from None
    return lines, qualities


def _fit_params(params: Any) -> dict[str, Any]:
    """Parameters that fit into an action; a long text loses its middle.

    A long value that is not a text becomes JSON text if that is not enough, and so does a value nested too deeply.
    """
    if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
        raise BadInput(f"params must be an object, not {format_value(params)}")
    try:
        if is_nested_deeper(msgspec.json.encode(params), _MAX_NESTED):
            params = {name: _encode_if_deep(value) for name, value in params.items()}
        size = _size(params)
        if size <= MAX_OUTPUT:
            return dict(params)
        encoded = {
            name: value if _size(value) <= _SHORT else msgspec.json.encode(value).decode()
            for name, value in params.items()
            if not isinstance(value, str)
        }
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput("params hold something that JSON does not") from None
    whole = next((one for one in (params, {**params, **encoded}) if _size(_shorten(one, _SHORT)) <= MAX_OUTPUT), None)
    if whole is None:
        raise BadInput(f"params have {size:,} bytes, in {len(params):,} parameters; at most {MAX_OUTPUT:,} are kept")
    limits = range(_SHORT + 1, MAX_OUTPUT)
    fitting = bisect_left(limits, True, key=lambda limit: _size(_shorten(whole, limit)) > MAX_OUTPUT)
    shortened: dict[str, Any] = _shorten(whole, _SHORT + fitting)
    return shortened


def _encode_if_deep(value: Any) -> Any:
    data = msgspec.json.encode(value)
    return data.decode() if is_nested_deeper(data, _MAX_NESTED - 1) else value


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return keep_ends(value, limit)
    if isinstance(value, dict):
        return {name: _shorten(item, limit) for name, item in value.items()}
    return [_shorten(item, limit) for item in value] if isinstance(value, list | tuple) else value


def _parse_timestamp(value: Any) -> datetime | None:
    moment = parse_time(value)
    if value is not None and moment is None:
        raise BadInput(f"timestamp must be a time such as 2026-02-02T15:00:00Z, not {format_value(value)}")
    return moment
