"""Index of pattern texts to find similar ones; see docs/retrieval.md#similarity.

They are indexed in the order of their places, some at a time, because those of 100,000 patterns take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import numpy as np

from core.index.columns import RowsById, read_cells, write_cells
from core.index.database import set_meta
from core.index.terms import COMPARED, StoredPatternIndex, StoredPostings, TermWriter, list_changes
from core.retrieval.relevance import TYPES, of_kind
from core.retrieval.similarity import (
    AT_ONCE,
    BANDS,
    MAX_COMPARED,
    Bands,
    compared_text,
    has_same_task,
    hash_texts,
    measure_pairs,
    measure_ratios,
    number_words,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.index.records import Reader
    from core.index.snapshot import IndexedSnapshot
    from core.records.patterns import Pattern, PatternType
    from core.records.snapshot import Delta
    from core.retrieval.relevance import Rows
    from core.retrieval.similarity import Hashes, Numbers

_SIZE: Final = "compared words"  # name of the column with the number of words by place
_HASHES: Final = "min-hashes"  # name of the column with `BANDS` numbers by place
DONE: Final = "similarity"  # name of the value in the table `meta`: the last place whose text is indexed
_SLACK: Final = 0.25  # the share of equal words may be below the threshold by this, and by one word
_MAX_READ: Final = 49_152  # rows of words that are read to find candidates; if there are more, min-hashes are used
_MAX_CANDIDATES: Final = 256  # candidates compared with one text, by the number of shared words
_MAX_HASHED: Final = 32  # the same for candidates with equal min-hashes
_MAX_STORED: Final = 16_384  # texts that are kept; more would take 20 MB
_UPDATED_AT_ONCE: Final = 64  # new patterns that are indexed in the transaction of a change


@dataclass(frozen=True, slots=True)
class SimilarityIndex:
    """Immutable index of patterns by their words."""

    _patterns: Mapping[str, Pattern]
    _blocks: Mapping[PatternType, _TextBlock]

    @classmethod
    def open(cls, index: StoredPatternIndex, reader: Reader, patterns: Mapping[str, Pattern]) -> SimilarityIndex:
        """Return the index of similar patterns of a view; requires `has_similarity`."""
        rows = index.rows
        assert isinstance(rows, RowsById)
        ids, numbering = rows.ids, rows.ids.numbering
        sizes = numbering.select(read_cells(reader, _SIZE, np.int32, numbering.size))
        texts, blocks = _Texts(ids, patterns), {}

        @cache
        def read_hashes() -> Hashes:
            hashes: Hashes = read_cells(reader, _HASHES, np.uint32, numbering.size, BANDS)
            return numbering.select(hashes)

        postings = StoredPostings(reader, numbering)
        for code, kind in enumerate(TYPES):
            blocks[kind] = _TextBlock(
                ids, texts, postings, COMPARED + code, np.where(index.types == code, sizes, 0), rows, read_hashes
            )
        return cls(patterns, blocks)

    def nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Return (ID, similarity) of other patterns above `threshold`, best first."""
        return self._sorted(pattern, self._blocks[pattern.type].nearest(compared_text(pattern), threshold))

    def some_nearest(self, pattern: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        """Like `nearest` for an indexed pattern, with limited comparisons: 300 us."""
        return self._sorted(pattern, self._blocks[pattern.type].some_nearest(pattern.id, threshold))

    def _sorted(self, pattern: Pattern, found: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        others = [hit for hit in found if hit[0] != pattern.id and has_same_task(pattern, self._patterns[hit[0]])]
        return tuple(sorted(others, key=lambda hit: (-hit[1], hit[0])))

    def pairs(self, threshold: float) -> tuple[tuple[str, str, float], ...]:
        """Return (lower ID, higher ID, similarity) above `threshold`; takes seconds."""
        patterns = self._patterns
        found = [
            pair
            for block in self._blocks.values()
            for pair in block.pairs(threshold)
            if has_same_task(patterns[pair[0]], patterns[pair[1]])
        ]
        return tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))


class _Texts(Sequence[str]):
    """Compared texts of patterns by row, made when used; the first made are kept."""

    def __init__(self, ids: Sequence[str], patterns: Mapping[str, Pattern]) -> None:
        self._ids = ids
        self._patterns = patterns
        self._made: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        text = self._made.get(row)
        if text is None:
            text = compared_text(self._patterns[self._ids[row]])
            if len(self._made) < _MAX_STORED:
                self._made[row] = text
        return text

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))


