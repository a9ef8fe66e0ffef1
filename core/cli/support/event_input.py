"""Reads the event that an agent writes to stdin."""

from __future__ import annotations

import os
import select
from typing import Final

_STDIN: Final = 0
_TIMEOUT_SECONDS: Final = 2.0  # How long to wait for an agent that keeps stdin open and writes nothing.
_MAX_BYTES: Final = 64 << 20  # Longest event; that of a tool includes the file that was written.


def read_stdin(most: int = _MAX_BYTES) -> bytes:
    """Read stdin until it is closed or times out, and return its first `most` bytes; nothing from a terminal."""
    chunks, size = [], 0
    try:
        if os.isatty(_STDIN):
            return b""
        while size < _MAX_BYTES and select.select([_STDIN], [], [], _TIMEOUT_SECONDS)[0]:
            chunk = os.read(_STDIN, 1 << 16)
            if not chunk:
                break
            if size < most:  # the rest is read, too: else the writer of the event gets a broken pipe
                chunks.append(chunk[: most - size])
            size += len(chunk)
    except OSError:  # stdin is closed
        pass
    return b"".join(chunks)
