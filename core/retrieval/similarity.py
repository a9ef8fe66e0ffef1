"""Similarity of patterns by their words (docs/retrieval.md#similarity).

Two patterns of the same type are compared by signature and description, with sorted words: `token_sort_ratio` of
rapidfuzz, 0..1. Pairs that share too few words are not compared. Where words are so frequent that reading the rows of
each would take long, as in 100,000 texts of few words, only texts with an equal min-hash are compared.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final, NamedTuple, overload
from zlib import crc32

import numpy as np

from core.records.patterns import Pattern, PatternType
from core.retrieval.index import Postings, Rows, index_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Numbers = NDArray[np.signedinteger]
    Hashes = NDArray[np.uint32]  # shape (texts, `BANDS`)


MAX_CHARS: Final = 2000  # characters of a text that are compared

_MAX_DISPLAYED: Final = 0.99
_SLACK: Final = 0.25  # the share of equal words may be below the threshold by this, and by one word
_MAX_READ: Final = 49_152  # rows of words that are read to find candidates; if there are more, min-hashes are used
_MAX_CANDIDATES: Final = 256  # candidates compared with one text, by the number of shared words
_MAX_HASHED: Final = 32  # the same for candidates with equal min-hashes
_AT_ONCE: Final = 256  # texts hashed, or compared with others, at once
MAX_STORED: Final = 16_384  # texts of one type of patterns that are kept; more would take 20 MB
_MAX_LIST: Final = 32  # steps of a pattern that are compared
_MAX_POSTINGS: Final = 4_096  # entries of word lists that are read to find candidates in a text pool
_MAX_COMPARED: Final = 64  # candidates compared with one text, by the number of shared words
# A backslash before a letter is a class of a regex (`\d`), not a word.
_WORD: Final = re.compile(r"\\[A-Za-z]|(\w+)")

BANDS: Final = 16  # hashes of a text; two texts with 75 % equal words have an equal one in 99 % of cases
_BAND_WORDS: Final = 5  # words in a hash
_MAX_ROWS: Final = 64  # rows with the same hash that are candidates for one text
_NONE: Final = np.empty((0, BANDS), np.uint32)

THRESHOLD: Final = 0.85  # similarity of two texts with sorted words, 0..1, from which one repeats the other
MIN_WORDS: Final = 4  # fewer words are too common to compare
MAX_LINES: Final = 5_000  # lines of files that are compared


def measure_similarity(one: Pattern, other: Pattern) -> float:
    """Return the similarity, 0..1; 0 for different types or task categories."""
    if one.type is not other.type or not _same_task(one, other):
        return 0.0
    text = compared_text(one)
    return _ratios(text, [compared_text(other)], 0.0)[0] if text else 0.0


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
        of_types: dict[PatternType, dict[str, Pattern]] = {kind: {} for kind in PatternType}
        for id, pattern in patterns.items():
            of_types[pattern.type][id] = pattern
        return cls(patterns, {kind: TextBlock.build(those) for kind, those in of_types.items()})

    def nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Return (ID, similarity) of other patterns above `threshold`, best first."""
        return self._sorted(pattern, self._blocks[pattern.type].nearest(compared_text(pattern), threshold))

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


