"""Similarity of patterns by their words (docs/retrieval.md#similarity).

Two patterns of the same type are compared by signature and description, with sorted words: `token_sort_ratio` of
rapidfuzz, 0..1. `core.index.similarity` chooses the pairs. Where words are so frequent that reading the rows of each
would take long, as in 100,000 texts of few words, these are texts with an equal min-hash.

Below, sentences with opposite demands, which are found by words, not grammar.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import numpy as np
from msgspec import Struct

from core.base.polarity import is_negated
from core.base.regexes import lazy_regex
from core.base.text import strip_label
from core.records.patterns import Pattern, PatternType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]
    Numbers = NDArray[np.signedinteger]
    Hashes = NDArray[np.uint32]  # shape (texts, `BANDS`)

MAX_CHARS: Final = 2000  # characters of a text that are compared

_MAX_DISPLAYED: Final = 0.99
AT_ONCE: Final = 256  # texts hashed, or compared with others, at once
_MAX_LIST: Final = 32  # steps of a pattern that are compared
_MAX_POSTINGS: Final = 4_096  # entries of word lists that are read to find candidates in a text pool
MAX_COMPARED: Final = 64  # candidates compared with one text, by the number of shared words
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
    if one.type is not other.type or not has_same_task(one, other):
        return 0.0
    text = compared_text(one)
    return measure_ratios(text, [compared_text(other)], 0.0)[0] if text else 0.0


def cap_similarity(value: float) -> float:
    """Limit a similarity for display to below 1, since not all fields are compared."""
    return min(value, _MAX_DISPLAYED)


def has_same_task(one: Pattern, other: Pattern) -> bool:
    """Return whether both patterns are for one task category; if not, they differ."""
    return one.type is not PatternType.SUCCESS or one.category == other.category


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
        ratios = measure_ratios(text, [self._texts[row] for row in rows], threshold) if rows else []
        return [(row, ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio > threshold]

    def _find_candidates(self, text: str) -> list[int]:
        postings: list[Rows] = []
        postings_left = _MAX_POSTINGS
        lists = (self._rows[word] for word in dict.fromkeys(text.split()) if word in self._rows)
        for holding in sorted(lists, key=len):
            postings.append(np.array(holding[:postings_left], np.int32))  # a copy: a view would forbid further appends
            postings_left -= len(postings[-1])
            if not postings_left:
                break
        if not postings:
            return []
        counts = np.bincount(np.concatenate(postings))
        rows = np.flatnonzero(counts > 1)
        if len(rows) < MAX_COMPARED:  # seldom: most texts share one word with thousands of others
            rows = np.flatnonzero(counts > 0)
        if len(rows) > MAX_COMPARED:
            rows = np.sort(rows[np.argsort(-counts[rows], kind="stable")[:MAX_COMPARED]])
        return [int(row) for row in rows]


def measure_ratios(text: str, others: list[str], threshold: float) -> list[float]:
    """Return similarities of texts with sorted words, 0..1; 0 below `threshold`."""
    from rapidfuzz import fuzz, process

    ratios = process.cdist([text], others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    return [float(ratio) for ratio in ratios[0] / 100]


def measure_pairs(ones: list[str], others: list[str], threshold: float) -> list[float]:
    """Return `measure_ratios` of each pair of texts at the same place of both lists."""
    from rapidfuzz import fuzz, process

    similar = process.cpdist(ones, others, scorer=fuzz.ratio, score_cutoff=threshold * 100, dtype=np.float64)
    ratios: list[float] = (similar / 100).tolist()
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
        """Return the next `_MAX_ROWS` rows of each hash, and their places in `rows`."""
        places = self._places[self._known.searchsorted(rows)].ravel()
        places_after, owners = _join_ranges(places + 1, self._ends[places])
        return self._rows[places_after], (owners // BANDS).astype(np.int32)


def hash_texts(texts: Sequence[str]) -> Hashes:
    """Return `BANDS` hashes of each text."""
    several = (texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE))
    return np.concatenate([_NONE, *map(_hash, several)])


def _join_ranges(starts: Numbers, ends: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join the first `_MAX_ROWS` numbers of each range, with the range's index."""
    sizes = np.minimum(ends - starts, _MAX_ROWS)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owners)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), owners


def _hash(texts: Sequence[str]) -> Hashes:
    words = [text.split() or [""] for text in texts]
    code_of = {word: crc32(word.encode(errors="replace")) for word in set().union(*words)}
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


class Repetition(NamedTuple):
    """Where a text is repeated: `file` as shown, and the line, from 1."""

    file: str
    line: int


def find_repeated(
    texts: Mapping[str, Iterable[str]], files: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, Repetition]:
    """Return by key the first line in `files` (name, lines) repeating its `texts`."""
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
    repeated: dict[str, Repetition] = {}
    for row, (key, _) in enumerate(wanted):
        columns = np.flatnonzero(similar[row])
        if len(columns) and key not in repeated:
            repeated[key] = places[int(columns[0])][0]
    return repeated


