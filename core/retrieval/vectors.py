"""Vectors of texts in one compact array, and their cosine with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.retrieval.embedding import Floats32

Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Closeness = NDArray[np.float32]  # cosine of a text and each record of an index, NaN for a record without a vector

UNRELATED: Final = 0.20  # cosine at which two texts are unrelated
SAME: Final = 0.75  # cosine at which they mean the same

_STEPS: Final = 127
_ROWS_AT_ONCE: Final = 4096  # rows converted to float32 at a time: 6 MB, which fit into the cache of the CPU


def encode_vectors(vectors: Floats32) -> Codes:
    """Encode vectors as int8; keeps only the direction, within about 0.3 degrees."""
    most = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 1e-12)
    codes: Codes = np.rint(vectors / most * _STEPS).astype(np.int8)
    return codes


@dataclass(frozen=True)
class Vectors:
    """Immutable vectors by the hash of their text."""

    codes: Codes  # encoded vectors (`encode_vectors`), shape (vectors, 384)
    places: Mapping[str, int]  # row in `codes` by hash

    @classmethod
    def of(cls, hashes: Sequence[str], codes: Codes) -> Vectors:
        """Create from parallel hashes and codes; the last vector of a hash counts."""
        return cls(codes, {hash: place for place, hash in enumerate(hashes)})

    def extended(self, hashes: Sequence[str], codes: Codes) -> Vectors:
        """Copy with more vectors."""
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
        """Cosine of each vector and `vector` (length 1); NaN for a vector of length 0."""
        dots = np.empty(len(self.codes), np.float32)
        for start in range(0, len(self.codes), _ROWS_AT_ONCE):
            end = start + _ROWS_AT_ONCE
            dots[start:end] = self.codes[start:end].astype(np.float32) @ vector
        with np.errstate(invalid="ignore"):
            dots /= self._lengths
        return dots
