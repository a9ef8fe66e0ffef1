"""The texts of patterns by which an index finds similar ones; see docs/retrieval.md#similarity.

They are indexed in the order of their places, some at a time, because those of 100,000 patterns take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from core.index.database import get_meta, pack, set_meta, unpack
from core.index.terms import (
    CHUNK,
    COMPARED,
    Numbering,
    RowsById,
    StoredPatternIndex,
    StoredPostings,
    TermWriter,
    find_place,
    read_cells,
    write_cells,
)
from core.retrieval.index import TYPES
from core.retrieval.similarity import (
    BANDS,
    MAX_STORED,
    SimilarityIndex,
    TextBlock,
    compared_text,
    hash_texts,
    number_words,
)

if TYPE_CHECKING:
    import sqlite3

    from core.index.records import Reader
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot
    from core.retrieval.index import Rows
    from core.retrieval.similarity import Hashes

TABLES: Final = (
    # Min-hashes of the compared texts by place, as arrays of `CHUNK` rows with `BANDS` numbers each.
    "CREATE TABLE min_hash (chunk INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)
_SIZE: Final = "compared words"  # name of the column with the number of words by place
_DONE: Final = "similarity"  # name of the value in the table `meta`: the last place whose text is indexed
_UPDATED_AT_ONCE: Final = 64  # new patterns that are indexed in the transaction of a change


class _Texts(Sequence[str]):
    """The compared text of the pattern in each row, made when it is first used; that of the last ones on each use."""

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
            if len(self._made) < MAX_STORED:
                self._made[row] = text
        return text

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))


@dataclass(frozen=True)
class _StoredBlock(TextBlock):
    """Texts of the patterns of one type; the rows are those of all patterns."""

    by_id: RowsById
    hashes: _StoredHashes

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return self.by_id

    def _list_hashes(self) -> tuple[Hashes, Rows]:
        rows = np.flatnonzero(self.sizes).astype(np.int32)
        return self.hashes.all[rows], rows


class _StoredHashes:
    """The min-hashes of all rows, read when they are first used."""

    def __init__(self, reader: Reader, numbering: Numbering) -> None:
        self._reader = reader
        self._numbering = numbering

    @cached_property
    def all(self) -> Hashes:
        hashes = np.zeros((self._numbering.count, BANDS), np.uint32)
        for chunk, data in self._reader.rows("SELECT chunk, data FROM min_hash ORDER BY chunk"):
            part = np.frombuffer(unpack(data), "<u4").reshape(-1, BANDS)
            places = np.arange(len(part)) + chunk * CHUNK
            is_used = self._numbering.is_used(places)
            hashes[self._numbering.rows(places[is_used])] = part[is_used]
        return hashes


def open_similarity(index: StoredPatternIndex, reader: Reader, patterns: Mapping[str, Pattern]) -> SimilarityIndex:
    """Return the index of the similar patterns of a view; `has_similarity` must be true for it."""
    ids = index.ids
    rows = index.rows
    assert isinstance(rows, RowsById)
    numbering = rows.ids.numbering
    sizes = numbering.select(read_cells(reader, _SIZE, np.int32, numbering.size))
    hashes, texts, blocks = _StoredHashes(reader, numbering), _Texts(ids, patterns), {}
    for code, kind in enumerate(TYPES):
        postings = StoredPostings(reader, COMPARED + code, numbering)
        blocks[kind] = _StoredBlock(ids, texts, postings, np.where(index.types == code, sizes, 0), rows, hashes)
    return SimilarityIndex(patterns, blocks)


def has_similarity(reader: Reader) -> bool:
    """Return whether the texts of all patterns are indexed."""
    with reader.lock:
        return _find_rest(reader, 1) == []


def extend_similarity(writer: Reader, patterns: Mapping[str, Pattern], most: int) -> bool:
    """Index the texts of up to `most` further patterns, in the open transaction; return whether all are indexed.

    Takes about 50 us each.
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


def forget_similarity(connection: sqlite3.Connection) -> None:
    """Remove the texts of all patterns from the index."""
    connection.execute("DELETE FROM min_hash")
    connection.execute("DELETE FROM term WHERE kind >= ?", (COMPARED,))
    connection.execute("DELETE FROM cells WHERE name = ?", (_SIZE,))
    set_meta(connection, _DONE, b"0")


def update_similarity(before: Reader, old: Snapshot, writer: Reader, new: Snapshot, delta: Delta) -> None:
    """Index the texts of changed patterns again."""
    changes = _Changes(writer)
    for id in sorted(delta.patterns):
        pattern, place = new.patterns.get(id), find_place(writer, id)
        last, old_place = old.patterns.get(id), find_place(before, id)
        if old_place is not None and old_place <= changes.done:
            changes.replace(old_place, last, pattern if place == old_place else None)
    changes.write()
    if changes.done or not old.patterns:
        extend_similarity(writer, new.patterns, _UPDATED_AT_ONCE)


def _find_rest(reader: Reader, most: int) -> list[tuple[int, str]]:
    """Return up to `most` patterns whose texts are not indexed: place and ID."""
    done = int(get_meta(reader.connection, _DONE) or b"0")
    return [(place, id) for place, id in reader.rows(_REST, done, most)]


_REST: Final = "SELECT place, id FROM pattern WHERE place > ? ORDER BY place LIMIT ?"


class _Changes:
    """Collects changes of the compared texts by place."""

    def __init__(self, writer: Reader) -> None:
        self._writer = writer
        self.done = int(get_meta(writer.connection, _DONE) or b"0")
        self._terms = TermWriter(writer.connection)
        self._texts: dict[int, str] = {}
        self._sizes: dict[int, int] = {}

    def replace(self, place: int, old: Pattern | None, new: Pattern | None) -> None:
        """Replace the text at a place; None without a pattern."""
        for pattern, is_new in ((old, False), (new, True)):
            if pattern is not None:
                text = compared_text(pattern)
                words = number_words(text)
                kind = COMPARED + TYPES.index(pattern.type)
                self._terms.move(kind, place, () if is_new else words, words if is_new else ())
        if new is None:
            self._sizes[place] = 0
        else:
            self._texts[place], self._sizes[place] = text, len(words)

    def write(self) -> None:
        connection = self._writer.connection
        self._terms.write()
        write_cells(connection, _SIZE, np.int32, self._sizes)
        places = np.array(list(self._texts), np.int64)
        hashes = hash_texts(list(self._texts.values()))
        for chunk in np.unique(places // CHUNK).tolist():
            row = self._writer.row("SELECT data FROM min_hash WHERE chunk = ?", chunk)
            data = np.frombuffer(unpack(row[0]), "<u4") if row is not None else np.empty(0, np.uint32)
            own = places // CHUNK == chunk
            numbers = places[own] - chunk * CHUNK
            part = np.zeros((max(len(data) // BANDS, int(numbers.max()) + 1), BANDS), "<u4")
            part[: len(data) // BANDS] = data.reshape(-1, BANDS)
            part[numbers] = hashes[own]
            connection.execute("INSERT OR REPLACE INTO min_hash VALUES (?, ?)", (chunk, pack(part.tobytes())))
        set_meta(connection, _DONE, b"%d" % self.done)
