"""Parse the hook events of coding agents into one form (docs/agents.md#hooks).

Agents name the same fields differently. Tool events are normalized to those of Claude Code, which
`core.episodes.tool_events` converts into actions.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.agents.agent_table import AGENTS, Moment
from core.base.errors import BadInput
from core.episodes.tool_events import FAILED, SUCCEEDED
from core.redaction.masking import mask_secrets
from core.storage.json_reader import decode_json

MAX_PROMPT: Final = 20_000  # longest part of a prompt that is used, in characters
_MAX_ID: Final = 500
_MAX_ERROR: Final = 20_000  # part of an output that is searched for errors, in characters

_EVENT: Final = ("hook_event_name", "hookEventName", "event")
_SESSION: Final = ("session_id", "sessionId", "conversation_id", "conversationId", "transcript_path", "transcriptPath")
_CALL: Final = ("tool_use_id", "toolUseId", "tool_call_id", "toolCallId", "call_id")
_TOOL: Final = ("tool_name", "toolName")
_INPUT: Final = ("tool_input", "toolInput", "tool_args", "toolArgs")
_RESPONSE: Final = ("tool_response", "tool_output", "tool_result", "toolResult", "result_json")
_ERROR: Final = ("error", "error_message", "errorMessage")
_OUTPUT: Final = (
    "stdout",
    "output",
    "content",
    "llmContent",
    "text_result_for_llm",
    "textResultForLlm",
    "returnDisplay",
)
_RESULT_TYPE: Final = ("result_type", "resultType")
_FAILED_TYPES: Final = frozenset({"failure", "failed", "error", "denied", "timeout"})
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d{1,6})\b", re.MULTILINE | re.IGNORECASE)
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,1000})$", re.MULTILINE)
_SHELL: Final = ("sh", ("-c", "-lc"), "command")  # parts of a command that is given to a shell
_SEARCHED: Final = 20_000  # length of the output that is searched for an exit code, at its start and at its end


class HookEvent(Struct, frozen=True, kw_only=True):
    """One event of an agent's session."""

    agent: str  # key of `AGENTS`
    name: str  # the agent's name of the event
    moment: Moment
    session: str  # ID of the session, "" if the agent sends none
    folder: str = ""  # working directory of the agent, "" if unknown
    prompt: str = ""
    source: str = ""  # of a start: startup, resume, clear, compact
    call: str = ""  # identifies the tool call, "" if nothing distinguishes it from an equal one
    tool: Mapping[str, Any] = {}  # a tool event in the form of Claude Code


class FailedCall(Struct, omit_defaults=True):
    """What a failed tool call printed; secrets are masked."""

    error: str
    output: str = ""


def parse_event(agent: str, data: bytes, name: str = "") -> HookEvent | None:
    """Parse the JSON of an event; `name` is that of the event if the JSON does not contain it.

    Returns None for an event that is not used. Raises BadInput if the data is not a JSON object.
    """
    fields = decode_json(data).value
    if not isinstance(fields, dict):
        raise BadInput("stdin is not the JSON of an event")
    name = _text(fields, _EVENT) or name
    moment = AGENTS[agent].events.get(name) or _find_moment(name)
    if moment is None:
        return None
    return HookEvent(
        agent=agent,
        name=name,
        moment=moment,
        session=_text(fields, _SESSION)[:_MAX_ID],
        folder=_text(fields, ("cwd",)) or _first_root(fields.get("workspace_roots")),
        prompt=_text(fields, ("prompt", "user_prompt")).strip()[:MAX_PROMPT],
        source=_text(fields, ("source",)),
        call=_call(fields, data) if moment is Moment.TOOL else "",
        tool=_tool_event(name, fields) if moment is Moment.TOOL else {},
    )


def _find_moment(name: str) -> Moment | None:
    """Find the moment of another agent's event: agents also run hooks that were written for others."""
    return next((agent.events[name] for agent in AGENTS.values() if name in agent.events), None)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first non-empty text of these fields, or ""."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value.strip()), "")


