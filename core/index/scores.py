"""Stored scores of all patterns, updated where evidence changed.

Read without assessing any pattern. Those of a pattern are in the cells of its place; see `core.index.columns`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import numpy as np
from msgspec import Struct

from core.index.columns import SCORE_COLUMN, PatternIds, RowsById, find_place, find_places, read_cells, write_cells
from core.index.database import get_meta, pack, set_meta, unpack
from core.index.evidence import fill_links, find_events, find_inputs, update_links, write_ignored
from core.index.records import COLLECTIONS, Reader
from core.index.snapshot import IndexedSnapshot
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import (
    build_links,
)
from core.learning.scoreboard import Scoreboard, are_sums_valid, assess_changed, find_used_scripts
from core.learning.scores import Columns, UseTimes
from core.records.snapshot import Snapshot

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from core.base.settings import Settings
    from core.records.snapshot import Delta


_TIMES_CHUNK: Final = 512
_STATE: Final = "scores"
_CLOCK_SECONDS: Final = 300.0  # difference of two clocks that is not a step back in time
_TIMES: Final = (np.int32, np.float64, np.int8, np.int64)  # types of the arrays of `UseTimes`

_times_decoder: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes, bytes])


# Reading


class _State(Struct, frozen=True, array_like=True):
    """What the stored scores are of."""

    settings: bytes
    epoch: float  # reference time of the sums
    filled: float  # time of the last summation
    scripts: frozenset[str]
    version: int  # counts changes of the columns, from a random number on


_state_decoder: Final = msgspec.msgpack.Decoder(_State)


def _read_state(reader: Reader, settings: Settings) -> _State | None:
    """Return what scores are stored; None without any under these settings."""
    stored = reader.meta(_STATE)
    state = _state_decoder.decode(stored) if stored is not None else None
    return state if state is not None and state.settings == _key(settings) else None


def has_scores(reader: Reader, settings: Settings) -> bool:
    """Return whether scores under these settings are stored."""
    return _read_state(reader, settings) is not None


def _key(settings: Settings) -> bytes:
    """Return a value that differs if settings change how patterns are scored."""
    used = (settings.learning, settings.maturity, settings.anti_pattern, settings.scan, settings.interval_level)
    return msgspec.msgpack.encode(msgspec.to_builtins(used))


def load_board(
    snapshot: IndexedSnapshot, now: datetime, settings: Settings, known: Scoreboard | None = None
) -> Scoreboard | None:
    """Return the stored scores of a view; None if there are none for these settings.

    What was read for an earlier board, `known`, is used again if it is the same.
    """
    state = _read_state(snapshot.reader, settings)
    if state is None:
        return None
    inputs = find_inputs(snapshot, settings.learning)
    reader, columns = snapshot.reader, known.columns if known is not None else None
    if known is not None and isinstance(columns, _StoredColumns) and columns.ids.move_to(reader):
        ids, rows = columns.ids, known.rows_by_id
    else:
        ids = PatternIds(reader)
        rows, columns = RowsById(ids), None
    if known is not None and isinstance(columns, _StoredColumns) and columns.version == state.version:
        columns.reader, times = reader, known.times
    else:
        columns = times = _StoredColumns.open(reader, ids, state.version)
    # Another process may have scored them just after this one read its clock.
    is_just_after = 0 < state.filled - now.timestamp() < _CLOCK_SECONDS
    now = datetime.fromtimestamp(state.filled, UTC) if is_just_after else now
    epoch, filled, scripts = state.epoch, state.filled, state.scripts
    board = Scoreboard(ids, now, settings, rows, inputs, columns, epoch, filled, times, used_scripts=scripts)
    return board.rescored(now)


def find_board(snapshot: Snapshot, now: datetime, settings: Settings, known: Scoreboard | None = None) -> Scoreboard:
    """Return the stored scores of a view, else new ones; see `load_board`."""
    if not isinstance(snapshot, IndexedSnapshot):
        return Scoreboard.build(snapshot, now, settings)
    return load_board(snapshot, now, settings, known) or Scoreboard.build(read_records(snapshot), now, settings)


def read_records(snapshot: Snapshot) -> Snapshot:
    """Return a view's records in memory: assessing a pattern looks up many of them."""
    values: dict[str, Any] = {name: dict(getattr(snapshot, name).items()) for name in COLLECTIONS}
    values |= {name: getattr(snapshot, name) for name in ("events", "curation", "foreign", "trial_key", "team")}
    return Snapshot(**values)


class _StoredColumns(Columns):
    """Columns and use times of the patterns of a view, each read when first used."""

    __slots__ = ("ids", "reader", "version")
    reader: Reader
    ids: PatternIds  # which may read from a newer view with the same patterns
    version: int

    @classmethod
    def open(cls, reader: Reader, ids: PatternIds, version: int) -> Self:
        columns = cls.__new__(cls)
        columns.reader, columns.ids, columns.version = reader, ids, version
        return columns

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in Columns.types():
            raise AttributeError(name)
        numbering = self.ids.numbering
        cells = read_cells(self.reader, f"{SCORE_COLUMN}{name}", Columns.types()[name], numbering.size)
        values = numbering.select(cells)
        setattr(self, name, values)
        return values

    def load(self) -> UseTimes:
        """Return the use times; see `StoredTimes`."""
        rows = self.reader.rows("SELECT chunk, data FROM use_time ORDER BY chunk")
        parts = [_decode_times(chunk, data) for chunk, data in rows] or [_no_times()]
        places, *others = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return UseTimes(self.ids.numbering.rows(places), *others)


