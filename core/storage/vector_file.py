"""File that caches embedding vectors.

A header line names the model. Then follow records of one size: the SHA-256 of the text, one signed byte per dimension,
and the CRC-32 of both. The content is not trusted and can be recomputed: a file with another header counts as empty, a
damaged record is skipped, and missing vectors are computed again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from core.base.errors import BadInput, Unwritable
from core.storage.append_log import append_bytes, sync_folder
from core.storage.atomic_write import put
from core.storage.drafts import remove_drafts
from core.storage.file_reader import RawFile, read_file
from core.storage.locks import file_lock, open_regular

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

Stored = tuple[list[bytes], NDArray[np.int8]]  # SHA-256 hashes and vectors, one row each
Append = Callable[[Sequence[bytes], NDArray[np.int8]], None]

MAX_VECTOR_BYTES: Final = 128 << 20  # maximum file size: 300,000 vectors of 384 dimensions
_WAIT_SECONDS: Final = 1.0  # timeout while another process adds vectors
_HASH_BYTES: Final = 32
_CHECK_BYTES: Final = 4
_MAX_UNWANTED_SHARE: Final = 0.25  # a file with a larger share of unused vectors is rewritten without them


class VectorFile:
    """Vectors of one project from one model; those of other models are discarded."""

    def __init__(self, paths: ProjectPaths, file: str, model: str, dimensions: int) -> None:
        self.path = paths.ralph / file
        self._paths = paths
        self._header = f"ralphdeck vectors 1 {model} {dimensions}\n".encode()
        self._record = _HASH_BYTES + dimensions + _CHECK_BYTES

    def read(self) -> Stored:
        """Read all undamaged vectors; never raises because of the file's content."""
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
        starts = []
        for start in range(0, count * self._record, self._record):
            check = start + self._record - _CHECK_BYTES
            if zlib.crc32(whole[start:check]).to_bytes(_CHECK_BYTES, "big") == whole[check : check + _CHECK_BYTES]:
                starts.append(start)
        records = np.frombuffer(whole[: count * self._record], np.uint8).reshape(-1, self._record)
        if len(starts) < count:
            records = records[np.array(starts, np.int64) // self._record]
        vectors = np.ascontiguousarray(records[:, _HASH_BYTES:-_CHECK_BYTES]).view(np.int8)
        return [bytes(whole[start : start + _HASH_BYTES]) for start in starts], vectors

    def _encoded(self, hashes: Sequence[bytes], vectors: NDArray[np.int8]) -> bytes:
        records = (hash + vector.tobytes() for hash, vector in zip(hashes, vectors, strict=True))
        return b"".join(record + zlib.crc32(record).to_bytes(_CHECK_BYTES, "big") for record in records)

    @contextmanager
    def writing(self, wanted: Container[bytes]) -> Iterator[Append]:
        """Lock the file and yield a function that appends vectors durably.

        First rewrites the file if it is damaged, or if too many of its vectors are not in `wanted`. Raises Unwritable
        if another process is adding vectors, the folder is a link, the file is full, or disk or permissions prevent it.
        """
        folder = self.path.parent
        with self._as_unwritable():
            self._paths.unlinked(self._paths.relative(folder))
        with file_lock(self.path.with_name(f"{self.path.name}.lock"), _WAIT_SECONDS):
            with self._as_unwritable():
                remove_drafts(folder)
                self._remove_unused(wanted)
                del wanted  # a large project has 10 MB of hashes
                handle = open_regular(self.path, os.O_RDWR | os.O_APPEND)

            def append(hashes: Sequence[bytes], vectors: NDArray[np.int8]) -> None:
                records = self._encoded(hashes, vectors)
                with self._as_unwritable():
                    if os.fstat(handle).st_size + len(records) > MAX_VECTOR_BYTES:
                        raise Unwritable(f"{self.path} has {MAX_VECTOR_BYTES:,} bytes, the maximum that is read")
                    append_bytes(handle, records)

            try:
                yield append
            finally:
                os.close(handle)

    @contextmanager
    def _as_unwritable(self) -> Iterator[None]:
        try:
            yield
        except BadInput as error:
            raise Unwritable(str(error)) from None
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    def _remove_unused(self, wanted: Container[bytes]) -> None:
        data = self._data()
        hashes, vectors = self._decoded(data)
        rows = {hash: row for row, hash in enumerate(hashes) if hash in wanted}
        is_whole = data.startswith(self._header) and len(data) == len(self._header) + len(hashes) * self._record
        if is_whole and len(hashes) - len(rows) <= _MAX_UNWANTED_SHARE * len(hashes):
            return
        put(self.path, self._header + self._encoded(list(rows), vectors[list(rows.values())]))
        sync_folder(self.path.parent)
