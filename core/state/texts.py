"""What the texts of a state are found and compared by: indexes of patterns, learnings, past tasks, debug sessions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from core.debug_memory.index import DebugIndex
from core.records.snapshot import Delta, Snapshot
from core.retrieval.index import PatternIndex
from core.retrieval.learnings import LearningIndex
from core.retrieval.past_tasks import PastTasks, WordWeights, learn_weights
from core.retrieval.similarity import SimilarityIndex

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard


class Texts(Protocol):
    """Indexes of the texts of one state; each is built or opened when it is first used."""

    @property
    def index(self) -> PatternIndex: ...
    @property
    def similarity(self) -> SimilarityIndex: ...
    @property
    def debug(self) -> DebugIndex: ...
    @property
    def learnings(self) -> LearningIndex: ...
    @property
    def past_tasks(self) -> PastTasks: ...
    @property
    def word_weights(self) -> WordWeights: ...

    def updated(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> Texts:
        """Return the texts of the next state; `board` is made from that of this state."""

    def prepare(self) -> None:
        """Open what the first context needs, where that is fast."""


class MemoryTexts:
    """Indexes in memory, built when they are first used.

    Without `board`, there are neither past tasks nor learnings.
    """

    def __init__(self, snapshot: Snapshot, board: Scoreboard | None = None) -> None:
        self._snapshot = snapshot
        self._board = board

    @cached_property
    def index(self) -> PatternIndex:
        return PatternIndex.build(self._snapshot.patterns)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        return SimilarityIndex.build(self._snapshot.patterns)

    @cached_property
    def debug(self) -> DebugIndex:
        return DebugIndex.build(self._snapshot.debug_sessions)

    @cached_property
    def learnings(self) -> LearningIndex:
        return LearningIndex.build(self._snapshot if self._board is not None else Snapshot())

    @cached_property
    def past_tasks(self) -> PastTasks:
        return PastTasks.collect(self._snapshot, self._board) if self._board is not None else PastTasks()

    @cached_property
    def word_weights(self) -> WordWeights:
        return learn_weights(self.past_tasks, self._snapshot.patterns)

    def updated(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> MemoryTexts:
        return MemoryTexts(snapshot, board)

    def prepare(self) -> None:
        pass