# Writing


def update_scores(
    before: IndexedSnapshot, after: IndexedSnapshot, delta: Delta, now: datetime, settings: Settings
) -> frozenset[str] | None:
    """Score again what a change affects, in the open transaction.

    Returns the affected work, None if it may be any. The stored scores are of `before`; `after` is the new view.
    """
    writer = after.reader
    state = _read_state(writer, settings)
    part = None
    if state is not None and are_sums_valid(now, state.epoch, state.filled, settings):
        update_links(writer.connection, before, after, delta)
        known, inputs = (find_inputs(one, settings.learning) for one in (before, after))
        part = assess_changed(known, inputs, delta, now, settings, state.epoch, state.scripts)
    if state is None or part is None:
        fill_scores(writer, read_records(after), now, settings)
        return None
    if part.inputs.ignored != known.ignored:
        write_ignored(writer.connection, part.inputs.ignored)
    places = ((find_place(before.reader, id), find_place(writer, id)) for id in delta.patterns)
    removed = [old for old, new in places if old is not None and old != new]
    _write(writer, msgspec.structs.replace(state, scripts=part.used_scripts), part, removed)
    return part.inputs.changed_work


def fill_scores(writer: Reader, snapshot: Snapshot, now: datetime, settings: Settings) -> Scoreboard:
    """Score all patterns of a snapshot in memory anew, in the open transaction."""
    connection = writer.connection
    connection.execute("DELETE FROM use_time")
    links, events = build_links(snapshot), find_events(writer, snapshot)
    fill_links(connection, links)
    events = replace(events, doubtful=dict(events.doubtful))
    inputs = EvidenceInputs.of(snapshot, settings.learning, links, events)
    write_ignored(connection, inputs.ignored)
    seconds, scripts = now.timestamp(), find_used_scripts(snapshot)
    before = get_meta(connection, _STATE)
    version = _state_decoder.decode(before).version + 1 if before is not None else int.from_bytes(os.urandom(4))
    board = Scoreboard.assess(tuple(snapshot.patterns), inputs, scripts, now, settings).with_intervals()
    _write(writer, _State(_key(settings), seconds, seconds, scripts, version), board, ())
    return board


def _write(writer: Reader, state: _State, board: Scoreboard, removed: Sequence[int]) -> None:
    """Write the scores of a board with intervals; `removed` places have no pattern."""
    connection, places = writer.connection, find_places(writer, board.ids)
    columns = {f"{SCORE_COLUMN}{name}": getattr(board.columns, name) for name in Columns.types()}
    write_cells(connection, places, columns)
    _write_times(connection, places, board.use_times, removed)
    filled = max(state.filled, board.now.timestamp())
    version = state.version + bool(len(places) or removed)
    state = msgspec.structs.replace(state, filled=filled, version=version)
    set_meta(connection, _STATE, msgspec.msgpack.encode(state))


def _write_times(
    connection: sqlite3.Connection, places: NDArray[np.int64], times: UseTimes, removed: Sequence[int]
) -> None:
    """Replace the use times of patterns; the rows of `times` index `places`."""
    every = np.concatenate((places, np.array(removed, np.int64)))
    own, replaced = places[times.rows].astype(np.int32), every // _TIMES_CHUNK
    for chunk in np.unique(replaced).tolist():
        row = connection.execute("SELECT data FROM use_time WHERE chunk = ?", (chunk,)).fetchone()
        known = _decode_times(chunk, row[0]) if row is not None else _no_times()
        kept = ~np.isin(known[0], every[replaced == chunk])
        mine = own // _TIMES_CHUNK == chunk
        new = (own[mine], times.at[mine], times.kinds[mine], times.counts[mine])
        arrays = [np.concatenate((old[kept], one)) for old, one in zip(known, new, strict=True)]
        arrays[0] = (arrays[0] - chunk * _TIMES_CHUNK).astype(np.int32)
        data = pack(msgspec.msgpack.encode([one.tobytes() for one in arrays]))
        connection.execute("INSERT OR REPLACE INTO use_time VALUES (?, ?)", (chunk, data))


def _decode_times(chunk: int, stored: object) -> tuple[NDArray[Any], ...]:
    """Return the arrays of `UseTimes` of one chunk, with places instead of rows."""
    arrays = zip(_times_decoder.decode(unpack(stored)), _TIMES, strict=True)
    places, *others = (np.frombuffer(data, kind) for data, kind in arrays)
    return (places + np.int32(chunk * _TIMES_CHUNK)).astype(np.int32), *others


def _no_times() -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(0, kind) for kind in _TIMES)
