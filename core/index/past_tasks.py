"""Past tasks of an index in which patterns worked, and the weights that are fitted to them.

See docs/retrieval.md#past-tasks and docs/retrieval.md#learned-weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, overload

import msgspec
import numpy as np

from core.base.text import from_bytes, to_bytes
from core.index.columns import RowsById, find_place
from core.index.database import set_meta
from core.index.records import Decoder, Kind, encode
from core.records.patterns import PatternType
from core.retrieval.past_tasks import FitInputs, PastTasks, SuccessfulTask, WordWeights, find_worked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.index.records import Reader
    from core.index.snapshot import IndexedSnapshot
    from core.learning.scoreboard import Scoreboard
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot
    from core.retrieval.index import Rows

TABLES: Final = (
    # Tasks of loops in which patterns worked, with the place that sorts the loops.
    "CREATE TABLE worked (loop BLOB PRIMARY KEY, place REAL, data BLOB NOT NULL) WITHOUT ROWID",
    "CREATE INDEX worked_by_place ON worked (place DESC, loop)",
)
_PAST, _WEIGHTS = "past tasks", "learned weights"  # names of values in the table `meta`

_decode_weights: Final = msgspec.msgpack.Decoder(tuple[dict[PatternType, dict[str, float]], int]).decode
_decode_task: Final = Decoder[SuccessfulTask](SuccessfulTask)


class _Past(msgspec.Struct, frozen=True, array_like=True):
    """The chosen tasks, newest first, with what their similarity needs."""

    tasks: list[bytes]  # each as a stored `SuccessfulTask`
    words: list[str]
    word_counts: bytes  # number of rows of each word, as int32
    word_rows: bytes  # rows of the tasks with each word, one after the other, as int32
    rows: bytes  # rows of tasks, as int32, of all pairs of a task and a pattern
    places: bytes  # places of the patterns of these pairs, as int32


_NEWEST_FIRST: Final = "worked ORDER BY place DESC NULLS LAST, loop"
_decode_past: Final = msgspec.msgpack.Decoder(_Past).decode


class _Tasks(Sequence[SuccessfulTask]):
    """Tasks that are decoded when they are used."""

    def __init__(self, stored: Sequence[bytes]) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return len(self._stored)

    @overload
    def __getitem__(self, row: int) -> SuccessfulTask: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[SuccessfulTask, ...]: ...
    def __getitem__(self, row: int | slice) -> SuccessfulTask | tuple[SuccessfulTask, ...]:
        if isinstance(row, slice):
            return tuple(map(_decode_task, self._stored[row]))
        return _decode_task(self._stored[row])


class StoredPastTasks(PastTasks):
    """Past tasks of one view."""

    reader: Reader
    stored: _Past

    @classmethod
    def open(cls, reader: Reader) -> StoredPastTasks:
        data = reader.meta(_PAST)
        stored = _decode_past(data) if data is not None else _Past([], [], b"", b"", b"", b"")
        found = cls(_Tasks(stored.tasks))
        object.__setattr__(found, "reader", reader)
        object.__setattr__(found, "stored", stored)
        return found

    @cached_property
    def _rows_of(self) -> dict[str, Rows]:
        rows = np.frombuffer(self.stored.word_rows, np.int32)
        ends = np.cumsum(np.frombuffer(self.stored.word_counts, np.int32))[:-1]
        return dict(zip(self.stored.words, np.split(rows, ends), strict=True)) if len(rows) else {}

    def has_same(self, other: PastTasks) -> bool:
        """Return whether `other`, of the same index, has the same tasks."""
        return isinstance(other, StoredPastTasks) and self.stored.tasks == other.stored.tasks

    def _find_pairs(self, rows: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not isinstance(rows, RowsById) or rows.ids.reader is not self.reader:
            return super()._find_pairs(rows)
        numbers, places = (np.frombuffer(data, np.int32) for data in (self.stored.rows, self.stored.places))
        return numbers.astype(np.int64), rows.ids.numbering.rows(places).astype(np.int64)


def fill_past_tasks(writer: Reader, snapshot: Snapshot, board: Scoreboard) -> None:
    """Store the tasks of all loops in which patterns worked. The table must be empty."""
    _replace(writer, snapshot, board, snapshot.loops)
    _choose(writer)


def update_past_tasks(
    old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta, board: Scoreboard, changed_work: frozenset[str] | None
) -> None:
    """Store the tasks again of loops that changed, or whose uses of patterns may have; None if those of any may."""
    writer = new.reader
    if changed_work is None:
        writer.connection.execute("DELETE FROM worked")
        fill_past_tasks(writer, new, board)
        return
    # The places of patterns that came or went are in the pairs of a task and a pattern.
    has_other_places = any((id in old.patterns) != (id in new.patterns) for id in delta.patterns)
    if _replace(writer, new, board, changed_work | delta.loops) or has_other_places:
        _choose(writer)


def _replace(writer: Reader, snapshot: Snapshot, board: Scoreboard, loop_ids: Iterable[str]) -> bool:
    """Store the tasks of some loops; return whether something changed."""
    has_changed = False
    for id in loop_ids:
        task, key = _find_task(snapshot.loops.get(id), board), to_bytes(id)
        stored = writer.row("SELECT place, data FROM worked WHERE loop = ?", key)
        if task is None:
            if stored is not None:
                writer.connection.execute("DELETE FROM worked WHERE loop = ?", (key,))
                has_changed = True
            continue
        place = writer.row("SELECT place FROM record WHERE kind = ? AND id = ?", Kind.LOOP, id) or (None,)
        if stored is None or stored[0] != place[0] or _decode_task(stored[1]) != task:
            writer.connection.execute("INSERT OR REPLACE INTO worked VALUES (?, ?, ?)", (key, place[0], encode(task)))
            has_changed = True
    return has_changed


def _choose(writer: Reader) -> None:
    """Store the tasks that are compared, chosen from those of all loops."""
    past = PastTasks.of(
        _decode_task(data) for (data,) in writer.connection.execute(f"SELECT data FROM {_NEWEST_FIRST}")
    )
    words = past._rows_of
    pairs = [
        (row, place)
        for row, task in enumerate(past.tasks)
        for id in task.pattern_ids
        if (place := find_place(writer, id)) is not None
    ]
    of_tasks, of_patterns = np.array(pairs, np.int32).reshape(-1, 2).T
    counts = np.array([len(rows) for rows in words.values()], np.int32)
    joined = np.concatenate([np.empty(0, np.int32), *words.values()])
    arrays = (array.tobytes() for array in (counts, joined, of_tasks, of_patterns))
    stored = _Past([encode(task) for task in past.tasks], list(words), *arrays)
    set_meta(writer.connection, _PAST, msgspec.msgpack.encode(stored))


def suppose_past_tasks(
    past: PastTasks, reader: Reader, snapshot: Snapshot, board: Scoreboard, changed_work: frozenset[str] | None
) -> PastTasks:
    """Return the past tasks of a dry run.

    `past` are those that are stored, `changed_work` the loops that may differ from them; None if any may.
    """
    rows = reader.rows("SELECT loop, data FROM worked") if changed_work else []
    stored = {from_bytes(loop): _decode_task(data) for loop, data in rows}
    supposed = {
        id: _find_task(snapshot.loops.get(id), board)
        for id in (snapshot.loops if changed_work is None else changed_work)
    }
    if changed_work is not None and all(stored.get(id) == task for id, task in supposed.items()):
        return past
    tasks = {id: task for id, task in (stored | supposed).items() if task is not None}
    return PastTasks.of(tasks[id] for id in snapshot.loops if id in tasks)


def _find_task(loop: Loop | None, board: Scoreboard) -> SuccessfulTask | None:
    """Return the task of a loop in which patterns worked; None of another loop."""
    task = SuccessfulTask.of(loop, find_worked(loop.id, board)) if loop is not None else None
    return task if task is not None and task.words else None


def read_weights(reader: Reader, past: PastTasks, patterns: Mapping[str, Pattern]) -> WordWeights:
    """Return the weights that are fitted to past tasks; fits them if those stored are for other tasks or texts."""
    inputs = FitInputs.of(past, patterns)
    if inputs is None:
        return WordWeights()
    stored = reader.meta(_WEIGHTS)
    digest = inputs.digest
    if stored is not None and stored[: len(digest)] == digest:
        return WordWeights(*_decode_weights(stored[len(digest) :]))
    return inputs.fit()


def store_weights(writer: Reader, past: PastTasks, patterns: Mapping[str, Pattern]) -> bool:
    """Fit the weights if those stored are for other tasks or texts, which takes 100 ms; return whether they were."""
    inputs = FitInputs.of(past, patterns)
    stored = writer.meta(_WEIGHTS)
    if inputs is None or (stored is not None and stored[: len(inputs.digest)] == inputs.digest):
        return False
    set_meta(writer.connection, _WEIGHTS, inputs.digest + msgspec.msgpack.encode(inputs.fit()))
    return True
