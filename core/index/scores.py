"""The scores of all patterns, stored by column: read without assessing any pattern, and updated where evidence changed.

The row of a pattern is its place in the index, from 0 on. The row of a removed pattern is a hole, which has no ID.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from core.base.errors import DamagedError
from core.index.database import get_meta, pack, set_meta, unpack
from core.index.events import read_doubtful
from core.index.evidence import fill_links, open_event_index, open_inputs, update_links, write_ignored
from core.index.records import COLLECTIONS, Reader, ViewIds
from core.index.snapshot import IndexedSnapshot
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import build_links
from core.learning.scoreboard import Scoreboard, are_sums_valid, assess_changed, find_used_scripts
from core.learning.scores import Columns, UseTimes
from core.records.snapshot import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.base.settings import Settings
    from core.records.snapshot import Delta

TABLES: Final = (
    # Columns of the scores, 8,192 rows in each chunk; `ids` are those of the patterns, "" for a hole.
    "CREATE TABLE score (name TEXT, chunk INT, data BLOB NOT NULL, PRIMARY KEY (name, chunk))",
    # When patterns were used, 512 rows in each chunk.
    "CREATE TABLE use_time (chunk INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)
CHUNK: Final = 8192
_TIMES_CHUNK: Final = 512
_IDS: Final = "ids"
_STATE: Final = "scores"
_CLOCK_SECONDS: Final = 300.0  # difference of two clocks that is not a step back in time
_PLACE: Final = "SELECT place FROM pattern WHERE id = ?"
_FEW: Final = 200  # look-ups of IDs before all IDs are read

_ids_decoder: Final = msgspec.msgpack.Decoder(list[str])
_times_decoder: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes, bytes])
_TIMES: Final = (np.int32, np.float64, np.int8, np.int64)


class _State(Struct, frozen=True, array_like=True):
    """What the stored scores are of."""

    settings: bytes
    epoch: float  # reference time of the sums
    filled: float  # time of the last summation
    rows: int
    has_holes: bool
    scripts: frozenset[str]
    version: int  # counts changes of the columns, from a random number on


_state_decoder: Final = msgspec.msgpack.Decoder(_State)


def _read_state(connection: sqlite3.Connection, settings: Settings) -> _State | None:
    """Return what scores are stored; None without any under these settings."""
    stored = get_meta(connection, _STATE)
    state = _state_decoder.decode(stored) if stored is not None else None
    return state if state is not None and state.settings == _key(settings) else None


def has_scores(connection: sqlite3.Connection, settings: Settings) -> bool:
    """Return whether scores under these settings are stored."""
    return _read_state(connection, settings) is not None


def _key(settings: Settings) -> bytes:
    """Return a value that differs for settings with which patterns are scored otherwise."""
    used = (settings.learning, settings.maturity, settings.anti_pattern, settings.scan, settings.interval_level)
    return msgspec.msgpack.encode(msgspec.to_builtins(used))


# Reading


def load_board(
    reader: Reader, snapshot: Snapshot, now: datetime, settings: Settings, known: Scoreboard | None = None
) -> Scoreboard | None:
    """Return the stored scores of a view of the index at a time; None if there are none under these settings.

    What was read for an earlier board, `known`, is used again if it is the same.
    """
    with reader.lock:
        state = _read_state(reader.connection, settings)
    if state is None:
        return None
    inputs = open_inputs(reader, snapshot, settings.learning)
    columns = known.columns if known is not None else None
    if isinstance(columns, _StoredColumns) and known is not None and columns.stored.is_same(reader, state):
        columns.stored.reader = reader
        ids, rows, times = known.ids, known.rows_by_id, known.times
    else:
        stored = _StoredScores(reader, state)
        columns, ids, rows, times = _StoredColumns.of(stored), _Ids(stored), _Rows(stored), stored
    # Another process may have scored them just after this one read its clock.
    is_just_after = 0 < state.filled - now.timestamp() < _CLOCK_SECONDS
    now = datetime.fromtimestamp(state.filled, UTC) if is_just_after else now
    epoch, filled, scripts = state.epoch, state.filled, state.scripts
    board = Scoreboard(ids, now, settings, rows, inputs, columns, epoch, filled, times, used_scripts=scripts)
    return board.rescored(now)


def find_board(snapshot: Snapshot, now: datetime, settings: Settings, known: Scoreboard | None = None) -> Scoreboard:
    """Return the scores of a snapshot: the stored ones of a view of the index, else new ones; see `load_board`."""
    if not isinstance(snapshot, IndexedSnapshot):
        return Scoreboard.build(snapshot, now, settings)
    stored = load_board(snapshot.reader, snapshot, now, settings, known)
    return stored or Scoreboard.build(read_records(snapshot), now, settings)


def read_records(snapshot: Snapshot) -> Snapshot:
    """Return the records of a view in memory: assessing a pattern looks up records many times."""
    values: dict[str, Any] = {name: dict(getattr(snapshot, name).items()) for name in COLLECTIONS}
    values |= {name: getattr(snapshot, name) for name in ("events", "curation", "foreign", "trial_key", "team")}
    return Snapshot(**values)


class _StoredScores:
    """Reads the columns of one view of the index, without holes."""

    def __init__(self, reader: Reader, state: _State) -> None:
        self.reader = reader
        self.state = state

    def is_same(self, reader: Reader, state: _State) -> bool:
        """Return whether another view has the same scores."""
        return state.version == self.state.version

    @cached_property
    def all_ids(self) -> list[str]:
        """IDs by row, "" for holes."""
        return [id for data in self._chunks(_IDS) for id in _ids_decoder.decode(data)]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(filter(None, self.all_ids)) if self.state.has_holes else tuple(self.all_ids)

    @cached_property
    def rows(self) -> NDArray[np.int64] | None:
        """Rows that are not holes; None if none is one."""
        if not self.state.has_holes:
            return None
        return np.flatnonzero(np.fromiter(map(bool, self.all_ids), np.bool_, len(self.all_ids)))

    @cached_property
    def places(self) -> dict[str, int]:
        """Positions of IDs among those that are not holes."""
        return {id: place for place, id in enumerate(self.ids)}

    @property
    def count(self) -> int:
        return self.state.rows if self.rows is None else len(self.rows)

    def place_of(self, id: str) -> int | None:
        """Return the position of an ID, with one query."""
        row = self.reader.row(_PLACE, id)
        if row is None:
            return None
        return int(row[0]) - 1 if self.rows is None else int(np.searchsorted(self.rows, int(row[0]) - 1))

    def column(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = np.frombuffer(b"".join(self._chunks(name)), Columns.types()[name])
        if len(values) != self.state.rows:
            raise DamagedError("scores are missing")
        return values if self.rows is None else values[self.rows]

    def _chunks(self, name: str) -> Iterator[memoryview]:
        rows = self.reader.rows("SELECT data FROM score WHERE name = ? ORDER BY chunk", name)
        return (unpack(data) for (data,) in rows)

    def load(self) -> UseTimes:
        """Return the use times; see `StoredTimes`."""
        rows = self.reader.rows("SELECT chunk, data FROM use_time ORDER BY chunk")
        parts = [_decode_times(chunk, data) for chunk, data in rows] or [_no_times()]
        times = UseTimes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        if self.rows is None:
            return times
        return replace(times, rows=np.searchsorted(self.rows, times.rows).astype(np.int32))


class _StoredColumns(Columns):
    """Columns that are read when they are first used."""

    __slots__ = ("stored",)
    stored: _StoredScores

    @classmethod
    def of(cls, stored: _StoredScores) -> _StoredColumns:
        columns = cls.__new__(cls)
        columns.stored = stored
        return columns

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in Columns.types():
            raise AttributeError(name)
        values = self.stored.column(name)
        setattr(self, name, values)
        return values


class _Ids(ViewIds):
    """IDs in the order of the rows."""

    def __init__(self, stored: _StoredScores) -> None:
        self.reader = stored.reader
        self._stored = stored

    def __len__(self) -> int:
        return self._stored.count

    def __getitem__(self, place: Any) -> Any:
        return self._stored.ids[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored.ids)


class _Rows(Mapping[str, int]):
    """Rows by ID: the first ones are found one by one, then all are read."""

    def __init__(self, stored: _StoredScores) -> None:
        self._stored = stored
        self._found: dict[str, int | None] = {}

    def __getitem__(self, id: str) -> int:
        if len(self._found) >= _FEW:
            return self._stored.places[id]
        if id not in self._found:
            self._found[id] = self._stored.place_of(id)
        place = self._found[id]
        if place is None:
            raise KeyError(id)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored.ids)

    def __len__(self) -> int:
        return self._stored.count


# Writing


def update_scores(
    connection: sqlite3.Connection,
    before: tuple[Reader, Snapshot],
    after: tuple[Reader, Snapshot],
    delta: Delta,
    now: datetime,
    settings: Settings,
) -> frozenset[str] | None:
    """Score again what a change affects, in the open transaction; returns the affected work, None if it may be any.

    `before` is the view that the stored scores are of, `after` that of the open transaction.
    """
    state = _read_state(connection, settings)
    if state is None or not are_sums_valid(now, state.epoch, state.filled, settings):
        fill_scores(after[0], read_records(after[1]), now, settings)
        return None
    update_links(connection, before[1], after[1], delta)
    known = open_inputs(*before, settings.learning)
    inputs = open_inputs(*after, settings.learning)
    part = assess_changed(known, inputs, delta, now, settings, state.epoch, state.scripts)
    if part is None:
        fill_scores(after[0], read_records(after[1]), now, settings)
        return None
    if part.inputs.ignored != known.ignored:
        write_ignored(connection, part.inputs.ignored)
    places = ((before[0].row(_PLACE, id), after[0].row(_PLACE, id)) for id in delta.patterns)
    removed = [old[0] - 1 for old, new in places if old is not None and old != new]
    _Writer(connection, msgspec.structs.replace(state, scripts=part.used_scripts)).write(part, removed)
    return part.changed_work


def fill_scores(writer: Reader, snapshot: Snapshot, now: datetime, settings: Settings) -> Scoreboard:
    """Score all patterns of a snapshot in memory anew, in the open transaction; returns the scores."""
    connection = writer.connection
    for table in ("score", "use_time"):
        connection.execute(f"DELETE FROM {table}")
    links = build_links(snapshot)
    fill_links(connection, links)
    events = replace(open_event_index(writer, snapshot), doubtful=read_doubtful(writer))
    inputs = EvidenceInputs.of(snapshot, settings.learning, links, events)
    write_ignored(connection, inputs.ignored)
    seconds, scripts = now.timestamp(), find_used_scripts(snapshot)
    before = get_meta(connection, _STATE)
    version = _state_decoder.decode(before).version + 1 if before is not None else int.from_bytes(os.urandom(4))
    state = _State(_key(settings), seconds, seconds, 0, has_holes=False, scripts=scripts, version=version)
    board = Scoreboard.assess(tuple(snapshot.patterns), inputs, scripts, now, settings).with_intervals()
    _Writer(connection, state).write(board, ())
    return board


class _Writer:
    """Writes scores of some patterns into the columns."""

    def __init__(self, connection: sqlite3.Connection, state: _State) -> None:
        self._connection = connection
        self._state = state

    def write(self, board: Scoreboard, removed: Sequence[int]) -> None:
        """Write the rows of the patterns of a board with intervals; `removed` are rows that become holes."""
        ids = board.ids
        rows = self._rows_of(ids)
        every = np.concatenate((rows, np.array(removed, np.int64)))
        if len(every):
            count = max(self._state.rows, int(every.max()) + 1)
            chunks = self._touched(every, count)
            empty = Columns.empty(CHUNK)
            for name in Columns.types():
                blank: NDArray[Any] = getattr(empty, name)
                values = np.concatenate((getattr(board.columns, name), np.repeat(blank[:1], len(removed))))
                self._write_column(name, chunks, count, every, values, blank)
            self._write_times(every, rows, board.use_times)
            self._write_ids(chunks, count, every, [*ids, *[""] * len(removed)])
        filled, version = max(self._state.filled, board.now.timestamp()), self._state.version + bool(len(every))
        state = msgspec.structs.replace(self._state, filled=filled, version=version)
        set_meta(self._connection, _STATE, msgspec.msgpack.encode(state))

    def _rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        sql = "SELECT id, place FROM pattern" if len(ids) > _FEW else "SELECT id, place FROM pattern WHERE id = ?"
        found: dict[str, int] = {}
        for one in ((),) if len(ids) > _FEW else ((id,) for id in ids):
            found.update(self._connection.execute(sql, one).fetchall())
        return np.array([found[id] - 1 for id in ids], np.int64)

    def _write_ids(self, chunks: Sequence[int], count: int, rows: NDArray[np.int64], ids: Sequence[str]) -> None:
        has_holes = self._state.has_holes
        if count > self._state.rows or not all(ids):
            for chunk in chunks:
                stored = self._chunk(_IDS, chunk)
                values = _ids_decoder.decode(stored) if stored is not None else []
                values += [""] * (min(count - chunk * CHUNK, CHUNK) - len(values))
                for row, id in zip(rows.tolist(), ids, strict=True):
                    if row // CHUNK == chunk:
                        values[row % CHUNK] = id
                has_holes = has_holes or not all(values)
                self._store(_IDS, chunk, msgspec.msgpack.encode(values))
        self._state = msgspec.structs.replace(self._state, rows=count, has_holes=has_holes)

    def _touched(self, rows: NDArray[np.int64], count: int) -> list[int]:
        """Return the chunks with some rows, and with those that are new if there are `count` rows."""
        new = range(self._state.rows // CHUNK, (count - 1) // CHUNK + 1) if count > self._state.rows else ()
        return sorted({*(rows // CHUNK).tolist(), *new})

    def _write_column(
        self,
        name: str,
        chunks: Sequence[int],
        count: int,
        rows: NDArray[np.int64],
        values: NDArray[Any],
        blank: NDArray[Any],
    ) -> None:
        """Write the values of rows; other rows that no chunk has yet are like those of `blank`."""
        for chunk in chunks:
            stored = self._chunk(name, chunk)
            before: NDArray[Any] = np.frombuffer(stored or b"", blank.dtype)
            mine = rows // CHUNK == chunk
            missing = min(count - chunk * CHUNK, CHUNK) - len(before)
            after = np.concatenate((before, blank[:missing]))
            after[rows[mine] % CHUNK] = values[mine]
            if after.tobytes() != stored:
                self._store(name, chunk, after.tobytes())

    def _write_times(self, every: NDArray[np.int64], rows: NDArray[np.int64], times: UseTimes) -> None:
        """Replace the use times of rows; those of `times` are positions in `rows`."""
        moved = replace(times, rows=rows[times.rows].astype(np.int32))
        chunks, replaced = moved.rows // _TIMES_CHUNK, every // _TIMES_CHUNK
        for chunk in np.unique(replaced).tolist():
            row = self._connection.execute("SELECT data FROM use_time WHERE chunk = ?", (chunk,)).fetchone()
            known = _decode_times(chunk, row[0]) if row is not None else _no_times()
            kept = ~np.isin(known[0], every[replaced == chunk])
            mine = chunks == chunk
            new = (moved.rows[mine], moved.at[mine], moved.kinds[mine], moved.counts[mine])
            arrays = [np.concatenate((old[kept], one)) for old, one in zip(known, new, strict=True)]
            arrays[0] = (arrays[0] - chunk * _TIMES_CHUNK).astype(np.int32)
            data = pack(msgspec.msgpack.encode([one.tobytes() for one in arrays]))
            self._connection.execute("INSERT OR REPLACE INTO use_time VALUES (?, ?)", (chunk, data))

    def _chunk(self, name: str, chunk: int) -> bytes | None:
        sql = "SELECT data FROM score WHERE name = ? AND chunk = ?"
        row = self._connection.execute(sql, (name, chunk)).fetchone()
        return bytes(unpack(row[0])) if row is not None else None

    def _store(self, name: str, chunk: int, data: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO score VALUES (?, ?, ?)", (name, chunk, pack(data)))


def _decode_times(chunk: int, stored: object) -> tuple[NDArray[Any], ...]:
    """Return the arrays of `UseTimes` of one chunk."""
    found = _times_decoder.decode(unpack(stored))
    rows, *others = (np.frombuffer(data, kind) for data, kind in zip(found, _TIMES, strict=True))
    return (rows + np.int32(chunk * _TIMES_CHUNK)).astype(np.int32), *others


def _no_times() -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(0, kind) for kind in _TIMES)
