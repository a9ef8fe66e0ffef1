"""The evidence on each pattern, without harmful reports that do not count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from core.learning.bursts import (
    UNDATED,
    Burst,
    HarmfulReport,
    IgnoredPeriods,
    Period,
    find_ignored_periods,
    is_within,
    known_time,
    member_bursts,
    report_of_event,
    report_of_use,
    source_of,
)
from core.learning.evidence import (
    LOOP,
    LoopPatterns,
    collect_loop_patterns,
    collect_observations,
    find_discoverer,
    find_origin,
    invert_uses,
    is_about_pattern,
    is_later,
)
from core.learning.evidence_records import (
    EventIndex,
    Link,
    Links,
    WorkNames,
    build_links,
    change_links,
    is_unresolved,
    name_of_trials,
    newest_first,
)
from core.learning.following import WorkVerdict, find_verdicts
from core.learning.inversion import discovery_key, is_same_fix
from core.learning.maturity import SECONDS_PER_DAY, parse_moment
from core.learning.outcomes import (
    OutcomeSignals,
    Verdict,
    WorkReport,
    attempt_signals,
    is_report,
    loop_signals,
    loop_success,
    make_report,
    merge_reports,
    report_signals,
    score_outcome,
)
from core.records.events import ASSIGNED, VERDICT, Event, EventChanges, Observation, find_event_changes
from core.records.loops import InjectedUse, Loop, Outcome
from core.records.patterns import Pattern, PatternType, RecordedCounts

if TYPE_CHECKING:
    from core.base.settings import LearningSettings
    from core.records.decisions import CurationState
    from core.records.snapshot import Delta, Snapshot
    from core.records.team import TeamEvidence, TeamSums

_MOST_LATEST: Final = 16  # patterns, more than most changes affect
_SUCCESS: Final = {Verdict.HELPFUL: True, Verdict.HARMFUL: False}


class IgnoredReport(NamedTuple):
    """A harmful report that is revoked, or held until a person decides."""

    report: HarmfulReport
    source: str
    revoked: bool


@dataclass(frozen=True)
class EvidenceInputs:
    """Records behind the evidence of a project, by key; look-ups may be queries."""

    snapshot: Snapshot
    settings: LearningSettings
    links: Links
    events: EventIndex
    names: WorkNames
    ignored: Mapping[str, IgnoredPeriods] = field(default_factory=dict)  # sources with reports that do not count
    changed_work: frozenset[str] | None = None  # work whose uses the last change may affect; None: any
    _verdicts: dict[str, tuple[bool | None, datetime]] = field(default_factory=dict, repr=False, compare=False)
    _latest: dict[str, tuple[Pattern, tuple[Observation, ...]]] = field(default_factory=dict, repr=False, compare=False)
    """The evidence that was collected last: one change asks for that on the same patterns several times."""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        settings: LearningSettings,
        links: Links | None = None,
        events: EventIndex | None = None,
    ) -> EvidenceInputs:
        """Collect all records; look-ups that are not given are built."""
        links = build_links(snapshot) if links is None else links
        events = EventIndex.of(snapshot.events) if events is None else events
        return cls(snapshot, settings, links, events, WorkNames(snapshot, links)).with_settings(settings)

    def with_settings(self, settings: LearningSettings) -> EvidenceInputs:
        """Return the same records with other thresholds."""
        made = replace(self, settings=settings, ignored={}, changed_work=None, _verdicts={}, _latest={})
        reports = Counter({loop.id: len(loop.injected) for loop in self.snapshot.loops.values()})
        for name, count in self.events.doubtful.items():
            reports[self.owner_id(name)] += count
        suspects = {source for source, count in reports.items() if count > settings.max_marks}
        suspects |= set(map(self.owner_id, self.snapshot.curation.bursts))
        return replace(made, ignored=made._find_ignored(suspects))

    def with_ignored(self, before: EvidenceInputs, sources: Collection[str]) -> EvidenceInputs:
        """Recompute the ignored reports of `sources`; copy those of others from `before`."""
        kept = {source: periods for source, periods in before.ignored.items() if source not in sources}
        owners = [source for source in sources if self.owner_id(source) == source]  # others are names of other work now
        return replace(self, ignored=kept | self._find_ignored(owners), changed_work=frozenset(sources))

    def uses(self, pattern_id: str) -> list[tuple[Loop, InjectedUse]]:
        """Return the `injected` entries of loops about a pattern, newest loop first."""
        loops = self.snapshot.loops
        found = newest_first(loops[id] for id in self.links[Link.USED].get(pattern_id, ()))
        return [(loop, use) for loop in found for use in loop.injected if use.pattern_id == pattern_id]

    def _events(self, pattern_id: str) -> Sequence[Event]:
        return self.events.by_pattern.get(pattern_id, ())

    def about_work(self, name: str) -> Iterator[Event]:
        """Yield a work's events on patterns and reflections, except foreign verdicts."""
        events = self._without_others(self.events.by_work.get(name, ()))
        return (event for event in events if event.loop_id == name and is_about_pattern(event))

    def _list_held_out(self, loop: Loop) -> tuple[str, ...]:
        """Return the patterns that the experiment held out of a loop's work, each once."""
        is_own = self.snapshot.trial_key.is_own
        found = (
            event.pattern_id
            for name in self.names.works_of(loop)
            for event in self.events.by_work.get(name, ())
            if event.kind == ASSIGNED and event.loop_id == name and is_own(event)
        )
        return tuple(dict.fromkeys(found))

    def _without_others(self, events: Iterable[Event]) -> Iterator[Event]:
        """Leave out foreign verdicts: only this machine has the actions behind its own."""
        is_own = self.snapshot.foreign.is_own_event
        return (event for event in events if event.kind != VERDICT or is_own(event))

    def list_trials(self, text: str) -> list[Event]:
        """Return the user's own trial events for the key of a task text, oldest first."""
        is_own = self.snapshot.trial_key.is_own
        return [event for event in self.events.by_work.get(text, ()) if event.trial is not None and is_own(event)]

    def list_trials_of(self, pattern_id: str) -> list[Event]:
        """Return the user's own events of the experiment about a pattern, oldest first."""
        return [*filter(self.snapshot.trial_key.is_own, self.events.by_pattern.get(name_of_trials(pattern_id), ()))]

    def _unresolved(self, name: str) -> set[str]:
        """Return the patterns that this work applied without reporting a result."""
        return {event.pattern_id for event in self.about_work(name) if is_unresolved(event)}

    def patterns_of(self, works: Iterable[str]) -> set[str]:
        """Return the patterns whose results may come from these work items."""
        found: set[str] = set()
        for work_id in works:
            owner = self.owner_id(work_id)
            loop = self.snapshot.loops.get(owner)
            found.update(*map(self._unresolved, {work_id, *self.names.names_of(owner)}))
            found |= {use.pattern_id for use in loop.injected} if loop else set()
        return found

    def _source(self, event: Event) -> str:
        return self.owner_id(source_of(event))

    def sources_on(self, pattern_id: str) -> set[str]:
        """Return the sources that may have reported a pattern as harmful."""
        sources = {self._source(event) for event in self._events(pattern_id)}
        return sources.union(self.links[Link.USED].get(pattern_id, ()))

    @cached_property
    def has_warnings(self) -> bool:
        """Whether any pattern was made from another one, to warn of it."""
        return bool(self.links[Link.WARNING])

    def warnings_from(self, pattern_id: str) -> Sequence[str]:
        """Return the IDs of the anti-patterns that were made from a pattern, sorted."""
        return self.links[Link.WARNING].get(pattern_id, ())

    def find_warning(self, pattern: Pattern) -> Pattern | None:
        """Return the warning against a pattern's fix, made from a sibling pattern."""
        patterns = self.snapshot.patterns
        for id in self.siblings_of(pattern):
            original, warnings = patterns.get(id), self.warnings_from(id)
            if original is None or original.id == pattern.id or not warnings:
                continue
            group = [patterns[one] for one in self.siblings_of(original)]
            fixes = sum(one.type is PatternType.ERROR for one in group)
            if is_same_fix(pattern, original, is_only_fix=fixes <= 1):
                return patterns[warnings[0]]
        return None

    def siblings_of(self, pattern: Pattern) -> list[str]:
        """Return the patterns of the same discovery, if one of them became a warning."""
        key, origin = discovery_key(pattern), find_origin(pattern)
        if key is None or origin is None or not self.has_warnings:
            return []
        patterns = self.snapshot.patterns
        found = [id for id in self.links[Link.ORIGIN].get(origin.loop_id, ()) if discovery_key(patterns[id]) == key]
        return found if any(map(self.warnings_from, found)) else []

    def owner_id(self, work_id: str) -> str:
        return self.names.owner_id(work_id)

    def voter_id(self, owner_id: str) -> str:
        attempt = self.snapshot.attempts.get(owner_id)
        return owner_id if attempt is None else attempt.task_id

    def signals(self, work_id: str) -> OutcomeSignals | None:
        """Return the outcome signals of a work item; None if it has not finished."""
        loop, known = self.snapshot.loops.get(work_id), self.events.reports
        named = (known.get(name) for name in self.names.loop_ids_of(work_id))
        report = merge_reports(make_report(events) for events in named if events)
        if loop is not None and not self.names.is_recorded_as_tasks(loop):
            return loop_signals(loop, report, self.names.sessions_of(work_id))
        attempt = self.snapshot.attempts.get(work_id)
        if attempt is None:
            return report_signals(work_id, report)
        return attempt_signals(attempt, report, self.names.sessions_of(work_id))

    def finished(self) -> Iterator[str]:
        """Yield the IDs of all work items that have finished."""
        loops, attempts = self.snapshot.loops, self.snapshot.attempts
        others = (id for id in self.events.reports if self.names.find_loop_id(id) not in loops and id not in attempts)
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

    def has_logged(self, name: str) -> bool:
        """Return whether the event log has events about patterns with a work ID."""
        return any(True for _ in self.about_work(name))

    def outcome_success(self, work_id: str) -> bool | None:
        success, at = self._verdict(work_id)
        is_ignored = success is False and self._is_revoked(work_id, HarmfulReport(at, "")) is not None
        return None if is_ignored else success

    def ignores(self, event: Event) -> bool:
        return bool(self.ignored) and self._is_revoked(self._source(event), report_of_event(event)) is not None

    def bursts(self) -> tuple[Burst, ...]:
        """Return the earliest undecided burst of each source, the largest first."""
        found = [self._burst(source, periods.held[0]) for source, periods in self.ignored.items() if periods.held]
        found += member_bursts(self.snapshot.team.held, self.snapshot.curation.bursts)
        return tuple(sorted(found, key=lambda burst: (-len(burst.patterns), burst.source, burst.first)))

    def _burst(self, source: str, period: Period) -> Burst:
        reported = sorted({one.pattern_id for one in self._reports(source) if is_within(one.at, (period,))})
        loop = self.snapshot.loops.get(source)
        given = {use.pattern_id for use in loop.injected} if loop else set()
        given |= {
            event.pattern_id
            for id in reported
            for event in self._events(id)
            if event.kind == "injected" and self._source(event) == source
        }
        never = len(set(reported) - given)
        return Burst(source=source, first=period.first, last=period.last, patterns=tuple(reported), never_given=never)

    def _reports(self, source: str) -> list[HarmfulReport]:
        """Return all harmful reports of a source, also those by a harmful outcome."""
        loop, names = self.snapshot.loops.get(source), self.names.names_of(source)
        events = (event for name in names for event in self.events.by_work.get(name, ()) if source_of(event) == name)
        reports = [report_of_event(event) for event in events]
        reports += [report_of_use(loop, use) for use in loop.injected] if loop else []
        success, at = self._verdict(source)
        if success is False:
            reports += [HarmfulReport(at, id) for id in self._without_result(source)]
        return [one for one in reports if one is not None and one.pattern_id in self.snapshot.patterns]

    def _without_result(self, work_id: str) -> set[str]:
        """Return the patterns that a work item applied without any recorded result."""
        loop = self.snapshot.loops.get(work_id)
        applied = set[str]().union(*map(self._unresolved, self.names.names_of(work_id)))
        if loop:
            applied |= {use.pattern_id for use in loop.injected if use.applied and use.successful is None}
        return {
            id
            for id in applied
            if not any(e.success is not None and self.owner_id(e.loop_id) == work_id for e in self._events(id))
        }

    def depending_on(self, source: str) -> set[str]:
        """Return the patterns whose evidence may depend on reports of a source."""
        return {report.pattern_id for report in self._reports(source)} | self.patterns_of([source])

    def _find_ignored(self, sources: Iterable[str]) -> dict[str, IgnoredPeriods]:
        verdicts = self.snapshot.curation.bursts
        found = {}
        for source in sources:
            given = [verdict for name in self.names.names_of(source) for verdict in verdicts.get(name, ())]
            found[source] = find_ignored_periods(self._reports(source), given, self.settings)
        return {source: periods for source, periods in found.items() if any(periods)}

    def ignored_reports(self, pattern_id: str) -> tuple[IgnoredReport, ...]:
        """Return the harmful reports on a pattern that do not count."""
        if not self.ignored:
            return ()
        reports = [(self._source(event), report_of_event(event)) for event in self._events(pattern_id)]
        reports += [(loop.id, report_of_use(loop, use)) for loop, use in self.uses(pattern_id)]
        for source in self.sources_on(pattern_id) & self.ignored.keys():
            success, at = self._verdict(source)
            if success is False and pattern_id in self._without_result(source):
                reports.append((source, HarmfulReport(at, pattern_id)))
        return tuple(
            IgnoredReport(report, source, revoked)
            for source, report in reports
            if report is not None and (revoked := self._is_revoked(source, report)) is not None
        )

    def _is_revoked(self, source: str, report: HarmfulReport | None) -> bool | None:
        """Return whether a report is revoked (True) or held (False); None if it counts."""
        periods = self.ignored.get(source)
        if periods is None or report is None:
            return None
        if is_within(report.at, periods.revoked):
            return True
        return False if is_within(report.at, periods.held) else None

    def observations(self, pattern: Pattern) -> tuple[Observation, ...]:
        """Return the evidence of this project on one pattern; see `collect_observations`."""
        known, found = self._latest.get(pattern.id, (None, ()))
        if known is not pattern:
            found = self._collect(pattern)
            if len(self._latest) >= _MOST_LATEST:
                self._latest.clear()
            self._latest[pattern.id] = pattern, found
        return found

    def _collect(self, pattern: Pattern) -> tuple[Observation, ...]:
        patterns, loops = self.snapshot.patterns, self.snapshot.loops
        uses: Sequence[tuple[Loop, InjectedUse]] = self.uses(pattern.id)
        events: Sequence[Event] = self._events(pattern.id)
        for alias in dict.fromkeys(pattern.aliases):
            if alias not in patterns:
                uses = [*uses, *self.uses(alias)]
                events = [*events, *self._events(alias)]
        discoverer = find_discoverer(loops[id] for id in self.links[Link.FOUND].get(pattern.id, ()))
        foreign = self.snapshot.foreign
        if pattern.id in foreign.patterns:  # what files say about it is a claim; see docs/scoring.md#claims
            pattern = structs.replace(pattern, recorded_counts=RecordedCounts(), source_loops=(), trend=())
            uses, discoverer = (), None
            events = [event for event in events if foreign.is_own_event(event)]
        ignored: list[Observation] = []
        if self.ignored:
            uses = [(loop, self._without_report(loop, use, pattern, ignored)) for loop, use in uses]
        is_made = pattern.type is PatternType.ANTI and bool(pattern.inverted_from)
        original = patterns.get(pattern.inverted_from) if is_made else None
        is_known = original is not None and original.type is not PatternType.ANTI
        inherited = invert_uses(pattern, self._collect(original)) if original is not None and is_known else ()
        return collect_observations(pattern, uses, events, discoverer, self, ignored, inherited)

    def verdicts(self, pattern: Pattern) -> list[WorkVerdict]:
        """Return whether all work given a pattern followed it; see `find_verdicts`."""
        names = (pattern.id, *(alias for alias in pattern.aliases if alias not in self.snapshot.patterns))
        events: Iterable[Event] = (event for name in dict.fromkeys(names) for event in self._events(name))
        uses: Iterable[tuple[Loop, InjectedUse]] = (use for name in dict.fromkeys(names) for use in self.uses(name))
        if pattern.id in self.snapshot.foreign.patterns:
            uses, events = (), (event for event in events if self.snapshot.foreign.is_own_event(event))
        return find_verdicts(self._without_others(events), uses, self.owner_id)

    def all_results(self, pattern: Pattern) -> tuple[Observation, ...]:
        """Return the evidence except sightings, then that of the team's other projects."""
        sums = find_team_sums(self.snapshot, pattern) if self.snapshot.team.sums else None
        found = tuple(one for one in self.observations(pattern) if not one.is_sighting)
        return found if sums is None else (*found, *list_team_results(sums, self.snapshot.team))

    def shown_signals(self, work_id: str) -> OutcomeSignals | None:
        """Return a work item's signals; for a session of tasks, the newest available."""
        loop = self.snapshot.loops.get(work_id)
        if loop is None or not self.names.is_recorded_as_tasks(loop):
            return self.signals(work_id)
        newest_first = reversed(self.names.attempts_of(loop))
        return next((found for one in newest_first if (found := self.signals(one.id)) is not None), None)

    def success_of(self, loop: Loop) -> bool | None:
        """Return a loop's success by `shown_signals`; None if unknown or partial."""
        if not self.names.is_recorded_as_tasks(loop):
            known, names = self.events.reports, self.names.loop_ids_of(loop.id) if loop.aliases else (loop.id,)
            found = [events for name in names if (events := known.get(name))]
            return loop_success(loop, merge_reports(map(make_report, found)) if found else WorkReport())
        signals = self.shown_signals(loop.id)
        return signals.success if signals is not None and not signals.partial else None

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        """Return the patterns of a loop; empty for an unknown loop."""
        loop = self.snapshot.loops.get(loop_id)
        if loop is None:
            return LoopPatterns()
        found = (event for name in self.names.works_of(loop) for event in self.about_work(name))
        events, held_out = sorted(found, key=lambda event: event.at), self._list_held_out(loop)
        if not events and not held_out and not loop.injected and not loop.extracted:
            return LoopPatterns()
        known = self.snapshot.patterns
        entries = loop.injected
        if self.ignored:
            patterns = (known.get(use.pattern_id) for use in entries)
            pairs = zip(entries, patterns, strict=True)
            entries = tuple(self._without_report(loop, use, one, []) if one else use for use, one in pairs)
        return collect_loop_patterns(loop, entries, events, known, self, held_out)

    def _without_report(
        self, loop: Loop, use: InjectedUse, pattern: Pattern, ignored: list[Observation]
    ) -> InjectedUse:
        """Return the entry, without its use and result if its report does not count.

        Adds the use to `ignored` if the record of the pattern may have counted it.
        """
        report = report_of_use(loop, use)
        if report is None or self._is_revoked(loop.id, report) is None:
            return use
        at = known_time(report.at)
        failed = Observation(pattern_id=use.pattern_id, kind="applied", source=LOOP, at=at, success=False)
        if not is_later(failed, pattern):
            ignored.append(failed)
        return InjectedUse(pattern_id=use.pattern_id, iteration=use.iteration, at=use.at)


