"""Validate the arguments of the agent protocol; `BadInput` describes the problem."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.base.masking import mask_secrets, mask_values
from core.base.paths import safe_component
from core.base.validation import (
    check_amount,
    check_choice,
    check_count,
    check_flag,
    check_text,
    check_texts,
    format_value,
)
from core.files.decoded import MAX_DEPTH
from core.files.file_reader import MAX_BYTES, is_nested_deeper
from core.records.episodes import ACTION_TYPES
from core.records.times import iso, parse_time
from core.sources.episodes import MAX_ACTION_TEXT as MAX_OUTPUT
from core.sources.episodes import MAX_ENTRIES
from core.sources.episodes import MAX_TEXT as MAX_CHARS

MAX_ACTIONS: Final = 100_000  # maximum number of actions in one call
MAX_ID: Final = 64  # maximum length of a task ID, loop ID or agent name
MAX_ITERATION: Final = 1_000_000
MAX_PERCENT: Final = 100
MAX_TOTAL_SIZE: Final = 1 << 20
"""Maximum size of the texts of one call, in bytes as JSON; readers accept them with the longest quality history."""
QUALITY: Final = "quality"  # field of an action with the quality of the work after it, 0..1; not written to the log
FIELDS: Final = (
    *("timestamp", "iteration", "type", "tool", "params", "success", "output", "error"),
    *("reasoning", "expected_outcome"),
)  # fields of an action in the log, in order

_LEFT_OUT: Final = "\n[… {:,} characters left out …]\n"
_SHORT: Final = 1000  # length up to which a text in the parameters of an action is never shortened
_MAX_NESTED: Final = MAX_DEPTH - 1  # maximum nesting depth of the parameters of an action


def validate_text(value: Any, field: str, limit: int = MAX_CHARS) -> str:
    """Validate a text of at most `limit` characters that can be encoded as UTF-8; secrets are masked."""
    check_text(value, field)
    if len(value) > limit:
        raise BadInput(f"{field} has {len(value):,} characters; at most {limit:,} are allowed")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{field} is not valid Unicode") from None
    return mask_secrets(str(value))[:limit]


def check_total_size(value: Any, field: str) -> None:
    """Raise `BadInput` if a value has more than `MAX_TOTAL_SIZE` bytes as JSON."""
    if (size := json_size(value)) > MAX_TOTAL_SIZE:
        raise BadInput(f"{field} have {size:,} bytes as JSON; at most {MAX_TOTAL_SIZE:,} are allowed: shorten them")


def json_size(value: Any) -> int:
    """Return the maximum size of a value in a file, in bytes (ASCII, indented)."""
    return len(json.dumps(value, indent=2))


def validate_task_id(value: str, field: str) -> str:
    """Validate a task ID that is safe as a part of a path."""
    return safe_component(validate_text(value, field, MAX_ID))


def validate_texts(values: Sequence[str], field: str) -> list[str]:
    """Validate a list of at most `MAX_ENTRIES` texts."""
    check_texts(values, field)
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"{field} has {len(values):,} entries; at most {MAX_ENTRIES:,} are allowed")
    return [validate_text(value, field) for value in values]


def validate_amount(value: float | None, field: str, most: float = 1) -> float | None:
    """Validate a number 0..`most`, or None."""
    if value is not None:
        check_amount(value, field, most)
    return value


def validate_iteration(value: int | None) -> int | None:
    """Validate an iteration number (from 1), or None."""
    if value is not None:
        check_count(value, "iteration", MAX_ITERATION)
        if value == 0:
            raise BadInput("iteration must be at least 1")
    return value


def validate_milestones(values: Sequence[Mapping[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """Validate and normalize milestones; `at` is their time if they have none."""
    check_list(values, "milestones")
    if len(values) > MAX_ENTRIES:
        raise BadInput(f"milestones has {len(values):,} entries; at most {MAX_ENTRIES:,} are allowed")
    found = []
    for value in values:
        if not isinstance(value, Mapping):
            raise BadInput(f"a milestone must be an object, not {format_value(value)}")
        if value.keys() - {"timestamp", "event", "details"} or not value.get("event"):
            shown = format_value(dict(value))
            raise BadInput(f"a milestone must have an event, and may have timestamp and details; not {shown}")
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
    """Validate file contents by name; readers must accept their size."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise BadInput(f"results must be a mapping of names to contents, not {format_value(values)}")
    for name, data in values.items():
        check_text(name, "the name of a result")
        if not isinstance(data, bytes):
            raise BadInput(f"result {format_value(name)} must be bytes, not {format_value(data)}")
        if len(data) > MAX_BYTES:
            raise BadInput(f"result {format_value(name)} has {len(data):,} bytes; at most {MAX_BYTES:,} are allowed")
    return values


