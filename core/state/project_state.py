"""State of a project at one moment: records, scores, indexes, review queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from core.base.errors import UnknownRecord
from core.base.id_lookup import find_matching_ids, require_one
from core.base.text import visible_line
from core.config.settings import Settings
from core.debug_memory.escalations import EscalatedSession, find_recent_escalations
from core.debug_memory.index import DebugIndex, LazyDebugIndex
from core.learning.scoreboard import Assessment, Scoreboard
from core.records.debug_sessions import DebugSession
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot
from core.retrieval.embeddings import ComparableWork, Coverage, Embeddings
from core.retrieval.index import LazyPatternIndex, PatternIndex
from core.retrieval.learnings import LazyLearnings, LearningIndex
from core.retrieval.similarity import LazySimilarity, SimilarityIndex
from core.state.review_items import ReviewItem


@dataclass(frozen=True, slots=True)
class ProjectState:
    """Immutable data with look-ups. `contexts`, `findings` and `history` use it.

    `board` has the evidence and state of every pattern as of `now`, `queue` the highest impact first. `lazy_...` build
    the indexes. `offers` are what can be extracted from finished loops, as far as it was searched. `embeddings` are the
    vectors of patterns, shared by all states of a project, and `task_embeddings` those of past tasks and loops; None
    compares only words.
    """

    snapshot: Snapshot
    board: Scoreboard
    lazy_index: LazyPatternIndex
    lazy_similarity: LazySimilarity
    queue: tuple[ReviewItem, ...]
    settings: Settings
    now: datetime
    offers: Mapping[str, Extraction]
    embeddings: Embeddings[Pattern] | None = None
    lazy_debug: LazyDebugIndex = field(default_factory=lambda: LazyDebugIndex({}))
    lazy_learnings: LazyLearnings = field(default_factory=lambda: LazyLearnings(Snapshot()))
    task_embeddings: Embeddings[ComparableWork] | None = None

    @property
    def index(self) -> PatternIndex:
        """Patterns by words; built on first use."""
        return self.lazy_index.get()

    def prepare(self) -> None:
        """Build what the first context needs, in an idle moment."""
        self.lazy_index.get()
        self.lazy_learnings.get()
        _ = self.board.interval

    @property
    def similarity(self) -> SimilarityIndex:
        """Similar patterns; built on first use."""
        return self.lazy_similarity.get()

    @property
    def debug(self) -> DebugIndex:
        """Debug sessions by words; built on first use."""
        return self.lazy_debug.get()

    @property
    def learnings(self) -> LearningIndex:
        """Learnings of tasks and loops by words; built on first use."""
        return self.lazy_learnings.get()

    @property
    def coverage(self) -> Coverage | None:
        """Embedding coverage if patterns lack a vector; see `Embeddings.coverage`."""
        return self.embeddings.coverage(self.snapshot.patterns) if self.embeddings else None

    def escalations(self, since: datetime | None = None) -> tuple[EscalatedSession, ...]:
        """Debug sessions escalated after `since` (None: ever), newest first."""
        return find_recent_escalations(self.debug, self.snapshot, since)

    def pattern(self, pattern_id: str) -> Pattern:
        """The pattern with this ID or alias, else `UnknownRecord`."""
        found = self._named_pattern(pattern_id)
        if found is None:
            raise UnknownRecord(f"no pattern {visible_line(pattern_id, 80)!r}; see: ralphdeck pattern list")
        return found

    def _named_pattern(self, name: str) -> Pattern | None:
        patterns = self.snapshot.patterns
        return patterns.get(name) or next((one for one in patterns.values() if name in one.aliases), None)

    def find_pattern(self, name: str) -> Pattern:
        """The pattern with this ID, alias or unique part, else `UnknownRecord`."""
        if (named := self._named_pattern(name)) is not None:
            return named
        patterns = self.snapshot.patterns
        found = find_matching_ids(name, patterns, fragments=True)
        return patterns[require_one(found, name, what="pattern", command="pattern list", known=patterns)]

    def loop(self, loop_id: str) -> Loop:
        """The loop with this ID, alias or unique part of the ID, else `UnknownRecord`."""
        loops = self.snapshot.loops
        if loop_id in loops:
            return loops[loop_id]
        found = [loop.id for loop in loops.values() if loop_id in loop.aliases]
        found = found or find_matching_ids(loop_id, loops, fragments=True)
        return loops[require_one(found, loop_id, what="loop", command="loop list", known=loops)]

    def debug_session(self, session_id: str) -> DebugSession:
        """The debug session with this ID or unique part of it, else `UnknownRecord`."""
        sessions = self.snapshot.debug_sessions
        found = find_matching_ids(session_id, sessions, fragments=True)
        return sessions[require_one(found, session_id, what="debug session", command="debug list", known=sessions)]

    def assessment(self, pattern_id: str) -> Assessment:
        return self.board.assessment(pattern_id)

    def work_id(self, work_id: str) -> str:
        """The full ID of a loop or attempt, else `UnknownRecord`."""
        return work_id if work_id in self.snapshot.attempts else self.loop(work_id).id
