"""Posting lists of patterns, and the index of patterns that reads them; see docs/architecture.md#index.

A posting list is stored in chunks of `CHUNK` rows, so that a changed pattern rewrites a few kilobytes for each word
that it gained or lost. Patterns are numbered by their place, learnings and works by their row.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.text import from_bytes, to_bytes
from core.index.columns import CHUNK, Numbering, PatternIds, RowsById, find_place, read_cells, write_cells
from core.index.database import pack, unpack
from core.retrieval.index import FOUND_IN, TAG, TYPES, PatternIndex, Term, count_tags, pattern_terms
from core.retrieval.task import content_words

if TYPE_CHECKING:
    import sqlite3

    from core.index.records import Reader
    from core.index.snapshot import IndexedSnapshot
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta
    from core.retrieval.index import Rows

_MAX_KEPT_ROWS: Final = 500_000  # of posting lists that are kept after they were read: 2 MB
LEARNING, WORK, COMPARED = range(FOUND_IN + 1, FOUND_IN + 4)  # kinds of terms, besides those of patterns
_TYPE, _TAG_COUNT = "pattern type", "tag count"
TABLES: Final = (
    # Rows of each word, tag and so on; in each chunk ascending, as 16-bit numbers that begin with the chunk.
    "CREATE TABLE term (kind INT, term BLOB, chunk INT, rows BLOB NOT NULL, PRIMARY KEY (kind, term, chunk))"
    " WITHOUT ROWID",
    # Tags by the content words in them.
    "CREATE TABLE tag_word (word BLOB, tag BLOB, PRIMARY KEY (word, tag)) WITHOUT ROWID",
)


class TermWriter:
    """Changes of posting lists, collected and then written together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # Rows by kind and term in the order of the changes; of a removed row, its complement.
        self._changes: defaultdict[Term, array[int]] = defaultdict(lambda: array("i"))

    def move(self, row: int, before: Set[Term], after: Set[Term]) -> None:
        """Change the terms of a row from `before` to `after`."""
        for term in after - before if before else after:
            self._changes[term].append(row)
        for term in before - after:
            self._changes[term].append(~row)

    def write(self) -> None:
        find = "SELECT rows FROM term WHERE kind = ? AND term = ? AND chunk = ?"
        any_of_kind = "SELECT 1 FROM term WHERE kind = ? LIMIT 1"
        kinds = {kind for kind, _ in self._changes}
        filled = {kind for kind in kinds if self._connection.execute(any_of_kind, (kind,)).fetchone() is not None}
        written, removed = [], []
        for (kind, term), changes in self._changes.items():
            for chunk, numbers in _split_chunks(changes):
                key, start = (kind, to_bytes(term), chunk), chunk * CHUNK
                stored = self._connection.execute(find, key).fetchone() if kind in filled else None
                rows = set(np.frombuffer(unpack(stored[0]), "<u2").tolist()) if stored is not None else set()
                for number in numbers:
                    if number >= 0:
                        rows.add(number - start)
                    else:
                        rows.discard(~number - start)
                if rows:
                    written.append((*key, pack(np.array(sorted(rows), "<u2").tobytes())))
                else:
                    removed.append(key)
        self._connection.executemany("DELETE FROM term WHERE kind = ? AND term = ? AND chunk = ?", removed)
        self._connection.executemany("INSERT OR REPLACE INTO term VALUES (?, ?, ?, ?)", sorted(written))
        for tag in [term for kind, term in self._changes if kind == TAG]:
            self._note_tag(tag)
        self._changes.clear()

    def _note_tag(self, tag: str) -> None:
        """Keep the tags by word: those that some pattern has."""
        key = to_bytes(tag)
        is_used = self._connection.execute("SELECT 1 FROM term WHERE kind = ? AND term = ?", (TAG, key)).fetchone()
        pairs = [(to_bytes(word), key) for word in content_words(tag)]
        sql = (
            "INSERT OR IGNORE INTO tag_word VALUES (?, ?)"
            if is_used
            else "DELETE FROM tag_word WHERE word = ? AND tag = ?"
        )
        self._connection.executemany(sql, pairs)


