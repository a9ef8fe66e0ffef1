"""The vectors of a project's patterns and tasks: read when a text first asks for them, made in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.text import plural
from core.config.paths import ProjectPaths
from core.records.episodes import Task
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask
from core.retrieval.embedding import (
    DIMENSIONS,
    MODEL,
    Embedder,
    Floats32,
    ModelUnusable,
    available,
    pattern_embedding_text,
    shared_embedder,
    task_text,
)
from core.retrieval.vectors import Closeness, Vectors, encode_vectors
from core.storage.vector_file import VectorFile

_BATCH: Final = 64
"""Vectors that are made between two writes: a quarter of a second."""
MAX_ON_DEMAND: Final = 64
"""So many vectors are made on the way, in a second at most; more are a command of their own."""
_TEXTS_KEPT: Final = 64
"""Tasks whose vectors are remembered: more than a forecast looks at."""

Record = TypeVar("Record")
PastTask = Task | MemoryTask
"""A task of the episodic memory (1) or of the cross-task memory."""
ComparableWork = PastTask | Loop
"""What has a description to be compared by: a past task, or a loop."""


@dataclass(frozen=True, slots=True)
class VectorSubject(Generic[Record]):
    """What vectors stand for.

    Attributes:
        file: Where they are kept, below `.aiwg/ralph`.
        form: Names how `text` puts a record; vectors of another form are made anew.
        text: What the model reads of a record.
        key: The sha256 of all that `text` is made of, as 64 hex digits; "" for a record that gets no vector.
    """

    file: str
    form: str
    text: Callable[[Record], str]
    key: Callable[[Record], str]


def _task_key(task: ComparableWork) -> str:
    text = task_text(task)
    return sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


PATTERNS: Final[VectorSubject[Pattern]] = VectorSubject(
    "memory/embeddings/patterns.vec", "meaning_text-1", pattern_embedding_text, lambda pattern: pattern.content_hash
)
"""(0) Storage Structure `memory/embeddings/`."""
TASKS: Final[VectorSubject[ComparableWork]] = VectorSubject(
    "index/embeddings/tasks.vec", "task_text-1", task_text, _task_key
)
"""(1) storage `index/embeddings/`."""


class Coverage(NamedTuple):
    """How far vectors are made while some are missing; what has none is found by its words.

    Attributes:
        made: Records that have a vector.
        needed: Records that have one or should.
    """

    made: int
    needed: int

    @property
    def missing(self) -> int:
        """Records that lack one."""
        return self.needed - self.made

    @property
    def text(self) -> str:
        """The same in words."""
        return f"by words yet: {self.made:,} of {plural(self.needed, 'text')} have a vector"


def vector_file(paths: ProjectPaths, subject: VectorSubject[Record]) -> VectorFile:
    """Where the vectors of a project are kept."""
    return VectorFile(paths, subject.file, f"{MODEL} {subject.form}", DIMENSIONS)


class Embeddings(Generic[Record]):
    """What is close in meaning to a text, as far as vectors have been made. From any thread.

    A vector is kept by what its record says: a record that changes needs a new one, and until it is made the record
    is found by its words.

    Args:
        paths: The project.
        subject: `PATTERNS` or `TASKS`.
        embedder: The model; the shared one if None.

    Attributes:
        problem: Why texts are compared by words although there are vectors; "" if they are not.
    """

    def __init__(self, paths: ProjectPaths, subject: VectorSubject[Record], embedder: Embedder | None = None) -> None:
        self.problem = ""
        self._subject = subject
        self._file = vector_file(paths, subject)
        self._embedder = embedder or shared_embedder()
        self._lock = threading.Lock()
        self._read: Vectors | None = None
        self._rows: tuple[Sequence[str], Vectors, NDArray[np.int64]] | None = None
        self._vector_of = lru_cache(_TEXTS_KEPT)(self._embed_text)

    @property
    def vectors(self) -> Vectors:
        """Those that there are now; the first to ask waits until they are read (0.2 s for 100,000)."""
        with self._lock:
            if self._read is None:
                self._read = Vectors.of(*self._file.read())
            return self._read

    def count(self, records: Mapping[str, Record]) -> int:
        """How many of the records have a vector."""
        known = self.vectors.places
        return sum(self._subject.key(record) in known for record in records.values())

    def missing(self, records: Mapping[str, Record]) -> dict[str, str]:
        """The texts that have no vector yet, by key; none without the packages of the model."""
        if not available():
            return {}
        known = self.vectors.places
        keyed = ((self._subject.key(record), record) for record in records.values())
        return {key: self._subject.text(record) for key, record in keyed if key and key not in known}

    def coverage(self, records: Mapping[str, Record]) -> Coverage | None:
        """How far vectors are made for the records; None if none is missing, or without the packages of the model."""
        missing = len(self.missing(records))
        if not missing:
            return None
        made = self.count(records)
        return Coverage(made, made + missing)

    def supposing(self, records: Mapping[str, Record]) -> Embeddings[Record]:
        """These, with the vectors that up to `MAX_ON_DEMAND` of the records lack, in memory alone: nothing is written.

        Where that cannot be, for want of a model that works or because more are missing, these themselves.
        """
        missing = self.missing(records)
        if not 0 < len(missing) <= MAX_ON_DEMAND:
            return self
        try:
            codes = encode_vectors(self._embedder.embed(list(missing.values())))
        except ModelUnusable as error:
            self.problem = str(error)
            return self
        supposed = copy(self)
        supposed._read = self.vectors.extended(list(missing), codes)
        return supposed

    def make_few(self, records: Mapping[str, Record]) -> int:
        """Compute the missing vectors if they are at most `MAX_ON_DEMAND`; return the number still missing."""
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
        """Make the vectors that are missing, 2-15 ms each; what is made is kept whenever this ends.

        Args:
            records: All of the project; vectors of others may be forgotten.
            progress: Told (vectors made, vectors to make), first with 0 made.
            stop: Asked between batches whether to end here.

        Returns:
            How many were made.

        Raises:
            ModelUnusable: The model cannot be loaded.
            Unwritable: They cannot be kept, or another process is making them.
        """
        if not self.missing(records):
            return 0
        with self._file.writing({self._subject.key(record) for record in records.values()}) as append:
            with self._lock:
                self._read = Vectors.of(*self._file.read())
            missing = list(self.missing(records).items())
            made = 0
            while made < len(missing) and not (stop and stop()):
                if progress:
                    progress(made, len(missing))
                hashes, texts = zip(*missing[made : made + _BATCH], strict=True)
                codes = encode_vectors(self._embedder.embed(texts))
                append(hashes, codes)
                with self._lock:
                    self._read = self._read.extended(hashes, codes)
                made += len(hashes)
            if progress:
                progress(made, len(missing))
            return made

    def closeness(self, text: str, ids: Sequence[str], records: Mapping[str, Record]) -> Closeness | None:
        """How close in meaning to a text each record is, in the order of `ids`; an id of no record is nothing.

        None if not one of them has a vector, or without a model that works.
        """
        if not available():
            return None
        vectors = self.vectors
        if not vectors.places:
            return None  # nothing is made yet: no need to work out the key of every record
        rows = self._rows_of(vectors, ids, records)
        if not (rows >= 0).any():
            return None
        try:
            vector = self._vector_of(text)
        except ModelUnusable as error:
            self.problem = str(error)
            return None
        return np.append(vectors.closeness(vector), np.float32(np.nan))[rows]

    def _rows_of(self, vectors: Vectors, ids: Sequence[str], records: Mapping[str, Record]) -> NDArray[np.int64]:
        """The row in `vectors` of each of the ids, -1 where there is none."""
        memo = self._rows
        if memo is None or memo[0] is not ids or memo[1] is not vectors:
            keys = (self._subject.key(records[id]) if id in records else "" for id in ids)
            found = (vectors.places.get(key, -1) for key in keys)
            memo = self._rows = ids, vectors, np.fromiter(found, np.int64, len(ids))
        return memo[2]

    def _embed_text(self, text: str) -> Floats32:
        vector: Floats32 = self._embedder.embed([text])[0]
        return vector
