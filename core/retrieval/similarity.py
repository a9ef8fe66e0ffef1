"""Similarity of patterns by their words (docs/retrieval.md#similarity).

Two patterns of the same type are compared by signature and description, with sorted words: `token_sort_ratio` of
rapidfuzz, 0..1. Pairs that share too few of their rarer words are not compared.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.lazy_index import LazyIndex
from core.records.patterns import Pattern, PatternType
from core.retrieval.postings import Rows, index_rows, move_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CHARS: Final = 2000  # characters of a text that are compared

_MAX_DISPLAYED: Final = 0.99
_RARE_SHARE: Final = 0.75  # share of the words of a text, the rarest ones, that find candidates
_SHARED: Final = 0.6  # two texts are compared if they share at least this part, times the threshold, of their words
_MAX_LIST: Final = 32  # steps of a pattern that are compared
_MAX_POSTINGS: Final = 4_096  # entries of word lists that are read to find candidates in a text pool
_MAX_COMPARED: Final = 64  # candidates compared with one text, by the number of shared words
_REBUILD_SHARE: Final = 4  # if more than one in this number of patterns changed, a new index is faster than an update
# A backslash before a letter is a class of a regex (`\d`), not a word.
_WORD: Final = re.compile(r"\\[A-Za-z]|(\w+)")


def measure_similarity(one: Pattern, other: Pattern) -> float:
    """Return the similarity, 0..1; 0 for different types or task categories."""
    if one.type is not other.type or not _same_task(one, other):
        return 0.0
    text = _text(one)
    return _ratios(text, [_text(other)], 0.0)[0] if text else 0.0


def cap_similarity(value: float) -> float:
    """Limit a similarity for display to below 1, since not all fields are compared."""
    return min(value, _MAX_DISPLAYED)


def _same_task(one: Pattern, other: Pattern) -> bool:
    """Return whether both patterns are for one task category; if not, they differ."""
    return one.type is not PatternType.SUCCESS or one.category == other.category


@dataclass(frozen=True, slots=True)
class SimilarityIndex:
    """Immutable index of patterns by their words."""

    _patterns: Mapping[str, Pattern]
    _blocks: Mapping[PatternType, TextBlock]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> SimilarityIndex:
        """Index all patterns; takes about 15 us each."""
        texts: dict[PatternType, dict[str, str]] = {kind: {} for kind in PatternType}
        for id, pattern in patterns.items():
            texts[pattern.type][id] = _text(pattern)
        return cls(patterns, {kind: TextBlock.build(found) for kind, found in texts.items()})

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> SimilarityIndex:
        """Return an index of `patterns`; only `changed_ids` differ from the old ones."""
        changed = set(changed_ids)
        if len(changed) * _REBUILD_SHARE > len(self._patterns):
            return SimilarityIndex.build(patterns)
        blocks = {}
        for kind, block in self._blocks.items():
            texts = {
                id: _text(pattern) for id in sorted(changed) if (pattern := patterns.get(id)) and pattern.type is kind
            }
            blocks[kind] = block.updated(texts, changed)
        return SimilarityIndex(patterns, blocks)

    def nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Return (ID, similarity) of other patterns above `threshold`, best first."""
        return self._sorted(pattern, self._blocks[pattern.type].nearest(_text(pattern), threshold))

    def some_nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Like `nearest` for an indexed pattern, with limited comparisons: 300 us."""
        return self._sorted(pattern, self._blocks[pattern.type].some_nearest(pattern.id, threshold))

    def _sorted(self, pattern: Pattern, found: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        others = [hit for hit in found if hit[0] != pattern.id and _same_task(pattern, self._patterns[hit[0]])]
        return tuple(sorted(others, key=lambda hit: (-hit[1], hit[0])))

    def pairs(self, threshold: float) -> tuple[tuple[str, str, float], ...]:
        """Return (lower ID, higher ID, similarity) above `threshold`; takes seconds."""
        patterns = self._patterns
        found = [
            pair
            for block in self._blocks.values()
            for pair in block.pairs(threshold)
            if _same_task(patterns[pair[0]], patterns[pair[1]])
        ]
        return tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))


class LazySimilarity(LazyIndex[Pattern, SimilarityIndex]):
    kind = SimilarityIndex


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Immutable index of texts, each given as its `sorted_words`."""

    ids: list[str]  # by row, as the texts; "" where a text was removed
    texts: list[str]
    rows: dict[str, int]  # row by id
    postings: dict[str, Rows]  # rows by word

    @classmethod
    def build(cls, texts: Mapping[str, str]) -> TextBlock:
        postings = index_rows(set(text.split()) for text in texts.values())
        return cls(list(texts), list(texts.values()), {id: row for row, id in enumerate(texts)}, postings)

    def updated(self, texts: Mapping[str, str], changed: set[str]) -> TextBlock:
        """Return a copy with `texts` added or replaced; the rest of `changed` is removed."""
        outdated = changed & self.rows.keys()
        if not outdated and not texts:
            return self
        block = TextBlock(list(self.ids), list(self.texts), dict(self.rows), dict(self.postings))
        for id in outdated:
            row = block.rows.pop(id)
            move_row(block.postings, set(block.texts[row].split()), set(), row)
            block.ids[row] = block.texts[row] = ""
        for id, text in texts.items():
            row = block.rows[id] = len(block.ids)
            block.ids.append(id)
            block.texts.append(text)
            move_row(block.postings, set(), set(text.split()), row)
        if len(block.ids) > len(block.rows) * 2:
            return TextBlock.build({id: block.texts[row] for id, row in block.rows.items()})
        return block

    def nearest(self, text: str, threshold: float, after: int = -1) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold` of the rows beyond `after`."""
        rows, _ = self._find_candidates(text, threshold)
        return self._compare(text, rows[rows > after], threshold)

    def some_nearest(self, id: str, threshold: float) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold` among `_MAX_COMPARED` candidates.

        Prefers candidates that share most of the rarer words. Among equals the following rows come first (cyclic), so
        that each of thousands of similar texts is found from some other text.
        """
        row = self.rows[id]
        rows, shared = self._find_candidates(self.texts[row], threshold)
        if len(rows) > _MAX_COMPARED:
            rows = rows[np.lexsort(((rows - row) % len(self.ids), -shared))[:_MAX_COMPARED]]
        return self._compare(self.texts[row], rows, threshold)

    def _compare(self, text: str, rows: Rows, threshold: float) -> list[tuple[str, float]]:
        ratios = _ratios(text, [self.texts[row] for row in rows], threshold) if len(rows) else []
        return [(self.ids[row], ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio > threshold]

    def pairs(self, threshold: float) -> Iterator[tuple[str, str, float]]:
        """Yield all pairs above `threshold`, each once, the lower ID first."""
        for id, row in self.rows.items():
            for other, ratio in self.nearest(self.texts[row], threshold, after=row):
                yield min(id, other), max(id, other), ratio

    def _find_candidates(self, text: str, threshold: float) -> tuple[Rows, NDArray[np.intp]]:
        """Return rows that share enough of the rarer words, and how many they share."""
        nothing = np.empty(0, np.int32)
        words = set(text.split())
        # Equally rare words are taken in alphabetical order, so that the result does not depend on the hash seed.
        lists = sorted((self.postings.get(word, nothing) for word in sorted(words)), key=len)
        shared = max(1, ceil(len(words) * _SHARED * threshold))
        rare = lists[: max(ceil(len(words) * _RARE_SHARE), len(words) - shared + 1)]
        if not rare:
            return nothing, nothing.astype(np.intp)
        needed = max(1, shared - (len(words) - len(rare)))
        counts = np.bincount(np.concatenate(rare), minlength=1)
        rows = np.flatnonzero(counts >= needed)
        return rows.astype(np.int32), counts[rows]


class TextPool:
    """Growing list of `sorted_words`; each text is compared with a limited number."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._rows: dict[str, array[int]] = {}

    def add(self, text: str) -> None:
        """Append a text; rows are numbered from 0."""
        for word in dict.fromkeys(text.split()):
            self._rows.setdefault(word, array("i")).append(len(self._texts))
        self._texts.append(text)

    def find_similar(self, text: str, threshold: float) -> list[tuple[int, float]]:
        """Return (row, similarity) of texts above `threshold`, in order; about 100 us."""
        rows = self._find_candidates(text)
        ratios = _ratios(text, [self._texts[row] for row in rows], threshold) if rows else []
        return [(row, ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio > threshold]

    def _find_candidates(self, text: str) -> list[int]:
        found: list[Rows] = []
        left = _MAX_POSTINGS
        lists = (self._rows[word] for word in dict.fromkeys(text.split()) if word in self._rows)
        for holding in sorted(lists, key=len):
            found.append(np.array(holding[:left], np.int32))  # a copy: a view would forbid further appends
            left -= len(found[-1])
            if not left:
                break
        if not found:
            return []
        rows, shared = np.unique(np.concatenate(found), return_counts=True)
        if len(rows) > _MAX_COMPARED:
            rows = np.sort(rows[np.argsort(-shared, kind="stable")[:_MAX_COMPARED]])
        return [int(row) for row in rows]


def _ratios(text: str, others: list[str], threshold: float) -> list[float]:
    """Return similarities of texts with sorted words, 0..1; 0 below `threshold`."""
    from rapidfuzz import fuzz, process

    found = process.cdist([text], others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    return [float(ratio) for ratio in found[0] / 100]


def _text(pattern: Pattern) -> str:
    """Return the sorted words of the compared fields."""
    match pattern.type:
        case PatternType.ERROR:
            parts = [pattern.error_type, pattern.error_pattern, pattern.description]
        case PatternType.SUCCESS:
            parts = [pattern.category, pattern.description, *pattern.steps[:_MAX_LIST]]
        case PatternType.ANTI:
            parts = [pattern.description, pattern.category]
        case PatternType.TEMPLATE:
            parts = [pattern.template_language, pattern.description, pattern.template_code]
    return sorted_words(" ".join(part[:MAX_CHARS] for part in parts))


def sorted_words(text: str) -> str:
    """Return the sorted lower-case words of the first `MAX_CHARS` characters."""
    return " ".join(sorted(filter(None, _WORD.findall(text[:MAX_CHARS].lower()))))
