"""Validate the arguments of the agent protocol; `BadInput` names the argument and what is expected."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from core.base.errors import BadInput
from core.base.masking import mask_secrets, mask_values
from core.base.paths import safe_component
from core.base.validation import check_choice, format_value
from core.files.file_reader import MAX_BYTES, MAX_DEPTH, is_nested_deeper
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

_LEFT_OUT: Final = "\n[… {:,} characters left out …]\n"
_SHORT: Final = 1000  # length up to which a text in the parameters of an action is never shortened
_MAX_NESTED: Final = MAX_DEPTH - 1  # maximum nesting depth of the parameters of an action

Text = Annotated[str, Meta(max_length=MAX_CHARS)]
Texts = Annotated[list[Text], Meta(max_length=MAX_ENTRIES)]
Name = Annotated[str, Meta(max_length=MAX_ID)]
Rate = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]  # whole numbers stay whole
Iteration = Annotated[int, Meta(ge=1, le=MAX_ITERATION)]
_Arguments = TypeVar("_Arguments", bound=Struct)


class TaskArguments(Struct, frozen=True, kw_only=True):
    description: Text
    criteria: Text
    tags: Texts
    related: Annotated[list[Name], Meta(max_length=MAX_ENTRIES)]
    agent: Name
    loop_id: Name


class StartArguments(Struct, frozen=True, kw_only=True):
    agent: Name
    approach: Text
    steps: Texts
    estimated_iterations: Annotated[int, Meta(ge=0, le=MAX_ITERATION)] | None
    similar: list[tuple[str, str]]
    loop_id: Name


class LogArguments(Struct, frozen=True, kw_only=True):
    iteration: Iteration | None
    quality: Rate | None


class CompletionArguments(Struct, frozen=True, kw_only=True):
    """What is recorded about the end of an attempt, by the names of `outcome.json`."""

    reason: Text
    final_quality: Rate | None
    completion_percent: Annotated[int, Meta(ge=0, le=MAX_PERCENT)] | Annotated[float, Meta(ge=0, le=MAX_PERCENT)] | None
    what_worked: Texts
    what_didnt_work: Texts
    suggestions_for_next_time: Texts


class ReflectionArguments(Struct, frozen=True, kw_only=True):
    observation: Text
    analysis: Text
    learning: Text
    action_items: Texts


class _Milestone(Struct, forbid_unknown_fields=True):
    event: Annotated[str, Meta(min_length=1, max_length=MAX_CHARS)]
    details: Text | None = None
    timestamp: Any = None


class _Action(Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields of an action; those in the log are in its order."""

    timestamp: Any = None
    iteration: Iteration
    type: str
    tool: Text | None = None
    params: dict[str, Any] | None = None
    success: bool | None = None
    output: str | None = None
    error: str | None = None
    reasoning: Text | None = None
    expected_outcome: Text | None = None
    quality: Rate | None = None


def check(kind: type[_Arguments], **values: Any) -> _Arguments:
    """Return the validated arguments of a call, with the secrets in their texts masked."""
    arguments = _convert(kind, values, "arguments")
    return kind(**mask_values(msgspec.structs.asdict(arguments)))


def _convert(kind: type[_Arguments], value: Any, what: str) -> _Arguments:
    """Convert a value; raise `BadInput` with the field and what is expected, or if a text is not valid Unicode."""
    try:
        found = msgspec.convert(value, kind)
        msgspec.json.encode(found)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise BadInput(f"Invalid {place.strip('.`') or what}: {message[:1].lower()}{message[1:]}") from None
    except UnicodeEncodeError:
        raise BadInput(f"the texts of the {what} are not valid Unicode") from None
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput(f"a value of the {what} cannot be encoded as JSON") from None
    return found


def check_total_size(value: Any, field: str) -> None:
    """Raise `BadInput` if a value has more than `MAX_TOTAL_SIZE` bytes as JSON."""
    if (size := json_size(value)) > MAX_TOTAL_SIZE:
        raise BadInput(f"{field} have {size:,} bytes as JSON; at most {MAX_TOTAL_SIZE:,} are allowed: shorten them")


def json_size(value: Any) -> int:
    """Return the maximum size of a value in a file, in bytes (ASCII, indented)."""
    return len(json.dumps(value, indent=2))


def check_task_id(value: str) -> str:
    """Return a new task ID that is safe as a part of a path."""
    if len(value) > MAX_ID:
        raise BadInput(f"a task ID has at most {MAX_ID} characters, not {len(value):,}")
    return safe_component(value)


def validate_milestones(values: Sequence[Mapping[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """Validate and normalize milestones; `at` is their time if they have none."""
    if not isinstance(values, tuple | list) or len(values) > MAX_ENTRIES:
        raise BadInput(f"milestones must be a list of at most {MAX_ENTRIES:,} entries")
    found = []
    for value in values:
        one = _convert(_Milestone, value, "milestone")
        milestone = {"timestamp": iso(_parse_timestamp(one.timestamp) or at), "event": mask_secrets(one.event)}
        found.append(milestone | ({"details": mask_secrets(one.details)} if one.details else {}))
    check_total_size(found, "milestones")
    return found


def check_results(values: Mapping[str, bytes] | None) -> None:
    """Raise `BadInput` for contents of files that readers would not accept."""
    for name, data in (values or {}).items():
        if not isinstance(data, bytes) or len(data) > MAX_BYTES:
            raise BadInput(f"result {format_value(name)} must be at most {MAX_BYTES:,} bytes")


def validate_action(value: Any, at: datetime, default_iteration: int) -> tuple[dict[str, Any], float | None]:
    """Validate an action; return the fields of its line in the log, with secrets masked, and its quality.

    `at` is used if the action has no timestamp, and `default_iteration` if it has no iteration. Raises BadInput if a
    field or the action type is unknown, or a field is too long or has a wrong type.
    """
    if not isinstance(value, Mapping):
        raise BadInput(f"an action must be an object, not {format_value(value)}")
    names = _Action.__struct_fields__
    unknown = next((name for name in value if name not in names), None)
    if unknown is not None:
        raise BadInput(f"an action has no field {format_value(unknown)}; it has {', '.join(names)}")
    check_choice(value.get("type"), "type", ACTION_TYPES)
    given = {name: one for name, one in value.items() if one not in (None, "")}
    action = _convert(_Action, {"iteration": default_iteration, **given}, "action")
    action.timestamp = iso(_parse_timestamp(action.timestamp) or at)
    if action.params is not None:
        action.params = _fit_params(action.params)
    # A long output or error is shortened, not refused.
    action.output, action.error = (text and _mask_ends(text, MAX_OUTPUT) for text in (action.output, action.error))
    fields = msgspec.structs.asdict(action)
    quality = fields.pop(QUALITY)
    for name in ("tool", "reasoning", "expected_outcome"):
        fields[name] = fields[name] and mask_secrets(fields[name])[:MAX_CHARS]
    return {name: one for name, one in fields.items() if one is not None}, quality


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
            line, quality = validate_action(value, at, default_iteration)
            lines.append(line)
            qualities.append(quality)
        except BadInput as error:
            if len(values) == 1:
                raise
            raise BadInput(f"action {number:,} of {len(values):,}: {error}; nothing was logged") from None
    return lines, qualities


def _fit_params(params: dict[str, Any]) -> dict[str, Any]:
    """Shorten parameters to the maximum size of an action, and mask their secrets.

    Long texts lose their middle. If that is not enough, other long values become JSON text first. Values that are
    nested too deeply always become JSON text.
    """
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
