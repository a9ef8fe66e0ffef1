"""Immutable, incrementally updated indexes of the records behind the evidence."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from core.base.grouping import group_pairs
from core.learning.bursts import UNDATED, report_of_event, source_of
from core.learning.decay import parse_moment
from core.learning.evidence import find_discoverers, group_uses_by_pattern
from core.learning.finished_work import (
    WorkReport,
    attempt_signals,
    collect_reports,
    loop_signals,
    merge_reports,
    report_signals,
)
from core.learning.outcomes import OutcomeSignals, Verdict, score_outcome
from core.learning.recorded_uses import group_events_by_work
from core.records.episodes import Attempt, Task, group_by_task
from core.records.loops import InjectedUse, Loop, Outcome
from core.records.patterns import Pattern, PatternType

if TYPE_CHECKING:
    from core.config.settings import LearningSettings
    from core.records.debug_sessions import DebugSession
    from core.records.events import Event
    from core.records.snapshot import Delta, Snapshot

_JOINS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "events": operator.add,
    "unresolved": operator.or_,
    "reports": lambda old, new: merge_reports((new, old)),
    "harmful_events": operator.add,
    "events_by_work": operator.add,
}
"""Functions that add the entries of new events to an index."""
_SUCCESS: Final = {Verdict.HELPFUL: True, Verdict.HARMFUL: False}


class WorkNames:
    """Resolves IDs and aliases of the loops, tasks and attempts of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self._snapshot.loops.values() for alias in loop.aliases}

    def find_loop_id(self, work_id: str) -> str:
        """Return the ID of the loop with this ID or alias; else `work_id` itself."""
        return work_id if work_id in self._snapshot.loops else self._aliases.get(work_id, work_id)

    def loop_ids_of(self, loop_id: str) -> list[str]:
        """Return all IDs that refer to this loop and to no other."""
        loop = self._snapshot.loops.get(loop_id)
        aliases = loop.aliases if loop else ()
        return [loop_id, *(alias for alias in aliases if self.find_loop_id(alias) == loop_id)]

    def owner_id(self, work_id: str) -> str:
        """Return the ID of the loop or attempt; see `recorded_uses.WorkItems`."""
        snapshot = self._snapshot
        row = self.find_loop_id(work_id)
        if row in snapshot.loops:
            return row
        attempt = snapshot.attempts.get(work_id)
        named = self.find_loop_id(_loop_of(snapshot.tasks.get(attempt.task_id if attempt else work_id)))
        return named if named in snapshot.loops else work_id

    def group_sessions(self) -> dict[str, tuple[DebugSession, ...]]:
        """Group debug sessions by the ID of their loop or attempt, each session once.

        A loop that the session names has priority over a task. A session of a task belongs to the attempt that was
        running when it began, or to the only attempt if times are missing. Other sessions are left out.
        """
        pairs = ((self._session_owner(session), session) for session in self._snapshot.debug_sessions.values())
        return {work_id: tuple(sessions) for work_id, sessions in group_pairs(pairs).items() if work_id}

    def _session_owner(self, session: DebugSession) -> str:
        row = self.find_loop_id(session.loop_id)
        if row in self._snapshot.loops:
            return row
        for name in filter(None, (session.loop_id, session.task_id)):
            if name in self._snapshot.attempts:
                return name
            if name in self._attempts:
                return _running_at(self._attempts[name], _began(session))
        return ""

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[Attempt]]:
        """Attempts by task ID."""
        return group_by_task(self._snapshot.attempts.values())

    def has_other_owners(self, after: WorkNames, delta: Delta, work_ids: Iterable[str]) -> bool:
        """Return whether a change assigns any of `work_ids` to another loop or owner."""
        old, new = self._snapshot, after._snapshot
        may = (
            any(_ids(old.loops.get(id)) != _ids(new.loops.get(id)) for id in delta.loops)
            or any(_loop_of(old.tasks.get(id)) != _loop_of(new.tasks.get(id)) for id in delta.tasks)
            or any((id in old.attempts) is not (id in new.attempts) for id in delta.attempts)
        )
        return may and any(
            self.find_loop_id(work_id) != after.find_loop_id(work_id)
            or self.owner_id(work_id) != after.owner_id(work_id)
            for work_id in set(work_ids)
        )


def _ids(loop: Loop | None) -> frozenset[str]:
    return frozenset((loop.id, *loop.aliases)) if loop is not None else frozenset()


