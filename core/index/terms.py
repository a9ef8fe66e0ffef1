"""Posting lists of patterns, and the index of patterns that reads them; see docs/architecture.md#index.

A posting list is stored in chunks of `CHUNK` rows, so that a changed pattern rewrites a few kilobytes for each word
that it gained or lost. Patterns are numbered by their place, learnings and works by their row.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from core.base.errors import DamagedError
from core.base.text import from_bytes, to_bytes
from core.index.database import pack, unpack
from core.index.records import FEW, ViewIds
from core.retrieval.index import FOUND_IN, TAG, TYPES, PatternIndex, Term, count_tags, pattern_terms
from core.retrieval.task import content_words

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from core.index.records import Reader
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot
    from core.retrieval.index import Rows

_MAX_KEPT_ROWS: Final = 500_000  # of posting lists that are kept after they were read: 2 MB
CHUNK: Final = 8_192  # rows of a posting list, and cells of a column, that are stored together
LEARNING, WORK, COMPARED = range(FOUND_IN + 1, FOUND_IN + 4)  # kinds of terms, besides those of patterns
_TYPE, _TAG_COUNT = "pattern type", "tag count"
TABLES: Final = (
    # Rows of each word, tag and so on; in each chunk ascending, as 16-bit numbers that begin with the chunk.
    "CREATE TABLE term (kind INT, term BLOB, chunk INT, rows BLOB NOT NULL, PRIMARY KEY (kind, term, chunk))"
    " WITHOUT ROWID",
    # Tags by the content words in them.
    "CREATE TABLE tag_word (word BLOB, tag BLOB, PRIMARY KEY (word, tag)) WITHOUT ROWID",
    # Numbers by row, as arrays.
    "CREATE TABLE cells (name TEXT, chunk INT, data BLOB NOT NULL, PRIMARY KEY (name, chunk)) WITHOUT ROWID",
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


def read_cells(reader: Reader, name: str, kind: DTypeLike, size: int, empty: int = 0) -> NDArray[Any]:
    """Return a column with a number for each of `size` rows; `empty` where none was written."""
    cells = np.full(size, empty, kind)
    for chunk, data in reader.rows("SELECT chunk, data FROM cells WHERE name = ?", name):
        part = np.frombuffer(unpack(data), kind)[: max(size - chunk * CHUNK, 0)]
        cells[chunk * CHUNK : chunk * CHUNK + len(part)] = part
    return cells


def write_cells(
    connection: sqlite3.Connection, name: str, kind: DTypeLike, values: Mapping[int, int], empty: int = 0
) -> None:
    """Write some cells of a column, by row."""
    by_chunk: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row, value in values.items():
        chunk, place = divmod(row, CHUNK)
        by_chunk[chunk][place] = value
    for chunk, cells in by_chunk.items():
        stored = connection.execute("SELECT data FROM cells WHERE name = ? AND chunk = ?", (name, chunk)).fetchone()
        data = np.frombuffer(unpack(stored[0]), kind) if stored is not None else np.empty(0, kind)
        part = np.full(max(len(data), max(cells) + 1), empty, kind)
        part[: len(data)] = data
        part[list(cells)] = list(cells.values())
        connection.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", (name, chunk, pack(part.tobytes())))


class Numbering:
    """Rows of the patterns of a view: their places, from 0 on and without holes, as in the columns of scores."""

    def __init__(self, is_used: NDArray[np.bool_]) -> None:
        """Number the places (from 1 on) for which `is_used` is set."""
        places = np.flatnonzero(is_used)
        self._is_used = is_used
        self.count = len(places)
        self.size = len(is_used)
        """Number of cells in a column by place."""
        self._places = None if not len(places) or places[-1] == len(places) else places  # None without holes

    def rows(self, places: NDArray[np.integer[Any]]) -> Rows:
        """Return the rows of the patterns at these places."""
        rows = places - 1 if self._places is None else self._places.searchsorted(places)
        return rows.astype(np.int32)

    def select(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the cells of the rows of a column by place."""
        return cells[self._is_used]

    def is_used(self, places: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return for which places there is a row."""
        found = np.zeros(len(places), np.bool_)
        is_inside = places < self.size
        found[is_inside] = self._is_used[places[is_inside]]
        return found

    def place(self, row: int) -> int:
        """Return the place of the pattern in a row."""
        return row + 1 if self._places is None else int(self._places[row])


class PatternIds(ViewIds):
    """The ID of the pattern in each row."""

    def __init__(self, reader: Reader, numbering: Numbering) -> None:
        self.reader = reader
        self.numbering = numbering
        self._uses = 0  # rows that were asked for one by one

    def __len__(self) -> int:
        return self.numbering.count

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[str, ...]: ...
    def __getitem__(self, row: int | slice) -> str | tuple[str, ...]:
        if isinstance(row, slice):
            return self._all[row]
        if not 0 <= row < self.numbering.count:
            raise IndexError(row)
        self._uses += 1
        if self._uses > FEW:
            return self._all[row]
        # SQLite takes an integer of numpy for bytes.
        found = self.reader.row("SELECT id FROM pattern WHERE place = ?", self.numbering.place(int(row)))
        if found is None:
            raise DamagedError("a pattern is missing in the index")
        return str(found[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    @cached_property
    def _all(self) -> tuple[str, ...]:
        return tuple(id for (id,) in self.reader.rows("SELECT id FROM pattern ORDER BY place"))


class RowsById(Mapping[str, int]):
    """The row of each pattern."""

    def __init__(self, ids: PatternIds) -> None:
        self.ids = ids

    def __getitem__(self, id: str) -> int:
        place = find_place(self.ids.reader, id)
        if place is None:
            raise KeyError(id)
        return int(self.ids.numbering.rows(np.array([place]))[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


def find_place(reader: Reader, pattern_id: str) -> int | None:
    """Return the place of a pattern, None for an unknown one."""
    row = reader.row("SELECT place FROM pattern WHERE id = ?", pattern_id)
    return int(row[0]) if row is not None else None


class StoredPatternIndex(PatternIndex):
    """Index of the patterns of one view; posting lists are read when they are needed."""

    @classmethod
    def open(cls, reader: Reader, patterns: Mapping[str, Pattern]) -> StoredPatternIndex:
        row = reader.row("SELECT max(place) FROM pattern")
        size = row[0] + 1 if row is not None and row[0] is not None else 0
        types = read_cells(reader, _TYPE, np.int8, size, -1)
        is_used = types >= 0
        numbering = Numbering(is_used)
        tag_counts = numbering.select(read_cells(reader, _TAG_COUNT, np.int8, size))
        ids, terms = PatternIds(reader, numbering), StoredPostings(reader, numbering)
        return cls(ids, numbering.select(types), tag_counts, terms, patterns)

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


def update_terms(before: Reader, old: Snapshot, writer: Reader, new: Snapshot, delta: Delta) -> None:
    """Index the changed patterns again; `before` and `old` are the view before the change."""
    changes = _TermChanges(writer)
    for place, last, pattern in list_changes(before, old, writer, new, delta):
        changes.replace(place, last, pattern)
    changes.write()


def list_changes(
    before: Reader, old: Snapshot, writer: Reader, new: Snapshot, delta: Delta
) -> Iterator[tuple[int, Pattern | None, Pattern | None]]:
    """Yield the places of changed patterns, each with the pattern before and after; see `update_terms`."""
    for id in sorted(delta.patterns):
        pattern, place, old_place = new.patterns.get(id), find_place(writer, id), find_place(before, id)
        if old_place is not None:
            yield old_place, old.patterns.get(id), pattern if place == old_place else None
        if place is not None and place != old_place:
            yield place, None, pattern


class _TermChanges:
    """Collects changes of the terms of patterns by place."""

    def __init__(self, writer: Reader) -> None:
        self._connection = writer.connection
        self._terms = TermWriter(writer.connection)
        self._types: dict[int, int] = {}
        self._tag_counts: dict[int, int] = {}

    def replace(self, place: int, old: Pattern | None, new: Pattern | None) -> None:
        """Replace the terms at a place; None without a pattern."""
        before, after = (pattern_terms(one) if one is not None else set() for one in (old, new))
        self._terms.move(place, before, after)
        self._types[place] = -1 if new is None else TYPES.index(new.type)
        self._tag_counts[place] = count_tags(after)

    def write(self) -> None:
        self._terms.write()
        write_cells(self._connection, _TYPE, np.int8, self._types, -1)
        write_cells(self._connection, _TAG_COUNT, np.int8, self._tag_counts)
