"""What a hook tells of a tool call of an agent, as an action of (1): fields for `Episodes.log_action`, nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.episodes.validation import ends
from core.records.episodes import TARGETS
from core.sources.episodes import MAX_TEXT

SUCCEEDED: Final = "PostToolUse"
FAILED: Final = "PostToolUseFailure"

_TYPES: Final = {
    "read": "read",
    "notebookread": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "bash": "bash",
    "powershell": "bash",
    "bashoutput": "bash",
    "taskoutput": "bash",
    "killshell": "bash",
    "killbash": "bash",
    "taskstop": "bash",
    "grep": "grep",
    "glob": "glob",
    "ls": "glob",
    "task": "task",
    "agent": "task",
    "webfetch": "read",
    "websearch": "grep",
    "lsp": "grep",
    "skill": "read",
    "readmcpresourcetool": "read",
    "listmcpresourcestool": "glob",
}
"""(1) `type` by the name of a tool in lower case; what looks at something elsewhere has the nearest one."""
_BOOKKEEPING: Final = frozenset(
    {
        *("todowrite", "todoread", "taskcreate", "taskupdate", "taskget", "tasklist", "toolsearch"),
        *("enterplanmode", "exitplanmode", "askuserquestion", "structuredoutput"),
    }
)
"""Tools by which an agent plans, asks or finds other tools: nothing is done to the work, and nothing learned of it."""
_LOOKS: Final = {
    **dict.fromkeys(("read", "get", "fetch", "view", "show", "open", "download"), "read"),
    **dict.fromkeys(("search", "find", "grep", "query"), "grep"),
    **dict.fromkeys(("list", "glob", "ls"), "glob"),
}
_CHANGES: Final = {
    **dict.fromkeys(("write", "create", "save"), "write"),
    **dict.fromkeys(("edit", "update", "replace", "insert", "append", "patch", "modify"), "edit"),
}
"""Words in the names of other tools, such as `mcp__files__read_text_file`, and the type of what they do to a file."""
_OTHER: Final = "bash"
"""Type of a tool of which nobody knows what it does: something outside was run."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MAX_NAME: Final = 200

_FILE_TOOLS: Final = frozenset({"read", "notebookread", "write", "edit", "multiedit", "notebookedit"})
_RUNNERS: Final = frozenset({"bash", "powershell", "bashoutput", "taskoutput", "task", "agent"})
_GOING_ON: Final = frozenset({"running", "pending", "async_launched"})
_WENT_WRONG: Final = frozenset({"failed", "error", "killed"})
"""`status` of what a runner has run."""
_MARKED: Final = ("<tool_use_error>", "</tool_use_error>")
"""What an error of a tool stands between, for the agent."""
_TEXTS: Final = ("content", "result", "output", "filenames")
"""Where the responses of tools hold what came out, most telling first."""


def parse_tool_event(event: Mapping[str, Any], project: str = "") -> dict[str, Any]:
    """The action that an event of Claude Code tells of: `PostToolUse` or `PostToolUseFailure`.

    What came of a command that goes on in the background is not told. The content of a file that was read or written
    is no output: it is in the file, or in the parameters.

    Args:
        project: Its folder. A file in it is named relative to it, as in every other checkout.

    Raises:
        BadInput: The event is another one, names no tool, or one that does nothing to the work.
    """
    name = event.get("hook_event_name", SUCCEEDED)
    if name not in (SUCCEEDED, FAILED):
        raise BadInput(f"{_text(name)[:_MAX_NAME]} tells of no tool that was used; {SUCCEEDED} and {FAILED} do")
    tool = event.get("tool_name")
    if not isinstance(tool, str) or not tool.strip():
        raise BadInput("the event names no tool")
    known = tool.strip().lower()
    if known in _BOOKKEEPING:
        raise BadInput(f"{tool.strip()} does nothing to the work")
    given = event.get("tool_input")
    params = given if isinstance(given, dict) else {"input": given} if given not in (None, "") else {}
    params = {field: _inside(value, project) if field in TARGETS else value for field, value in params.items()}
    response = event.get("tool_response")
    told = _task_of(response) if isinstance(response, dict) else {}
    success = None if name == SUCCEEDED and _goes_on(known, params, told) else name == SUCCEEDED
    if success and (event.get("is_error") is True or _is_wrong(known, told)):
        success = False
    error = _error(event, told) if success is False else ""
    action = {
        "type": classify_tool(tool),
        "tool": ends(tool.strip(), _MAX_NAME),
        "params": params,
        "success": success,
        "output": _output(known, told or response, params, without_stderr=error == _text(told.get("stderr")).strip()),
        "error": error,
        "reasoning": ends(_text(params.get("description")), MAX_TEXT),
    }
    return {field: value for field, value in action.items() if value not in (None, "", {})}