def suppose_inputs(before: EvidenceInputs, snapshot: Snapshot, delta: Delta) -> EvidenceInputs | None:
    """Return inputs after a change, without ignored reports; None to collect all."""
    changes = find_event_changes(before.snapshot.events, snapshot.events) if delta.events else EventChanges((), ())
    if changes is None or changes.removed:
        return None
    links = change_links(before.links, before.snapshot, snapshot, delta)
    events = before.events.extended(changes.added) if changes.added else before.events
    return EvidenceInputs(snapshot, before.settings, links, events, WorkNames(snapshot, links))


def settle(before: EvidenceInputs, after: EvidenceInputs, delta: Delta) -> tuple[EvidenceInputs, frozenset[str]] | None:
    """Find the reports that do not count after a change, and the affected patterns.

    `after` has the new records, but no ignored reports. None if all evidence must be collected again.
    """
    changes = find_event_changes(before.snapshot.events, after.snapshot.events) if delta.events else None
    if delta.events and changes is None:
        return None
    change = _Change(before, after, delta)
    if changes is not None:
        change.add_events(changes)
    change.add_names()
    change.add_decisions()
    change.add_patterns()
    sources = change.find_sources()
    change.after = after.with_ignored(before, sources)
    change.add_results(sources)
    change.add_relatives()
    return change.after, frozenset(change.patterns)


