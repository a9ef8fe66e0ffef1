"""Indexes of the texts of one view; see docs/architecture.md#index.

The past tasks among them are those in which patterns worked, with the weights that are fitted to them; see
docs/retrieval.md#past-tasks and docs/retrieval.md#learned-weights.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, overload

import msgspec
import numpy as np

from core.base.text import from_bytes, to_bytes
from core.index.columns import SCORE_COLUMN, RowsById, find_place
from core.index.database import list_tables, set_meta
from core.index.records import TEXTS, Decoder, Kind, Reader, RecordMap, View, encode
from core.index.snapshot import IndexedSnapshot
from core.index.terms import (
    LearningIndex,
    StoredPatternIndex,
    fill_learnings,
    fill_terms,
    update_learnings,
    update_terms,
)
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot
from core.retrieval.past_tasks import FitInputs, PastTasks, SuccessfulTask, WordWeights, find_worked
from core.tasks.debug_index import DebugIndex, add_debug_sessions, update_debug_sessions

if TYPE_CHECKING:
    from numpy.typing import (
        NDArray,
    )

    from core.index.similarity import (
        SimilarityIndex,
    )
    from core.learning.scoreboard import (
        Scoreboard,
    )
    from core.records.loops import (
        Loop,
    )
    from core.records.patterns import (
        Pattern,
    )
    from core.records.snapshot import (
        Delta,
    )
    from core.retrieval.relevance import (
        PatternIndex,
        Rows,
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
    """Store the tasks of all loops in which patterns worked, in an empty table."""
    _replace(writer, snapshot, board, snapshot.loops)
    _choose(writer)


def update_past_tasks(
    old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta, board: Scoreboard, changed_work: frozenset[str] | None
) -> None:
    """Update the stored tasks after a change of records.

    `changed_work` are the loops whose uses of patterns may have changed besides those of `delta`; None for any loop.
    """
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
    """Return weights for past tasks; fits them if those stored are for other inputs."""
    inputs = FitInputs.of(past, patterns)
    if inputs is None:
        return WordWeights()
    stored = reader.meta(_WEIGHTS)
    digest = inputs.digest
    if stored is not None and stored[: len(digest)] == digest:
        return WordWeights(*_decode_weights(stored[len(digest) :]))
    return inputs.fit()


def store_weights(writer: Reader, past: PastTasks, patterns: Mapping[str, Pattern]) -> bool:
    """Fit weights, in 100 ms, if those stored are for other inputs; return whether."""
    inputs = FitInputs.of(past, patterns)
    stored = writer.meta(_WEIGHTS)
    if inputs is None or (stored is not None and stored[: len(inputs.digest)] == inputs.digest):
        return False
    set_meta(writer.connection, _WEIGHTS, inputs.digest + msgspec.msgpack.encode(inputs.fit()))
    return True


_COMPARED_AT_ONCE: Final = 16_384  # patterns whose compared texts are indexed at once in memory
_SETTLED_AT_ONCE: Final = 400  # patterns whose texts are indexed in one step
_FILLED_TABLES: Final = (
    *("term", "tag_word", "learning", "learning_need", "work", "worked", "debug_value", "debug_fix"),
)


class Texts:
    """Indexes of the texts of one view, each opened when it is first used.

    They are those stored in the index of the view or, without `reader`, those of a database in memory, which is filled
    when the first one is used: 3 s for 100,000 patterns. Without `board`, it has no past tasks.
    """

    def __init__(self, snapshot: Snapshot, reader: Reader | None = None, board: Scoreboard | None = None) -> None:
        self.snapshot = snapshot
        self.is_stored = reader is not None
        self._stored_reader = reader
        self._board = board

    @cached_property
    def reader(self) -> Reader:
        return self._stored_reader or _fill_memory(self.snapshot, self._board)

    @cached_property
    def index(self) -> PatternIndex:
        return StoredPatternIndex.open(self.reader, self.snapshot.patterns)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        # Contexts do not need the modules of similarity, and hooks wait for their import.
        from core.index.similarity import SimilarityIndex, extend_similarity, has_similarity

        reader, patterns = self.reader, self.snapshot.patterns
        if not has_similarity(reader):
            if self.is_stored:  # until the texts are indexed, see `settle_texts`
                reader = _open_memory(self.reader.rows("SELECT place, id FROM pattern"))
            with reader.lock:
                while not extend_similarity(reader, patterns, _COMPARED_AT_ONCE):
                    pass
        return SimilarityIndex.open(StoredPatternIndex.open(self.reader, patterns), reader, patterns)

    @cached_property
    def debug(self) -> DebugIndex:
        return DebugIndex(self.reader, self.snapshot.debug_sessions)

    @cached_property
    def learnings(self) -> LearningIndex:
        return LearningIndex(self.reader, self.snapshot)

    @cached_property
    def past_tasks(self) -> PastTasks:
        return StoredPastTasks.open(self.reader)

    @cached_property
    def word_weights(self) -> WordWeights:
        return read_weights(self.reader, self.past_tasks, self.snapshot.patterns)

    def suppose(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> SupposedTexts:
        """Return the texts of a dry run that changes patterns alone, scored in `board`."""
        return SupposedTexts(self, snapshot, delta.patterns, board, board.inputs.changed_work)

    def prepare(self) -> None:
        """Open what the first context needs."""
        _ = self.index, self.learnings, self.word_weights


class SupposedTexts(Texts):
    """Indexes of the texts of a dry run: those of a view, with changes in memory.

    `changed` are the IDs of all patterns that differ from the view, and `changed_work` the loops whose uses of patterns
    may differ; None if those of any may.
    """

    def __init__(
        self,
        base: Texts,
        snapshot: Snapshot,
        changed: frozenset[str],
        board: Scoreboard,
        changed_work: frozenset[str] | None,
    ) -> None:
        super().__init__(snapshot, base.reader, board)
        self._base = base
        self._changed = changed
        self._changed_work = changed_work

    @cached_property
    def index(self) -> PatternIndex:
        return self._base.index.updated(self.snapshot.patterns, self._changed)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        return Texts(Snapshot(patterns=self.snapshot.patterns)).similarity if self._changed else self._base.similarity

    @cached_property
    def learnings(self) -> LearningIndex:
        return self._base.learnings

    @cached_property
    def past_tasks(self) -> PastTasks:
        assert self._board is not None
        return suppose_past_tasks(self._base.past_tasks, self.reader, self.snapshot, self._board, self._changed_work)

    def suppose(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> SupposedTexts:
        before, after = self._changed_work, board.inputs.changed_work
        changed_work = None if before is None or after is None else before | after
        return SupposedTexts(self._base, snapshot, self._changed | delta.patterns, board, changed_work)


def _open_memory(places: Iterable[tuple[int, str]]) -> Reader:
    """Return an in-memory reader; `places` are row number and ID of each pattern."""

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    for statement in list_tables():
        connection.execute(statement)
    connection.executemany("INSERT INTO pattern VALUES (?, ?)", places)
    return View(connection, {})


def _fill_memory(snapshot: Snapshot, board: Scoreboard | None) -> Reader:
    """Return an in-memory reader of the texts of a snapshot, scored in `board`."""
    reader = _open_memory(enumerate(snapshot.patterns, 1))
    loops = ((Kind.LOOP, id, "", -number, 0, b"") for number, id in enumerate(snapshot.loops))
    sql = "INSERT INTO record (kind, id, key, place, is_open, data) VALUES (?, ?, ?, ?, ?, ?)"
    reader.connection.executemany(sql, loops if board is not None else ())
    fill_texts(reader, snapshot, board)
    return reader


def forget_texts(connection: sqlite3.Connection) -> None:
    """Delete all text indexes in the open transaction; `fill_texts` makes them again."""
    from core.index.similarity import DONE

    for table in _FILLED_TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM cells WHERE name NOT LIKE ?", (f"{SCORE_COLUMN}%",))
    connection.execute("DELETE FROM meta WHERE name IN (?, ?)", (TEXTS, DONE))


def load_texts(snapshot: IndexedSnapshot) -> Texts | None:
    """Return the indexes of the texts of a view; None if they are not stored yet."""
    return Texts(snapshot, snapshot.reader) if snapshot.reader.meta(TEXTS) is not None else None


def find_texts(snapshot: Snapshot, board: Scoreboard) -> Texts:
    """Return the text indexes of a snapshot: stored ones of a view, else new ones."""
    stored = load_texts(snapshot) if isinstance(snapshot, IndexedSnapshot) else None
    return stored or Texts(snapshot, board=board)


def fill_texts(writer: Reader, snapshot: Snapshot, board: Scoreboard | None) -> None:
    """Index all texts of a snapshot, in the open transaction; none may be stored.

    Takes 3 s for 100,000 patterns and 3,000 loops. `board` has its scores; without it there are no past tasks.
    """
    fill_terms(writer, snapshot.patterns)
    fill_learnings(writer, snapshot)
    if board is not None:
        fill_past_tasks(writer, snapshot, board)
    add_debug_sessions(writer.connection, snapshot.debug_sessions.values())
    set_meta(writer.connection, TEXTS, b"1")


def update_texts(
    before: IndexedSnapshot,
    after: IndexedSnapshot,
    delta: Delta,
    board: Scoreboard,
    changed_work: frozenset[str] | None,
) -> None:
    """Index what changed; does nothing if no texts are stored.

    Writes in the open transaction of `after`. `before` is the view that the stored texts are of. `board` has the scores
    of `after`. `changed_work` are the loops whose uses of patterns may have changed, None if any may.
    """
    from core.index.similarity import update_similarity

    if after.reader.meta(TEXTS) is None:
        return
    update_terms(before, after, delta)
    update_learnings(before, after, delta)
    update_past_tasks(before, after, delta, board, changed_work)
    update_debug_sessions(after.reader.connection, after.debug_sessions, delta.debug_sessions)
    update_similarity(before, after, delta)


def settle_texts(writer: Reader, patterns: Mapping[str, Pattern] | None = None) -> bool:
    """Do one step of deferred indexing in the open transaction; True if none is left.

    Deferred are the weights fitted to past tasks (one step of about 100 ms), and the texts by which similar patterns
    are found (steps of about 20 ms). `patterns` are by default those of the index.
    """
    from core.index.similarity import extend_similarity

    if writer.meta(TEXTS) is None:
        return True
    if patterns is None:
        patterns = RecordMap(writer, Kind.PATTERN)
    if store_weights(writer, StoredPastTasks.open(writer), patterns):
        return False
    return extend_similarity(writer, patterns, _SETTLED_AT_ONCE)