class _Texts(Sequence[str]):
    """The compared text of each pattern; those of many patterns are made again on each use."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = list(patterns)
        self._made = list(map(compared_text, self._patterns)) if len(self._patterns) <= MAX_STORED else []

    def __len__(self) -> int:
        return len(self._patterns)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        return self._made[row] if self._made else compared_text(self._patterns[row])


@dataclass(frozen=True)
class TextBlock:
    """Immutable index of the texts of patterns, each as its `sorted_words`; see also `core.index.similarity`."""

    ids: Sequence[str]  # by row, as the texts
    texts: Sequence[str]
    postings: Postings[str]  # rows by word, see `number_words`
    sizes: NDArray[np.int32]  # number of words by row; 0 for a row of another index

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> TextBlock:
        texts = _Texts(patterns.values())
        postings = index_rows(map(number_words, texts))
        sizes = np.zeros(len(texts), np.int32)
        for rows in postings.values():
            sizes[rows] += 1
        return cls(tuple(patterns), texts, postings, sizes)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {id: row for row, id in enumerate(self.ids) if id}

    def nearest(self, text: str, threshold: float) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold`; compares the texts that share most, at most `_MAX_CANDIDATES`."""
        return self._compare(text, self._find_candidates(text, threshold).choose(), threshold)

    def some_nearest(self, id: str, threshold: float) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold` among `_MAX_COMPARED` candidates.

        Prefers candidates that share most words. Among equals the following rows come first (cyclic), so that each of
        thousands of similar texts is found from some other text.
        """
        row = self.rows[id]
        found, shared, _ = self._find_candidates(self.texts[row], threshold, row)
        rows = found
        if len(rows) > _MAX_COMPARED:
            rows = rows[np.lexsort(((rows - row) % len(self.ids), -shared))[:_MAX_COMPARED]]
        return self._compare(self.texts[row], rows, threshold)

    def _compare(
        self, text: str, rows: _Numbers, threshold: float, texts: Mapping[int, str] | None = None
    ) -> list[tuple[str, float]]:
        others = rows.tolist()
        compared = [texts[row] if texts is not None else self.texts[row] for row in others]
        ratios = _ratios(text, compared, threshold) if others else []
        return [(self.ids[row], ratio) for row, ratio in zip(others, ratios, strict=True) if ratio > threshold]

    def pairs(self, threshold: float) -> Iterator[tuple[str, str, float]]:
        """Yield all pairs above `threshold`, each once, the lower ID first."""
        postings = {word: holding for word in self.postings if (holding := self.postings.get(word)) is not None}
        left = {word: len(holding) for word, holding in postings.items()}  # rows behind the present one
        every = np.flatnonzero(self.sizes).tolist()
        texts = {row: self.texts[row] for row in every}
        for rows in (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE)):
            frequent = []
            for row in rows:
                text = texts[row]
                words = number_words(text)
                for word in words:
                    left[word] -= 1
                if sum(map(left.__getitem__, words)) > _MAX_READ:
                    frequent.append(row)
                    continue
                lists = [postings[word][-count:] for word in words if (count := left[word])]
                chosen = self._find_sharing(len(words), lists, threshold, row + 1).choose()
                for other, ratio in self._compare(text, chosen, threshold, texts):
                    yield min(self.ids[row], other), max(self.ids[row], other), ratio
            yield from self._compare_hashed(frequent, threshold, texts)

    def _compare_hashed(
        self, rows: list[int], threshold: float, texts: Mapping[int, str]
    ) -> Iterator[tuple[str, str, float]]:
        pairs: list[tuple[int, int]] = []
        for row, candidates in self._find_hashed(np.array(rows, np.int32)):
            pairs += zip(repeat(row), candidates.choose().tolist())
        ones, others = [texts[row] for row, _ in pairs], [texts[row] for _, row in pairs]
        for (row, other), ratio in zip(pairs, _pairwise_ratios(ones, others, threshold), strict=True):
            if ratio > threshold:
                one, two = self.ids[row], self.ids[other]
                yield min(one, two), max(one, two), ratio

    def _find_candidates(self, text: str, threshold: float, row: int = -1) -> _Candidates:
        """Find rows that share enough with a text, which may be that of a row."""
        words = number_words(text)
        if sum(self.postings.count(words).values()) <= _MAX_READ:
            lists = [rows for word in words if (rows := self.postings.get(word)) is not None]
            return self._find_sharing(len(words), lists, threshold)
        if row < 0:
            return _Candidates(*np.unique(self._bands.find(text), return_counts=True), _MAX_HASHED)
        return next(found for _, found in self._find_hashed(np.array([row], np.int32)))

    def _find_sharing(self, size: int, lists: list[Rows], threshold: float, first: int = 0) -> _Candidates:
        """Find rows from `first` on that are often enough in the lists of a text with `size` words."""
        if not lists:
            return _Candidates(np.empty(0, np.intp), np.empty(0, np.intp), 0)
        counts = np.bincount(np.concatenate(lists) - first, minlength=len(self.sizes) - first)
        needed = (threshold - _SLACK) / 2 * (self.sizes[first:] + size) - 1
        if np.count_nonzero(self.sizes) <= _MAX_CANDIDATES:  # few enough to compare all that share a word
            needed = np.ones_like(needed)
        enough = np.flatnonzero(counts >= np.maximum(needed, 1))
        return _Candidates(enough + first, counts[enough], _MAX_CANDIDATES)

    def _find_hashed(self, rows: Rows) -> Iterator[tuple[int, _Candidates]]:
        """Find for each row the rows behind it with equal min-hashes."""
        if not len(rows):
            return
        found, owners = self._bands.find_next(rows)
        codes, counts = np.unique(owners * np.int64(len(self.ids)) + found, return_counts=True)
        owners, found = np.divmod(codes, len(self.ids))
        ends = owners.searchsorted(np.arange(len(rows)), "right").tolist()
        for row, start, end in zip(rows.tolist(), [0, *ends], ends, strict=False):
            yield row, _Candidates(found[start:end], counts[start:end], _MAX_HASHED)

    @cached_property
    def _bands(self) -> Bands:
        return Bands(*self._list_hashes())

    def _list_hashes(self) -> tuple[Hashes, Rows]:
        """Return the min-hashes of all texts, and their rows."""
        rows = np.flatnonzero(self.sizes).astype(np.int32)
        return hash_texts([self.texts[row] for row in rows.tolist()]), rows


class _Candidates(NamedTuple):
    rows: _Numbers
    shared: _Numbers  # number of words or min-hashes that a row shares
    most: int  # number of rows to compare

    def choose(self) -> _Numbers:
        """Return the rows that share most."""
        if len(self.rows) <= self.most:
            return self.rows
        least = np.partition(self.shared, -self.most)[-self.most]
        return np.concatenate((self.rows[self.shared > least], self.rows[self.shared == least]))[: self.most]


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
        counts = np.bincount(np.concatenate(found))
        rows = np.flatnonzero(counts > 1)
        if len(rows) < _MAX_COMPARED:  # seldom: most texts share one word with thousands of others
            rows = np.flatnonzero(counts > 0)
        if len(rows) > _MAX_COMPARED:
            rows = np.sort(rows[np.argsort(-counts[rows], kind="stable")[:_MAX_COMPARED]])
        return [int(row) for row in rows]


def _ratios(text: str, others: list[str], threshold: float) -> list[float]:
    """Return similarities of texts with sorted words, 0..1; 0 below `threshold`."""
    from rapidfuzz import fuzz, process

    found = process.cdist([text], others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    return [float(ratio) for ratio in found[0] / 100]


def _pairwise_ratios(ones: list[str], others: list[str], threshold: float) -> list[float]:
    """Return `_ratios` of the first texts of both lists, of the second ones, and so on."""
    from rapidfuzz import fuzz, process

    found = process.cpdist(ones, others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    ratios: list[float] = (found / 100).tolist()
    return ratios


def compared_text(pattern: Pattern) -> str:
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


def number_words(text: str) -> list[str]:
    """Return the words of a text with sorted words; repeated words are numbered."""
    words = text.split()
    if len(set(words)) == len(words):
        return words
    numbered, last, times = [], "", 1
    for word in words:
        times = times + 1 if word == last else 1
        numbered.append(word if times == 1 else f"{word} {times}")
        last = word
    return numbered


def sorted_words(text: str) -> str:
    """Return the sorted lower-case words of the first `MAX_CHARS` characters."""
    return " ".join(sorted(filter(None, _WORD.findall(text[:MAX_CHARS].lower()))))


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


class Repetition(NamedTuple):
    """Where a text is repeated: `file` as shown, and the line, from 1."""

    file: str
    line: int


def find_repeated(
    texts: Mapping[str, Iterable[str]], files: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, Repetition]:
    """Return by key the first line that repeats one of its `texts`; `files` are names and lines."""
    from rapidfuzz import fuzz, process

    places = [
        (Repetition(file, number), words)
        for file, lines in files
        for number, line in enumerate(lines, start=1)
        if (words := _line_words(line))
    ][:MAX_LINES]
    wanted = [(key, words) for key, some in texts.items() for text in some if (words := _line_words(text))]
    if not places or not wanted:
        return {}
    similar = process.cdist(
        [words for _, words in wanted],
        [words for _, words in places],
        scorer=fuzz.ratio,
        score_cutoff=THRESHOLD * 100,
        dtype=np.float32,
    )
    found: dict[str, Repetition] = {}
    for row, (key, _) in enumerate(wanted):
        columns = np.flatnonzero(similar[row])
        if len(columns) and key not in found:
            found[key] = places[int(columns[0])][0]
    return found


def _line_words(text: str) -> str:
    """Return the words of a text in order of the alphabet, without signs; "" if there are too few to compare."""
    words = sorted("".join(char if char.isalnum() else " " for char in text.lower()).split())
    return " ".join(words) if len(words) >= MIN_WORDS else ""
