"""What costs too much to ask of every pattern at every change: worked out one look at a time, in idle moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from core.base.errors import RalphdeckError
from core.base.text import safe_matcher
from core.config.settings import Settings
from core.extraction.clustering import Cluster
from core.learning.aggregate_evidence import UseCounts
from core.learning.scoreboard import Scoreboard
from core.records.extractions import Extraction
from core.records.findings import Finding, Severity
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot
from core.review.common_messages import ERRORS, TASKS

MOST_RECURRING: Final = 20
"""So many of the recurring learnings, those of most loops, are looked at."""
_TRIGGERS_AT_ONCE: Final = 50
"""So many triggers are tried on all messages in one look, some 5 ms."""
_RECORDS_AT_ONCE: Final = 1000
"""So many records are held against the evidence in one look, some 10 ms where they agree."""
_WRONG_COUNTS: Final = frozenset({"claim-below-evidence", "claim-disagrees"})
"""Findings on counts that only a person can judge; that the evidence is older than the record is no such thing."""


class _Counts(NamedTuple):
    """A record's counts and those of the evidence; where neither changes, neither does what was found."""

    text: str
    recorded_counts: object
    uses: int
    successes: int
    failures: int


class IncrementalChecks:
    """Grows by one look at a time; one thread at a time.

    Attributes:
        broad: By pattern, which share of everyday messages its trigger matches, 0..1, where that is too much.
        unreconciled: By pattern, how its record's counts and the evidence disagree.
        recurring: Learnings that several loops told and no pattern covers, with the pattern that each would give.
    """

    def __init__(self, settings: Settings) -> None:
        self.broad: Mapping[str, float] = {}
        self.unreconciled: Mapping[str, Finding] = {}
        self.recurring: tuple[tuple[Cluster, Extraction], ...] = ()
        self._settings = settings
        self._patterns: Mapping[str, Pattern] | None = None
        self._untried: list[str] = []
        self._tried: dict[str, str] = {}
        """The text of each pattern whose trigger was tried, as its hash."""
        self._held: dict[str, _Counts] = {}
        self._board: Scoreboard | None = None
        self._waiting: Iterator[str] = iter(())
        self._told: Snapshot | None = None
        """The records whose learnings were looked at last."""
        self._asking: Snapshot | None = None
        """Those for which the learnings that recur are being found."""
        self._sources: Set[str] = frozenset()
        """The loops and tasks of the learnings that were looked at."""
        self._asked: list[Cluster] = []
        self._drafted: list[tuple[Cluster, Extraction]] = []

    def take(self, cluster_id: str) -> None:
        """What a recurring learning would give is in the registry now."""
        self.recurring = tuple(one for one in self.recurring if one[0].id != cluster_id)

    def look(
        self,
        snapshot: Snapshot,
        board: Scoreboard,
        clusters: Callable[[], Sequence[Cluster] | None],
        draft: Callable[[Cluster], Extraction],
    ) -> bool | None:
        """Look at some more.

        Args:
            snapshot, board: The records and their scores.
            clusters: The learnings that recur, those that did when it was first asked; None where finding them
                takes longer than one look.
            draft: What a recurring learning would give.

        Returns:
            Whether anything else is to be asked now; None if nothing was left to look at.
        """
        for part in (self._try_triggers(snapshot.patterns), self._reconcile(snapshot.patterns, board)):
            if part is not None:
                return part
        return self._learn(snapshot, clusters, draft) if self._settings.extraction.enabled else None

    def _try_triggers(self, patterns: Mapping[str, Pattern]) -> bool | None:
        if self._patterns is not patterns:
            self._patterns = patterns
            self._untried = [id for id, pattern in patterns.items() if self._tried.get(id) != pattern.content_hash]
            self._tried = {id: text for id, text in self._tried.items() if id in patterns}
            self.broad = {id: share for id, share in self.broad.items() if id in patterns}
        if not self._untried:
            return None
        found = dict(self.broad)
        for id in self._untried[:_TRIGGERS_AT_ONCE]:
            self._tried[id] = patterns[id].content_hash
            share = trigger_match_share(patterns[id])
            found.pop(id, None)
            if share >= self._settings.review.broad_share:
                found[id] = share
        del self._untried[:_TRIGGERS_AT_ONCE]
        changed, self.broad = found != self.broad, found
        return changed

    def _reconcile(self, patterns: Mapping[str, Pattern], board: Scoreboard) -> bool | None:
        if self._board is None or self._board.uses is not board.uses:
            self._board, self._waiting = board, iter(tuple(patterns))
        found = dict(self.unreconciled)
        looked_at = 0
        for id in self._waiting:
            looked_at += 1
            pattern, row = patterns[id], board.row(id)
            counts = _Counts(
                pattern.content_hash,
                pattern.recorded_counts,
                int(board.uses[row]),
                int(board.successes[row]),
                int(board.failures[row]),
            )
            if self._held.get(id) != counts:
                self._held[id] = counts
                found.pop(id, None)
                if _may_disagree(counts, pattern) and (doubt := _doubt(board, id)) is not None:
                    found[id] = doubt
            if looked_at == _RECORDS_AT_ONCE:
                break
        if not looked_at:
            return None
        found = {id: doubt for id, doubt in found.items() if id in patterns}
        changed, self.unreconciled = found != self.unreconciled, found
        return changed

    def _learn(
        self,
        snapshot: Snapshot,
        clusters: Callable[[], Sequence[Cluster] | None],
        draft: Callable[[Cluster], Extraction],
    ) -> bool | None:
        """A learning is looked at again where what it would give may be something else, or be covered by now."""
        if not self._asked:
            if self._told is not None and self._tells_the_same(self._told, snapshot):
                return None
            self._asking = self._asking or snapshot
            if (found := clusters()) is None:
                return False
            self._told, self._asking, self._drafted = self._asking, None, []
            self._asked = list(found[:MOST_RECURRING])
            self._sources = {source for cluster in self._asked for source in cluster.sources}
            return False if self._asked else self._settle()
        cluster = self._asked.pop(0)
        try:
            offer = draft(cluster)
        except RalphdeckError:
            offer = Extraction(source_id=cluster.id)
        if offer.new:
            self._drafted.append((cluster, offer))
        return False if self._asked else self._settle()

    def _tells_the_same(self, before: Snapshot, after: Snapshot) -> bool:
        """Whether the same recurs, gives the same patterns, and meets the same ones."""
        one, other = before.loops, after.loops
        return (
            before.reflections is after.reflections
            and before.patterns is after.patterns
            and before.tasks is after.tasks
            and before.memory_tasks is after.memory_tasks
            and (one is other or (one.keys() == other.keys() and not any(map(_retold(one, other), self._sources))))
        )

    def _settle(self) -> bool:
        before, self.recurring = self.recurring, tuple(self._drafted)
        return before != self.recurring


def _retold(before: Mapping[str, Loop], after: Mapping[str, Loop]) -> Callable[[str], bool]:
    """Whether a loop is to do something else now."""
    return lambda id: id in before and before[id].task != after[id].task


def trigger_match_share(pattern: Pattern) -> float:
    """Which share of everyday messages the trigger of a pattern matches, 0..1: of errors, or of tasks; of two triggers
    that of the broader one.
    """
    triggers = ((pattern.error_pattern, ERRORS), (pattern.task_pattern, TASKS))
    return max(sum(map(safe_matcher(source).matches, said)) / len(said) if source else 0.0 for source, said in triggers)


def _may_disagree(counts: _Counts, pattern: Pattern) -> bool:
    """Whether a record counts less than the evidence shows; most do not, and are told apart for less."""
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    return recorded_counts is not None and (
        recorded_counts.uses < counts.uses
        or recorded_counts.successes < counts.successes
        or recorded_counts.failures < counts.failures
    )


def _doubt(board: Scoreboard, pattern_id: str) -> Finding | None:
    doubts = board.reconcile(pattern_id)
    return next((one for one in doubts if one.code in _WRONG_COUNTS and one.severity is Severity.WARNING), None)
