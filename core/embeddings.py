"""The vectors of a project's patterns: read when a task first asks for them, made in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.paths import ProjectPaths
from core.records.patterns import Pattern
from core.retrieval.embedding import (
    DIMENSIONS,
    MODEL,
    Embedder,
    Floats32,
    ModelUnusable,
    available,
    meaning_text,
    shared_embedder,
)
from core.retrieval.index import PatternIndex
from core.retrieval.relevance import Closeness
from core.retrieval.vectors import Vectors, encoded
from core.sources.vectors import VectorFile

_WHAT: Final = f"{MODEL} meaning_text-1"
"""The model and the form of the texts; vectors of another one are made anew."""
_BATCH: Final = 64
"""Vectors that are made between two writes: a quarter of a second."""
_TASKS_KEPT: Final = 32


def vector_file(paths: ProjectPaths) -> VectorFile:
    """Where the vectors of a project are kept."""
    return VectorFile(paths, _WHAT, DIMENSIONS)


class Embeddings:
    """What is close in meaning to a task, as far as vectors have been made. From any thread.

    A vector is kept by the `content_hash` of its pattern: a pattern that changes needs a new one, and until it is
    made the pattern is found by its words.

    Args:
        paths: The project.
        embedder: The model; the shared one if None.

    Attributes:
        problem: Why tasks are compared by words although there are vectors; "" if they are not.
    """

    def __init__(self, paths: ProjectPaths, embedder: Embedder | None = None) -> None:
        self.problem = ""
        self._file = vector_file(paths)
        self._embedder = embedder or shared_embedder()
        self._lock = threading.Lock()
        self._read: Vectors | None = None
        self._rows: tuple[PatternIndex, Vectors, NDArray[np.int64]] | None = None
        self._vector_of = lru_cache(_TASKS_KEPT)(self._embed_task)

    @property
    def vectors(self) -> Vectors:
        """Those that there are now; the first to ask waits until they are read (0.2 s for 100,000)."""
        with self._lock:
            if self._read is None:
                self._read = Vectors.of(*self._file.read())
            return self._read

    def missing(self, patterns: Mapping[str, Pattern]) -> dict[str, str]:
        """The texts that have no vector yet, by content hash; none without the packages of the model."""
        if not available():
            return {}
        known = self.vectors.places
        return {
            pattern.content_hash: meaning_text(pattern)
            for pattern in patterns.values()
            if pattern.content_hash and pattern.content_hash not in known
        }

    def make(
        self,
        patterns: Mapping[str, Pattern],
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> int:
        """Make the vectors that are missing, 2-15 ms each; what is made is kept whenever this ends.

        Args:
            patterns: All patterns of the project; vectors of others may be forgotten.
            progress: Told (vectors made, vectors to make), first with 0 made.
            stop: Asked between batches whether to end here.

        Returns:
            How many were made.

        Raises:
            ModelUnusable: The model cannot be loaded.
            Unwritable: They cannot be kept, or another process is making them.
        """
        if not self.missing(patterns):
            return 0
        with self._file.writing({pattern.content_hash for pattern in patterns.values()}) as append:
            with self._lock:
                self._read = Vectors.of(*self._file.read())
            missing = list(self.missing(patterns).items())
            made = 0
            while made < len(missing) and not (stop and stop()):
                if progress:
                    progress(made, len(missing))
                hashes, texts = zip(*missing[made : made + _BATCH], strict=True)
                codes = encoded(self._embedder.embed(texts))
                append(hashes, codes)
                with self._lock:
                    self._read = self._read.extended(hashes, codes)
                made += len(hashes)
            if progress:
                progress(made, len(missing))
            return made

    def closeness(self, task: str, index: PatternIndex, patterns: Mapping[str, Pattern]) -> Closeness | None:
        """How close in meaning the patterns of `index` are to the task.

        None if not one of them has a vector, or without a model that works.
        """
        if not available():
            return None
        vectors = self.vectors
        rows = self._rows_of(vectors, index, patterns)
        if not (rows >= 0).any():
            return None
        try:
            vector = self._vector_of(task)
        except ModelUnusable as error:
            self.problem = str(error)
            return None
        return np.append(vectors.closeness(vector), np.float32(np.nan))[rows]

    def _rows_of(self, vectors: Vectors, index: PatternIndex, patterns: Mapping[str, Pattern]) -> NDArray[np.int64]:
        """The row in `vectors` of each row of the index, -1 where there is none."""
        memo = self._rows
        if memo is None or memo[0] is not index or memo[1] is not vectors:
            hashes = (patterns[id].content_hash if id in patterns else "" for id in index.ids)
            found = (vectors.places.get(hash, -1) for hash in hashes)
            memo = self._rows = index, vectors, np.fromiter(found, np.int64, len(index.ids))
        return memo[2]

    def _embed_task(self, task: str) -> Floats32:
        vector: Floats32 = self._embedder.embed([task])[0]
        return vector
