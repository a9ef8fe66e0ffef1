"""Read files that are given on the command line."""

from __future__ import annotations

from pathlib import Path

from core.base.errors import BadInput
from core.base.text import visible_line
from core.storage.decoded import Problem
from core.storage.file_reader import read_file


def read_input(file: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes.

    Raises:
        BadInput: The path is invalid, or the file is missing, too long or unreadable.
    """
    name = visible_line(str(file), 300)
    try:
        path = file.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{name} is not a valid path") from None
    read = read_file(path, path.parent, most)
    if read is None:
        raise BadInput(f"{name} does not exist")
    if isinstance(read, Problem):
        raise BadInput(f"{name} {read.message}")
    return read.data