@dataclass(frozen=True)
class _TextBlock:
    """Texts of the patterns of one type as `sorted_words`; rows are of all patterns."""

    ids: Sequence[str]  # by row, as the texts
    texts: Sequence[str]
    postings: StoredPostings
    kind: int  # of the terms in `postings`: words, see `number_words`
    sizes: NDArray[np.int32]  # number of words by row; 0 for a pattern of another type
    rows: Mapping[str, int]  # by ID
    read_hashes: Callable[[], Hashes]  # the min-hashes by row

    def nearest(self, text: str, threshold: float) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold`; compares `_MAX_CANDIDATES` at most."""
        return self._compare(text, self._find_candidates(text, threshold).choose(), threshold)

    def some_nearest(self, id: str, threshold: float) -> list[tuple[str, float]]:
        """Return (ID, similarity) above `threshold` among `MAX_COMPARED` candidates.

        Prefers candidates that share most words. Among equals the following rows come first (cyclic), so that each of
        thousands of similar texts is found from some other text.
        """
        row = self.rows[id]
        found, shared, _ = self._find_candidates(self.texts[row], threshold, row)
        rows = found
        if len(rows) > MAX_COMPARED:
            rows = rows[np.lexsort(((rows - row) % len(self.ids), -shared))[:MAX_COMPARED]]
        return self._compare(self.texts[row], rows, threshold)

    def _compare(
        self, text: str, rows: Numbers, threshold: float, texts: Mapping[int, str] | None = None
    ) -> list[tuple[str, float]]:
        others = rows.tolist()
        compared = [texts[row] if texts is not None else self.texts[row] for row in others]
        ratios = measure_ratios(text, compared, threshold) if others else []
        return [(self.ids[row], ratio) for row, ratio in zip(others, ratios, strict=True) if ratio > threshold]

    def pairs(self, threshold: float) -> Iterator[tuple[str, str, float]]:
        """Yield all pairs above `threshold`, each once, the lower ID first."""
        postings = self.postings.read_all(self.kind)
        left = {word: len(holding) for word, holding in postings.items()}  # rows behind the present one
        every = np.flatnonzero(self.sizes).tolist()
        texts = {row: self.texts[row] for row in every}
        for rows in (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE)):
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
        for (row, other), ratio in zip(pairs, measure_pairs(ones, others, threshold), strict=True):
            if ratio > threshold:
                one, two = self.ids[row], self.ids[other]
                yield min(one, two), max(one, two), ratio

    def _find_candidates(self, text: str, threshold: float, row: int = -1) -> _Candidates:
        """Find rows that share enough with a text, which may be that of a row."""
        words = number_words(text)
        if sum(self.postings.count(self.kind, words).values()) <= _MAX_READ:
            lists = [rows for word in words if (rows := self.postings.get(self.kind, word)) is not None]
            return self._find_sharing(len(words), lists, threshold)
        if row < 0:
            return _Candidates(*np.unique(self._bands.find(text), return_counts=True), _MAX_HASHED)
        return next(found for _, found in self._find_hashed(np.array([row], np.int32)))

    def _find_sharing(self, size: int, lists: list[Rows], threshold: float, first: int = 0) -> _Candidates:
        """Find rows from `first` on that share enough words with a text of `size` words."""
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
        rows = np.flatnonzero(self.sizes).astype(np.int32)
        return Bands(self.read_hashes()[rows], rows)


class _Candidates(NamedTuple):
    rows: Numbers
    shared: Numbers  # number of words or min-hashes that a row shares
    most: int  # number of rows to compare

    def choose(self) -> Numbers:
        """Return the rows that share most."""
        if len(self.rows) <= self.most:
            return self.rows
        least = np.partition(self.shared, -self.most)[-self.most]
        return np.concatenate((self.rows[self.shared > least], self.rows[self.shared == least]))[: self.most]


def has_similarity(reader: Reader) -> bool:
    """Return whether the texts of all patterns are indexed."""
    return not _find_rest(reader, 1)


def extend_similarity(writer: Reader, patterns: Mapping[str, Pattern], most: int) -> bool:
    """Index up to `most` further patterns; return whether all are indexed.

    Writes in the open transaction; takes about 50 us each.
    """
    rest = _find_rest(writer, most + 1)
    if not rest:
        return True
    changes = _Changes(writer)
    for place, id in rest[:most]:
        changes.replace(place, None, patterns.get(id))
        changes.done = place
    changes.write()
    return len(rest) <= most


def update_similarity(old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta) -> None:
    """Index the texts of changed patterns again."""
    changes = _Changes(new.reader)
    for place, last, pattern in list_changes(old, new, delta):
        if place <= changes.done:
            changes.replace(place, last, pattern)
    changes.write()
    if changes.done or not old.patterns:
        extend_similarity(new.reader, new.patterns, _UPDATED_AT_ONCE)


def _find_rest(reader: Reader, most: int) -> list[tuple[int, str]]:
    """Return up to `most` patterns whose texts are not indexed: place and ID."""
    sql = "SELECT place, id FROM pattern WHERE place > ? ORDER BY place LIMIT ?"
    return [(place, id) for place, id in reader.rows(sql, int(reader.meta(DONE) or b"0"), most)]


class _Changes:
    """Collects changes of the compared texts by place."""

    def __init__(self, writer: Reader) -> None:
        self._connection = writer.connection
        self.done = int(writer.meta(DONE) or b"0")
        self._terms = TermWriter(writer.connection)
        self._texts: dict[int, str] = {}
        self._sizes: dict[int, int] = {}

    def replace(self, place: int, old: Pattern | None, new: Pattern | None) -> None:
        """Replace the text at a place; None without a pattern."""
        for pattern, is_new in ((old, False), (new, True)):
            if pattern is not None:
                text = compared_text(pattern)
                words = of_kind(COMPARED + TYPES.index(pattern.type), number_words(text))
                self._terms.move(place, set() if is_new else words, words if is_new else set())
        if new is None:
            self._sizes[place] = 0
        else:
            self._texts[place], self._sizes[place] = text, len(words)

    def write(self) -> None:
        self._terms.write()
        sizes = np.array(list(self._sizes.values()), np.int32)
        write_cells(self._connection, list(self._sizes), {_SIZE: sizes})
        write_cells(self._connection, list(self._texts), {_HASHES: hash_texts(list(self._texts.values()))})
        set_meta(self._connection, DONE, b"%d" % self.done)
