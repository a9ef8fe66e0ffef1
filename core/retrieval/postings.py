"""Posting lists of an inverted index: the rows of each key, such as a word."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.retrieval.task import content_words

Rows = NDArray[np.int32]
_Key = TypeVar("_Key")


class Postings(Protocol[_Key]):
    """Rows by key, ascending; they may be read from a database when they are needed."""

    def get(self, key: _Key, /) -> Rows | None:
        """Return the rows of a key; None if no row has it."""

    def count(self, keys: Iterable[_Key], /) -> dict[_Key, int]:
        """Return the number of rows of each key that a row has."""

    def __iter__(self) -> Iterator[_Key]:
        """Iterate over all keys."""


class RowsByKey(dict[_Key, Rows]):
    """Posting lists in memory."""

    def count(self, keys: Iterable[_Key], /) -> dict[_Key, int]:
        return {key: len(self[key]) for key in keys if key in self}


class TagPostings(Postings[str], Protocol):
    """Rows by tag, with the tags by word."""

    def containing(self, word: str, /) -> Iterable[str]:
        """Return the tags that contain a content word."""


class RowsByTag(RowsByKey[str]):
    """Posting lists of tags in memory."""

    def containing(self, word: str, /) -> Iterable[str]:
        return self._by_word.get(word, ())

    @cached_property
    def _by_word(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for tag in self:
            for word in content_words(tag):
                found.setdefault(word, []).append(tag)
        return {word: tuple(tags) for word, tags in found.items()}


class ChangedRows(Generic[_Key]):
    """Posting lists of which a few differ from those of another index."""

    def __init__(self, base: Postings[_Key]) -> None:
        self._base: Postings[_Key] = base
        self._changed: dict[_Key, Rows] = {}
        if isinstance(base, ChangedRows):  # one level, however many changes follow each other
            self._base, self._changed = base._base, dict(base._changed)

    def get(self, key: _Key, /) -> Rows | None:
        rows = self._changed.get(key)
        return self._base.get(key) if rows is None else rows if len(rows) else None

    def count(self, keys: Iterable[_Key], /) -> dict[_Key, int]:
        asked = set(keys)
        counts = self._base.count(asked - self._changed.keys())
        return counts | {key: len(rows) for key in asked & self._changed.keys() if len(rows := self._changed[key])}

    def __iter__(self) -> Iterator[_Key]:
        yield from (key for key in self._base if key not in self._changed)
        yield from (key for key, rows in self._changed.items() if len(rows))

    def move(self, row: int, before: set[_Key], after: set[_Key]) -> None:
        """Change the keys of a row from `before` to `after`."""
        for key in before ^ after:
            rows = self.get(key)
            rows = np.empty(0, np.int32) if rows is None else rows[rows != row]
            if key in after:
                rows = np.insert(rows, int(rows.searchsorted(row)), np.int32(row))
            self._changed[key] = rows


class ChangedTags(ChangedRows[str]):
    """Posting lists of tags of which a few differ from those of another index."""

    def __init__(self, base: TagPostings) -> None:
        super().__init__(base)
        self._tags: TagPostings = base._tags if isinstance(base, ChangedTags) else base

    def containing(self, word: str, /) -> Iterable[str]:
        changed = (tag for tag, rows in self._changed.items() if len(rows) and word in content_words(tag))
        return {*self._tags.containing(word), *changed}


def index_rows(keys_of_rows: Iterable[Iterable[_Key]]) -> RowsByKey[_Key]:
    """Return the rows by key."""
    found: dict[_Key, array[int]] = {}
    for row, keys in enumerate(keys_of_rows):
        for key in keys:
            found.setdefault(key, array("i")).append(row)
    return RowsByKey({key: np.array(rows, np.int32) for key, rows in found.items()})
