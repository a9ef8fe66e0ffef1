"""Incremental reading of growing files of lines into small states (docs/adapters.md#transcripts).

A file is read at an offset, a limited number of bytes at a time. It is read from the start again if it was replaced,
became shorter, or has other bytes at its start or before the offset (after a compaction or another rewrite).
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.storage.file_reader import Stamp

MAX_LINE_BYTES: Final = 4 << 20  # longest line of a transcript that is decoded
MAX_BYTES_AT_ONCE: Final = 2 << 20  # of one transcript, at each look
HEAD_BYTES: Final = 1024  # hashed, to notice that another file has taken the place of a transcript
_MARK_BYTES: Final = 256  # before the offset, hashed for the same reason
DAMAGE: Final = (
    *(msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(ArithmeticError, AssertionError),
)  # what untrusted content can raise
_SURROGATE: Final = lazy_regex(
    rb"(\\\\|\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)  # half a pair of escapes, which is not JSON: a text that an agent cut inside an emoji

_State = TypeVar("_State", bound=Struct)


class Fold(Protocol[_State]):
    """Reads a growing file line by line into a small state, which is kept between runs of the program.

    `name` and `version` identify the code: after a change, increase the version, and files are read from the start.
    `state` is a mutable msgspec Struct that MessagePack can encode; a new one is the state of an empty file.
    """

    name: str
    version: int
    state: type[_State]

    def add(self, state: _State, line: bytes) -> None:
        """Add a complete line, which is untrusted; ValueError, TypeError or msgspec's errors if it cannot be read."""


class Folded(Struct, frozen=True, gc=False):
    """The state of a transcript, and how far it was read."""

    state: Any
    stamp: Stamp
    head: bytes = b""  # hash of the first `head_size` bytes, and of some before the offset
    head_size: int = 0
    offset: int = 0  # of the first byte that was not read
    seen: int = 0  # end of the bytes that were looked at: more than the offset if the last line is not complete
    skipped: int = 0  # lines that could not be read
    is_in_long_line: bool = False  # whether the offset is inside a line that is skipped

    @property
    def is_complete(self) -> bool:
        """Whether all bytes of the file were read, but for a last line that is not complete."""
        return self.seen >= self.stamp.size


def read_added(descriptor: int, fold: Fold[Any], known: Folded | None, most: int = MAX_BYTES_AT_ONCE) -> Folded:
    """Read about `most` bytes that were added to an open file; the state is another object if lines were added."""
    stamp = Stamp.of(os.fstat(descriptor))
    if known is None or not _is_continued(descriptor, known, stamp):
        known = Folded(fold.state(), stamp)
    position = _Position(descriptor, fold, known, stamp.size)
    while position.read < most and position.offset + position.tail < stamp.size and position.advance():
        pass
    head_size = min(stamp.size, HEAD_BYTES)
    return Folded(
        position.state,
        stamp,
        _hash(descriptor, head_size, position.offset),
        head_size,
        position.offset,
        position.offset + position.tail,
        position.skipped,
        position.is_in_long_line,
    )


class _Position:
    """A place in an open file, and the state of all lines before it."""

    def __init__(self, descriptor: int, fold: Fold[Any], known: Folded, size: int) -> None:
        self._descriptor, self._fold, self._size = descriptor, fold, size
        self._is_new = known.offset == 0
        self.state, self.offset, self.skipped = known.state, known.offset, known.skipped
        self.is_in_long_line = known.is_in_long_line
        self.read = 0
        self.tail = known.seen - known.offset  # bytes after the offset that are not a complete line

    def advance(self) -> bool:
        """Read the next lines; returns False at the end of the file."""
        wanted = min(max(2 * self.tail, MAX_BYTES_AT_ONCE), MAX_LINE_BYTES)
        data = os.pread(self._descriptor, min(wanted, self._size - self.offset), self.offset)
        self.read += len(data)
        if not data:
            return False
        if self.is_in_long_line:
            start = data.find(b"\n") + 1
            self.is_in_long_line = not start
            self.offset += start or len(data)
            return True
        end = data.rfind(b"\n") + 1
        if end:
            self._add(data[:end])
            self.offset += end
            self.tail = 0
        elif len(data) >= MAX_LINE_BYTES:
            self.is_in_long_line, self.tail = True, 0
            self.offset += len(data)
            self.skipped += 1
        else:
            is_same, self.tail = self.tail == len(data), len(data)
            return not is_same
        return True

    def _add(self, data: bytes) -> None:
        if not self._is_new:
            self.state, self._is_new = replace(self.state), True
        if b"\\ud" in data or b"\\uD" in data:
            data = _SURROGATE.sub(lambda found: found[1] or b"\\ufffd", data)
        for line in data.split(b"\n"):
            if line and not line.isspace():
                try:
                    self._fold.add(self.state, line)
                except DAMAGE:
                    self.skipped += 1


def _is_continued(descriptor: int, known: Folded, stamp: Stamp) -> bool:
    """Return whether an open file begins with what was read."""
    if known.stamp.inode != stamp.inode or stamp.size < known.offset:
        return False
    return _hash(descriptor, known.head_size, known.offset) == known.head


def _hash(descriptor: int, head_size: int, offset: int) -> bytes:
    start = max(offset - _MARK_BYTES, 0)
    return sha256(os.pread(descriptor, head_size, 0) + os.pread(descriptor, offset - start, start)).digest()[:16]
