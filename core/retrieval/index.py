"""Inverted index of patterns by word, tag, category, error type and language."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.records.patterns import Pattern, PatternType
from core.retrieval.task import LANGUAGES, content_words

Rows = NDArray[np.int32]
_Key = TypeVar("_Key")


# Kinds of terms of patterns; `FOUND_IN` names the work in which an error pattern with a regex was found.
WORD, TAG, CATEGORY, ERROR, LANGUAGE, FOUND_IN = range(6)
Term = tuple[int, str]  # kind and text


class Postings(Protocol):
    """Rows by term, ascending; they may be read from a database when they are needed."""

    def get(self, kind: int, text: str, /) -> Rows | None:
        """Return the rows of a term; None if no row has it."""

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        """Return the number of rows of each term that a row has."""

    def find_tags(self, word: str, /) -> Iterable[str]:
        """Return the tags that contain a content word."""


class RowsByTerm(dict[Term, Rows]):
    """Posting lists in memory."""

    def get(self, kind: int, text: str, /) -> Rows | None:  # type: ignore[override]
        return super().get((kind, text))

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        return {text: len(rows) for text in texts if (rows := self.get(kind, text)) is not None}

    def find_tags(self, word: str, /) -> Iterable[str]:
        return self._tags_by_word.get(word, ())

    @cached_property
    def _tags_by_word(self) -> Mapping[str, list[str]]:
        tags: dict[str, list[str]] = {}
        for kind, tag in self:
            for word in content_words(tag) if kind == TAG else ():
                tags.setdefault(word, []).append(tag)
        return tags


class ChangedRows:
    """Posting lists of which a few differ from those of another index."""

    def __init__(self, base: Postings) -> None:
        self._base = base
        self._changed: dict[Term, Rows] = {}
        if isinstance(base, ChangedRows):  # one level, however many changes follow each other
            self._base, self._changed = base._base, dict(base._changed)

    def get(self, kind: int, text: str, /) -> Rows | None:
        rows = self._changed.get((kind, text))
        return self._base.get(kind, text) if rows is None else rows if len(rows) else None

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        changed = {text: rows for text in texts if (rows := self._changed.get((kind, text))) is not None}
        counts = self._base.count(kind, [text for text in texts if text not in changed])
        return counts | {text: len(rows) for text, rows in changed.items() if len(rows)}

    def find_tags(self, word: str, /) -> Iterable[str]:
        tags = {tag for (kind, tag), rows in self._changed.items() if kind == TAG and len(rows)}
        return {*self._base.find_tags(word), *(tag for tag in tags if word in content_words(tag))}

    def move(self, row: int, before: set[Term], after: set[Term]) -> None:
        """Change the terms of a row from `before` to `after`."""
        for term in before ^ after:
            rows = self.get(*term)
            rows = np.empty(0, np.int32) if rows is None else rows[rows != row]
            if term in after:
                rows = np.insert(rows, int(rows.searchsorted(row)), np.int32(row))
            self._changed[term] = rows


def index_rows(keys_of_rows: Iterable[Iterable[_Key]]) -> dict[_Key, Rows]:
    """Return the rows by key."""
    rows_of: dict[_Key, array[int]] = {}
    for row, keys in enumerate(keys_of_rows):
        for key in keys:
            rows_of.setdefault(key, array("i")).append(row)
    return {key: np.array(rows, np.int32) for key, rows in rows_of.items()}


TYPES: Final = tuple(PatternType)  # pattern types by their code in arrays

_MAX_LIST: Final = 32  # indexed items of a list (tags, steps) of one pattern
_REBUILD_SHARE: Final = 4  # if more than one in this number of patterns changed, a new index is faster than an update


@dataclass(frozen=True)
class PatternIndex:
    """Immutable inverted index of patterns, in memory or in the tables of `core.index.terms`."""

    ids: Sequence[str]  # pattern ID by row; "" where a pattern was removed
    types: NDArray[np.int8]  # index into `TYPES` by row; -1 where a pattern was removed
    tag_counts: NDArray[np.int8]  # number of tags by row
    terms: Postings
    _patterns: Mapping[str, Pattern]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> PatternIndex:
        """Index all patterns; takes about 20 us each."""
        terms = [pattern_terms(pattern) for pattern in patterns.values()]
        types = np.array([TYPES.index(pattern.type) for pattern in patterns.values()], np.int8)
        tag_counts = np.array([count_tags(one) for one in terms], np.int8)
        return cls(tuple(patterns), types, tag_counts, RowsByTerm(index_rows(terms)), patterns)

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> PatternIndex:
        """Return an index of `patterns`; only `changed_ids` differ from the old ones."""
        changed = set(changed_ids)
        if not changed and patterns is self._patterns:
            return self
        if len(changed) * _REBUILD_SHARE > len(self.ids):
            return PatternIndex.build(patterns)
        ids, types, tag_counts = list(self.ids), self.types.tolist(), self.tag_counts.tolist()
        terms = ChangedRows(self.terms)
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
            before, after = (pattern_terms(one) if one else set() for one in (old, new))
            if new:
                types[row] = TYPES.index(new.type)
            else:
                ids[row], types[row] = "", -1
            tag_counts[row] = count_tags(after)
            terms.move(row, before, after)
        counts = np.array(tag_counts, np.int8)
        return PatternIndex(tuple(ids), np.array(types, np.int8), counts, terms, patterns)

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
        counts = self.terms.count(WORD, asked)
        return {word: math.log1p(size / counts.get(word, 1)) for word in asked}


def pattern_terms(pattern: Pattern) -> set[Term]:
    """Return the content words, the tags and the other terms of a pattern."""
    texts = (
        *(pattern.id.partition("-")[2], pattern.title, pattern.description, pattern.use_case, pattern.category),
        *(pattern.error_type, pattern.error_message, pattern.error_pattern, pattern.task_pattern),
        *(*pattern.tags[:_MAX_LIST], *pattern.steps[:_MAX_LIST]),
    )
    tags = {tag.strip().lower()[:80] for tag in pattern.tags[:_MAX_LIST]} - {""}
    named = [(CATEGORY, pattern.category), (ERROR, pattern.error_type), (LANGUAGE, pattern.template_language)]
    if pattern.type is PatternType.TEMPLATE:
        named.append((LANGUAGE, pattern.category))
    terms = {(kind, value.lower()) for kind, value in named if value}
    if pattern.error_pattern:
        terms |= {(FOUND_IN, source.loop_id) for source in pattern.source_loops if source.loop_id}
    terms |= {(LANGUAGE, tag) for tag in tags if tag in LANGUAGES} | of_kind(TAG, tags)
    terms |= of_kind(WORD, content_words(" ".join(texts)))
    return terms


def of_kind(kind: int, texts: Iterable[str]) -> set[Term]:
    """Return the terms of a kind with these texts."""
    return set(zip(repeat(kind), texts))


def count_tags(terms: set[Term]) -> int:
    return sum(kind == TAG for kind, _ in terms)
