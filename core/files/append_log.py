"""Append-only, crash-safe files of lines (docs/reliability.md#append-logs)."""

from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from core.base.errors import Unwritable
from core.base.regexes import lazy_regex
from core.files.file_access import WAIT_SECONDS, as_unwritable, file_lock, open_regular

_BLOCK: Final = 1 << 16
_BATCH: Final = lazy_regex(rb"([0-9]{1,18}) ([0-9]{1,18})\n")  # offset and length in bytes
_MAX_BATCH_FILE: Final = 40


class IncrementalLines(ABC):
    """Parses the complete lines of a file, only new ones if the file only grew.

    `end` is the number of parsed bytes, `lines` the number of parsed lines.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard all lines, for a file that did not only grow."""
        self.end = self.lines = self._checksum = 0

    def read(self, data: bytes) -> None:
        """Parse the complete lines of the file, whose bytes are `data`."""
        if crc32(memoryview(data)[: self.end]) != self._checksum:
            self.reset()
        end = data.rfind(b"\n") + 1
        if end > self.end:
            self.feed(data[self.end : end])

    def feed(self, data: bytes) -> None:
        """Parse complete lines that follow those parsed before."""
        self._checksum = crc32(data, self._checksum)
        self.end += len(data)
        for line in data.split(b"\n")[:-1]:
            self.lines += 1
            self._parse_line(line)

    @abstractmethod
    def _parse_line(self, line: bytes) -> None:
        """Parse line number `lines`, which may be blank."""


