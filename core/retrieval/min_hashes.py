"""Min-hashes: find texts with many equal words, also where each word is in most texts."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from core.retrieval.postings import Rows

    _Numbers = NDArray[np.signedinteger]
    Hashes = NDArray[np.uint32]  # shape (texts, `BANDS`)

BANDS: Final = 16  # hashes of a text; two texts with 75 % equal words have an equal one in 99 % of cases
_BAND_WORDS: Final = 5  # words in a hash
_MAX_ROWS: Final = 64  # rows with the same hash that are candidates for one text
_AT_ONCE: Final = 256  # texts hashed at once
_NONE: Final = np.empty((0, BANDS), np.uint32)


class Bands:
    """Rows of texts by hash; takes 16 bytes for each hash."""

    def __init__(self, hashes: Hashes, rows: Rows) -> None:
        """Index the hashes of texts (`hash_texts`), whose rows are `rows`, ascending."""
        self._known = rows
        order = hashes.ravel().argsort(kind="stable")
        self._sorted = hashes.ravel()[order]
        self._rows: Rows = rows[order // BANDS]  # in the order of `_sorted`
        places: Rows = np.empty(len(order), np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        self._places = places.reshape(hashes.shape)  # in `_sorted`, of the hashes of a row
        self._ends: Rows = self._sorted.searchsorted(self._sorted, "right").astype(np.int32)  # of equal ones, by place

    def find(self, text: str) -> Rows:
        """Return for each hash of a text the first `_MAX_ROWS` rows with it."""
        starts, ends = (self._sorted.searchsorted(_hash([text])[0], side) for side in ("left", "right"))
        return self._rows[_join_ranges(starts, ends)[0]]

    def find_next(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return for each hash of these rows the next `_MAX_ROWS` rows with it, and for which place in `rows`."""
        places = self._places[self._known.searchsorted(rows)].ravel()
        found, owners = _join_ranges(places + 1, self._ends[places])
        return self._rows[found], (owners // BANDS).astype(np.int32)


def hash_texts(texts: Sequence[str]) -> Hashes:
    """Return `BANDS` hashes of each text."""
    several = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
    return np.concatenate([_NONE, *map(_hash, several)])


def _join_ranges(starts: _Numbers, ends: _Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first `_MAX_ROWS` numbers of each range, one range after the other, and the index of its range."""
    sizes = np.minimum(ends - starts, _MAX_ROWS)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owners)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), owners


def _hash(texts: Sequence[str]) -> Hashes:
    words = [text.split() or [""] for text in texts]
    code_of = {word: _code(word) for word in set().union(*words)}
    codes = np.array([code_of[word] for word in chain.from_iterable(words)], np.uint64)
    sizes = np.array([len(found) for found in words])
    factors, mixers = _multipliers()
    least = np.minimum.reduceat(codes[:, None] * factors >> np.uint64(32), np.cumsum(sizes) - sizes)
    sums = (least * mixers).reshape(len(texts), BANDS, _BAND_WORDS).sum(axis=2)
    hashes: Hashes = (sums >> np.uint64(32)).astype(np.uint32)
    return hashes


@cache
def _multipliers() -> NDArray[np.uint64]:
    """Return two rows of odd numbers, the same in each process."""
    numbers = [crc32(b"%d" % n) << 32 | crc32(b"-%d" % n) | 1 for n in range(2 * BANDS * _BAND_WORDS)]
    return np.array(numbers, np.uint64).reshape(2, -1)


def _code(word: str) -> int:
    return crc32(word.encode(errors="replace"))
