"""What the transcript of Codex has about the calls of a turn, and its hook events have not.

Events have no exit codes. For a model that Codex does not know, an edit is a command `apply_patch`, which fires no
event.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.files.file_access import open_regular
from core.files.file_reader import decode_json

_TAIL: Final = 256 << 10  # end of a transcript that is searched, in bytes
_BEGINNINGS: Final = (b'"task_started"', b'"turn_started"')
_HEADERS: Final = {"add": "Add", "update": "Update", "delete": "Delete"}
_MAX_FILES: Final = 20  # of one edit


class RecordedEdit(NamedTuple):
    """The change of one file by one call."""

    call: str  # ID of the call
    file: str
    patch: str  # in the form of `apply_patch`


def find_exit_code(transcript: Any, call: str) -> int | None:
    """Return the exit code of a call, None if there is none. `transcript` is the path as an event has it."""
    name = json.dumps(call).encode()
    for line in reversed(_read_lines(transcript)):
        item = _item(line) if name in line else {}
        if call in (item.get("id"), item.get("call_id")):
            code = item.get("exit_code")
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def find_edits(transcript: str) -> Iterator[RecordedEdit]:
    """Yield the edits of the newest turn, oldest first."""
    lines = _read_lines(transcript)
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


def _read_lines(transcript: Any) -> list[bytes]:
    if not isinstance(transcript, str) or not transcript or "\0" in transcript:
        return []
    try:
        with os.fdopen(open_regular(Path(transcript), os.O_RDONLY), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read(_TAIL).splitlines()
    except OSError:
        return []
