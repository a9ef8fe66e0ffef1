"""A file that a command is given to read."""

from __future__ import annotations

from pathlib import Path

from core.base.errors import BadInput
from core.base.text import visible_line
from core.storage.decoded import Problem
from core.storage.file_reader import read_file


def read_named(file: Path, most: int) -> bytes:
    """The content of a file that a person named, if it has at most `most` bytes.

    Raises:
        BadInput: It is no path, does not exist, or cannot be read.
    """
    name = visible_line(str(file), 300)
    try:
        place = file.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{name} is no path") from None
    read = read_file(place, place.parent, most)
    if read is None:
        raise BadInput(f"{name} does not exist")
    if isinstance(read, Problem):
        raise BadInput(f"{name} {read.message}")
    return read.data
