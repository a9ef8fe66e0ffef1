"""A fake embedding model: quick, and the same on every machine."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from core.retrieval.embeddings import DIMENSIONS, Embedder, Floats32


class Wordy(Embedder):
    """Texts are the closer the more words they share; the same text has the same vector wherever it is read."""

    def embed(self, texts: Sequence[str]) -> Floats32:
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % DIMENSIONS] += 1
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors


@contextmanager
def meaning(*, on: bool = True) -> Iterator[None]:
    """Patterns are found by meaning, as far as they have vectors."""
    with pytest.MonkeyPatch.context() as patch:
        if on:
            patch.delenv("RALPHDECK_SEMANTIC")
            patch.setattr("core.retrieval.embeddings.shared_embedder", Wordy)
        yield