@dataclass
class _Change:
    """Collects the patterns, works and sources of reports that a change affects."""

    before: EvidenceInputs
    after: EvidenceInputs
    delta: Delta
    patterns: set[str] = field(default_factory=set)
    works: set[str] = field(default_factory=set)  # loops and attempts, by any of their names
    sources: set[str] = field(default_factory=set)

    @property
    def both(self) -> tuple[EvidenceInputs, EvidenceInputs]:
        return self.before, self.after

    def add_events(self, changes: EventChanges) -> None:
        for event in (*changes.added, *changes.removed):
            if event.pattern_id:
                self.patterns.add(event.pattern_id)
                self.sources.update(filter(None, (source_of(event), event.loop_id)))
            if is_report(event):
                self.works.add(event.loop_id)

    def add_names(self) -> None:
        """Add changed loops and attempts, and what belongs to other work than before."""
        delta = self.delta
        self.works |= delta.loops | delta.attempts
        names = dict.fromkeys(self.after.names.changed_names(self.before.names, delta))
        for name in names:
            owners = [inputs.owner_id(name) for inputs in self.both]
            self.works.update((name, *owners))
            # The uses of the attempts at one task have one result together.
            is_moved = owners[0] != owners[1] or name in delta.attempts
            for inputs in self.both if is_moved else ():
                self.patterns.update(event.pattern_id for event in inputs.about_work(name))
                self.patterns.update(inputs.links[Link.ORIGIN].get(name, ()))
        for inputs in self.both:
            self.works.update(inputs.names.loops_recorded_as_tasks(delta))
        mentioning = (id for inputs in self.both for id in inputs.names.mentioned_in(names))
        for id in {*delta.debug_sessions, *mentioning}:
            for inputs in self.both:
                if (session := inputs.snapshot.debug_sessions.get(id)) is not None:
                    self.works.add(inputs.names.session_owner(session))

    def add_decisions(self) -> None:
        before, after = (inputs.snapshot.curation for inputs in self.both)
        self.patterns |= find_changed_patterns(before, after)
        self.sources |= _find_changed_keys(before.bursts, after.bursts)

    def add_patterns(self) -> None:
        """Add changed patterns, their sums, and those that changed loops found."""
        delta, one, two = self.delta, self.before.snapshot, self.after.snapshot
        self.patterns |= delta.patterns | delta.team | (one.foreign.patterns ^ two.foreign.patterns)
        for id in delta.loops:
            for loop in (one.loops.get(id), two.loops.get(id)):
                if loop is not None:
                    self.patterns.update(entry.pattern_id for entry in loop.extracted)
        for id in delta.patterns:
            if (id in one.patterns) is not (id in two.patterns):  # only reports on known patterns count
                self.sources.update(*(inputs.sources_on(id) for inputs in self.both))

    def find_sources(self) -> frozenset[str]:
        """Return the sources whose reports may count differently, by their work IDs."""
        return frozenset(inputs.owner_id(name) for inputs in self.both for name in (*self.sources, *self.works))

    def add_results(self, sources: Iterable[str]) -> None:
        """Add the patterns whose results or counted reports may have changed."""
        for inputs in self.both:
            self.patterns |= inputs.patterns_of(self.works)
        for source in sources:
            old, new = (inputs.ignored.get(source) for inputs in self.both)
            if old != new or new is not None:
                self.patterns.update(*(inputs.depending_on(source) for inputs in self.both))

    def add_relatives(self) -> None:
        """Add the originals, siblings, heirs and warnings of patterns."""
        for pattern in self._with_originals():
            self.patterns.add(pattern.inverted_from)
            self.patterns.update(*(inputs.siblings_of(pattern) for inputs in self.both))
        for link in (Link.HEIR, Link.WARNING):
            for id in tuple(self.patterns):
                self.patterns.update(*(inputs.links[link].get(id, ()) for inputs in self.both))

    def _with_originals(self) -> Iterable[Pattern]:
        """Yield the changed patterns, before and after, and their originals."""
        for inputs in self.both:
            known = inputs.snapshot.patterns
            for pattern in filter(None, map(known.get, self.delta.patterns)):
                yield pattern
                if (original := self.after.snapshot.patterns.get(pattern.inverted_from)) is not None:
                    yield original


