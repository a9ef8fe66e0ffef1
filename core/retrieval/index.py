"""An inverted index over patterns: which of them share something with a task, in milliseconds at any size."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.lazy_index import LazyIndex
from core.records.patterns import Pattern, PatternType
from core.retrieval.task import LANGUAGES
from core.retrieval.words import content_words

TYPES: Final = tuple(PatternType)
"""Pattern types by their code in arrays."""

Rows = NDArray[np.int32]
_Key = TypeVar("_Key")

_MAX_LIST: Final = 32
"""Longest list (tags, steps) that is looked at in one pattern."""
_REBUILD_SHARE: Final = 4
"""An update of more than one pattern in so many is slower than a new index."""


@dataclass(frozen=True)
class PatternIndex:
    """Which patterns hold which word, tag, category, error type and language. Never changed, only replaced.

    Attributes:
        ids: Pattern id by row; "" where a pattern was removed.
        types: Index into `TYPES` by row.
        tag_counts: How many tags each row has.
        words, tags: Rows by content word and by tag.
        facets: Rows by (`category` | `error` | `language`, value).
    """

    ids: tuple[str, ...]
    types: NDArray[np.int8]
    tag_counts: NDArray[np.int8]
    words: Mapping[str, Rows]
    tags: Mapping[str, Rows]
    facets: Mapping[tuple[str, str], Rows]
    _patterns: Mapping[str, Pattern]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> PatternIndex:
        """Index everything: about 25 us a pattern."""
        words: dict[str, array[int]] = {}
        tags: dict[str, array[int]] = {}
        facets: dict[tuple[str, str], array[int]] = {}
        counts = array("b")
        for row, pattern in enumerate(patterns.values()):
            terms = _Terms.of(pattern)
            for word in terms.words:
                words.setdefault(word, array("i")).append(row)
            for tag in terms.tags:
                tags.setdefault(tag, array("i")).append(row)
            for facet in terms.facets:
                facets.setdefault(facet, array("i")).append(row)
            counts.append(len(terms.tags))
        return cls(
            tuple(patterns),
            np.array([TYPES.index(pattern.type) for pattern in patterns.values()], np.int8),
            np.array(counts, np.int8),
            {key: np.array(rows, np.int32) for key, rows in words.items()},
            {key: np.array(rows, np.int32) for key, rows in tags.items()},
            {key: np.array(rows, np.int32) for key, rows in facets.items()},
            patterns,
        )

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> PatternIndex:
        """The index of `patterns`, of which only those in `changed_ids` were added, changed or removed."""
        changed = set(changed_ids)
        if len(changed) * _REBUILD_SHARE > len(self.ids):
            return PatternIndex.build(patterns)
        edit = _Edit(self)
        for id in changed:
            edit.replace(self._patterns.get(id), patterns.get(id))
        return edit.result(patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Row by pattern id."""
        return {id: row for row, id in enumerate(self.ids) if id}

    @cached_property
    def tags_by_word(self) -> Mapping[str, tuple[tuple[str, frozenset[str]], ...]]:
        """The tags that hold a content word, each with all of its words."""
        found: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for tag in self.tags:
            words = frozenset(content_words(tag))
            for word in words:
                found.setdefault(word, []).append((tag, words))
        return {word: tuple(tags) for word, tags in found.items()}


class LazyPatternIndex(LazyIndex[Pattern, PatternIndex]):
    """The index of some patterns, made when it is first asked for.

    Most commands and screens need none, and it takes seconds for 100,000 patterns.
    """

    kind = PatternIndex


@dataclass(frozen=True, slots=True)
class _Terms:
    """All that one pattern is found by."""

    words: set[str]
    tags: set[str]
    facets: set[tuple[str, str]]

    @classmethod
    def of(cls, pattern: Pattern) -> _Terms:
        text = " ".join(
            (
                pattern.id.partition("-")[2],
                pattern.title,
                pattern.description,
                pattern.use_case,
                pattern.category,
                pattern.error_type,
                pattern.error_pattern,
                pattern.task_pattern,
                *pattern.tags[:_MAX_LIST],
                *pattern.steps[:_MAX_LIST],
            )
        )
        tags = {tag.strip().lower()[:80] for tag in pattern.tags[:_MAX_LIST]} - {""}
        facets = {("language", tag) for tag in tags if tag in LANGUAGES}
        for kind, value in (
            ("category", pattern.category),
            ("error", pattern.error_type),
            ("language", pattern.template_language),
        ):
            if value:
                facets.add((kind, value.lower()))
        if pattern.type is PatternType.TEMPLATE and pattern.category:
            facets.add(("language", pattern.category.lower()))
        return cls(content_words(text), tags, facets)


class _Edit:
    """Copies an index and changes single patterns in the copy."""

    def __init__(self, index: PatternIndex) -> None:
        self._ids = list(index.ids)
        self._rows = dict(index.rows)
        self._types = index.types.tolist()
        self._counts = index.tag_counts.tolist()
        self._words = dict(index.words)
        self._tags = dict(index.tags)
        self._facets = dict(index.facets)

    def replace(self, old: Pattern | None, new: Pattern | None) -> None:
        """Take `old` out and put `new` into its row; None for what does not exist."""
        before = _Terms.of(old) if old else _Terms(set(), set(), set())
        after = _Terms.of(new) if new else _Terms(set(), set(), set())
        if old:
            row = self._rows[old.id]
        elif new:
            row = len(self._ids)
            self._ids.append(new.id)
            self._rows[new.id] = row
            self._types.append(0)
            self._counts.append(0)
        else:
            return
        if new:
            self._types[row] = TYPES.index(new.type)
        else:
            self._ids[row] = ""
        self._counts[row] = len(after.tags)
        _move(self._words, before.words, after.words, row)
        _move(self._tags, before.tags, after.tags, row)
        _move(self._facets, before.facets, after.facets, row)

    def result(self, patterns: Mapping[str, Pattern]) -> PatternIndex:
        return PatternIndex(
            tuple(self._ids),
            np.array(self._types, np.int8),
            np.array(self._counts, np.int8),
            self._words,
            self._tags,
            self._facets,
            patterns,
        )


def _move(postings: dict[_Key, Rows], before: set[_Key], after: set[_Key], row: int) -> None:
    for key in before - after:
        left = postings[key][postings[key] != row]
        if left.size:
            postings[key] = left
        else:
            del postings[key]
    for key in after - before:
        postings[key] = np.append(postings.get(key, np.empty(0, np.int32)), np.int32(row))