def _loop_of(task: Task | None) -> str:
    return task.loop_id if task is not None else ""


def changes_owners(before: Snapshot, after: Snapshot, delta: Delta) -> bool:
    """Return whether sessions may belong to other work items after a change."""
    if delta.debug_sessions or not after.debug_sessions:
        return bool(delta.debug_sessions)
    loops, attempts = (before.loops, after.loops), (before.attempts, after.attempts)
    return any(_ids(loops[0].get(id)) != _ids(loops[1].get(id)) for id in delta.loops) or any(
        _begin(attempts[0].get(id)) != _begin(attempts[1].get(id)) for id in delta.attempts
    )


def _running_at(attempts: Sequence[Attempt], at: datetime | None) -> str:
    """Return the ID of the attempt that was running at a time, or ""."""
    started = [attempt for attempt in attempts if attempt.started_at is not None]
    if at is None or not started:
        return attempts[0].id if len(attempts) == 1 else ""
    before = [(one.started_at, one.number, one.id) for one in started if one.started_at and one.started_at <= at]
    return max(before)[2] if before else ""


def _began(session: DebugSession) -> datetime | None:
    runs = (run.at for run in session.executions if run.at is not None)
    return session.created_at or min(runs, default=session.updated_at)


def _begin(attempt: Attempt | None) -> tuple[datetime | None] | None:
    return (attempt.started_at,) if attempt is not None else None


