"""Which patterns say nearly the same: compared by their words, in milliseconds at any size.

Two patterns of one type are as similar as their signatures and descriptions with the words in order:
`token_sort_ratio` of rapidfuzz, 0..1. Only pairs that share enough of their rarer words are compared at all.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.base.lazy_index import LazyIndex
from core.records.patterns import Pattern, PatternType

MAX_CHARS: Final = 2000
"""Longest text of one pattern, in characters, that is compared."""

Rows = NDArray[np.int32]

_MOST_SHOWN: Final = 0.99
_RARE_SHARE: Final = 0.75
"""This share of a pattern's words, the rarest ones, finds what it is compared with."""
_SHARED: Final = 0.6
"""Two patterns worth comparing have at least this share of the threshold of their words in common."""
_MAX_LIST: Final = 32
"""Longest list of steps that is looked at."""
_MAX_SEEN: Final = 4_096
"""Entries of the lists of words that are looked through to find what one of many texts is compared with."""
_MAX_COMPARED: Final = 64
"""With so many others one of many texts is compared: those that share most of its words."""
_REBUILD_SHARE: Final = 4
"""An update of more than one pattern in so many is slower than a new index."""
# A backslash before a letter is a class of a regex (`\d`), no word.
_WORD: Final = re.compile(r"\\[A-Za-z]|(\w+)")


def similarity(one: Pattern, other: Pattern) -> float:
    """How alike two patterns are, 0..1; 0 for different types or tasks, and where a pattern has no words."""
    if one.type is not other.type or not _same_task(one, other):
        return 0.0
    text = _text(one)
    return _ratios(text, [_text(other)], 0.0)[0] if text else 0.0


def cap_similarity(likeness: float) -> float:
    """A likeness as people may read it, 0..1: as only some fields are compared, and their words in any order, the most
    alike are not the same.
    """
    return min(likeness, _MOST_SHOWN)


def _same_task(one: Pattern, other: Pattern) -> bool:
    """Whether both are for the same kind of task: steps that serve different ones are no copies of each other."""
    return one.type is not PatternType.SUCCESS or one.category == other.category


