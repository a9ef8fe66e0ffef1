"""Whether a tool call succeeded, from the facts of its event (docs/agents.md#results-of-commands)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from core.agents.hooks.codex_transcript import find_exit_code
from core.base.check_reports import command_result
from core.base.regexes import lazy_regex
from core.tasks.tool_events import SUCCEEDED

_RESULT_TYPE: Final = ("result_type", "resultType")
_FAILED: Final = frozenset({"failure", "failed", "error", "denied", "timeout"})
_EXIT_CODE: Final = lazy_regex(r"^(?:Process exited with code|Exit code:?) (-?\d{1,6})\b", re.MULTILINE | re.IGNORECASE)
_LAST_LINE: Final = lazy_regex(
    r"<[^<>\n]{0,80}\b(?:completed|exited) with exit code (-?\d{1,6})>\s*$"
)  # of Copilot CLI
_GEMINI: Final = lazy_regex(r"(?:<untrusted_context>\s{0,4})?Output: ")
"""Beginning of the output of a command that Gemini CLI ran to its end; it has an exit code only if that is not 0."""
_SEARCHED: Final = 20_000  # length of the output that is searched for an exit code, at its start and at its end


def has_succeeded(
    agent: str,
    event: str,
    fields: Mapping[str, Any],
    *,
    call: str,
    command: str,
    result: Mapping[str, Any],
    error: str,
    output: str,
) -> bool | None:
    """Return whether a tool call succeeded, None if nothing proves it.

    In this order: the event itself, the record of the call in the agent's transcript, a report of a check in the
    output. Another tool than a command has succeeded if it ended without an error.
    """
    if event.lower().endswith("failure") or any(str(result.get(key, "")).lower() in _FAILED for key in _RESULT_TYPE):
        return False
    code = _exit_code(result, output)
    if code is None and command and call:
        code = find_exit_code(fields.get("transcript_path"), call)
    if code is None and error:
        return False
    if not command:
        return code in (None, 0)
    proven = code == 0 if code is not None else _means_success(agent, event, output)
    return command_result(command, output, proven)


def _means_success(agent: str, event: str, output: str) -> bool | None:
    """Return True if the event of a command without an exit code means that it is 0, None if it does not."""
    if agent == "claude":
        return True if event == SUCCEEDED else None  # other exit codes are another event
    return True if agent == "gemini" and _GEMINI.match(output) else None


def _exit_code(result: Mapping[str, Any], output: str) -> int | None:
    """Return the exit code in a field or in the output, None if there is none."""
    metadata = result.get("metadata")
    for fields in (result, metadata if isinstance(metadata, dict) else {}):
        for name in ("exit_code", "exitCode"):
            if isinstance(code := fields.get(name), int) and not isinstance(code, bool):
                return code
    found = _LAST_LINE.search(output[-_SEARCHED:])
    found = found or _EXIT_CODE.search(output[:_SEARCHED]) or _EXIT_CODE.search(output[-_SEARCHED:])
    return int(found[1]) if found else None