def _first_root(value: Any) -> str:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""


def _call(fields: Mapping[str, Any], data: bytes) -> str:
    """Identify a tool call by its ID, or by its content if that contains a time."""
    if call := _text(fields, _CALL):
        return digest(call)
    return hashlib.sha256(data).hexdigest()[:24] if "timestamp" in fields else ""


def _tool_event(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    tool = _text(fields, _TOOL)
    given = _decoded(next((fields[field] for field in _INPUT if field in fields), None))
    response = _decoded(next((fields[field] for field in _RESPONSE if field in fields), None))
    result = response if isinstance(response, dict) else {"output": response} if isinstance(response, str) else {}
    error = _error(fields, result)
    has_failed = name.lower().endswith("failure") or bool(error) or _exit_code(result) not in (None, 0)
    has_failed = has_failed or str(_text(result, _RESULT_TYPE)).lower() in _FAILED_TYPES
    output = _text(result, _OUTPUT)
    event = {
        "hook_event_name": FAILED if has_failed else SUCCEEDED,
        "tool_name": tool,
        "tool_input": _params(given),
        "tool_response": {**result, "output": output} if output else response,
        "error": error or (output if has_failed else ""),
        "is_interrupt": fields.get("is_interrupt") is True,
    }
    return {field: value for field, value in event.items() if value not in (None, "", False)}


def _decoded(value: Any) -> Any:
    """Return a value, or what it contains if it is the JSON text of an object."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        found = decode_json(value.encode("utf-8", "replace")).value
        return found if isinstance(found, dict) else value
    return value


def _params(given: Any) -> dict[str, Any]:
    params = dict(given) if isinstance(given, dict) else {"input": given} if given not in (None, "") else {}
    command = params.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        is_shell = len(command) == len(_SHELL) and command[1] in _SHELL[1]
        params["command"] = command[-1] if is_shell else shlex.join(command)
    for field in ("command", "patch", "input"):
        value = params.get(field)
        found = _PATCHED.search(value[:_SEARCHED]) if isinstance(value, str) else None
        if found is not None:
            params.setdefault("file_path", found[1].strip())
    return params


def _error(fields: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    for one in (fields, result):
        for name in _ERROR:
            value = one.get(name)
            value = value.get("message") if isinstance(value, dict) else value
            if isinstance(value, str) and value.strip() not in ("", "(none)", "none"):
                return value
    return ""


def _exit_code(result: Mapping[str, Any]) -> int | None:
    """Return the exit code in a field or in the output, None if there is none."""
    metadata = result.get("metadata")
    for fields in (result, metadata if isinstance(metadata, dict) else {}):
        for name in ("exit_code", "exitCode"):
            if isinstance(code := fields.get(name), int) and not isinstance(code, bool):
                return code
    output = _text(result, _OUTPUT)
    found = _EXIT_CODE.search(output[:_SEARCHED]) or _EXIT_CODE.search(output[-_SEARCHED:])
    return int(found[1]) if found else None


def failed_call(tool: Mapping[str, Any]) -> FailedCall:
    """Return the end of what a failed tool call printed, with secrets masked."""
    response = tool.get("tool_response")
    printed = response.get("output") or response.get("stdout") if isinstance(response, dict) else response
    error, output = (
        mask_secrets(text[-_MAX_ERROR:]) if isinstance(text, str) else "" for text in (tool.get("error"), printed)
    )
    return FailedCall(error, "" if output == error else output)


def project_folder(event: HookEvent) -> Path:
    """Return the folder in which the agent works; the current one if it is unknown."""
    return Path(event.folder) if event.folder and "\0" not in event.folder else Path()


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def encode_answer(event: HookEvent, context: str) -> bytes:
    """Return what the agent reads on stdout to add a context; b"" if there is none."""
    if not context:
        return b""
    if key := AGENTS[event.agent].context_key:
        return msgspec.json.encode({key: context})
    return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}})
