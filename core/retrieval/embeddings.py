"""Embedding vectors of patterns and tasks, and the similarity computed from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.text import plural
from core.records.episodes import Task
from core.records.loops import Loop
from core.records.reflections import MemoryTask
from core.retrieval.embedding import (
    DIMENSIONS,
    MODEL,
    Embedder,
    Floats32,
    ModelUnusable,
    is_available,
    pattern_embedding_text,
    shared_embedder,
    task_text,
)
from core.retrieval.vector_files import OF_PATTERNS, OF_TASKS
from core.storage.file_reader import Stamp
from core.storage.vector_file import VectorFile

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.patterns import Pattern

_BATCH: Final = 64  # vectors computed between two writes: a quarter of a second
MAX_ON_DEMAND: Final = 64  # vectors computed on demand, in at most a second; more need `ralphdeck embed`
SURELY_MANY: Final = 10 * MAX_ON_DEMAND  # records, of which more than `MAX_ON_DEMAND` have different texts
_MERGED_SHARE: Final = 16  # new vectors are used once there is one for this number of others; adding copies all

Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Closeness = NDArray[np.float32]  # cosine of a text and each record of an index, NaN for a record without a vector

UNRELATED: Final = 0.20  # cosine at which two texts are unrelated
SAME: Final = 0.75  # cosine at which they mean the same

_STEPS: Final = 127
_ROWS_AT_ONCE: Final = 512  # rows converted to float32 at a time: numpy uses several threads for more, which wait

Record = TypeVar("Record")
PastTask = Task | MemoryTask  # a task of the episodic memory or of the cross-task memory
ComparableWork = PastTask | Loop  # a record with a description to compare: a past task or a loop


def encode_vectors(vectors: Floats32) -> Codes:
    """Encode vectors as int8; changes the direction by at most about 0.3 degrees."""
    most = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 1e-12)
    codes: Codes = np.rint(vectors / most * _STEPS).astype(np.int8)
    return codes


def scale_closeness(closeness: Closeness) -> Floats:
    """Scale cosines to similarities 0..1; `UNRELATED` and NaN give 0, `SAME` gives 1."""
    return np.clip((np.nan_to_num(closeness).astype(np.float64) - UNRELATED) / (SAME - UNRELATED), 0.0, 1.0)


@dataclass(frozen=True)
class Vectors:
    """Immutable vectors by the hash of the text that each one represents."""

    codes: Codes  # encoded vectors (`encode_vectors`), shape (vectors, 384)
    places: Mapping[bytes, int]  # row in `codes` by hash

    @classmethod
    def of(cls, hashes: Sequence[bytes], codes: Codes) -> Vectors:
        """Create from hashes and their vectors, in the same order; a repeated hash replaces."""
        return cls(codes, {hash: place for place, hash in enumerate(hashes)})

    def extended(self, hashes: Sequence[bytes], codes: Codes) -> Vectors:
        more = {hash: place for place, hash in enumerate(hashes, len(self.codes))}
        return Vectors(np.concatenate((self.codes, codes)), {**self.places, **more})

    @cached_property
    def _lengths(self) -> Floats32:
        squares = np.empty(len(self.codes), np.float32)
        for start in range(0, len(self.codes), _ROWS_AT_ONCE):
            part = self.codes[start : start + _ROWS_AT_ONCE].astype(np.float32)
            squares[start : start + _ROWS_AT_ONCE] = np.einsum("vd,vd->v", part, part)
        return np.sqrt(squares)

    def closeness(self, vector: Floats32) -> Floats32:
        """Return the cosine of each vector with `vector` (length 1); NaN for length 0."""
        dots = np.empty(len(self.codes), np.float32)
        for start in range(0, len(self.codes), _ROWS_AT_ONCE):
            end = start + _ROWS_AT_ONCE
            dots[start:end] = self.codes[start:end].astype(np.float32) @ vector
        with np.errstate(invalid="ignore"):
            dots /= self._lengths
        return dots


@dataclass(frozen=True, slots=True)
class VectorSubject(Generic[Record]):
    """Kind of records that have vectors, such as patterns."""

    file: str  # file of the vectors, below `.aiwg/ralph`
    form: str  # version of `text`; vectors of another version are computed again
    text: Callable[[Record], str]  # text of a record for the model
    key: Callable[[Record], bytes]  # SHA-256 of all fields that `text` uses; empty without a vector


def _task_key(task: ComparableWork) -> bytes:
    text = task_text(task)
    return sha256(text.encode("utf-8", "replace")).digest() if text else b""


def _pattern_key(pattern: Pattern) -> bytes:
    """Return a hash of the content, and of the name and tags, which the content does not cover."""
    if not pattern.content_hash:
        return b""
    return sha256("\0".join((pattern.content_hash, pattern.id, *pattern.tags)).encode("utf-8", "replace")).digest()


PATTERNS: Final[VectorSubject[Pattern]] = VectorSubject(
    OF_PATTERNS, "pattern_text-2", pattern_embedding_text, _pattern_key
)

TASKS: Final[VectorSubject[ComparableWork]] = VectorSubject(OF_TASKS, "task_text-1", task_text, _task_key)


class Coverage(NamedTuple):
    """Number of records with vectors, while others are still compared by words."""

    made: int  # records with a vector
    needed: int  # records that should have one

    @property
    def missing(self) -> int:
        return self.needed - self.made

    @property
    def text(self) -> str:
        return f"compared by words: {self.made:,} of {plural(self.needed, 'text')} have a vector"


def vector_file(paths: ProjectPaths, subject: VectorSubject[Record]) -> VectorFile:
    return VectorFile(paths, subject.file, f"{MODEL} {subject.form}", DIMENSIONS)


class _Rows(NamedTuple, Generic[Record]):
    """The row in `vectors` of each ID."""

    ids: Sequence[str]
    records: Mapping[str, Record]
    vectors: Vectors
    rows: NDArray[np.int64]


class Embeddings(Generic[Record]):
    """Vectors of the records of a project; compares records with a text. Thread-safe.

    A vector belongs to a text: an edited record needs a new vector, and is compared by its words until then. `embedder`
    is the shared one by default.
    """

    def __init__(self, paths: ProjectPaths, subject: VectorSubject[Record], embedder: Embedder | None = None) -> None:
        self.problem = ""  # reason why words are compared although there are vectors; "" without one
        self._subject = subject
        self._file = vector_file(paths, subject)
        self._embedder = embedder or shared_embedder()
        self._lock = threading.Lock()
        self._read: Vectors | None = None
        self._rows: tuple[_Rows[Record], ...] = ()  # the last two results
        self._compared: tuple[str, Vectors, Floats32] | None = None  # the last text, with the cosine of each vector

    @property
    def stamp(self) -> Stamp | None:
        """The version of the file of vectors; None without a file, or without the model."""
        with suppress(OSError):
            return Stamp.of(self._file.path.stat()) if is_available() else None
        return None

    @property
    def vectors(self) -> Vectors:
        """All vectors; the first access reads the file (0.2 s for 100,000)."""
        with self._lock:
            if self._read is None:
                self._read = Vectors.of(*self._file.read())
            return self._read

    def count(self, records: Mapping[str, Record]) -> int:
        known = self.vectors.places
        return sum(self._subject.key(record) in known for record in records.values())

    def missing(self, records: Mapping[str, Record]) -> dict[bytes, str]:
        """Return the texts without a vector by key; empty if the model is not available."""
        if not is_available():
            return {}
        return {key: self._subject.text(record) for key, record in self._without_vector(records)}

    def _without_vector(self, records: Mapping[str, Record]) -> Iterator[tuple[bytes, Record]]:
        known = self.vectors.places
        keyed = ((self._subject.key(record), record) for record in records.values())
        return ((key, record) for key, record in keyed if key and key not in known)

    def coverage(self, records: Mapping[str, Record]) -> Coverage | None:
        """Return the coverage of the records; None if complete, or without the model."""
        missing = len({key for key, _ in self._without_vector(records)}) if is_available() else 0
        if not missing:
            return None
        made = self.count(records)
        return Coverage(made, made + missing)

    def supposing(self, records: Mapping[str, Record]) -> Embeddings[Record]:
        """Return a copy with the missing vectors; self if there are over `MAX_ON_DEMAND`."""
        missing = self.missing(records)
        if not 0 < len(missing) <= MAX_ON_DEMAND:
            return self
        try:
            codes = encode_vectors(self._embedder.embed(list(missing.values())))
        except ModelUnusable as error:
            self.problem = str(error)
            return self
        completed = copy(self)
        completed._read = self.vectors.extended(list(missing), codes)
        return completed

    def make_few(self, records: Mapping[str, Record]) -> int:
        """Compute up to `MAX_ON_DEMAND` missing vectors; return the number still missing.

        Without any vector, records of many more are not read: their number is returned, also if some texts are equal.
        """
        if not is_available():
            return 0
        if len(records) > SURELY_MANY and not self.vectors.places:
            return len(records)
        missing = len(self.missing(records))
        if missing > MAX_ON_DEMAND:
            return missing
        self.make(records)
        return 0

    def make(
        self,
        records: Mapping[str, Record],
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> int:
        """Compute and write the missing vectors (2-15 ms each); returns their number.

        `records` must be all of the project, because other vectors may be removed. `progress` is called with (vectors
        computed, vectors to compute), first with 0. `stop` is called between batches and returns True to stop.

        Raises ModelUnusable if the model cannot be loaded, Unwritable if the file cannot be written or another process
        is writing it.
        """
        if not is_available() or next(self._without_vector(records), None) is None:
            return 0
        with self._file.writing({self._subject.key(record) for record in records.values()}) as append:
            with self._lock:
                self._read = vectors = Vectors.of(*self._file.read())
            missing = list(dict(self._without_vector(records)).items())
            made, total = 0, len(missing)
            missing.reverse()
            new: dict[bytes, Codes] = {}
            try:
                while missing and not (stop and stop()):
                    if progress:
                        progress(made, total)
                    hashes, few = zip(*(missing.pop() for _ in range(min(_BATCH, len(missing)))), strict=True)
                    codes = encode_vectors(self._embedder.embed(list(map(self._subject.text, few))))
                    append(hashes, codes)
                    new.update(zip(hashes, codes, strict=True))
                    made += len(hashes)
                    if len(new) * _MERGED_SHARE >= len(vectors.codes):
                        vectors = self._add(vectors, new)
                        new = {}
            finally:
                self._add(vectors, new)
            if progress:
                progress(made, total)
            return made

    def _add(self, vectors: Vectors, new: Mapping[bytes, Codes]) -> Vectors:
        if new:
            vectors = vectors.extended(list(new), np.array(list(new.values())))
            with self._lock:
                self._read = vectors
            self._rows, self._compared = (), None  # they keep the vectors before
        return vectors

    def closeness(self, text: str, ids: Sequence[str], records: Mapping[str, Record]) -> Closeness | None:
        """Return the cosine of a text with each of `ids`, or NaN; None without vectors."""
        if not is_available():
            return None
        vectors = self.vectors
        if not vectors.places:
            return None  # saves computing the keys of all records
        rows = self._rows_of(vectors, ids, records)
        if not (rows >= 0).any():
            return None
        last = self._compared
        if last is None or last[0] != text or last[1] is not vectors:
            try:
                vector = self._embedder.embed_task(text)
            except ModelUnusable as error:
                self.problem = str(error)
                return None
            last = self._compared = text, vectors, np.append(vectors.closeness(vector), np.float32(np.nan))
        return last[2][rows]

    def _rows_of(self, vectors: Vectors, ids: Sequence[str], records: Mapping[str, Record]) -> NDArray[np.int64]:
        """Return the row in `vectors` of each ID, -1 for an ID without a vector; computes keys of new records only."""
        known = [one for one in self._rows if one.vectors is vectors]
        for one in known:
            if one.ids is ids:
                return one.rows
        rows = np.full(len(ids), -1, np.int64)
        last = next((one for one in known if ids and one.ids[:1] == ids[:1]), None)
        new: Iterable[int] = range(len(ids))
        if last is not None:
            common = min(len(ids), len(last.ids))
            rows[:common] = last.rows[:common]
            pairs = enumerate(zip(ids, last.ids, strict=False))
            changed = (place for place, (id, old) in pairs if id != old or records.get(id) is not last.records.get(id))
            new = chain(changed, range(common, len(ids)))
        for place in new:
            record = records.get(ids[place])
            rows[place] = -1 if record is None else vectors.places.get(self._subject.key(record), -1)
        self._rows = (_Rows(ids, records, vectors, rows), *self._rows[:1])
        return rows