def classify_tool(tool: str) -> str:
    """(1) `type` of a tool by its name; of one that nobody knows by the words of its name.

    Such a tool writes or edits only where its name says that it does so to a file: an issue that it creates is no
    change after which the tests would have to be run again.
    """
    known = _TYPES.get(tool.strip().lower())
    if known is not None:
        return known
    words = [word.lower() for word in _WORD.findall(tool.rpartition("__")[2][:_MAX_NAME])]
    change = next((_CHANGES[word] for word in words if word in _CHANGES), None)
    if change is not None:
        return change if "file" in words else _OTHER
    return next((_LOOKS[word] for word in words if word in _LOOKS), _OTHER)


def _inside(path: Any, project: str) -> Any:
    """A path, relative to the project if it leads into it."""
    if not isinstance(path, str) or not project:
        return path
    return path.removeprefix(f"{project.rstrip('/')}/") or path


def _task_of(response: dict[str, Any]) -> dict[str, Any]:
    """A response, of what runs in the background with what is told of it there."""
    task = response.get("task")
    return {**response, **task} if isinstance(task, dict) else response


def _goes_on(tool: str, params: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether something was only begun, or has not ended yet."""
    if tool not in _RUNNERS:
        return False
    status = told.get("status")
    begun = params.get("run_in_background") is True or bool(told.get("backgroundTaskId"))
    return begun or (isinstance(status, str) and status in _GOING_ON)


def _is_wrong(tool: str, told: Mapping[str, Any]) -> bool:
    """Whether the response of a tool that came to its end tells that it failed all the same."""
    if told.get("interrupted") is True or told.get("success") is False or told.get("error"):
        return True
    if told.get("is_error") is True or told.get("isError") is True:
        return True
    code, status = told.get("exitCode", told.get("exit_code")), told.get("status")
    return bool(isinstance(code, int) and code) or (
        tool in _RUNNERS and isinstance(status, str) and status in _WENT_WRONG
    )


def _error(event: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    for value in (event.get("error"), told.get("error"), told.get("stderr")):
        if text := _text(value).strip():
            return text.removeprefix(_MARKED[0]).removesuffix(_MARKED[1])
    return "interrupted" if told.get("interrupted") is True or event.get("is_interrupt") is True else ""


def _output(tool: str, response: Any, params: Mapping[str, Any], *, without_stderr: bool) -> str:
    if not isinstance(response, dict):
        return _text(response)
    if tool in _FILE_TOOLS:
        return _of_file(response)
    if "stdout" in response or "stderr" in response:
        streams = [_text(response.get("stdout")), "" if without_stderr else _text(response.get("stderr"))]
        printed = "\n".join(stream.rstrip("\n") for stream in streams if stream)
        return printed or _text(response.get("returnCodeInterpretation"))
    for name in _TEXTS:
        if text := _text(response.get(name)):
            return text
    given = list(params.values())
    return _text({name: value for name, value in response.items() if value and value not in given})


def _of_file(response: Mapping[str, Any]) -> str:
    """How much of a file was read, or whether it is a new one."""
    file = response.get("file")
    lines = [file.get(name) for name in ("startLine", "numLines", "totalLines")] if isinstance(file, dict) else []
    if lines and all(isinstance(number, int) for number in lines):
        first, count, total = lines
        return f"lines {first:,} to {first + count - 1:,} of {total:,}" if count else "no lines"
    kind = response.get("type")
    return kind if isinstance(kind, str) else ""


def _text(value: Any) -> str:
    """A text as it is, several of them or the blocks of a message a line each, anything else as JSON."""
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
    """A text, or what a block of a message says; None for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str):
        return None
    return said if isinstance(said := value.get("text"), str) else f"[{kind}]"
