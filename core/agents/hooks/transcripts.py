"""What transcripts of agents have and their hook events have not: texts, exit codes, and edits that fire no event.

The transcripts of Claude Code, Codex, Gemini and Copilot are read without their adapters, because a hook has little
time: only the end of the file, and only the few fields that are needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.base.paths import is_safe_id
from core.base.prompt_text import remove_contexts
from core.files.file_access import open_regular
from core.files.file_reader import decode_json

MAX_TAIL: Final = 256 * 1024  # bytes at the end of a transcript that are read
MAX_AGENT_TEXT: Final = 2_000  # characters of a text that are used
# Tuples, because a damaged file can have an object, which has no hash, in the place of a kind.
_CALLS: Final = ("tool_use", "function_call", "custom_tool_call", "local_shell_call")
_RESULTS: Final = ("tool_result", "function_call_output", "custom_tool_call_output")
_TEXTS: Final = frozenset({"text", "output_text"})
_CALL_IDS: Final = ("id", "call_id", "toolCallId", "tool_call_id")
_SCRIPT_CALL: Final = "exec-"
"""Beginning of the ID of a call from a script of Codex, which is in the transcript only when the call has ended."""
TEXT: Final = "text"
CALL: Final = "call"
OTHER: Final = "other"
_Part = tuple[str, str]  # `TEXT`, `CALL` or `OTHER`, with the text or the ID of the call


def find_text_before(transcript: str, call_id: str) -> str:
    """Return what the agent wrote directly before a tool call; "" if it wrote nothing or the call is not found."""
    return _find_text_before(transcript, lambda part: bool(call_id) and part == (CALL, call_id))


def find_copilot_text(session: str) -> str:
    """Return what Copilot CLI wrote directly before its newest tool call, whose event has no ID and no transcript."""
    if not is_safe_id(session):
        return ""
    home = Path(os.environ.get("COPILOT_HOME") or "~/.copilot")
    with suppress(RuntimeError):  # there is no home folder
        home = home.expanduser()
    transcript = home / "session-state" / session / "events.jsonl"
    return _find_text_before(str(transcript), lambda part: part[0] == CALL)


def _find_text_before(transcript: str, is_call: Callable[[_Part], bool]) -> str:
    """Return what the agent wrote directly before the newest call for which `is_call` is true."""
    parts = _read_parts(transcript)
    place = next((n for n in reversed(range(len(parts))) if is_call(parts[n])), None)
    if place is None:
        return ""
    found: list[str] = []
    for kind, text in reversed(parts[:place]):
        if kind == TEXT and text not in found:
            found.insert(0, text)
        elif kind == OTHER:
            break
    return "\n".join(found)[-MAX_AGENT_TEXT:].strip()


def find_last_text(transcript: str) -> str:
    """Return the last text of the agent in its transcript, "" if there is none after the last tool call."""
    for kind, text in reversed(_read_parts(transcript)):
        if kind == TEXT:
            return text[-MAX_AGENT_TEXT:].strip()
        if kind == CALL:
            return ""
    return ""


def _read_parts(transcript: str) -> list[_Part]:
    return [part for entry in _read_entries(transcript) for part in _parts_of(entry)]


def _read_entries(transcript: str) -> Iterator[Mapping[str, Any]]:
    data, is_whole = _read_tail(transcript)
    if is_whole and data[:1] in (b"{", b"[") and b"\n{" not in data:
        value = decode_json(data).value
        messages = value.get("messages") if isinstance(value, dict) else value
        if isinstance(messages, list):
            yield from (one for one in messages if isinstance(one, dict))
            return
    lines = data.split(b"\n")
    for line in lines if is_whole else lines[1:]:
        if line[:1] == b"{" and isinstance(value := decode_json(line).value, dict):
            yield value


def _read_tail(transcript: Any) -> tuple[bytes, bool]:
    """Return the end of a transcript, and whether it is the whole file; `transcript` is the path as an event has it."""
    if not isinstance(transcript, str) or not transcript.endswith((".jsonl", ".json")) or "\0" in transcript:
        return b"", True
    try:
        handle = open_regular(Path(transcript), os.O_RDONLY)
    except OSError:
        return b"", True
    try:
        start = max(os.fstat(handle).st_size - MAX_TAIL, 0)
        return os.pread(handle, MAX_TAIL, start), start == 0
    except OSError:
        return b"", True
    finally:
        os.close(handle)


def _parts_of(entry: Mapping[str, Any]) -> Iterator[_Part]:
    """Yield the texts and calls of one entry, in order; other things of a conversation as `OTHER`.

    The texts lack contexts that the agent repeats, which are not its own words.
    """
    if entry.get("isSidechain") is True:
        return
    inner = next((value for key in ("message", "payload", "data") if isinstance(value := entry.get(key), dict)), entry)
    kind = inner.get("type") if isinstance(inner.get("type"), str) else entry.get("type")
    role = inner.get("role")
    item = inner.get("item")
    if kind == "item_completed" and isinstance(item, dict):
        if isinstance(call := item.get("id"), str) and call.startswith(_SCRIPT_CALL):
            yield CALL, call
        return
    if kind in _CALLS:
        yield CALL, _call_id(inner)
        return
    if kind in _RESULTS:
        yield OTHER, ""
        return
    is_agent = role in ("assistant", "model") or entry.get("type") in ("assistant", "gemini", "assistant.message")
    content = inner.get("content")
    if isinstance(content, str):
        if is_agent and content.strip():
            yield TEXT, remove_contexts(content.strip())
        elif role == "user" or entry.get("type") in ("user", "user.message"):
            yield OTHER, ""
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        block_kind = block.get("type")
        if block_kind in _CALLS:
            yield CALL, _call_id(block)
        elif block_kind in _RESULTS:
            yield OTHER, ""
        elif isinstance(text := block.get("text"), str) and text.strip() and block_kind in (*_TEXTS, None):
            yield (TEXT, remove_contexts(text.strip())) if is_agent else (OTHER, "")
    for name in ("toolCalls", "toolRequests", "tool_calls"):
        calls = inner.get(name)
        yield from (
            (CALL, _call_id(one)) for one in (calls if isinstance(calls, list) else ()) if isinstance(one, dict)
        )
    if entry.get("type") in ("tool.execution_complete", "tool"):
        yield OTHER, ""


def _call_id(block: Mapping[str, Any]) -> str:
    names = _CALL_IDS if block.get("type") == "tool_use" or "call_id" not in block else ("call_id",)
    return next((value for name in names if isinstance(value := block.get(name), str)), "")


# Transcripts of Codex

_BEGINNINGS: Final = (b'"task_started"', b'"turn_started"')
_HEADERS: Final = {"add": "Add", "update": "Update", "delete": "Delete"}
_MAX_FILES: Final = 20  # of one edit


class RecordedEdit(NamedTuple):
    """The change of one file by one call."""

    call: str  # ID of the call
    file: str
    patch: str  # in the form of `apply_patch`


def find_exit_code(transcript: Any, call: str) -> int | None:
    """Return the exit code of a call in a transcript of Codex, None if there is none."""
    name = json.dumps(call).encode()
    for line in reversed(_read_tail(transcript)[0].splitlines()):
        item = _item(line) if name in line else {}
        if call in (item.get("id"), item.get("call_id")):
            code = item.get("exit_code")
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def find_edits(transcript: str) -> Iterator[RecordedEdit]:
    """Yield the edits of the newest turn, oldest first."""
    lines = _read_tail(transcript)[0].splitlines()
    begin = max((n for n, line in enumerate(lines) if any(mark in line for mark in _BEGINNINGS)), default=0)
    for line in lines[begin:]:
        item = _item(line) if b'"FileChange"' in line else {}
        changes, call = item.get("changes"), item.get("id")
        if item.get("type") != "FileChange" or item.get("status") != "completed":
            continue
        if isinstance(changes, dict) and isinstance(call, str) and call:
            for file, change in list(changes.items())[:_MAX_FILES]:
                if isinstance(change, dict) and (patch := _patch(file, change)):
                    yield RecordedEdit(call, file, patch)


def _patch(file: str, change: Mapping[str, Any]) -> str:
    header = _HEADERS.get(str(change.get("type")))
    body = change.get("unified_diff") or change.get("content") or ""
    if header is None or "\n" in file or not isinstance(body, str):
        return ""
    if header == "Add" and not body.startswith("@@"):
        body = "".join(f"+{line}\n" for line in body.splitlines())
    return f"*** Begin Patch\n*** {header} File: {file}\n{body if header != 'Delete' else ''}*** End Patch"


def _item(line: bytes) -> Mapping[str, Any]:
    record = decode_json(line).value
    payload = record.get("payload") if isinstance(record, dict) else None
    item = payload.get("item", payload) if isinstance(payload, dict) else None
    return item if isinstance(item, dict) else {}