class AppendLog:
    """Append-only file; `append` writes and syncs a whole batch of lines or nothing.

    Writers exclude each other by `flock` on a sibling `.lock` file. Readers take no lock, because only whole lines
    appear at the end. Threads may share one object.
    """

    def __init__(self, path: Path, *, lock_seconds: float = WAIT_SECONDS) -> None:
        self.path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._batch_path = path.with_name(f".{path.name}.batch")
        self._lock_seconds = lock_seconds
        self._mutex = threading.RLock()
        self._depth = 0

    def read(self, offset: int = 0) -> tuple[bytes, int]:
        """Read the whole lines after byte `offset`; returns them and the next offset.

        Leaves out an incomplete last line and an incomplete batch. Returns `(b"", 0)` for a file that is missing or
        shorter than `offset`. Raises Unwritable if the file exists but cannot be read.
        """
        try:
            handle = open_regular(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return b"", 0
        except OSError as error:
            raise Unwritable(f"cannot read {self.path}: {error.strerror}") from None
        with os.fdopen(handle, "rb") as file:
            # Checked before and after: a batch that is complete now may have been incomplete when it was read.
            batches = [self._read_batch()]
            size = os.fstat(handle).st_size
            if size < offset:
                return b"", 0
            file.seek(offset)
            data = file.read(size - offset)
            batches.append(self._read_batch())
        for start, length in batches:
            if start < size < start + length:
                data = data[: max(start - offset, 0)]
        whole = data[: data.rfind(b"\n") + 1]
        return whole, offset + len(whole)

    def _read_batch(self) -> tuple[int, int]:
        """Return (offset, length) of the batch that is being appended; both 0 if none is."""
        try:
            handle = open_regular(self._batch_path, os.O_RDONLY)
        except OSError:
            return 0, 0
        try:
            match = _BATCH.fullmatch(os.read(handle, _MAX_BATCH_FILE))
        finally:
            os.close(handle)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock out all other writers; can be nested. Raises Unwritable on failure."""
        if not self._mutex.acquire(timeout=self._lock_seconds):
            raise Unwritable(f"another thread has kept {self.path} locked for {self._lock_seconds:g} s")
        try:
            if self._depth:
                yield
                return
            with file_lock(self._lock_path, self._lock_seconds):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
        finally:
            self._mutex.release()

    def append(self, lines: Sequence[bytes]) -> None:
        """Append `lines` (without line ends), all or none.

        Repairs the file first. When this returns, the lines are on disk. Raises Unwritable if disk, permissions or lock
        prevent it; the end of the file is then unchanged.
        """
        data = b"".join(line + b"\n" for line in lines)
        with self._open_locked(os.O_APPEND | os.O_CREAT) as handle:
            created = os.fstat(handle).st_size == 0
            self._remove_incomplete_batch(handle)
            self._repair_end(handle)
            if len(lines) > 1:
                self._note_batch(os.fstat(handle).st_size, len(data))
            append_bytes(handle, data)
            if len(lines) > 1:
                self._batch_path.unlink()
            if created:
                sync_folder(self.path.parent)

    def remove_last(self, lines: Sequence[bytes]) -> None:
        """Remove `lines` (without line ends) if they end the file; raises Unwritable."""
        data = b"".join(line + b"\n" for line in lines)
        with self._open_locked(0) as handle:
            start = os.fstat(handle).st_size - len(data)
            if os.pread(handle, len(data), max(start, 0)) == data:
                os.ftruncate(handle, start)
                os.fsync(handle)

    def repair(self) -> None:
        """Move an incomplete end to a side file; raises Unwritable on failure."""
        if not self.path.exists():
            return
        with self._open_locked(os.O_APPEND) as handle:
            self._remove_incomplete_batch(handle)
            self._repair_end(handle)

    def undo_incomplete_batch(self) -> None:
        """Move an incomplete batch to a side file; raises Unwritable on failure."""
        if os.path.lexists(self._batch_path):
            with self._open_locked(0) as handle:
                self._remove_incomplete_batch(handle)

    @contextmanager
    def _open_locked(self, flags: int) -> Iterator[int]:
        """Lock and open the file; converts `OSError` to `Unwritable`."""
        with self.locked(), as_unwritable(self.path):
            handle = open_regular(self.path, os.O_RDWR | flags)
            try:
                yield handle
            finally:
                os.close(handle)

    def _note_batch(self, start: int, length: int) -> None:
        """Record a batch before it is written, so that the next writer can undo it."""
        note = open_regular(self._batch_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            append_bytes(note, b"%d %d\n" % (start, length))
        finally:
            os.close(note)
        sync_folder(self.path.parent)

    def _remove_incomplete_batch(self, handle: int) -> None:
        if not os.path.lexists(self._batch_path):
            return
        size = os.fstat(handle).st_size
        start, length = self._read_batch()
        if start < size < start + length and start in (0, _end_of_last_line(handle, start)):
            self._cut(handle, start, size)
        self._batch_path.unlink()

    def _repair_end(self, handle: int) -> None:
        """Make the file end with a whole line.

        A complete record without a line end gets one, because an editor may have removed it. Any other text after the
        last line end was never acknowledged; it is moved to `<name>.torn-<n>`.
        """
        size = os.fstat(handle).st_size
        end = _end_of_last_line(handle, size)
        if end == size:
            return
        try:
            msgspec.json.decode(os.pread(handle, size - end, end))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._cut(handle, end, size)
        else:
            append_bytes(handle, b"\n")

    def _cut(self, handle: int, length: int, size: int) -> None:
        """Truncate the file to `length` bytes after saving the rest in a side file."""
        for number in itertools.count(1):
            side = self.path.with_name(f"{self.path.name}.torn-{number}")
            with suppress(FileExistsError):
                torn = open_regular(side, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                break
        try:
            append_bytes(torn, os.pread(handle, size - length, length))
        finally:
            os.close(torn)
        sync_folder(self.path.parent)
        os.ftruncate(handle, length)
        os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make created or renamed names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_bytes(handle: int, data: bytes) -> None:
    """Write and sync; after a failure, the file is truncated to its old length."""
    size = os.fstat(handle).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _end_of_last_line(handle: int, size: int) -> int:
    """Return the offset after the last line feed in the first `size` bytes."""
    end = size
    while end > 0:
        start = max(end - _BLOCK, 0)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
