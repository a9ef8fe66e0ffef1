"""Min-hashes: find texts with many equal words, also where each word is in most texts."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

from core.retrieval.postings import Rows, index_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BANDS: Final = 16  # hashes of a text; two texts with 75 % equal words have an equal one in 99 % of cases
_BAND_WORDS: Final = 5  # words in a hash
_MAX_ROWS: Final = 64  # rows with the same hash that are candidates for one text
_AT_ONCE: Final = 256  # texts hashed at once


class Bands:
    """Rows of texts by hash."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._hashes: dict[str, NDArray[np.uint64]] = {}
        for start in range(0, len(texts), _AT_ONCE):
            several = texts[start : start + _AT_ONCE]
            self._hashes.update(zip(several, _hash(several), strict=True))
        self._rows = index_rows(self._hashes[text].tolist() for text in texts)

    def find(self, text: str, first: int = 0) -> list[Rows]:
        """Return for each hash of a text rows with it: the next `_MAX_ROWS` from the row `first` on."""
        hashes = self._hashes[text] if text in self._hashes else _hash([text])[0]
        found = []
        for one in hashes.tolist():
            if (rows := self._rows.get(one)) is not None:
                start = int(rows.searchsorted(first))
                found.append(rows[start : start + _MAX_ROWS])
        return found


def _hash(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return `_BANDS` hashes of each text."""
    words = [text.split() or [""] for text in texts]
    codes = np.array([_code(word) for word in chain.from_iterable(words)], np.uint64)
    sizes = np.array([len(found) for found in words])
    factors, mixers = _multipliers()
    least = np.minimum.reduceat(codes[:, None] * factors >> np.uint64(32), np.cumsum(sizes) - sizes)
    hashes: NDArray[np.uint64] = (least * mixers).reshape(len(texts), _BANDS, _BAND_WORDS).sum(axis=2)
    return hashes


@cache
def _multipliers() -> NDArray[np.uint64]:
    """Return two rows of odd numbers, the same in each process."""
    numbers = [crc32(b"%d" % n) << 32 | crc32(b"-%d" % n) | 1 for n in range(2 * _BANDS * _BAND_WORDS)]
    return np.array(numbers, np.uint64).reshape(2, -1)


def _code(word: str) -> int:
    return crc32(word.encode(errors="replace"))
