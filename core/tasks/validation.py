"""Validate arguments of the agent protocol; `BadInput` names what is expected.

A tool event of Claude Code is converted into the arguments of an action.
"""

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
from core.base.paths import relative_to_project, safe_component
from core.base.regexes import lazy_regex
from core.base.validation import check_choice, format_value
from core.files.file_reader import MAX_BYTES, MAX_DEPTH, is_nested_deeper
from core.records.episodes import ACTION_TYPES, TARGETS
from core.records.times import iso, parse_time
from core.sources.episodes import MAX_ACTION_TEXT as MAX_OUTPUT
from core.sources.episodes import MAX_ENTRIES, MAX_TEXT
from core.sources.episodes import MAX_TEXT as MAX_CHARS
from core.tasks.changes import describe_change

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
    """Return a call's validated arguments, with the secrets in their texts masked."""
    arguments = _convert(kind, values, "arguments")
    return kind(**mask_values(msgspec.structs.asdict(arguments)))


def _convert(kind: type[_Arguments], value: Any, what: str) -> _Arguments:
    """Convert a value; `BadInput` names a wrong field, or a text of invalid Unicode."""
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
    """Validate an action; return its masked fields for the log, and its quality.

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
    """Shorten a text like `keep_ends`, and mask secrets, also those split by the cut."""
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


SUCCEEDED: Final = "PostToolUse"
FAILED: Final = "PostToolUseFailure"
UNKNOWN_RESULT: Final = "unknown_result"  # key of an event that does not prove whether the tool succeeded

_TYPES: Final = {
    **dict.fromkeys(("read", "notebookread", "webfetch", "skill", "readmcpresourcetool"), "read"),
    "write": "write",
    **dict.fromkeys(("edit", "multiedit", "notebookedit", "apply_patch"), "edit"),
    **dict.fromkeys(("replace", "search_replace", "strreplace"), "edit"),
    **dict.fromkeys(("bash", "powershell", "bashoutput", "taskoutput", "killshell", "killbash", "taskstop"), "bash"),
    **dict.fromkeys(("grep", "websearch", "lsp"), "grep"),
    **dict.fromkeys(("glob", "ls", "listmcpresourcestool"), "glob"),
    **dict.fromkeys(("task", "agent"), "task"),
}  # action type by tool name in lower case
_BOOKKEEPING: Final = frozenset(
    {
        *("todowrite", "todoread", "taskcreate", "taskupdate", "taskget", "tasklist", "toolsearch"),
        *("enterplanmode", "exitplanmode", "askuserquestion", "structuredoutput"),
    }
)  # tools for plans, questions and tool search; their events are not logged as actions
_LOOKS: Final = {
    **dict.fromkeys(("read", "get", "fetch", "view", "show", "open", "download"), "read"),
    **dict.fromkeys(("search", "find", "grep", "query"), "grep"),
    **dict.fromkeys(("list", "glob", "ls"), "glob"),
}
_CHANGES: Final = {
    **dict.fromkeys(("write", "create", "save"), "write"),
    **dict.fromkeys(("edit", "update", "replace", "insert", "append", "patch", "modify"), "edit"),
}  # action type by a word in the name of another tool, such as `mcp__files__read_text_file`
_OTHER: Final = "bash"  # action type of unknown tools, which most likely run something external
_WORD: Final = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+")
_MAX_PATCH_START: Final = 500  # characters of a shell command in which a patch begins
_MAX_NAME: Final = 200

_FILE_TOOLS: Final = frozenset({"read", "notebookread", "write", "edit", "multiedit", "notebookedit"})
EDITING: Final = frozenset({"write", "edit"})  # action types whose output is a diff of the change
_RUNNERS: Final = frozenset({"bash", "powershell", "bashoutput", "taskoutput", "task", "agent"})
_RUNNING: Final = frozenset({"running", "pending", "async_launched"})
_FAILED_STATUSES: Final = frozenset({"failed", "error", "killed"})  # values of `status` that mean a failure
_ERROR_MARKS: Final = ("<tool_use_error>", "</tool_use_error>")  # tags around the error text of a tool
_TEXTS: Final = ("content", "result", "output", "filenames")  # members of a response with its text, best first


def parse_tool_event(event: Mapping[str, Any], project: str = "") -> dict[str, Any]:
    """Convert a `PostToolUse` or `PostToolUseFailure` event into action fields.

    `success` is None for a background command, and if the event does not prove a result. The output of an edit is a
    diff of the change, and that of a read does not contain the content of the file. Paths inside the `project` folder
    become relative to it. Raises BadInput for another event, and for a tool whose events are not logged.
    """
    name = event.get("hook_event_name", SUCCEEDED)
    if name not in (SUCCEEDED, FAILED):
        raise BadInput(f"{_text(name)[:_MAX_NAME]} is not a tool event; use {SUCCEEDED} or {FAILED}")
    tool = event.get("tool_name")
    if not isinstance(tool, str) or not tool.strip():
        raise BadInput("the event has no tool_name")
    known = tool.strip().lower()
    if known in _BOOKKEEPING:
        raise BadInput(f"{tool.strip()} does not affect the work, so it is not logged")
    given = event.get("tool_input")
    params = given if isinstance(given, dict) else {"input": given} if given not in (None, "") else {}
    params = {
        field: relative_to_project(value, project) if field in TARGETS and isinstance(value, str) else value
        for field, value in params.items()
    }
    response = event.get("tool_response")
    result = response if isinstance(response, dict) else {}
    if isinstance(task := result.get("task"), dict):
        result = {**result, **task}
    success = None if name == SUCCEEDED and _is_running(known, params, result) else name == SUCCEEDED
    if success and (event.get("is_error") is True or _reports_failure(known, result)):
        success = False
    if success and event.get(UNKNOWN_RESULT) is True:
        success = None
    error = _error(event, result) if success is False else ""
    kind = classify_tool(tool)
    is_patch = kind == "bash" and "*** Begin Patch" in str(params.get("command", ""))[:_MAX_PATCH_START]
    kind = "edit" if is_patch else kind
    change = describe_change(params, response, project) if kind in EDITING and success else ""
    has_stderr_as_error = error == _text(result.get("stderr")).strip()
    action = {
        "type": kind,
        "tool": keep_ends(tool.strip(), _MAX_NAME),
        "params": params,
        "success": success,
        "output": change or _output(known, result or response, params, without_stderr=has_stderr_as_error),
        "error": error,
        "reasoning": keep_ends(_text(params.get("description")), MAX_TEXT),
    }
    return {field: value for field, value in action.items() if value not in (None, "", {})}


def classify_tool(tool: str) -> str:
    """Return the action type of a tool, of an unknown one by the words in its name.

    An unknown tool writes or edits only if its name contains "file". Creating an issue, for example, is not a change
    after which tests must run again.
    """
    known = _TYPES.get(tool.strip().lower())
    if known is not None:
        return known
    words = [word.lower() for word in _WORD.findall(tool.rpartition("__")[2][:_MAX_NAME])]
    change = next((_CHANGES[word] for word in words if word in _CHANGES), None)
    if change is not None:
        return change if "file" in words else _OTHER
    return next((_LOOKS[word] for word in words if word in _LOOKS), _OTHER)


def _is_running(tool: str, params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    if tool not in _RUNNERS:
        return False
    status = result.get("status")
    begun = params.get("run_in_background") is True or bool(result.get("backgroundTaskId"))
    return begun or (isinstance(status, str) and status in _RUNNING)


def _reports_failure(tool: str, result: Mapping[str, Any]) -> bool:
    if result.get("interrupted") is True or result.get("success") is False or result.get("error"):
        return True
    if result.get("is_error") is True or result.get("isError") is True:
        return True
    code, status = result.get("exitCode", result.get("exit_code")), result.get("status")
    return bool(isinstance(code, int) and code) or (
        tool in _RUNNERS and isinstance(status, str) and status in _FAILED_STATUSES
    )


def _error(event: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    for value in (event.get("error"), result.get("error"), result.get("stderr")):
        if text := _text(value).strip():
            return text.removeprefix(_ERROR_MARKS[0]).removesuffix(_ERROR_MARKS[1])
    return "interrupted" if result.get("interrupted") is True or event.get("is_interrupt") is True else ""


def _output(tool: str, response: Any, params: Mapping[str, Any], *, without_stderr: bool) -> str:
    if not isinstance(response, dict):
        return _text(response)
    if tool in _FILE_TOOLS:
        return _describe_file(response)
    if "stdout" in response or "stderr" in response:
        streams = [_text(response.get("stdout")), "" if without_stderr else _text(response.get("stderr"))]
        printed = "\n".join(stream.rstrip("\n") for stream in streams if stream)
        return printed or _text(response.get("returnCodeInterpretation"))
    for name in _TEXTS:
        if text := _text(response.get(name)):
            return text
    given = list(params.values())
    return _text({name: value for name, value in response.items() if value and value not in given})


def _describe_file(response: Mapping[str, Any]) -> str:
    file = response.get("file")
    lines = [file.get(name) for name in ("startLine", "numLines", "totalLines")] if isinstance(file, dict) else []
    if lines and all(isinstance(number, int) for number in lines):
        first, count, total = lines
        return f"lines {first:,} to {first + count - 1:,} of {total:,}" if count else "no lines"
    kind = response.get("type")
    return kind if isinstance(kind, str) else ""


def _text(value: Any) -> str:
    """Return a text, the joined texts of message blocks, or any other value as JSON."""
    if isinstance(value, str):
        return value
    if value in (None, [], {}):
        return ""
    if isinstance(value, list):
        lines = [_block(one) for one in value]
        if all(line is not None for line in lines):
            return "\n".join(line for line in lines if line)
    return msgspec.json.encode(value).decode()


def _block(value: Any) -> str | None:
    """Return a text or the text of a message block; None for any other value."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str):
        return None
    return text if isinstance(text := value.get("text"), str) else f"[{kind}]"