def _find_changed_keys(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {id for id in before.keys() | after.keys() if before.get(id) != after.get(id)}


def find_changed_patterns(before: CurationState, after: CurationState) -> set[str]:
    """Return the patterns about which two states of the decisions differ."""
    found = (before.extracted ^ after.extracted) | (before.imported.keys() ^ after.imported.keys())
    for name in ("pins", "inversions", "arrivals", "cleared", "approved", "guidance"):
        found |= _find_changed_keys(getattr(before, name), getattr(after, name))
    return set(found)


TEAM: Final = "team"  # source of the observations of `list_team_results`


def find_team_sums(snapshot: Snapshot, pattern: Pattern) -> TeamSums | None:
    """Return the sums of a pattern and of those merged into it; None without any."""
    team, patterns = snapshot.team.sums, snapshot.patterns
    found = team.get(pattern.id)
    for alias in dict.fromkeys(pattern.aliases):
        if alias not in patterns and (merged := team.get(alias)) is not None:
            found = merged if found is None else found + merged
    return found


def list_team_results(sums: TeamSums, evidence: TeamEvidence) -> tuple[Observation, ...]:
    """Return at most four observations: counts and decayed sums of all results.

    Those that decay are of the time of the last use, with the sums at that time as weights, which may be above 1.
    """
    found: list[Observation] = []
    age = 0.0
    if sums.last_used is not None:
        age = (evidence.epoch - sums.last_used).total_seconds() / SECONDS_PER_DAY / evidence.half_life_days
    for success, count, moving, fixed in (
        (True, sums.successes, sums.helpful, sums.fixed_helpful),
        (False, sums.failures, sums.harmful, sums.fixed_harmful),
    ):
        value = 2.0 ** (math.log2(moving) + age) if moving else 0.0
        undated = min(count, 1 if moving else count) if fixed else 0
        for at, part, weight in ((sums.last_used, count - undated, value), (None, undated, fixed)):
            if part:
                observation = Observation(
                    pattern_id=sums.pattern_id,
                    kind=TEAM,
                    source=TEAM,
                    at=at,
                    success=success,
                    weight=weight / part,
                    count=part,
                )
                found.append(observation)
    return tuple(found)
