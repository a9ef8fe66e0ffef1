"""What the texts of a state are found and compared by: indexes of patterns, learnings, past tasks, debug sessions."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Protocol, Self

from core.debug_memory.index import DebugIndex, LazyDebugIndex
from core.records.snapshot import Delta, Snapshot
from core.retrieval.index import LazyPatternIndex, PatternIndex
from core.retrieval.learned_weights import LearnedWeights, WordWeights
from core.retrieval.learnings import LazyLearnings, LearningIndex
from core.retrieval.past_tasks import LazyPastTasks, PastTasks
from core.retrieval.similarity import LazySimilarity, SimilarityIndex

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

    def prepare(self, seconds: float) -> bool:
        """Build for some time what a context needs; return whether it is complete."""

    def prepare_learnings(self, seconds: float) -> bool:
        """Build for some time the index of learnings; return whether it is complete."""

    def prepare_similarity(self, seconds: float) -> bool:
        """Build for some time the index of similar patterns; return whether it is complete."""

    def release(self) -> None:
        """Free what is made again when needed."""


class MemoryTexts:
    """Indexes in memory, updated from one state to the next.

    Without `board`, there are neither past tasks nor learnings.
    """

    def __init__(self, snapshot: Snapshot, board: Scoreboard | None = None) -> None:
        self._snapshot = snapshot
        self._index = LazyPatternIndex(snapshot.patterns)
        self._similarity = LazySimilarity(snapshot.patterns)
        self._debug = LazyDebugIndex(snapshot.debug_sessions)
        self._learnings = LazyLearnings(snapshot if board is not None else Snapshot())
        self._past_tasks = LazyPastTasks(snapshot, board)
        self._weights = LearnedWeights()

    @property
    def index(self) -> PatternIndex:
        return self._index.get()

    @property
    def similarity(self) -> SimilarityIndex:
        return self._similarity.get()

    @property
    def debug(self) -> DebugIndex:
        return self._debug.get()

    @property
    def learnings(self) -> LearningIndex:
        return self._learnings.get()

    @property
    def past_tasks(self) -> PastTasks:
        return self._past_tasks.get()

    @property
    def word_weights(self) -> WordWeights:
        return self._weights.get(self.past_tasks, self._snapshot.patterns)

    def updated(self, snapshot: Snapshot, delta: Delta, board: Scoreboard) -> Self:
        after = copy(self)
        after._snapshot = snapshot
        after._learnings = self._learnings.updated(snapshot)
        after._past_tasks = self._past_tasks.updated(snapshot, board)
        if delta.debug_sessions:
            after._debug = self._debug.updated(snapshot.debug_sessions, delta.debug_sessions)
        if delta.patterns:
            after._index = self._index.updated(snapshot.patterns, delta.patterns)
            after._similarity = self._similarity.updated(snapshot.patterns, delta.patterns)
        return after

    def prepare(self, seconds: float) -> bool:
        parts = (self._index, self._learnings, self._past_tasks)
        if not all(part.prepare(seconds) for part in parts):
            return False
        if not self._weights.prepare(self.past_tasks, self._snapshot.patterns, seconds):
            return False
        _ = self.index, self.learnings
        return True

    def prepare_learnings(self, seconds: float) -> bool:
        return self._learnings.prepare(seconds)

    def prepare_similarity(self, seconds: float) -> bool:
        return self._similarity.prepare(seconds)

    def release(self) -> None:
        self._index.release()
        self._similarity.release()
