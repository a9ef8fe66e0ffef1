"""What agents' files were before ralphdeck changed them.

Restore points are in the user's state folder and readable by the user alone, because settings may contain secrets.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from core.files.atomic_write import put
from core.files.file_reader import RawFile, read_file

_MAX_BYTES: Final = 64 << 20


class RestorePoint(Struct, frozen=True):
    """A file before it was changed."""

    written: str  # SHA-256 (hex) of what ralphdeck wrote
    original: bytes | None  # None if there was no file
    folders: list[str] = []  # that ralphdeck made for it, outermost first

    def matches(self, data: bytes | None) -> bool:
        """Return whether the file is still what ralphdeck wrote."""
        return data is not None and sha256(data).hexdigest() == self.written


RestorePoints = dict[str, RestorePoint]  # by the absolute path of the file


def load_points(file: Path) -> RestorePoints:
    """Read the restore points; a missing or damaged file has none."""
    read = read_file(file, file.parent, _MAX_BYTES)
    if not isinstance(read, RawFile):
        return {}
    try:
        return msgspec.json.decode(read.data, type=RestorePoints)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}


def save_points(file: Path, points: RestorePoints) -> None:
    """Write the restore points; an OSError leaves the file unchanged."""
    mask = os.umask(0o077)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, msgspec.json.encode(points))
    finally:
        os.umask(mask)
