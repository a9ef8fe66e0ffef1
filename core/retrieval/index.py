"""Inverted index of patterns by word, tag, category, error type and language."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.records.patterns import Pattern, PatternType
from core.retrieval.task import LANGUAGES, content_words

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


TYPES: Final = tuple(PatternType)  # pattern types by their code in arrays

SOURCE: Final = "source"  # kind of the facets that name the work in which an error pattern with a regex was found

_MAX_LIST: Final = 32  # indexed items of a list (tags, steps) of one pattern
_REBUILD_SHARE: Final = 4  # if more than one in this number of patterns changed, a new index is faster than an update

Terms = tuple[set[str], set[str], set[tuple[str, str]]]  # words, tags and facets of a pattern


@dataclass(frozen=True)
class PatternIndex:
    """Immutable inverted index of patterns, in memory or in the tables of `core.index.terms`."""

    ids: Sequence[str]  # pattern ID by row; "" where a pattern was removed
    types: NDArray[np.int8]  # index into `TYPES` by row; -1 where a pattern was removed
    tag_counts: NDArray[np.int8]  # number of tags by row
    words: Postings[str]  # rows by content word
    tags: TagPostings  # rows by tag
    facets: Postings[tuple[str, str]]  # rows by (`category` | `error` | `language` | `source`, value)
    _patterns: Mapping[str, Pattern]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> PatternIndex:
        """Index all patterns; takes about 20 us each."""
        terms = [pattern_terms(pattern) for pattern in patterns.values()]
        words, tags, facets = (index_rows(one) for one in (zip(*terms, strict=True) if terms else ((), (), ())))
        types = np.array([TYPES.index(pattern.type) for pattern in patterns.values()], np.int8)
        tag_counts = np.array([len(one[1]) for one in terms], np.int8)
        return cls(tuple(patterns), types, tag_counts, words, RowsByTag(tags), facets, patterns)

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> PatternIndex:
        """Return an index of `patterns`; only `changed_ids` differ from the old ones."""
        changed = set(changed_ids)
        if not changed and patterns is self._patterns:
            return self
        if len(changed) * _REBUILD_SHARE > len(self.ids):
            return PatternIndex.build(patterns)
        ids, types, tag_counts = list(self.ids), self.types.tolist(), self.tag_counts.tolist()
        words, tags, facets = ChangedRows(self.words), ChangedTags(self.tags), ChangedRows(self.facets)
        for id in sorted(changed):
            old, new = self._patterns.get(id), patterns.get(id)
            row = self.rows.get(id)
            if row is None:
                if new is None:
                    continue
                row = len(ids)
                ids.append(id)
                types.append(0)
                tag_counts.append(0)
            before, after = (pattern_terms(one) if one else (set(), set(), set()) for one in (old, new))
            if new:
                types[row] = TYPES.index(new.type)
            else:
                ids[row], types[row] = "", -1
            tag_counts[row] = len(after[1])
            words.move(row, before[0], after[0])
            tags.move(row, before[1], after[1])
            facets.move(row, before[2], after[2])
        counts = np.array(tag_counts, np.int8)
        return PatternIndex(tuple(ids), np.array(types, np.int8), counts, words, tags, facets, patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {id: row for row, id in enumerate(self.ids) if id}

    @cached_property
    def size(self) -> int:
        """Number of indexed patterns."""
        return int(np.count_nonzero(self.types >= 0))

    def rarities(self, words: Iterable[str]) -> dict[str, float]:
        """Return the weight of each word, the larger the fewer patterns contain it."""
        asked, size = list(words), max(self.size, 1)
        counts = self.words.count(asked)
        return {word: math.log1p(size / counts.get(word, 1)) for word in asked}


def pattern_terms(pattern: Pattern) -> Terms:
    """Return the content words, the tags and the facets of a pattern."""
    texts = (
        *(pattern.id.partition("-")[2], pattern.title, pattern.description, pattern.use_case, pattern.category),
        *(pattern.error_type, pattern.error_message, pattern.error_pattern, pattern.task_pattern),
        *(*pattern.tags[:_MAX_LIST], *pattern.steps[:_MAX_LIST]),
    )
    tags = {tag.strip().lower()[:80] for tag in pattern.tags[:_MAX_LIST]} - {""}
    facets = {("language", tag) for tag in tags if tag in LANGUAGES}
    named = [("category", pattern.category), ("error", pattern.error_type), ("language", pattern.template_language)]
    if pattern.type is PatternType.TEMPLATE:
        named.append(("language", pattern.category))
    facets |= {(kind, value.lower()) for kind, value in named if value}
    if pattern.error_pattern:
        facets |= {(SOURCE, source.loop_id) for source in pattern.source_loops if source.loop_id}
    return content_words(" ".join(texts)), tags, facets
