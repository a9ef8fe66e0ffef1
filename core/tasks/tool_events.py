"""Convert a tool event of Claude Code into the fields of an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.records.episodes import TARGETS
from core.sources.episodes import MAX_TEXT
from core.tasks.changes import describe_change
from core.tasks.validation import keep_ends

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
    """Return the action type of a tool; for an unknown tool, by the words in its name.

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