def _line_words(text: str) -> str:
    """Return the sorted words without punctuation; "" if too few to compare."""
    words = sorted("".join(char if char.isalnum() else " " for char in text.lower()).split())
    return " ".join(words) if len(words) >= MIN_WORDS else ""


MIN_SIMILARITY: Final = 0.7  # above it, 0..1, learnings make the same statement unless their demands differ

_REASON: Final = lazy_regex(r"\b(?:so that|because|otherwise|or else|since|damit|weil|sonst)\b.*", re.DOTALL)
"""The reason for a demand; a negation in it does not negate the demand."""
_NUMBER: Final = lazy_regex(
    r"(?<![\w.#/:-])(?<!attempt )(?<!iteration )(?<!line )(?<!step )(?<!loop )(?<!task )"
    r"\d+(?:[.,]\d+)*\b(?![\w.]*[/:-])"
    r"(?!(?: of \d+)?(?: \w+)? (?:tests?|errors?|failures?|failing|failed|problems?|warnings?)\b)"
)  # a number that may be part of the demand: not part of a name, not a position, not a count of results
_ORDER: Final = lazy_regex(r"\b(?:(before|instead of|rather than|than|bevor|vor|statt|anstatt)|(after|nachdem|nach))\b")
"""Words between two things whose order matters; for the words of group 2 the second thing comes first."""
_WORDS: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2,}")
_SMALL: Final = frozenset(
    {"a", "an", "the", "of", "to", "in", "on", "and", "or", "any", "all", "it", "der", "die", "das"}
)


@cache
def _sides() -> dict[str, tuple[int, int]]:
    """Return (axis, side) of each form of each word in `opposites.yaml`."""
    sides = {}
    lines = Path(__file__).with_name("opposites.yaml").read_text(encoding="utf-8").splitlines()
    # Importing a parser for all of YAML takes 10 ms, in each hook with a prompt.
    pairs = (line.removeprefix("- [").removesuffix("]").split(", ") for line in lines if not line.startswith("#"))
    for axis, pair in enumerate(pairs):
        for side, words in enumerate(pair):
            for word in words.split():
                stem = word.removesuffix("e")
                for form in (word, f"{word}s", f"{stem}ed", f"{stem}ing"):
                    sides[form] = (axis, side)
    return sides


class Demand(Struct, frozen=True, gc=False):  # tuples and strings only, so that collections skip it
    """Parts of a sentence in which two demands can differ."""

    negated: bool = False  # whether the sentence forbids something
    numbers: tuple[str, ...] = ()  # numbers that are part of the demand, sorted
    sides: tuple[tuple[int, int], ...] = ()  # (axis, side) of named opposites, unless both sides are named
    order: tuple[tuple[str, ...], ...] = ()  # sorted words of what comes first, and of what second; else empty

    def differs(self, other: Demand) -> bool:
        if self.negated != other.negated or (self.numbers and other.numbers and self.numbers != other.numbers):
            return True
        theirs = dict(other.sides)
        if any(theirs.get(axis, side) != side for axis, side in self.sides):
            return True
        if not self.order or not other.order:
            return False
        # Two things changed places.
        first, second, their_first, their_second = map(set, (*self.order, *other.order))
        return bool(first & their_second - second - their_first) and bool(second & their_first - first - their_second)


def parse_demand(text: str) -> Demand:
    """Parse the demand that a sentence makes."""
    text = _REASON.sub("", text.lower().replace("\u2019", "'"))
    sides = _sides()
    sides_named = dict.fromkeys(sides[word] for word in _WORDS.findall(text) if word in sides)
    axes = [axis for axis, _ in sides_named]
    order: tuple[tuple[str, ...], ...] = ()
    if between := _ORDER.search(text):
        parts = (text[: between.start()], text[between.end() :])
        parts = parts if between[1] else parts[::-1]
        order = tuple(tuple(sorted({*_WORDS.findall(part)} - _SMALL)) for part in parts)
    return Demand(
        negated=is_negated(text),
        numbers=tuple(sorted(set(_NUMBER.findall(text)))),
        sides=tuple(sorted(side for side in sides_named if axes.count(side[0]) == 1)),
        order=order,
    )


def split_unspaced(text: str) -> str:
    """Split text in languages without spaces into pairs of characters."""
    return _UNSPACED.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)


class Statement(Struct, frozen=True, gc=False):
    """Learning in comparable form: its sorted words and its demand."""

    words: str
    demand: Demand

    @classmethod
    def of(cls, learning: str) -> Statement:

        text = strip_label(learning)
        return cls(sorted_words(split_unspaced(text)), parse_demand(text))

    @property
    def key(self) -> tuple[str, bool, str]:
        """Unique key for sorting."""
        demand = self.demand
        return self.words, demand.negated, f"{demand.numbers} {demand.sides} {demand.order}"
