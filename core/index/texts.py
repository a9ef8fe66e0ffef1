"""What texts are found and compared by in one view of an index; see docs/architecture.md#index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from core.index.columns import SCORE_COLUMN
from core.index.database import list_tables, set_meta
from core.index.learnings import LearningIndex, fill_learnings, update_learnings
from core.index.past_tasks import (
    StoredPastTasks,
    fill_past_tasks,
    read_weights,
    store_weights,
    suppose_past_tasks,
    update_past_tasks,
)
from core.index.records import Kind, Reader, RecordMap, View
from core.index.snapshot import TEXTS, IndexedSnapshot
from core.index.terms import StoredPatternIndex, fill_terms, update_terms
from core.records.snapshot import Snapshot
from core.tasks.debug_index import DebugIndex, add_debug_sessions, update_debug_sessions

if TYPE_CHECKING:
    from core.index.similarity import SimilarityIndex
    from core.learning.scoreboard import Scoreboard
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta
    from core.retrieval.index import PatternIndex
    from core.retrieval.past_tasks import PastTasks, WordWeights

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
        """Return the texts of a dry run, which changes no other records than patterns; `board` has its scores."""
        return SupposedTexts(self, snapshot, delta.patterns, board, board.changed_work)

    def prepare(self) -> None:
        """Open what the first context needs."""
        _ = self.index, self.learnings, self.word_weights


class SupposedTexts(Texts):
    """Indexes of the texts of a dry run: those of a view, with what differs in memory.

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
        before, after = self._changed_work, board.changed_work
        changed_work = None if before is None or after is None else before | after
        return SupposedTexts(self._base, snapshot, self._changed | delta.patterns, board, changed_work)


def _open_memory(places: Iterable[tuple[int, str]]) -> Reader:
    """Return a reader of a database in memory with the places of patterns."""

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    for statement in list_tables():
        connection.execute(statement)
    connection.executemany("INSERT INTO pattern VALUES (?, ?)", places)
    return View(connection, {})


def _fill_memory(snapshot: Snapshot, board: Scoreboard | None) -> Reader:
    """Return a reader of a database in memory with the texts of a snapshot; `board` has its scores."""
    reader = _open_memory(enumerate(snapshot.patterns, 1))
    loops = ((Kind.LOOP, id, "", -number, 0, b"") for number, id in enumerate(snapshot.loops))
    sql = "INSERT INTO record (kind, id, key, place, is_open, data) VALUES (?, ?, ?, ?, ?, ?)"
    reader.connection.executemany(sql, loops if board is not None else ())
    fill_texts(reader, snapshot, board)
    return reader


def forget_texts(connection: sqlite3.Connection) -> None:
    """Delete the indexes of all texts, in the open transaction; `fill_texts` makes them again."""
    from core.index.similarity import DONE

    for table in _FILLED_TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM cells WHERE name NOT LIKE ?", (f"{SCORE_COLUMN}%",))
    connection.execute("DELETE FROM meta WHERE name IN (?, ?)", (TEXTS, DONE))


def load_texts(snapshot: IndexedSnapshot) -> Texts | None:
    """Return the indexes of the texts of a view; None if they are not stored yet."""
    return Texts(snapshot, snapshot.reader) if snapshot.reader.meta(TEXTS) is not None else None


def find_texts(snapshot: Snapshot, board: Scoreboard) -> Texts:
    """Return the indexes of the texts of a snapshot: the stored ones of a view of the index, else new ones."""
    stored = load_texts(snapshot) if isinstance(snapshot, IndexedSnapshot) else None
    return stored or Texts(snapshot, board=board)


def fill_texts(writer: Reader, snapshot: Snapshot, board: Scoreboard | None) -> None:
    """Index all texts of a snapshot in memory, in the open transaction; none may be stored.

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
    """Index what changed, in the open transaction of the reader of `after`; nothing if no texts are stored.

    `before` is the view that the stored texts are of. `board` has the scores of `after`. `changed_work` are the loops
    whose uses of patterns may have changed, None if any may.
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
    """Do a step of what no change waits for, in the open transaction, about 20 ms; return whether nothing is left.

    `patterns` are by default those of the index. Fitting the weights is one step of about 100 ms.

    These are the weights that are fitted to past tasks, and the texts by which similar patterns are found.
    """
    from core.index.similarity import extend_similarity

    if writer.meta(TEXTS) is None:
        return True
    if patterns is None:
        patterns = RecordMap(writer, Kind.PATTERN)
    if store_weights(writer, StoredPastTasks.open(writer), patterns):
        return False
    return extend_similarity(writer, patterns, _SETTLED_AT_ONCE)