def validate_similar(values: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    check_list(values, "similar")
    for pair in values:
        check_texts(pair, "similar")
        if len(pair) != 2:
            raise BadInput(f"similar must contain pairs of task and learning, not {format_value(pair)}")
    return [(mask_secrets(task), mask_secrets(learning)) for task, learning in values]


def validate_action(value: Mapping[str, Any], at: datetime, default_iteration: int) -> dict[str, Any]:
    """Validate an action, and return the fields of its line in the log, with secrets masked.

    `at` is used if the action has no timestamp, and `default_iteration` if it has no iteration. Raises BadInput if a
    field or the action type is unknown, or a field is too long or has a wrong type.
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
    for name in ("output", "error"):  # a long text is shortened, not refused
        if name in fields:
            text = fields[name]
            text = _mask_ends(text, MAX_OUTPUT) if isinstance(text, str) else text
            fields[name] = validate_text(text, name, MAX_OUTPUT)
    return {name: fields[name] for name in FIELDS if name in fields}


def keep_ends(value: str, limit: int, omitted: int = 0) -> str:
    """Replace the middle of a text by a note if it is longer than `limit`.

    `omitted` is the number of characters that were left out in its middle before.
    """
    if len(value) <= limit:
        return value
    half = (limit - len(_LEFT_OUT.format(len(value) + omitted))) // 2
    return f"{value[:half]}{_LEFT_OUT.format(len(value) + omitted - 2 * half)}{value[-half:]}"


def _mask_ends(text: str, limit: int) -> str:
    """Shorten a text like `keep_ends`, and mask the secrets in what is kept, also those that the cut would split."""
    near = text if len(text) <= 2 * limit else text[:limit] + text[-limit:]
    return keep_ends(mask_secrets(near), limit, len(text) - len(near))


def validate_actions(
    values: Sequence[Mapping[str, Any]], at: datetime, default_iteration: int
) -> tuple[list[dict[str, Any]], list[float | None]]:
    """Validate actions; return their lines in the log, and the quality after each."""
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
    """Shorten parameters to the maximum size of an action, and mask their secrets.

    Long texts lose their middle. If that is not enough, other long values become JSON text first. Values that are
    nested too deeply always become JSON text.
    """
    if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
        raise BadInput(f"params must be an object, not {format_value(params)}")
    try:
        if is_nested_deeper(msgspec.json.encode(params), _MAX_NESTED):
            params = {name: _encode_if_deep(value) for name, value in params.items()}
        size = _size(params)
        if size <= MAX_OUTPUT:
            return dict(mask_values(params))
        encoded = {
            name: value if _size(value) <= _SHORT else msgspec.json.encode(value).decode()
            for name, value in params.items()
            if not isinstance(value, str)
        }
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput("params contain a value that cannot be encoded as JSON") from None
    whole = next((one for one in (params, {**params, **encoded}) if _size(_shorten(one, _SHORT)) <= MAX_OUTPUT), None)
    if whole is None:
        raise BadInput(f"params have {size:,} bytes, in {len(params):,} parameters; at most {MAX_OUTPUT:,} are allowed")
    limits = range(_SHORT + 1, MAX_OUTPUT)
    fitting = bisect_left(limits, True, key=lambda limit: _size(_shorten(whole, limit)) > MAX_OUTPUT)
    return dict(mask_values(_shorten(whole, _SHORT + fitting, is_masked=True)))


def _encode_if_deep(value: Any) -> Any:
    data = msgspec.json.encode(value)
    return data.decode() if is_nested_deeper(data, _MAX_NESTED - 1) else value


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _shorten(value: Any, limit: int, *, is_masked: bool = False) -> Any:
    if isinstance(value, str):
        return _mask_ends(value, limit) if is_masked else keep_ends(value, limit)
    if isinstance(value, dict):
        return {name: _shorten(item, limit, is_masked=is_masked) for name, item in value.items()}
    return [_shorten(item, limit, is_masked=is_masked) for item in value] if isinstance(value, list | tuple) else value


def _parse_timestamp(value: Any) -> datetime | None:
    moment = parse_time(value)
    if value is not None and moment is None:
        raise BadInput(f"timestamp must be a time such as 2026-02-02T15:00:00Z, not {format_value(value)}")
    return moment
