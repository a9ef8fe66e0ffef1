"""Lines of a rollout of Codex: the parts that are decoded, and their texts (docs/adapter-files.md#codex)."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from core.adapters.codex_records import Tokens
from core.adapters.sessions import MAX_DIFF
from core.adapters.values import MAX_LABEL, MAX_TEXT, clip
from core.base.regexes import lazy_regex

MAX_FILES: Final = 200
_MAX_COUNT: Final = 1 << 53
_PATCH: Final = lazy_regex(r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\\"]{1,300})")
_FILE_LINE: Final = lazy_regex(r"\*\*\* (Add|Update|Delete) File: (.{1,300})")
_MAX_PATCH: Final = 200_000
_SCRIPT: Final = frozenset({"-c", "-lc", "-ic", "/c"})


class Git(Struct, gc=False):
    branch: str | None = None


class SessionMeta(Struct, gc=False):
    id: str
    cwd: str = ""
    timestamp: str = ""
    cli_version: str | None = None
    source: Raw = Raw()
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    git: Git | None = None


class MetaLine(Struct, gc=False):
    payload: SessionMeta
    type: str = ""


class Payload(Struct, gc=False):
    type: str = ""
    turn_id: str | None = None
    call_id: str | None = None
    name: Raw = Raw()
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    output: Raw = Raw()
    message: Raw = Raw()
    last_agent_message: Raw = Raw()
    reason: Raw = Raw()
    error: Raw = Raw()
    codex_error_info: Raw = Raw()
    info: Raw = Raw()
    goal: Raw = Raw()
    item: Raw = Raw()
    changes: Raw = Raw()
    success: Raw = Raw()
    command: Raw = Raw()
    exit_code: int | None = None
    aggregated_output: Raw = Raw()
    model: Raw = Raw()


class RolloutLine(Struct, gc=False):
    payload: Payload
    timestamp: str = ""
    type: str = ""


class Counts(Struct, gc=False):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenInfo(Struct, gc=False):
    total_token_usage: Counts | None = None


decode_line: Final = msgspec.json.Decoder(RolloutLine).decode
decode_meta: Final = msgspec.json.Decoder(MetaLine).decode
_decode_tokens: Final = msgspec.json.Decoder(TokenInfo | None).decode
decode_any: Final = msgspec.json.Decoder().decode


def read_meta(line: bytes) -> tuple[str, str]:
    """Return the session's ID and working folder in the first line of a rollout; "" if it has none."""
    try:
        found = decode_meta(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "", ""
    return (found.payload.id, found.payload.cwd) if found.type == "session_meta" else ("", "")


def read_tokens(info: Raw) -> Tokens | None:
    found = _decode_tokens(info) if info else None
    counts = found.total_token_usage if found is not None else None
    if counts is None:
        return None
    return Tokens(*(min(max(getattr(counts, name), 0), _MAX_COUNT) for name in counts.__struct_fields__))


def error_kind(info: Any) -> str:
    """Return the name of a kind of error, which is a text or the key of an object."""
    return str(next(iter(info), "") if isinstance(info, dict) else info or "")[:MAX_LABEL]


def normalize_status(status: object) -> str:
    """Return the status of a goal as the database has it, such as `budget_limited` for `budgetLimited`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(status or "")[:MAX_LABEL]).lower()


def patched_files(text: str) -> list[str]:
    return list(dict.fromkeys(_PATCH.findall(text[:_MAX_PATCH])))[:MAX_FILES] if "*** " in text else []


def clean_patch(patch: str) -> str:
    """Return a patch of Codex with the headers of a unified diff."""
    start = patch.find("*** ")
    lines = (_header(line) for line in patch[start : start + MAX_DIFF].splitlines())
    return "".join(f"{line}\n" for line in lines if not line.startswith("*** "))


def _header(line: str) -> str:
    found = _FILE_LINE.fullmatch(line)
    if found is None:
        return line
    old = "/dev/null" if found[1] == "Add" else f"a/{found[2]}"
    new = "/dev/null" if found[1] == "Delete" else f"b/{found[2]}"
    return f"--- {old}\n+++ {new}"


def parse_command(arguments: str | bytes) -> str:
    """Return the command in the arguments of a shell tool."""
    found = decode_any(arguments)
    return join_words(found.get("cmd") or found.get("command")) if isinstance(found, dict) else ""


def join_words(command: object) -> str:
    """Return a command, given as a text or as words of which the last may be a script for a shell."""
    if isinstance(command, list):
        words = [str(word) for word in command]
        return clip(words[2] if len(words) == 3 and words[1] in _SCRIPT else " ".join(words), MAX_TEXT)
    return clip(command, MAX_TEXT) if isinstance(command, str) else ""


def text_of_output(value: Any) -> str:
    """Return the text of an output or of a message's content."""
    if isinstance(value, str):
        if not value.startswith('{"'):
            return value
        try:
            inner = decode_any(value)
        except (msgspec.MsgspecError, ValueError):
            return value
        return str(inner.get("output", value)) if isinstance(inner, dict) else value
    if isinstance(value, dict):
        return text_of_output(value.get("content") or value.get("text") or "")
    return (
        "\n".join(str(one.get("text", "")) for one in value if isinstance(one, dict)) if isinstance(value, list) else ""
    )


def text_of(raw: Raw, limit: int | None = None) -> str:
    value = decode_any(raw) if raw else ""
    return value[:limit].strip() if isinstance(value, str) else ""
