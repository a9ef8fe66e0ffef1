"""An append-only file of JSON lines that survives kill -9 and any number of writers."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

import msgspec

from core.base.errors import Unwritable
from core.storage.locks import WAIT_SECONDS, file_lock, open_regular

_BLOCK: Final = 1 << 16
_BATCH: Final = re.compile(rb"([0-9]{1,18}) ([0-9]{1,18})\n")
"""Offset and length of lines that are being appended together, in bytes."""
_MAX_BATCH: Final = 40


class AppendLog:
    """Lines appended one batch at a time, each durable before `append` returns.

    Writers exclude each other by `flock` on a sibling `.lock` file. Readers take no lock, since they only
    ever see whole lines grow at the end. Share one object between threads freely.
    """

    def __init__(self, path: Path, *, lock_seconds: float = WAIT_SECONDS) -> None:
        self.path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._batch_path = path.with_name(f".{path.name}.batch")
        self._lock_seconds = lock_seconds
        self._mutex = threading.RLock()
        self._depth = 0

    def read(self, offset: int = 0) -> tuple[bytes, int]:
        """The whole lines from byte `offset` on, and the offset after them.

        An unfinished last line is held back, as are all lines of a batch that is not whole. A file that is missing,
        or shorter than `offset`, reads as `(b"", 0)`.

        Raises:
            Unwritable: It is there but cannot be read.
        """
        try:
            handle = open_regular(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return b"", 0
        except OSError as error:
            raise Unwritable(f"cannot read {self.path}: {error.strerror}") from None
        with os.fdopen(handle, "rb") as file:
            # Looked for before and after: a batch that is whole by then may have been half there when it was read.
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
        """Where the lines begin that are being appended together, and how long they are; (0, 0) if none are."""
        try:
            note = open_regular(self._batch_path, os.O_RDONLY)
        except OSError:
            return 0, 0
        try:
            told = _BATCH.fullmatch(os.read(note, _MAX_BATCH))
        finally:
            os.close(note)
        return (int(told[1]), int(told[2])) if told else (0, 0)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other writer out, in this process and in others. May be nested.

        Raises:
            Unwritable: The lock stayed taken too long, or cannot be made.
        """
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
        """Add `lines` (without line ends) and return when they are on the disk, all of them or none.

        What a killed writer left unfinished is set aside first, see `_undo_batch` and `_mend`.

        Raises:
            Unwritable: Disk, permission or lock; the file ends as it did before.
        """
        data = b"".join(line + b"\n" for line in lines)
        with self.locked():
            try:
                created = not self.path.exists()
                handle = open_regular(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                try:
                    self._undo_batch(handle)
                    self._mend(handle)
                    with self._batch(handle, data) if len(lines) > 1 else nullcontext():
                        append_bytes(handle, data)
                finally:
                    os.close(handle)
                if created:
                    sync_folder(self.path.parent)
            except OSError as error:
                raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    def tidy(self) -> None:
        """Set aside what a killed writer left unfinished, see `append`; then the file ends with a whole line.

        Raises:
            Unwritable: Disk, permission or lock.
        """
        with self.locked():
            try:
                handle = open_regular(self.path, os.O_RDWR | os.O_APPEND)
                try:
                    self._undo_batch(handle)
                    self._mend(handle)
                finally:
                    os.close(handle)
            except FileNotFoundError:
                return
            except OSError as error:
                raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    def mend(self) -> None:
        """Take back the lines of a writer that was killed before it had written all of them.

        Raises:
            Unwritable: Disk, permission or lock.
        """
        if not os.path.lexists(self._batch_path):
            return
        with self.locked():
            try:
                handle = open_regular(self.path, os.O_RDWR)
                try:
                    self._undo_batch(handle)
                finally:
                    os.close(handle)
            except OSError as error:
                raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    @contextmanager
    def _batch(self, handle: int, data: bytes) -> Iterator[None]:
        """Tell the next writer, should this one be killed, where its lines begin and how long they are."""
        note = open_regular(self._batch_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            append_bytes(note, b"%d %d\n" % (os.fstat(handle).st_size, len(data)))
        finally:
            os.close(note)
        sync_folder(self.path.parent)
        yield
        self._batch_path.unlink()

    def _undo_batch(self, handle: int) -> None:
        """See `mend`."""
        if not os.path.lexists(self._batch_path):
            return
        size = os.fstat(handle).st_size
        start, length = self._read_batch()
        if start < size < start + length and start in (0, _end_of_last_line(handle, start)):
            self._cut(handle, start, size)
        self._batch_path.unlink()

    def _cut(self, handle: int, keep: int, size: int) -> None:
        """Set aside what comes after the first `keep` bytes, and cut it off."""
        self._set_aside(os.pread(handle, size - keep, keep))
        os.ftruncate(handle, keep)
        os.fsync(handle)

    def _mend(self, handle: int) -> None:
        """End the file with a whole line.

        A whole record that only lacks its line end is kept (an editor may have dropped it). Anything else
        after the last line end was never acknowledged: it is copied to `<name>.torn-<n>`, then cut off.
        """
        size = os.fstat(handle).st_size
        keep = _end_of_last_line(handle, size)
        if keep == size:
            return
        torn = os.pread(handle, size - keep, keep)
        try:
            msgspec.json.decode(torn)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._cut(handle, keep, size)
        else:
            append_bytes(handle, b"\n")

    def _set_aside(self, torn: bytes) -> None:
        number = 1
        while True:
            path = self.path.with_name(f"{self.path.name}.torn-{number}")
            try:
                handle = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                break
            except FileExistsError:
                number += 1
        try:
            append_bytes(handle, torn)
        finally:
            os.close(handle)
        sync_folder(self.path.parent)


def sync_folder(folder: Path) -> None:
    """Make names created or changed in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_bytes(handle: int, data: bytes) -> None:
    """Write and sync; on failure the file gets its old length back, as far as the disk lets it."""
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
    end = size
    while end > 0:
        start = max(end - _BLOCK, 0)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
