"""Read and edit JSON files of the task memory; an edit keeps all other bytes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from core.base.errors import Conflict
from core.base.validation import RETRY_SECONDS
from core.files.atomic_write import rewrite
from core.files.decoded import Line, Problem
from core.files.file_reader import MAX_BYTES, decode_json, decode_jsonl, open_file, read_file
from core.files.json_editor import BadJson, JsonText
from core.files.json_editor import Path as Pointer

Edit = Callable[[JsonText], None]  # changes a document; applying it to its own result must change nothing
Shapes = Mapping[Pointer, type[dict[str, Any]] | type[list[Any]]]  # expected types of existing values, outer ones first

_LAST_BYTES: Final = MAX_BYTES  # number of bytes at the end of a JSON lines file that are read
_HINT: Final = "Fix the file or move it away"


def encode_object(value: Mapping[str, Any]) -> bytes:
    """Encode a new JSON file."""
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def read_object(path: Path, root: Path) -> dict[str, Any] | None:
    """Read a JSON object (None without a file); raise `Conflict` for other content."""
    for pause in (*RETRY_SECONDS, None):
        raw = read_file(path, root)
        if raw is None:
            return None
        if isinstance(raw, Problem):
            raise Conflict(f"{path} {raw.message}; nothing was changed. {_HINT}")
        value = decode_json(raw.data).value
        if isinstance(value, dict):
            return value
        if pause is not None:
            time.sleep(pause)
    raise Conflict(f"{path} does not contain a JSON object; nothing was changed. {_HINT}")


def read_last_lines(path: Path, root: Path) -> list[Line]:
    """Read the last lines of a JSON lines file; raise `Conflict` if it is unreadable."""
    handle = open_file(path, root)
    if handle is None:
        return []
    if isinstance(handle, Problem):
        raise Conflict(f"{path} {handle.message}; nothing was changed")
    with os.fdopen(handle, "rb") as file:
        start = max(os.fstat(handle).st_size - _LAST_BYTES, 0)
        file.seek(start)
        data = file.read(_LAST_BYTES)
    return decode_jsonl(data[data.find(b"\n") + 1 :] if start else data)[0]


def check_editable(path: Path, root: Path, shapes: Shapes | None = None, *, room: int = 0) -> None:
    """Check that `edit_object` can change a file, before other files are written.

    `shapes` are the types that the edit expects, and `room` is the number of bytes that it may add. Raises Conflict if
    the file does not contain such an object, even after retries, is a link, or is too long.
    """
    if path.is_symlink():
        raise Conflict(f"{path} is a link, which is not followed; nothing was changed")
    for pause in (*RETRY_SECONDS, None):
        raw = read_file(path, root)
        if raw is None:
            return
        if isinstance(raw, Problem):
            raise Conflict(f"{path} {raw.message}; nothing was changed. {_HINT}")
        if len(raw.data) + room > MAX_BYTES:
            raise Conflict(
                f"{path} has {len(raw.data):,} bytes and no room for the change (at most {MAX_BYTES:,}); "
                "nothing was changed. Shorten the file or move it away"
            )
        try:
            check_shapes(_document(raw.data).value, shapes or {})
            return
        except BadJson as error:
            if pause is None:
                raise Conflict(f"{path}: {error}; nothing was changed. {_HINT}") from None
        time.sleep(pause)


def check_shapes(value: Any, shapes: Shapes) -> None:
    """Raise `BadJson` if a value does not have its expected type."""
    for at, shape in shapes.items():
        inner = value
        for step in at[:-1]:
            inner = inner.get(step, {})
        inner = inner.get(at[-1], shape())
        if not isinstance(inner, shape):
            where = "/".join(map(str, at))
            raise BadJson(f"expected {'a list' if shape is list else 'an object'} under '{where}'")


def _document(data: bytes) -> JsonText:
    document = JsonText(data)
    if document.is_lines or not isinstance(document.value, dict):
        raise BadJson("it does not contain a JSON object")
    return document


def edit_object(path: Path, edit: Edit, initial: Mapping[str, Any], *, is_repeated: bool = False) -> None:
    """Change a JSON file in place and durably; create it from `initial` if needed.

    `is_repeated` is whether a later edit repeats this one: then it does not wait 10 ms to check that no slower writer
    undid it. Raises Conflict, without a change, if the file does not contain an object, other processes keep changing
    it, or it would become longer than readers accept.
    """

    def change(present: bytes | None) -> bytes:
        document = _document(encode_object(initial) if present is None else present)
        edit(document)
        changed = document.encode() if present is not None else encode_object(document.value)
        if len(changed) > MAX_BYTES and changed != present:
            limit = f"would have {len(changed):,} bytes; at most {MAX_BYTES:,} are read"
            raise Conflict(f"{path} {limit}; it was not changed. Shorten the file or move it away")
        return changed

    rewrite(path, change, merge=_merge, retry_seconds=RETRY_SECONDS, is_checked=not is_repeated)


def set_members(document: JsonText, at: Pointer, values: Mapping[str, Any]) -> None:
    """Set members of the object at `at`; do not touch members with equal values."""
    for key, value in values.items():
        present = document.value
        for step in at:
            present = present[step]
        if key not in present or present[key] != value:
            document.set(at, key, value)


def set_default(document: JsonText, key: str, empty: Any) -> Any:
    """Return the value of a key; if it is missing, set it to `empty` first."""
    set_members(document, (), {} if key in document.value else {key: empty})
    return document.value[key]


def _merge(base: bytes | None, theirs: bytes, present: bytes | None) -> bytes:
    """Merge the changes from `base` to `theirs` into `present`; see `rewrite`."""
    if present is None:
        return theirs
    before, after, document = JsonText(base or b"{}").value, JsonText(theirs), JsonText(present)
    if not all(isinstance(value, dict) for value in (before, after.value, document.value)):
        return theirs
    for key, value in after.value.items():
        if key not in before or before[key] != value:
            document.set((), key, value, after.text_at((key,)))
    return document.encode()
