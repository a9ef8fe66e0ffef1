"""Slow checks in small steps: broad triggers, wrong counts, recurring learnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import yaml

from core.base.errors import RalphdeckError
from core.base.text import Matcher
from core.extraction.clustering import Cluster
from core.learning.evidence import UseCounts
from core.records.extractions import Extraction
from core.records.findings import Finding, Severity

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.learning.scoreboard import Scoreboard
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot

MOST_RECURRING: Final = 20  # Maximum number of recurring learnings that are checked, those of most loops first.
_TRIGGERS_AT_ONCE: Final = 50  # Triggers checked in one step, about 5 ms.
_RECORDS_AT_ONCE: Final = 100  # Records compared with the evidence in one step, about 10 ms.
_WRONG_COUNTS: Final = frozenset({"claim-below-evidence", "claim-disagrees"})
"""Codes of findings on counts that need a person."""
FindClusters = Callable[[], Sequence[Cluster] | None]
DraftPattern = Callable[[Cluster], Extraction]


class IncrementalChecks:
    """Runs the checks step by step; not thread-safe.

    `broad` has, by pattern, the share of common messages that its trigger matches, 0..1, if too large. `unreconciled`
    has, by pattern, how recorded counts and evidence disagree. `recurring` has the learnings that several loops
    reported and no pattern covers, with the candidate pattern.
    """

    def __init__(self, settings: Settings) -> None:
        self.broad: Mapping[str, float] = {}
        self.unreconciled: Mapping[str, Finding] = {}
        self.recurring: tuple[tuple[Cluster, Extraction], ...] = ()
        self._settings = settings
        self._patterns: Mapping[str, Pattern] | None = None
        self._untried: list[str] = []
        self._ids: tuple[str, ...] = ()
        self._facts = np.zeros(0, np.int64)
        """Hash of the recorded counts and the evidence of each of `_ids` when it was checked; 0 before."""
        self._evidence: object = None
        """That of the last board that was checked."""
        self._waiting: Iterator[str] = iter(())
        self._checked_snapshot: Snapshot | None = None
        """The snapshot whose learnings were checked last."""
        self._searching: Snapshot | None = None
        """The snapshot whose recurring learnings are being searched."""
        self._sources: Set[str] = frozenset()
        """Source loops and tasks of the checked learnings."""
        self._pending_clusters: list[Cluster] = []
        self._drafted: list[tuple[Cluster, Extraction]] = []

    def remove_recurring(self, cluster_id: str) -> None:
        """Remove a recurring learning that was extracted."""
        self.recurring = tuple(one for one in self.recurring if one[0].id != cluster_id)

    def look(self, snapshot: Snapshot, board: Scoreboard, clusters: FindClusters, draft: DraftPattern) -> bool | None:
        """Do one step; whether a result changed, None if nothing is left to check.

        `clusters` finds recurring learnings; it returns None while it needs further steps. `draft` extracts the
        candidate.
        """
        for part in (self._try_triggers(snapshot.patterns), self._reconcile(snapshot.patterns, board)):
            if part is not None:
                return part
        return self._learn(snapshot, clusters, draft) if self._settings.extraction.enabled else None

    def _try_triggers(self, patterns: Mapping[str, Pattern]) -> bool | None:
        if self._patterns is not patterns:
            before, untried = self._patterns or {}, set(self._untried)
            tried = {id: pattern.content_hash for id, pattern in before.items() if id not in untried}
            self._untried = [id for id, pattern in patterns.items() if tried.get(id) != pattern.content_hash]
            self._patterns = patterns
            self.broad = {id: share for id, share in self.broad.items() if id in patterns}
        if not self._untried:
            return None
        found = dict(self.broad)
        for id in self._untried[:_TRIGGERS_AT_ONCE]:
            share = trigger_match_share(patterns[id])
            found.pop(id, None)
            if share >= self._settings.review.broad_share:
                found[id] = share
        del self._untried[:_TRIGGERS_AT_ONCE]
        changed, self.broad = found != self.broad, found
        return changed

    def _reconcile(self, patterns: Mapping[str, Pattern], board: Scoreboard) -> bool | None:
        if self._evidence is not board.evidence:
            self._evidence, self._waiting = board.evidence, iter(tuple(patterns))
            self._follow(tuple(board.ids))
        found = dict(self.unreconciled)
        checked = 0
        for id in self._waiting:
            checked += 1
            pattern, row = patterns[id], board.row(id)
            evidence = int(board.successes[row]), int(board.failures[row]), int(board.uses[row])
            facts = hash((pattern.content_hash, pattern.recorded_counts, evidence))
            if self._facts[row] != facts:
                self._facts[row] = facts
                found.pop(id, None)
                if (doubt := _find_wrong_count(board, UseCounts(*evidence), pattern)) is not None:
                    found[id] = doubt
            if checked == _RECORDS_AT_ONCE:
                break
        if not checked:
            return None
        found = {id: doubt for id, doubt in found.items() if id in patterns}
        changed, self.unreconciled = found != self.unreconciled, found
        return changed

    def _follow(self, ids: tuple[str, ...]) -> None:
        """Put the facts in the order of `ids`."""
        before = len(self._ids)
        if ids[:before] == self._ids:
            self._facts = np.append(self._facts, np.zeros(len(ids) - before, np.int64))
        else:
            known = dict(zip(self._ids, self._facts.tolist(), strict=True))
            self._facts = np.array([known.get(id, 0) for id in ids], np.int64)
        self._ids = ids

    def _learn(self, snapshot: Snapshot, clusters: FindClusters, draft: DraftPattern) -> bool | None:
        """Check recurring learnings again if candidates or registry may have changed."""
        if not self._pending_clusters:
            if self._checked_snapshot is not None and self._has_same_learnings(self._checked_snapshot, snapshot):
                return None
            self._searching = self._searching or snapshot
            if (found := clusters()) is None:
                return False
            self._checked_snapshot, self._searching, self._drafted = self._searching, None, []
            self._pending_clusters = list(found[:MOST_RECURRING])
            self._sources = {source for cluster in self._pending_clusters for source in cluster.sources}
            return False if self._pending_clusters else self._finish()
        cluster = self._pending_clusters.pop(0)
        try:
            offer = draft(cluster)
        except RalphdeckError:
            offer = Extraction(source_id=cluster.id)
        if offer.new:
            self._drafted.append((cluster, offer))
        return False if self._pending_clusters else self._finish()

    def _has_same_learnings(self, before: Snapshot, after: Snapshot) -> bool:
        """Whether the same learnings recur and the same patterns cover them."""
        one, other = before.loops, after.loops
        unchanged = ("reflections", "patterns", "tasks", "memory_tasks")
        if any(getattr(before, name) is not getattr(after, name) for name in unchanged):
            return False
        if one is other:
            return True
        sources = (id for id in self._sources if id in one)
        return one.keys() == other.keys() and all(one[id].task == other[id].task for id in sources)

    def _finish(self) -> bool:
        before, self.recurring = self.recurring, tuple(self._drafted)
        return before != self.recurring


def trigger_match_share(pattern: Pattern) -> float:
    """Return the largest share of common messages that a trigger matches, 0..1."""
    messages = common_messages()
    triggers = ((pattern.error_pattern, messages["errors"]), (pattern.task_pattern, messages["tasks"]))
    return max(sum(map(Matcher(source).matches, texts)) / len(texts) if source else 0.0 for source, texts in triggers)


@cache
def common_messages() -> Mapping[str, Sequence[str]]:
    """Return unrelated common `errors` and `tasks`; a broad trigger matches most."""
    data = Path(__file__).with_name("common_messages.yaml").read_bytes()
    found: Mapping[str, Sequence[str]] = yaml.load(data, yaml.CSafeLoader)
    return found


def _find_wrong_count(board: Scoreboard, counts: UseCounts, pattern: Pattern) -> Finding | None:
    own = UseCounts.of_record(pattern.recorded_counts)
    is_low = own and (own.uses < counts.uses or own.successes < counts.successes or own.failures < counts.failures)
    if not is_low:
        return None  # a cheap check before the costly one
    doubts = board.reconcile(pattern.id)
    return next((one for one in doubts if one.code in _WRONG_COUNTS and one.severity is Severity.WARNING), None)
