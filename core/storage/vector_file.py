"""A file that keeps vectors between runs.

A line that says what the vectors are, then records of one size: the sha256 that a vector is kept by, one signed
byte a dimension, and the CRC-32 of both. Nothing in it is trusted or needed: a file of another kind reads as
empty, a damaged record is passed over, and what is missing is made again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.base.errors import BadInput, Unwritable
from core.config.paths import ProjectPaths
from core.storage.append_log import append_bytes, sync_folder
from core.storage.file_reader import RawFile, read_file
from core.storage.locks import draft_of, file_lock, open_regular, remove_drafts

Stored = tuple[list[str], NDArray[np.int8]]
"""The hashes (64 hex digits) and the vectors, shape (hashes, dimensions); a later one of a hash counts."""
Append = Callable[[Sequence[str], NDArray[np.int8]], None]

MAX_VECTOR_BYTES: Final = 128 << 20
"""Largest file that is read and written: 300,000 vectors of 384 dimensions."""
_WAIT_SECONDS: Final = 1.0
"""How long to wait for another process that adds vectors: long enough for a few."""
_HASH_BYTES: Final = 32
_CHECK_BYTES: Final = 4
_MAX_UNWANTED_SHARE: Final = 0.25
"""A file with a larger share of vectors that nobody wants any more is made anew without them."""


class VectorFile:
    """The vectors of one project from one model.

    Args:
        paths: The project.
        file: Where it is, below `.aiwg/ralph`.
        model: Names the model and how texts were put to it; vectors from another one are no use.
        dimensions: Of each vector.
    """

    def __init__(self, paths: ProjectPaths, file: str, model: str, dimensions: int) -> None:
        self.path = paths.ralph / file
        self._paths = paths
        self._dimensions = dimensions
        self._header = f"ralphdeck vectors 1 {model} {dimensions}\n".encode()
        self._record = _HASH_BYTES + dimensions + _CHECK_BYTES

    def read(self) -> Stored:
        """All whole vectors; never raises for what is wrong with the file."""
        return self._decoded(self._data())

    def _data(self) -> bytes:
        try:
            self._paths.inside(self._paths.relative(self.path.parent))
        except BadInput:
            return b""
        raw = read_file(self.path, self._paths.aiwg, MAX_VECTOR_BYTES)
        return raw.data if isinstance(raw, RawFile) else b""

    def _decoded(self, data: bytes) -> Stored:
        count = (len(data) - len(self._header)) // self._record if data.startswith(self._header) else 0
        whole = memoryview(data)[len(self._header) :]
        starts = [start for start in range(0, count * self._record, self._record) if self._is_sound(whole, start)]
        records = np.frombuffer(whole[: count * self._record], np.uint8).reshape(-1, self._record)
        if len(starts) < count:
            records = records[np.array(starts, np.int64) // self._record]
        vectors = np.ascontiguousarray(records[:, _HASH_BYTES:-_CHECK_BYTES]).view(np.int8)
        return [whole[start : start + _HASH_BYTES].hex() for start in starts], vectors

    def _is_sound(self, records: memoryview, start: int) -> bool:
        end = start + self._record - _CHECK_BYTES
        return zlib.crc32(records[start:end]).to_bytes(_CHECK_BYTES, "big") == records[end : end + _CHECK_BYTES]

    def _encoded(self, hashes: Sequence[str], vectors: NDArray[np.int8]) -> bytes:
        records = (bytes.fromhex(hash) + vector.tobytes() for hash, vector in zip(hashes, vectors, strict=True))
        return b"".join(record + zlib.crc32(record).to_bytes(_CHECK_BYTES, "big") for record in records)

    @contextmanager
    def writing(self, wanted: Container[str]) -> Iterator[Append]:
        """Be the one process that adds vectors; each call of what this gives is durable on its return.

        First the file is made anew if it is damaged, or if too many of its vectors are not in `wanted`.

        Raises:
            Unwritable: Another process is adding many vectors, the disk or a permission forbids it, a link leads to
                the folder, or the file is full.
        """
        folder = self.path.parent
        with self._telling_errors():
            self._paths.unlinked(self._paths.relative(folder))
        with file_lock(self.path.with_name(f"{self.path.name}.lock"), _WAIT_SECONDS):
            with self._telling_errors():
                remove_drafts(folder)
                self._tidy(wanted)
                handle = open_regular(self.path, os.O_RDWR | os.O_APPEND)

            def append(hashes: Sequence[str], vectors: NDArray[np.int8]) -> None:
                records = self._encoded(hashes, vectors)
                with self._telling_errors():
                    if os.fstat(handle).st_size + len(records) > MAX_VECTOR_BYTES:
                        raise Unwritable(f"{self.path} has {MAX_VECTOR_BYTES:,} bytes: more would not be read again")
                    append_bytes(handle, records)

            try:
                yield append
            finally:
                os.close(handle)

    @contextmanager
    def _telling_errors(self) -> Iterator[None]:
        try:
            yield
        except BadInput as error:
            raise Unwritable(str(error)) from None
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    def _tidy(self, wanted: Container[str]) -> None:
        data = self._data()
        hashes, vectors = self._decoded(data)
        places = {hash: place for place, hash in enumerate(hashes) if hash in wanted}
        is_whole = data.startswith(self._header) and len(data) == len(self._header) + len(hashes) * self._record
        if is_whole and len(hashes) - len(places) <= _MAX_UNWANTED_SHARE * len(hashes):
            return
        draft = draft_of(self.path)
        try:
            handle = open_regular(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            try:
                append_bytes(handle, self._header + self._encoded(list(places), vectors[list(places.values())]))
            finally:
                os.close(handle)
            draft.replace(self.path)
            sync_folder(self.path.parent)
        finally:
            draft.unlink(missing_ok=True)