@dataclass(frozen=True)
class EvidenceIndex:
    """The records that evidence comes from, by pattern and by work item."""

    snapshot: Snapshot
    settings: LearningSettings
    uses: Mapping[str, list[tuple[Loop, InjectedUse]]]  # `injected` entries of loops, by pattern
    discoverers: Mapping[str, Loop]  # discovering loop by pattern
    events: Mapping[str, list[Event]]  # by pattern
    inverted: Mapping[str, frozenset[str]]  # by pattern, IDs of the anti-patterns made from it
    heirs: Mapping[str, frozenset[str]]  # by former ID, the patterns that it was merged into
    unresolved: Mapping[str, frozenset[str]]  # patterns that events report as applied without a result, by work item
    reports: Mapping[str, WorkReport]  # reports in the event log on work items as a whole
    harmful_events: Mapping[str, list[Event]]  # events that are harmful reports, by source
    events_by_work: Mapping[str, list[Event]]  # events about patterns, by the work ID in the event
    sessions: Mapping[str, tuple[DebugSession, ...]] = field(default_factory=dict)  # by work item
    _verdicts: dict[str, tuple[bool | None, datetime]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def index(cls, snapshot: Snapshot, settings: LearningSettings) -> Self:
        loops = snapshot.loops
        made = cls(
            snapshot,
            settings,
            uses=group_uses_by_pattern(loops.values()),
            discoverers=find_discoverers(loops.values()),
            inverted=reindex({}, (), snapshot.patterns.values(), inverted_ids),
            heirs=reindex({}, (), snapshot.patterns.values(), aliases),
            **_index_events(snapshot.events),
        )
        return replace(made, sessions=made._names.group_sessions())

    def _with_loops(self, before: Mapping[str, Loop], changed: frozenset[str]) -> tuple[Self, set[str]]:
        """Replace the changed loops; return the new index and the affected patterns."""
        loops = self.snapshot.loops
        old = [before[id] for id in changed if id in before]
        new = [loops[id] for id in changed if id in loops]
        affected = {use.pattern_id for loop in (*old, *new) for use in loop.injected}
        uses, added = dict(self.uses), group_uses_by_pattern(new)
        for id in affected:
            uses[id] = [pair for pair in uses.get(id, ()) if pair[0].id not in changed] + added.get(id, [])
        extracted = {entry.pattern_id for loop in (*old, *new) for entry in loop.extracted}
        discoverers = find_discoverers(loops.values()) if extracted else self.discoverers
        for loop in (*old, *new):
            for name in self._names_of(loop.id):
                affected |= self.unresolved.get(name, frozenset())
        return replace(self, uses=uses, discoverers=discoverers), affected | extracted

    def _with_events(self, before: Sequence[Event]) -> tuple[Self, set[str], set[str]]:
        """Add the new events; return the new index, affected patterns and sources."""
        events, known = self.snapshot.events, len(before)
        if known and (len(events) < known or events[0] is not before[0] or events[known - 1] is not before[-1]):
            fresh = replace(self, **_index_events(events))
            work_ids = self.reports.keys() | fresh.reports.keys()
            affected = self.events.keys() | fresh.events.keys() | fresh._patterns_of(work_ids)
            named = {event.loop_id for event in (*before, *events)}
            named |= self.harmful_events.keys() | fresh.harmful_events.keys()
            return fresh, set(affected), set(map(fresh.owner_id, named))
        new = events[known:]
        added = _index_events(new)
        grown: dict[str, Any] = {}
        for name, join in _JOINS.items():
            old: Mapping[str, Any] = getattr(self, name)
            more = {key: join(old[key], found) if key in old else found for key, found in added[name].items()}
            grown[name] = {**old, **more}
        after = replace(self, **grown)
        reported = added["reports"].keys()
        named = reported | added["harmful_events"].keys()
        named |= {event.loop_id for event in new if event.pattern_id and event.loop_id}
        return after, added["events"].keys() | after._patterns_of(reported), set(map(after.owner_id, named))

    def _patterns_of(self, work_ids: Iterable[str]) -> set[str]:
        """Return the patterns whose results may come from these work items."""
        found: set[str] = set()
        for work_id in work_ids:
            owner = self.owner_id(work_id)
            loop = self.snapshot.loops.get(owner)
            for name in (work_id, *self._names_of(owner)):
                found |= self.unresolved.get(name, frozenset())
            found |= {use.pattern_id for use in loop.injected} if loop else set()
        return found

    def changes_work_ids(self, snapshot: Snapshot, delta: Delta) -> bool:
        """Return whether work IDs in events refer to other work items after a change."""
        return self._names.has_other_owners(WorkNames(snapshot), delta, (event.loop_id for event in snapshot.events))

    @cached_property
    def _names(self) -> WorkNames:
        return WorkNames(self.snapshot)

    @cached_property
    def _other_names(self) -> Mapping[str, Sequence[str]]:
        """Further IDs of each owner of uses, in events and in decisions about bursts."""
        found: dict[str, list[str]] = {}
        for work_id in sorted({*self.unresolved, *self.harmful_events, *self.snapshot.curation.bursts}):
            owner = self.owner_id(work_id)
            if owner != work_id:
                found.setdefault(owner, []).append(work_id)
        return found

    def _names_of(self, owner_id: str) -> list[str]:
        return [owner_id, *self._other_names.get(owner_id, ())]

    def _source(self, event: Event) -> str:
        return self.owner_id(source_of(event))

    def _sources_on(self, pattern_id: str) -> set[str]:
        """Return the sources that may have reported a pattern as harmful."""
        sources = {self._source(event) for event in self.events.get(pattern_id, ())}
        return sources | {loop.id for loop, _ in self.uses.get(pattern_id, ())}

    def owner_id(self, work_id: str) -> str:
        return self._names.owner_id(work_id)

    def signals(self, work_id: str) -> OutcomeSignals | None:
        """Return the outcome signals of a work item; None if it has not finished."""
        loop = self.snapshot.loops.get(work_id)
        report = merge_reports(self.reports[name] for name in self._names.loop_ids_of(work_id) if name in self.reports)
        sessions = self.sessions.get(work_id, ())
        if loop is not None:
            return loop_signals(loop, report, sessions)
        attempt = self.snapshot.attempts.get(work_id)
        return attempt_signals(attempt, report, sessions) if attempt else report_signals(work_id, report)

    def finished(self) -> Iterator[str]:
        """Yield the IDs of all work items that have finished."""
        loops, attempts = self.snapshot.loops, self.snapshot.attempts
        others = (id for id in self.reports if self._names.find_loop_id(id) not in loops and id not in attempts)
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


def _index_events(events: Sequence[Event]) -> dict[str, Any]:
    """Build the indexes of events; the keys are fields of `EvidenceIndex`."""
    unresolved = group_pairs(
        (event.loop_id, event.pattern_id)
        for event in events
        if event.success is None and event.kind == "applied" and event.pattern_id and event.loop_id
    )
    return {
        "events": group_pairs((event.pattern_id, event) for event in events if event.pattern_id),
        "unresolved": {work_id: frozenset(patterns) for work_id, patterns in unresolved.items()},
        "reports": collect_reports(events),
        "harmful_events": group_pairs((source_of(event), event) for event in events if report_of_event(event)),
        "events_by_work": group_events_by_work(events),
    }


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