class SimilarityIndex:
    """The patterns of a registry by their words. Never changed, only replaced."""

    def __init__(self, patterns: Mapping[str, Pattern], blocks: Mapping[PatternType, TextBlock]) -> None:
        self._patterns = patterns
        self._blocks = blocks

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> SimilarityIndex:
        """Index everything: about 15 us a pattern."""
        texts: dict[PatternType, dict[str, str]] = {kind: {} for kind in PatternType}
        for id, pattern in patterns.items():
            texts[pattern.type][id] = _text(pattern)
        return cls(patterns, {kind: TextBlock.build(found) for kind, found in texts.items()})

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> SimilarityIndex:
        """The index of `patterns`, of which only those in `changed_ids` were added, changed or removed."""
        changed = set(changed_ids)
        if len(changed) * _REBUILD_SHARE > len(self._patterns):
            return SimilarityIndex.build(patterns)
        blocks = {}
        for kind, block in self._blocks.items():
            texts = {id: _text(pattern) for id in changed if (pattern := patterns.get(id)) and pattern.type is kind}
            blocks[kind] = block.updated(texts, changed)
        return SimilarityIndex(patterns, blocks)

    def nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Ids of patterns more than `threshold` similar to `pattern`, best first; never itself."""
        return self._sorted(pattern, self._blocks[pattern.type].nearest(_text(pattern), threshold))

    def some_nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """The same of a pattern of this index; of very many that are worth comparing only some dozens are compared.

        See `TextBlock.some_nearest`; some 300 us, also where thousands say the same.
        """
        return self._sorted(pattern, self._blocks[pattern.type].some_nearest(pattern.id, threshold))

    def _sorted(self, pattern: Pattern, found: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        others = [hit for hit in found if hit[0] != pattern.id and _same_task(pattern, self._patterns[hit[0]])]
        return tuple(sorted(others, key=lambda hit: (-hit[1], hit[0])))

    def pairs(self, threshold: float) -> tuple[tuple[str, str, float], ...]:
        """All pairs more than `threshold` similar, best first; the lower id of a pair first.

        10,000 patterns take a few seconds.
        """
        patterns = self._patterns
        found = [
            pair
            for block in self._blocks.values()
            for pair in block.pairs(threshold)
            if _same_task(patterns[pair[0]], patterns[pair[1]])
        ]
        return tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))


class LazySimilarity(LazyIndex[Pattern, SimilarityIndex]):
    """The similarity index of some patterns, made when it is first asked for."""

    kind = SimilarityIndex


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Texts that are compared with each other, each by its `sorted_words`. Never changed, only replaced.

    Attributes:
        ids, texts: By row; "" where a text was removed.
        rows: Row by id.
        postings: Rows by word.
    """

    ids: list[str]
    texts: list[str]
    rows: dict[str, int]
    postings: dict[str, Rows]

    @classmethod
    def build(cls, texts: Mapping[str, str]) -> TextBlock:
        """Of all texts by id."""
        postings: dict[str, array[int]] = {}
        for row, text in enumerate(texts.values()):
            for word in set(text.split()):
                postings.setdefault(word, array("i")).append(row)
        rows = {id: row for row, id in enumerate(texts)}
        return cls(list(texts), list(texts.values()), rows, {w: np.array(r, np.int32) for w, r in postings.items()})

    def updated(self, texts: Mapping[str, str], changed: set[str]) -> TextBlock:
        """With `texts` by id put in, and what else is in `changed` taken out."""
        gone = changed & self.rows.keys()
        if not gone and not texts:
            return self
        block = TextBlock(list(self.ids), list(self.texts), dict(self.rows), dict(self.postings))
        for id in gone:
            row = block.rows.pop(id)
            for word in set(block.texts[row].split()):
                block.postings[word] = block.postings[word][block.postings[word] != row]
            block.ids[row] = block.texts[row] = ""
        for id, text in texts.items():
            row = block.rows[id] = len(block.ids)
            block.ids.append(id)
            block.texts.append(text)
            for word in set(text.split()):
                block.postings[word] = np.append(block.postings.get(word, np.empty(0, np.int32)), np.int32(row))
        if len(block.ids) > len(block.rows) * 2:
            return TextBlock.build({id: block.texts[row] for id, row in block.rows.items()})
        return block

    def nearest(self, text: str, threshold: float, after: int = -1) -> list[tuple[str, float]]:
        """Ids in rows beyond `after` whose texts are more than `threshold` similar to `text`."""
        rows, _ = self._worth_comparing(text, threshold)
        return self._alike(text, rows[rows > after], threshold)

    def some_nearest(self, id: str, threshold: float) -> list[tuple[str, float]]:
        """Ids whose texts are more than `threshold` similar to that of `id`, of which no more are compared than a look
        has time for: those that share most of its rarer words, of equals those in the next rows, the first after the
        last. So of thousands that are all alike each is found by some.
        """
        row = self.rows[id]
        rows, shared = self._worth_comparing(self.texts[row], threshold)
        if len(rows) > _MAX_COMPARED:
            rows = rows[np.lexsort(((rows - row) % len(self.ids), -shared))[:_MAX_COMPARED]]
        return self._alike(self.texts[row], rows, threshold)

    def _alike(self, text: str, rows: Rows, threshold: float) -> list[tuple[str, float]]:
        ratios = _ratios(text, [self.texts[row] for row in rows], threshold) if len(rows) else []
        return [(self.ids[row], ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio > threshold]

    def pairs(self, threshold: float) -> Iterator[tuple[str, str, float]]:
        """All pairs more than `threshold` similar, each once, the lower id first; a few seconds for 10,000 texts."""
        for id, row in self.rows.items():
            for other, ratio in self.nearest(self.texts[row], threshold, after=row):
                yield min(id, other), max(id, other), ratio

    def _worth_comparing(self, text: str, threshold: float) -> tuple[Rows, NDArray[np.intp]]:
        """Rows that hold enough of the rarer words of `text` to have enough of all its words, and how many of them."""
        nothing = np.empty(0, np.int32)
        words = set(text.split())
        lists = sorted((self.postings.get(word, nothing) for word in words), key=len)
        shared = max(1, ceil(len(words) * _SHARED * threshold))
        rare = lists[: max(ceil(len(words) * _RARE_SHARE), len(words) - shared + 1)]
        if not rare:
            return nothing, nothing.astype(np.intp)
        needed = max(1, shared - (len(words) - len(rare)))
        counts = np.bincount(np.concatenate(rare), minlength=1)
        rows = np.flatnonzero(counts >= needed)
        return rows.astype(np.int32), counts[rows]


class TextPool:
    """Texts by their `sorted_words`, to which more are added, each compared with a bounded number of them.

    So thousands that are all alike cost no more than thousands that are not. Up to some dozens that share words,
    nothing is left out; where words are shared by more, the texts that were added first are looked at.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._rows: dict[str, array[int]] = {}

    def add(self, text: str) -> None:
        """Put one more into the next row; the first is in row 0."""
        for word in dict.fromkeys(text.split()):
            self._rows.setdefault(word, array("i")).append(len(self._texts))
        self._texts.append(text)

    def alike(self, text: str, threshold: float) -> list[tuple[int, float]]:
        """Rows of texts more than `threshold` similar to `text`, in order; about 100 us."""
        rows = self._worth_comparing(text)
        ratios = _ratios(text, [self._texts[row] for row in rows], threshold) if rows else []
        return [(row, ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio > threshold]

    def _worth_comparing(self, text: str) -> list[int]:
        found: list[Rows] = []
        left = _MAX_SEEN
        lists = (self._rows[word] for word in dict.fromkeys(text.split()) if word in self._rows)
        for holding in sorted(lists, key=len):
            found.append(np.frombuffer(holding, np.int32, min(len(holding), left)))
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
    """How similar texts with their words in order are, 0..1; 0 where it is below `threshold`."""
    from rapidfuzz import fuzz, process

    found = process.cdist([text], others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    return [float(ratio) for ratio in found[0] / 100]


def _text(pattern: Pattern) -> str:
    """The words of what is compared, in lower case and in order."""
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
    """The words of the first `MAX_CHARS` characters of a text, in lower case and in order, one space between two."""
    return " ".join(sorted(filter(None, _WORD.findall(text[:MAX_CHARS].lower()))))
