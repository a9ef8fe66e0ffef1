"""What texts are found and compared by in one view of an index; see docs/architecture.md#index."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from core.index.debug_sessions import StoredDebugIndex, fill_debug_sessions, update_debug_sessions
from core.index.learnings import StoredLearnings, fill_learnings, update_learnings
from core.index.past_tasks import StoredPastTasks, fill_past_tasks, read_weights, update_past_tasks
from core.index.terms import StoredPatternIndex, fill_terms, update_terms

if TYPE_CHECKING:
    from core.debug_memory.index import DebugIndex
    from core.index.records import Reader
    from core.learning.scoreboard import Scoreboard
    from core.records.snapshot import Delta, Snapshot
    from core.retrieval.index import PatternIndex
    from core.retrieval.learned_weights import WordWeights
    from core.retrieval.learnings import LearningIndex
    from core.retrieval.past_tasks import PastTasks


class StoredTexts:
    """Indexes of the texts of one view, opened when they are first used."""

    def __init__(self, reader: Reader, snapshot: Snapshot) -> None:
        self._reader = reader
        self._snapshot = snapshot

    @cached_property
    def index(self) -> PatternIndex:
        return StoredPatternIndex.open(self._reader, self._snapshot.patterns)

    @cached_property
    def learnings(self) -> LearningIndex:
        return StoredLearnings.open(self._reader, self._snapshot)

    @cached_property
    def past_tasks(self) -> PastTasks:
        return StoredPastTasks.open(self._reader)

    @cached_property
    def word_weights(self) -> WordWeights:
        return read_weights(self._reader, self.past_tasks, self._snapshot.patterns)

    @cached_property
    def debug(self) -> DebugIndex:
        return StoredDebugIndex.open(self._reader, self._snapshot.debug_sessions)


def fill_texts(writer: Reader, snapshot: Snapshot, board: Scoreboard) -> None:
    """Index all texts in an open transaction. The tables must be empty."""
    fill_terms(writer, snapshot.patterns)
    fill_learnings(writer, snapshot)
    fill_past_tasks(writer, snapshot, board)
    fill_debug_sessions(writer, snapshot.debug_sessions)


def update_texts(writer: Reader, before: Reader, old: Snapshot, new: Snapshot, delta: Delta, board: Scoreboard) -> None:
    """Index what changed, in an open transaction.

    `before` and `old` are the view before the change, `new` are the records as `writer` sees them. `board` is that of
    `new`, made from the board of `old`.
    """
    update_terms(writer, before, old, new, delta)
    update_learnings(writer, old, new, delta)
    update_past_tasks(writer, old, new, delta, board)
    update_debug_sessions(writer, new.debug_sessions, delta.debug_sessions)
