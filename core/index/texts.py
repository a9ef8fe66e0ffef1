"""What texts are found and compared by in one view of an index; see docs/architecture.md#index."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from core.debug_memory.index import DebugIndex
from core.index.database import get_meta, set_meta
from core.index.debug_sessions import StoredDebugIndex, fill_debug_sessions, update_debug_sessions
from core.index.learnings import StoredLearnings, fill_learnings, update_learnings
from core.index.past_tasks import (
    StoredPastTasks,
    fill_past_tasks,
    read_weights,
    store_weights,
    suppose_past_tasks,
    update_past_tasks,
)
from core.index.records import Kind, RecordMap
from core.index.snapshot import TEXTS, IndexedSnapshot
from core.index.terms import StoredPatternIndex, fill_terms, update_terms
from core.retrieval.learnings import LearningIndex

if TYPE_CHECKING:
    import sqlite3

    from core.index.records import Reader
    from core.learning.scoreboard import Scoreboard
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot
    from core.retrieval.index import PatternIndex
    from core.retrieval.past_tasks import PastTasks, WordWeights
    from core.retrieval.similarity import SimilarityIndex

_SETTLED_AT_ONCE: Final = 400  # patterns whose texts are indexed in one step
_FILLED_TABLES: Final = (
    *("term", "tag_word", "cells", "learning", "learning_need", "work", "worked", "debug_value", "debug_fix"),
)


class StoredTexts:
    """Indexes of the texts of one view, opened when they are first used; implements `core.state.texts.Texts`."""

    def __init__(self, reader: Reader, snapshot: Snapshot) -> None:
        self.reader = reader
        self.snapshot = snapshot

    @cached_property
    def index(self) -> StoredPatternIndex:
        return StoredPatternIndex.open(self.reader, self.snapshot.patterns)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        # Contexts do not need the modules of similarity, and hooks wait for their import.
        from core.index.similarity import has_similarity, open_similarity
        from core.retrieval.similarity import SimilarityIndex

        patterns = self.snapshot.patterns
        if has_similarity(self.reader):
            return open_similarity(self.index, self.reader, patterns)
        return SimilarityIndex.build(patterns)  # until the texts are indexed, see `settle_texts`

    @cached_property
    def debug(self) -> DebugIndex:
        return StoredDebugIndex.open(self.reader, self.snapshot.debug_sessions)

    @cached_property
    def learnings(self) -> LearningIndex:
        return StoredLearnings.open(self.reader, self.snapshot)

    @cached_property
    def past_tasks(self) -> StoredPastTasks:
        return StoredPastTasks.open(self.reader)

    @cached_property
    def word_weights(self) -> WordWeights:
        return read_weights(self.reader, self.past_tasks, self.snapshot.patterns)

    def updated(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> StoredTexts | SupposedTexts:
        if isinstance(snapshot, IndexedSnapshot):
            return StoredTexts(snapshot.reader, snapshot)
        return SupposedTexts(self, snapshot, delta, board, board.changed_work)

    def prepare(self) -> None:
        _ = self.index, self.learnings, self.word_weights


class SupposedTexts:
    """Indexes of the texts of a dry run: those of a view, with what differs in memory.

    `delta` and `changed_work` are all differences to `stored`; `changed_work` is None if any loop may differ.
    """

    def __init__(
        self,
        stored: StoredTexts,
        snapshot: Snapshot,
        delta: Delta,
        board: Scoreboard,
        changed_work: frozenset[str] | None,
    ) -> None:
        self._stored = stored
        self._snapshot = snapshot
        self._delta = delta
        self._board = board
        self._changed_work = changed_work

    @cached_property
    def index(self) -> PatternIndex:
        return self._stored.index.updated(self._snapshot.patterns, self._delta.patterns)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        from core.retrieval.similarity import SimilarityIndex

        return SimilarityIndex.build(self._snapshot.patterns)

    @cached_property
    def debug(self) -> DebugIndex:
        sessions = self._snapshot.debug_sessions
        return DebugIndex.build(sessions) if self._delta.debug_sessions else self._stored.debug

    @cached_property
    def learnings(self) -> LearningIndex:
        delta = self._delta
        has_changed = delta.reflections or delta.memory_tasks or delta.tasks or delta.attempts or delta.loops
        return LearningIndex.build(self._snapshot) if has_changed else self._stored.learnings

    @cached_property
    def past_tasks(self) -> PastTasks:
        return suppose_past_tasks(self._stored.past_tasks, self._snapshot, self._board, self._changed_work)

    @cached_property
    def word_weights(self) -> WordWeights:
        return read_weights(self._stored.reader, self.past_tasks, self._snapshot.patterns)

    def updated(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> SupposedTexts:
        before, after = self._changed_work, board.changed_work
        changed_work = None if before is None or after is None else before | after
        return SupposedTexts(self._stored, snapshot, self._delta | delta, board, changed_work)

    def prepare(self) -> None:
        pass


def load_texts(reader: Reader, snapshot: Snapshot) -> StoredTexts | None:
    """Return the indexes of the texts of a view; None if they are not stored yet."""
    with reader.lock:
        return StoredTexts(reader, snapshot) if get_meta(reader.connection, TEXTS) is not None else None


def forget_texts(connection: sqlite3.Connection) -> None:
    """Delete the indexes of all texts, in the open transaction; `fill_texts` makes them again."""
    from core.index.similarity import forget_similarity

    for table in _FILLED_TABLES:
        connection.execute(f"DELETE FROM {table}")
    forget_similarity(connection)
    connection.execute("DELETE FROM meta WHERE name = ?", (TEXTS,))


def fill_texts(writer: Reader, snapshot: Snapshot, board: Scoreboard) -> None:
    """Index all texts of a snapshot in memory, in the open transaction; none may be stored.

    Takes 3 s for 100,000 patterns and 3,000 loops. `board` has its scores.
    """
    fill_terms(writer, snapshot.patterns)
    fill_learnings(writer, snapshot)
    fill_past_tasks(writer, snapshot, board)
    fill_debug_sessions(writer, snapshot.debug_sessions)
    set_meta(writer.connection, TEXTS, b"1")


def update_texts(
    before: tuple[Reader, Snapshot],
    after: tuple[Reader, Snapshot],
    delta: Delta,
    board: Scoreboard,
    changed_work: frozenset[str] | None,
) -> None:
    """Index what changed, in the open transaction of the reader in `after`; nothing if no texts are stored.

    `before` is the view that the stored texts are of. `board` has the scores of `after`. `changed_work` are the loops
    whose uses of patterns may have changed, None if any may.
    """
    from core.index.similarity import update_similarity

    writer, new = after
    if get_meta(writer.connection, TEXTS) is None:
        return
    update_terms(*before, writer, new, delta)
    update_learnings(writer, before[1], new, delta)
    update_past_tasks(writer, before[1], new, delta, board, changed_work)
    update_debug_sessions(writer, new.debug_sessions, delta.debug_sessions)
    update_similarity(*before, writer, new, delta)


def settle_texts(writer: Reader, patterns: Mapping[str, Pattern] | None = None) -> bool:
    """Do a step of what no change waits for, in the open transaction, about 20 ms; return whether nothing is left.

    `patterns` are by default those of the index. Fitting the weights is one step of about 100 ms.

    These are the weights that are fitted to past tasks, and the texts by which similar patterns are found.
    """
    from core.index.similarity import extend_similarity

    if get_meta(writer.connection, TEXTS) is None:
        return True
    if patterns is None:
        patterns = RecordMap(writer, Kind.PATTERN)
    if store_weights(writer, StoredPastTasks.open(writer), patterns):
        return False
    return extend_similarity(writer, patterns, _SETTLED_AT_ONCE)
