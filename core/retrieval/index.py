"""Inverted index of patterns by word, tag, category, error type and language."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.base.lazy_index import LazyIndex
from core.base.steps import Steps, run_all
from core.records.patterns import Pattern, PatternType
from core.retrieval.postings import Rows, convert_in_steps, move_row
from core.retrieval.task import LANGUAGES, content_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPES: Final = tuple(PatternType)  # pattern types by their code in arrays

_MAX_LIST: Final = 32  # indexed items of a list (tags, steps) of one pattern
_REBUILD_SHARE: Final = 4  # if more than one in this number of patterns changed, a new index is faster than an update


_Terms = tuple[set[str], set[str], set[tuple[str, str]]]  # words, tags and facets of a pattern


@dataclass(frozen=True)
class PatternIndex:
    """Immutable inverted index of patterns."""

    ids: tuple[str, ...]  # pattern ID by row; "" where a pattern was removed
    types: NDArray[np.int8]  # index into `TYPES` by row
    tag_counts: NDArray[np.int8]  # number of tags by row
    words: Mapping[str, Rows]  # rows by content word
    tags: Mapping[str, Rows]  # rows by tag
    facets: Mapping[tuple[str, str], Rows]  # rows by (`category` | `error` | `language`, value)
    _patterns: Mapping[str, Pattern]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> PatternIndex:
        """Index all patterns; takes about 20 us each."""
        return run_all(cls.build_in_steps(patterns))

    @classmethod
    def build_in_steps(cls, patterns: Mapping[str, Pattern]) -> Steps[PatternIndex]:
        """Do `build` step by step."""
        postings: list[dict[Any, array[int]]] = [{}, {}, {}]
        types, counts = array("b"), array("b")
        for row, pattern in enumerate(patterns.values()):
            terms: tuple[set[Any], ...] = _index_terms(pattern)
            for lists, keys in zip(postings, terms, strict=True):
                for key in keys:
                    lists.setdefault(key, array("i")).append(row)
            types.append(TYPES.index(pattern.type))
            counts.append(len(terms[1]))
            yield
        words = yield from convert_in_steps(postings[0])
        tags = yield from convert_in_steps(postings[1])
        facets = yield from convert_in_steps(postings[2])
        return cls(tuple(patterns), np.array(types, np.int8), np.array(counts, np.int8), words, tags, facets, patterns)

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> PatternIndex:
        """Return an index of `patterns`; only `changed_ids` differ from the old ones."""
        changed = set(changed_ids)
        if len(changed) * _REBUILD_SHARE > len(self.ids):
            return PatternIndex.build(patterns)
        ids, rows, types, tag_counts = list(self.ids), dict(self.rows), self.types.tolist(), self.tag_counts.tolist()
        words, tags, facets = dict(self.words), dict(self.tags), dict(self.facets)
        for id in changed:
            old, new = self._patterns.get(id), patterns.get(id)
            if id not in rows:
                if new is None:
                    continue
                rows[id] = len(ids)
                ids.append(id)
                types.append(0)
                tag_counts.append(0)
            row = rows[id]
            before, after = (_index_terms(one) if one else (set(), set(), set()) for one in (old, new))
            if new:
                types[row] = TYPES.index(new.type)
            else:
                ids[row] = ""
            tag_counts[row] = len(after[1])
            move_row(words, before[0], after[0], row)
            move_row(tags, before[1], after[1], row)
            move_row(facets, before[2], after[2], row)
        counts = np.array(tag_counts, np.int8)
        return PatternIndex(tuple(ids), np.array(types, np.int8), counts, words, tags, facets, patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {id: row for row, id in enumerate(self.ids) if id}

    @cached_property
    def size(self) -> int:
        """Number of indexed patterns."""
        return len(self.ids) - self.ids.count("")

    def release(self) -> None:
        self.__dict__.pop("rows", None)

    def rarity(self, word: str) -> float:
        """Return the weight of a word, the larger the fewer patterns contain it."""
        size, rows = max(self.size, 1), self.words.get(word)
        return math.log1p(size if rows is None else size / len(rows))

    @cached_property
    def tags_by_word(self) -> Mapping[str, tuple[tuple[str, frozenset[str]], ...]]:
        """Return the tags that contain a content word, each with all its words."""
        found: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for tag in self.tags:
            words = frozenset(content_words(tag))
            for word in words:
                found.setdefault(word, []).append((tag, words))
        return {word: tuple(tags) for word, tags in found.items()}


class LazyPatternIndex(LazyIndex[Pattern, PatternIndex]):
    """Pattern index built on first use (seconds for 100,000 patterns)."""

    kind = PatternIndex

    def release(self) -> None:
        """Free the rows by ID, which are numbered again when needed (10 ms for 100,000 patterns)."""
        if (index := self._index or self._base) is not None:
            index.release()

    def _build_in_steps(self) -> Steps[PatternIndex]:
        return PatternIndex.build_in_steps(self._records)


def _index_terms(pattern: Pattern) -> _Terms:
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
    return content_words(" ".join(texts)), tags, facets
