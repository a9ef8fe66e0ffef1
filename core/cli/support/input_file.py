"""Reads files named on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from core.base.errors import BadInput
from core.base.text import visible_line
from core.files.file_reader import Problem, read_file


def read_input(file: Path, most: int) -> bytes:
    """Read a file, or standard input for `-`, of at most `most` bytes.

    Raises BadInput if the path is invalid, or the file is missing, too long or unreadable.
    """
    if str(file) == "-":
        data = sys.stdin.buffer.read(most + 1) if sys.stdin is not None else b""
        if len(data) > most:
            raise BadInput(f"standard input is longer than {most:,} bytes")
        return data
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
