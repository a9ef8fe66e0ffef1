"""Immutable, incrementally updated indexes of the records behind the evidence."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from core.base.shared_map import with_changes
from core.learning.bursts import UNDATED, source_of
from core.learning.decay import parse_moment
from core.learning.event_indexes import index_changes, index_events
from core.learning.evidence import find_discoverers, group_uses_by_pattern
from core.learning.finished_work import (
    WorkReport,
    attempt_signals,
    loop_signals,
    merge_reports,
    report_signals,
)
from core.learning.inversion_rules import discovery_keys, is_same_fix
from core.learning.outcomes import OutcomeSignals, Verdict, score_outcome
from core.learning.work_names import WorkNames
from core.records.event_log import find_event_changes
from core.records.loops import InjectedUse, Loop, Outcome
from core.records.patterns import Pattern, PatternType

if TYPE_CHECKING:
    from core.config.settings import LearningSettings
    from core.records.debug_sessions import DebugSession
    from core.records.events import Event
    from core.records.snapshot import Delta, Snapshot

_SUCCESS: Final = {Verdict.HELPFUL: True, Verdict.HARMFUL: False}


@dataclass(frozen=True)
class EvidenceIndex:
    """The records that evidence comes from, by pattern and by work item."""

    snapshot: Snapshot
    settings: LearningSettings
    uses: Mapping[str, list[tuple[Loop, InjectedUse]]]  # `injected` entries of loops, by pattern
    discoverers: Mapping[str, Loop]  # discovering loop by pattern
    events: Mapping[str, list[Event]]  # by pattern
    inverted: Mapping[str, frozenset[str]]  # by pattern, IDs of the anti-patterns made from it
    discovered: Mapping[str, frozenset[str]]  # patterns by loop and time of their discovery; see `discovery_keys`
    heirs: Mapping[str, frozenset[str]]  # by former ID, the patterns that it was merged into
    unresolved: Mapping[str, frozenset[str]]  # patterns that events report as applied without a result, by work item
    reports: Mapping[str, WorkReport]  # reports in the event log on work items as a whole
    harmful_events: Mapping[str, list[Event]]  # events that are harmful reports, by source
    events_by_work: Mapping[str, list[Event]]  # events about patterns, by the work ID in the event
    names: WorkNames
    sessions: Mapping[str, tuple[DebugSession, ...]]  # by work item
    _verdicts: dict[str, tuple[bool | None, datetime]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def index(cls, snapshot: Snapshot, settings: LearningSettings) -> Self:
        loops, names = snapshot.loops, WorkNames(snapshot)
        return cls(
            snapshot,
            settings,
            uses=group_uses_by_pattern(loops.values()),
            discoverers=find_discoverers(loops.values()),
            inverted=reindex({}, (), snapshot.patterns.values(), inverted_ids),
            discovered=reindex({}, (), snapshot.patterns.values(), discovery_keys),
            heirs=reindex({}, (), snapshot.patterns.values(), aliases),
            names=names,
            sessions=names.group_sessions(),
            **index_events(snapshot.events),
        )

    def _with_loops(self, before: Mapping[str, Loop], changed: frozenset[str]) -> tuple[Self, set[str]]:
        """Replace the changed loops; return the new index and the affected patterns."""
        loops = self.snapshot.loops
        old = [before[id] for id in changed if id in before]
        new = [loops[id] for id in changed if id in loops]
        affected = {use.pattern_id for loop in (*old, *new) for use in loop.injected}
        added = group_uses_by_pattern(new)
        kept = {id: [pair for pair in self.uses.get(id, ()) if pair[0].id not in changed] for id in affected}
        uses = with_changes(self.uses, {id: pairs + added.get(id, []) for id, pairs in kept.items()})
        extracted = {entry.pattern_id for loop in (*old, *new) for entry in loop.extracted}
        discoverers = find_discoverers(loops.values()) if extracted else self.discoverers
        for loop in (*old, *new):
            for name in self.names.names_of(loop.id):
                affected |= self.unresolved.get(name, frozenset())
        return replace(self, uses=uses, discoverers=discoverers), affected | extracted

    def _with_events(self, before: Sequence[Event]) -> tuple[Self, set[str], set[str]]:
        """Add new events, and remove those of undone decisions.

        Returns the new index, affected patterns and sources.
        """
        events = self.snapshot.events
        changes = find_event_changes(before, events)
        changed = index_changes(self, changes) if changes is not None else None
        if changes is None or changed is None:
            fresh = replace(self, **index_events(events))
            work_ids = self.reports.keys() | fresh.reports.keys()
            affected = self.events.keys() | fresh.events.keys() | fresh._patterns_of(work_ids)
            named = {event.loop_id for event in (*before, *events)}
            named |= self.harmful_events.keys() | fresh.harmful_events.keys()
            return fresh, set(affected), set(map(fresh.owner_id, named))
        grown: dict[str, Any] = {name: with_changes(getattr(self, name), more) for name, more in changed.items()}
        after = replace(self, **grown)
        reported = changed["reports"].keys()
        named = reported | changed["harmful_events"].keys()
        named |= {event.loop_id for event in (*changes.added, *changes.removed) if event.pattern_id and event.loop_id}
        return after, changed["events"].keys() | after._patterns_of(reported), set(map(after.owner_id, named))

    def _patterns_of(self, work_ids: Iterable[str]) -> set[str]:
        """Return the patterns whose results may come from these work items."""
        found: set[str] = set()
        for work_id in work_ids:
            owner = self.owner_id(work_id)
            loop = self.snapshot.loops.get(owner)
            for name in (work_id, *self.names.names_of(owner)):
                found |= self.unresolved.get(name, frozenset())
            found |= {use.pattern_id for use in loop.injected} if loop else set()
        return found

    def changes_work_ids(self, names: WorkNames, delta: Delta) -> bool:
        """Return whether work IDs in events refer to other work items after a change."""
        known = (self.reports, self.harmful_events, self.events_by_work)
        return self.names.has_other_owners(names, delta, known)

    def _source(self, event: Event) -> str:
        return self.owner_id(source_of(event))

    def _sources_on(self, pattern_id: str) -> set[str]:
        """Return the sources that may have reported a pattern as harmful."""
        sources = {self._source(event) for event in self.events.get(pattern_id, ())}
        return sources | {loop.id for loop, _ in self.uses.get(pattern_id, ())}

    def find_warning(self, pattern: Pattern) -> Pattern | None:
        """Return the warning against the fix that a pattern recommends, made from another pattern of that fix."""
        patterns = self.snapshot.patterns
        for id in self._siblings_of(pattern):
            original, warnings = patterns.get(id), sorted(self.inverted.get(id, frozenset()) & patterns.keys())
            if original is None or original.id == pattern.id or not warnings:
                continue
            group = [patterns[one] for one in self._siblings_of(original) if one in patterns]
            fixes = sum(one.type is PatternType.ERROR for one in group)
            if is_same_fix(pattern, original, is_only_fix=fixes <= 1):
                return patterns[warnings[0]]
        return None

    def _siblings_of(self, pattern: Pattern) -> list[str]:
        """Return the patterns that the same loop found at the same time, if any of them became a warning."""
        ids: set[str] = set().union(*(self.discovered.get(key, frozenset()) for key in discovery_keys(pattern)))
        return sorted(ids) if any(self.inverted.get(id) for id in ids) else []

    def owner_id(self, work_id: str) -> str:
        return self.names.owner_id(work_id)

    def voter_id(self, owner_id: str) -> str:
        attempt = self.snapshot.attempts.get(owner_id)
        return owner_id if attempt is None else attempt.task_id

    def signals(self, work_id: str) -> OutcomeSignals | None:
        """Return the outcome signals of a work item; None if it has not finished."""
        loop = self.snapshot.loops.get(work_id)
        report = merge_reports(self.reports[name] for name in self.names.loop_ids_of(work_id) if name in self.reports)
        sessions = self.sessions.get(work_id, ())
        if loop is not None and not self.names.is_recorded_as_tasks(loop):
            return loop_signals(loop, report, sessions)
        attempt = self.snapshot.attempts.get(work_id)
        return attempt_signals(attempt, report, sessions) if attempt else report_signals(work_id, report)

    def finished(self) -> Iterator[str]:
        """Yield the IDs of all work items that have finished."""
        loops, attempts = self.snapshot.loops, self.snapshot.attempts
        others = (id for id in self.reports if self.names.find_loop_id(id) not in loops and id not in attempts)
        return (id for id in (*loops, *attempts, *others) if self.signals(id) is not None)

    def is_open(self, work_id: str) -> bool:
        """Return whether a work item has not ended and has no outcome."""
        loop, attempt = self.snapshot.loops.get(work_id), self.snapshot.attempts.get(work_id)
        ended = loop.status.ended if loop else attempt is not None and attempt.outcome is not Outcome.UNKNOWN
        return not ended and self.signals(work_id) is None

    def _verdict(self, work_id: str) -> tuple[bool | None, datetime]:
        """Return success and time of a work item's outcome; they apply to its patterns."""
        if work_id not in self._verdicts:
            success, at = None, UNDATED
            if (signals := self.signals(work_id)) is not None:
                at = parse_moment(signals.timestamp, "timestamp")
                neutral = False if self.settings.neutral_counts_as == "failure" else None
                success = _SUCCESS.get(score_outcome(signals, at, self.settings).verdict, neutral)
            self._verdicts[work_id] = success, at
        return self._verdicts[work_id]


def reindex(
    index: Mapping[str, frozenset[str]],
    before: Iterable[Pattern],
    after: Iterable[Pattern],
    keys: Callable[[Pattern], Iterable[str]],
) -> Mapping[str, frozenset[str]]:
    """Replace patterns in an index of pattern IDs by the keys that `keys` returns."""
    changed: dict[str, frozenset[str]] | None = None
    for patterns, add in ((before, False), (after, True)):
        for pattern in patterns:
            for key in keys(pattern):
                changed = dict(index) if changed is None else changed
                own = frozenset({pattern.id})
                changed[key] = changed.get(key, frozenset()) | own if add else changed[key] - own
    return index if changed is None else changed


def inverted_ids(pattern: Pattern) -> tuple[str, ...]:
    return (pattern.inverted_from,) if pattern.inverted_from and pattern.type is PatternType.ANTI else ()


aliases: Final = operator.attrgetter("aliases")