def _split_chunks(changes: array[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the changes of rows in each chunk."""
    first, last = min(changes), max(changes)
    if first >= 0 and first // CHUNK == last // CHUNK:
        yield first // CHUNK, changes
        return
    numbers = np.array(changes, np.int32)
    chunks = np.maximum(numbers, ~numbers) // CHUNK
    for chunk in np.unique(chunks).tolist():
        yield chunk, numbers[chunks == chunk].tolist()


class StoredPostings:
    """Posting lists that are read when they are needed; `numbering` is that of patterns, whose rows are not places."""

    def __init__(self, reader: Reader, numbering: Numbering | None = None) -> None:
        self._reader = reader
        self._numbering = numbering
        self._kept: dict[Term, Rows | None] = {}
        self._kept_rows = 0

    def get(self, kind: int, text: str, /) -> Rows | None:
        term = kind, text
        if term in self._kept:
            return self._kept[term]
        rows = self._read(*term)
        size = 1 if rows is None else len(rows)
        if self._kept_rows + size < _MAX_KEPT_ROWS:
            self._kept[term] = rows
            self._kept_rows += size
        return rows

    def _read(self, kind: int, text: str) -> Rows | None:
        sql = "SELECT chunk, rows FROM term WHERE kind = ? AND term = ? ORDER BY chunk"
        found = self._reader.rows(sql, kind, to_bytes(text))
        return self._join(found) if found else None

    def read_all(self, kind: int) -> dict[str, Rows]:
        """Return the rows of all terms of a kind by text."""
        sql = "SELECT term, chunk, rows FROM term WHERE kind = ? ORDER BY term, chunk"
        found: defaultdict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
        for term, chunk, rows in self._reader.rows(sql, kind):
            found[term].append((chunk, rows))
        return {from_bytes(term): self._join(chunks) for term, chunks in found.items()}

    def _join(self, chunks: Iterable[tuple[int, bytes]]) -> Rows:
        parts = [np.frombuffer(unpack(rows), "<u2").astype(np.int32) + chunk * CHUNK for chunk, rows in chunks]
        rows = np.concatenate(parts)
        return rows if self._numbering is None else self._numbering.rows(rows)

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        # The size of a value is known without reading it: two bytes a row, behind the checksum.
        sql = (
            "SELECT term, sum((length(rows) - 4) / 2) FROM term"
            " WHERE kind = ? AND term IN (SELECT CAST(value AS BLOB) FROM json_each(?)) GROUP BY term"
        )
        asked = json.dumps(list(texts), ensure_ascii=False)
        return {from_bytes(term): count for term, count in self._reader.rows(sql, kind, asked)}

    def find_tags(self, word: str, /) -> Iterable[str]:
        rows = self._reader.rows("SELECT tag FROM tag_word WHERE word = ?", to_bytes(word))
        return [from_bytes(tag) for (tag,) in rows]


class StoredPatternIndex(PatternIndex):
    """Index of the patterns of one view; posting lists are read when they are needed."""

    @classmethod
    def open(cls, reader: Reader, patterns: Mapping[str, Pattern]) -> StoredPatternIndex:
        ids = PatternIds(reader)
        numbering = ids.numbering
        types, tag_counts = (
            numbering.select(read_cells(reader, name, np.int8, numbering.size)) for name in (_TYPE, _TAG_COUNT)
        )
        return cls(ids, types, tag_counts, StoredPostings(reader, numbering), patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        assert isinstance(self.ids, PatternIds)
        return RowsById(self.ids)


def fill_terms(writer: Reader, patterns: Mapping[str, Pattern]) -> None:
    """Index all patterns; takes about 25 us each. The tables must be empty."""
    changes, places = _TermChanges(writer), dict(writer.rows("SELECT id, place FROM pattern"))
    for id, pattern in patterns.items():
        changes.replace(places[id], None, pattern)
    changes.write()


def update_terms(old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta) -> None:
    """Index the changed patterns again; `old` is the view before the change, `new` that of the open transaction."""
    changes = _TermChanges(new.reader)
    for place, last, pattern in list_changes(old, new, delta):
        changes.replace(place, last, pattern)
    changes.write()


def list_changes(
    old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta
) -> Iterator[tuple[int, Pattern | None, Pattern | None]]:
    """Yield the places of changed patterns, each with the pattern before and after; see `update_terms`."""
    for id in sorted(delta.patterns):
        pattern, place, old_place = new.patterns.get(id), find_place(new.reader, id), find_place(old.reader, id)
        if old_place is not None:
            yield old_place, old.patterns.get(id), pattern if place == old_place else None
        if place is not None and place != old_place:
            yield place, None, pattern


class _TermChanges:
    """Collects changes of the terms of patterns by place."""

    def __init__(self, writer: Reader) -> None:
        self._connection = writer.connection
        self._terms = TermWriter(writer.connection)
        self._cells: dict[int, tuple[int, int]] = {}  # type and number of tags

    def replace(self, place: int, old: Pattern | None, new: Pattern | None) -> None:
        """Replace the terms at a place; None without a pattern."""
        before, after = (pattern_terms(one) if one is not None else set() for one in (old, new))
        self._terms.move(place, before, after)
        if new is not None:
            self._cells[place] = TYPES.index(new.type), count_tags(after)

    def write(self) -> None:
        self._terms.write()
        columns = np.array(list(self._cells.values()), np.int8).reshape(-1, 2).T
        for name, values in zip((_TYPE, _TAG_COUNT), columns, strict=True):
            write_cells(self._connection, name, list(self._cells), values)
