"""Numbers of records by row, stored as arrays; see docs/architecture.md#index.

Cells of a column are stored in chunks of `CHUNK` rows. Columns of patterns are by place, which is never given twice; a
view numbers the places that have a pattern from 0 on, without holes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from core.base.errors import DamagedError
from core.index.database import pack, unpack
from core.index.records import FEW

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import DTypeLike, NDArray

    from core.index.records import Reader

CHUNK: Final = 8_192  # rows of a posting list, and cells of a column, that are stored together
SCORE_COLUMN: Final = "score:"  # prefix of the names of the columns of scores
Places = Sequence[int] | np.ndarray[Any, np.dtype[np.integer[Any]]]


def read_cells(reader: Reader, name: str, kind: DTypeLike, size: int, width: int = 0) -> NDArray[Any]:
    """Return a column of `size` rows, of `width` numbers each if it is given.

    Cells that were never written are 0. Raises DamagedError if the last rows are missing.
    """
    cells = np.zeros((size, width) if width else size, kind)
    end = 0
    for chunk, data in reader.rows("SELECT chunk, data FROM cells WHERE name = ? ORDER BY chunk", name):
        start = chunk * CHUNK
        part = np.frombuffer(unpack(data), kind).reshape(-1, *cells.shape[1:])[: max(size - start, 0)]
        end = start + len(part)
        cells[start:end] = part
    if end < size:
        raise DamagedError("numbers of records are missing in the index")
    return cells


def write_cells(connection: sqlite3.Connection, rows: Places, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write cells of columns by name; the first axis of their values is `rows`."""
    rows = np.asarray(rows, np.int64)
    chunks = rows // CHUNK
    for chunk in np.unique(chunks).tolist():
        own = chunks == chunk
        places = rows[own] - chunk * CHUNK
        size = int(places.max()) + 1
        for name, values in columns.items():
            sql = "SELECT data FROM cells WHERE name = ? AND chunk = ?"
            stored = connection.execute(sql, (name, chunk)).fetchone()
            data = bytes(unpack(stored[0])) if stored is not None else b""
            before = np.frombuffer(data, values.dtype).reshape(-1, *values.shape[1:])
            cells = np.zeros((max(len(before), size), *values.shape[1:]), values.dtype)
            cells[: len(before)] = before
            cells[places] = values[own]
            if (after := cells.tobytes()) != data:
                connection.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", (name, chunk, pack(after)))


def find_place(reader: Reader, pattern_id: str) -> int | None:
    """Return the place of a pattern, None for an unknown one."""
    row = reader.row("SELECT place FROM pattern WHERE id = ?", pattern_id)
    return int(row[0]) if row is not None else None


def find_places(reader: Reader, pattern_ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the places of known patterns."""
    if len(pattern_ids) <= FEW:
        return np.array([find_place(reader, id) for id in pattern_ids], np.int64)
    places = dict(reader.rows("SELECT id, place FROM pattern"))
    return np.array([places[id] for id in pattern_ids], np.int64)


class Numbering:
    """Rows of the patterns of a view: the order of their places, from 0 on."""

    def __init__(self, reader: Reader) -> None:
        count, last = reader.row("SELECT count(*), coalesce(max(place), 0) FROM pattern") or (0, 0)
        self.count = int(count)
        self._key = count, last
        self.size = last + 1 if last else 0
        """Number of cells in a column by place."""
        self._places: NDArray[np.int64] | None = None  # by row; None without holes
        if self.count != last:
            places = reader.rows("SELECT place FROM pattern ORDER BY place")
            self._places = np.array([place for (place,) in places], np.int64)

    def is_same(self, other: Numbering) -> bool:
        """Return whether another view of the same index has the same patterns."""
        return self._key == other._key

    def rows(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return the rows of the patterns at these places."""
        rows = places - 1 if self._places is None else self._places.searchsorted(places)
        return rows.astype(np.int32)

    def select(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the cells of the rows of a column by place."""
        return cells[1:] if self._places is None else cells[self._places]

    def place(self, row: int) -> int:
        """Return the place of the pattern in a row."""
        return row + 1 if self._places is None else int(self._places[row])


class PatternIds(Sequence[str]):
    """The pattern ID in each row of a view; all sequences of one view are equal."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.numbering = Numbering(reader)
        self._uses = 0  # rows that were asked for one by one

    def move_to(self, reader: Reader) -> bool:
        """Read from a newer view if it has the same patterns; return whether it has."""
        if not reader.shares_records(self.reader) or not self.numbering.is_same(Numbering(reader)):
            return False
        self.reader = reader
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PatternIds) and other.reader is self.reader:
            return True
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self.numbering.count

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[str, ...]: ...
    def __getitem__(self, row: int | slice) -> str | tuple[str, ...]:
        if isinstance(row, slice):
            return self._all[row]
        self._uses += 1
        if self._uses > FEW:
            return self._all[row]
        row = range(len(self))[row]
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
    """Row of each pattern: the first ones are found one by one, then all are read."""

    def __init__(self, ids: PatternIds) -> None:
        self.ids = ids
        self._found: dict[str, int | None] = {}

    def __getitem__(self, id: str) -> int:
        if len(self._found) >= FEW:
            return self._all[id]
        if id not in self._found:
            place = find_place(self.ids.reader, id)
            self._found[id] = None if place is None else int(self.ids.numbering.rows(np.array([place]))[0])
        row = self._found[id]
        if row is None:
            raise KeyError(id)
        return row

    @cached_property
    def _all(self) -> dict[str, int]:
        return {id: row for row, id in enumerate(self.ids)}

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)
