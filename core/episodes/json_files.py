"""The JSON objects of the episodic memory: read with patience, edited without a byte changed that nobody named."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from core.base.errors import Conflict
from core.config.settings import WatchSettings
from core.storage.atomic_write import rewrite
from core.storage.decoded import Line, Problem
from core.storage.file_reader import MAX_BYTES, open_file, read_file
from core.storage.json_editor import BadJson, JsonText
from core.storage.json_editor import Path as Pointer
from core.storage.json_reader import decode_json, decode_jsonl
from core.storage.locks import remove_drafts

Edit = Callable[[JsonText], None]
"""Changes a document; comes out the same when it is applied to its own result."""
Shapes = Mapping[Pointer, type[dict[str, Any]] | type[list[Any]]]
"""What an edit expects at places of a document, if there is anything: an object or a list; outer places first."""

_RETRY_SECONDS: Final = WatchSettings().retry_seconds
_LAST_BYTES: Final = MAX_BYTES
"""Of a JSON lines file that is longer, only so much of its end is read."""
_MEND: Final = "Mend it, or move it away"


def encode_object(value: Mapping[str, Any]) -> bytes:
    """A new document."""
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def read_object(path: Path, root: Path) -> dict[str, Any] | None:
    """The object in a file; None if there is no such file.

    Args:
        root: A link is followed only to a place inside it.

    Raises:
        Conflict: It holds no object, even after a writer had the time to end; the message names it.
    """
    for pause in (*_RETRY_SECONDS, None):
        raw = read_file(path, root)
        if raw is None:
            return None
        if isinstance(raw, Problem):
            raise Conflict(f"{path} {raw.message}; nothing was changed. {_MEND}")
        value = decode_json(raw.data).value
        if isinstance(value, dict):
            return value
        if pause is not None:
            time.sleep(pause)
    raise Conflict(f"{path} holds no JSON object; nothing was changed. {_MEND}")


def read_last_lines(path: Path, root: Path) -> list[Line]:
    """The lines in the last `_LAST_BYTES` of a JSON lines file that can be read, numbered from the first one of them;
    none if there is no such file.

    Raises:
        Conflict: It is there but cannot be read.
    """
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
    """Refuse a document that `edit_object` could not change, before anything else is written.

    Args:
        shapes: What the edit expects.
        room: Bytes that the edit may add.

    Raises:
        Conflict: The file holds no such document, even after a writer had the time to end; the message names it.
    """
    if path.is_symlink():
        raise Conflict(f"{path} is a link, and nothing is written through it; nothing was changed")
    for pause in (*_RETRY_SECONDS, None):
        raw = read_file(path, root)
        if raw is None:
            return
        if isinstance(raw, Problem):
            raise Conflict(f"{path} {raw.message}; nothing was changed. {_MEND}")
        if len(raw.data) + room > MAX_BYTES:
            raise Conflict(
                f"{path} has {len(raw.data):,} bytes, and no room for what is to come: at most {MAX_BYTES:,} are read; "
                "nothing was changed. Make it shorter, or move it away"
            )
        try:
            expect(_document(raw.data).value, shapes or {})
            return
        except BadJson as error:
            if pause is None:
                raise Conflict(f"{path}: {error}; nothing was changed. {_MEND}") from None
        time.sleep(pause)


def expect(value: Any, shapes: Shapes) -> None:
    """Raise `BadJson` where something else stands in a document than an edit expects."""
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
        raise BadJson("it holds no JSON object")
    return document


def edit_object(path: Path, edit: Edit, initial: Mapping[str, Any]) -> None:
    """Change a document in place, durably; the file is made where there is none, and what killed writers left goes.

    Args:
        initial: What to begin with where there is no file.

    Raises:
        Conflict: The file holds no object, others kept changing it, or it would be longer than readers take; it is as
            it was.
        Unwritable: The disk or a permission forbids it.
    """

    def change(present: bytes | None) -> bytes:
        document = _document(encode_object(initial) if present is None else present)
        edit(document)
        changed = document.encode() if present is not None else encode_object(document.value)
        if len(changed) > MAX_BYTES and changed != present:
            many = f"would have {len(changed):,} bytes, of which at most {MAX_BYTES:,} are read"
            raise Conflict(f"{path} {many}; it was left as it is. Make it shorter, or move it away")
        return changed

    remove_drafts(path.parent)
    rewrite(path, change, merge=_merged, retry_seconds=_RETRY_SECONDS)


def put(document: JsonText, at: Pointer, values: Mapping[str, Any]) -> None:
    """Give the object at `at` these members; those that say so already keep their bytes."""
    for key, value in values.items():
        present = document.value
        for step in at:
            present = present[step]
        if key not in present or present[key] != value:
            document.set(at, key, value)


def ensure(document: JsonText, key: str, empty: Any) -> Any:
    """What stands under a key of the document; `empty` is put there where the key is missing."""
    put(document, (), {} if key in document.value else {key: empty})
    return document.value[key]


def _merged(base: bytes | None, theirs: bytes, present: bytes | None) -> bytes:
    """`present` with the members that another writer, who was faster by a hair, changed; see `rewrite`."""
    if present is None:
        return theirs
    before, after, document = JsonText(base or b"{}").value, JsonText(theirs), JsonText(present)
    if not all(isinstance(value, dict) for value in (before, after.value, document.value)):
        return theirs
    for key, value in after.value.items():
        if key not in before or before[key] != value:
            document.set((), key, value, after.text_at((key,)))
    return document.encode()
