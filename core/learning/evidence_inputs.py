"""The evidence on each pattern, without harmful reports that do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from core.learning.bursts import (
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
)
from core.learning.evidence import collect_observations, invert_uses, is_later
from core.learning.evidence_index import EvidenceIndex, aliases, inverted_ids, reindex
from core.learning.inversion_rules import discovery_keys
from core.learning.recorded_uses import LOOP, LoopPatterns, collect_loop_patterns
from core.learning.team_sums import find_team_sums, list_team_results
from core.learning.work_names import WorkNames, changes_owners
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import PatternType, RecordedCounts

if TYPE_CHECKING:
    from core.config.settings import LearningSettings
    from core.learning.outcomes import OutcomeSignals
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot

_MOST_LATEST: Final = 16  # patterns, more than most changes affect


class IgnoredReport(NamedTuple):
    """A harmful report that is revoked, or held until a person decides."""

    report: HarmfulReport
    source: str
    revoked: bool


@dataclass(frozen=True)
class EvidenceInputs(EvidenceIndex):
    """All records that the evidence of a project comes from."""

    ignored: Mapping[str, IgnoredPeriods] = field(default_factory=dict)  # sources with reports that do not count
    changed_work: frozenset[str] | None = None  # work whose uses the last change may affect; None: any
    _latest: dict[str, tuple[Pattern, tuple[Observation, ...]]] = field(default_factory=dict, repr=False, compare=False)
    """The evidence that was collected last: one change asks for that on the same patterns several times."""

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings) -> EvidenceInputs:
        return cls.index(snapshot, settings).with_settings(settings)

    def with_settings(self, settings: LearningSettings) -> EvidenceInputs:
        """Return the same records with other thresholds."""
        made = replace(self, settings=settings, ignored={}, changed_work=None, _verdicts={}, _latest={})
        reports = Counter({loop.id: len(loop.injected) for loop in self.snapshot.loops.values()})
        of_works: tuple[Mapping[str, Sized], ...] = self.harmful_events, self.unresolved
        for found in of_works:
            reports.update({source: len(reported) for source, reported in found.items()})
            for source in self.names.resolved_names(found):
                if (owner := self.owner_id(source)) != source:
                    reports[owner] += len(found[source])
                    reports[source] -= len(found[source])
        suspects = {source for source, count in reports.items() if count > settings.max_marks}
        suspects |= set(map(self.owner_id, self.snapshot.curation.bursts))
        return replace(made, ignored=made._find_ignored(suspects))

    def apply_delta(self, snapshot: Snapshot, delta: Delta, names: WorkNames) -> tuple[EvidenceInputs, set[str]]:
        """Apply a change; return the new inputs and the affected patterns.

        `names` are those of the new snapshot.
        """
        affected = {*delta.patterns, *delta.team, *(self.snapshot.foreign.patterns ^ snapshot.foreign.patterns)}
        sources = {*delta.loops, *delta.attempts}
        after = replace(self, snapshot=snapshot, names=names, _verdicts={}, _latest={})
        if delta.events:
            after, patterns, named = after._with_events(self.snapshot.events)
            affected |= patterns
            sources |= named
        if delta.loops:
            after, patterns = after._with_loops(self.snapshot.loops, delta.loops)
            affected |= patterns
        if changes_owners(self.snapshot, snapshot, delta):
            after = replace(after, sessions=names.group_sessions())
            named = _find_changed_keys(self.sessions, after.sessions)
            affected |= after._patterns_of(named)
            sources |= named
        for id in delta.attempts:
            affected |= after.unresolved.get(id, frozenset())
        curation = self.snapshot.curation, snapshot.curation
        affected |= find_changed_patterns(*curation)
        sources |= set(map(after.owner_id, _find_changed_keys(curation[0].bursts, curation[1].bursts)))
        old = [self.snapshot.patterns[id] for id in delta.patterns if id in self.snapshot.patterns]
        new = [snapshot.patterns[id] for id in delta.patterns if id in snapshot.patterns]
        affected |= {pattern.inverted_from for pattern in (*old, *new)}
        for id in {pattern.id for pattern in old} ^ {pattern.id for pattern in new}:
            sources |= after._sources_on(id)
        ignored = {source: found for source, found in self.ignored.items() if source not in sources}
        ignored |= after._find_ignored(sources)
        for source in sources:
            if ignored.get(source) != self.ignored.get(source):
                affected |= self._depending_on(source) | after._depending_on(source)
        after = replace(
            after,
            inverted=reindex(self.inverted, old, new, inverted_ids),
            discovered=reindex(self.discovered, old, new, discovery_keys),
            heirs=reindex(self.heirs, old, new, aliases),
            ignored=ignored,
            changed_work=frozenset(sources),
        )
        originals = (snapshot.patterns.get(one.inverted_from) for one in (*old, *new) if one.inverted_from)
        for pattern in (*old, *new, *filter(None, originals)):
            affected |= {*self._siblings_of(pattern), *after._siblings_of(pattern)}
        for id in delta.attempts:  # the uses of the attempts at one task have one result together
            if (id in self.snapshot.attempts) is not (id in snapshot.attempts):
                affected |= {event.pattern_id for event in after.events_by_work.get(id, ()) if event.pattern_id}
        for id in tuple(affected):
            affected |= self.heirs.get(id, frozenset()) | after.heirs.get(id, frozenset())
        for id in tuple(affected):
            affected |= after.inverted.get(id, frozenset())
        after._latest.update((id, found) for id, found in self._latest.copy().items() if id not in affected)
        return after, affected

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
            for event in self.events.get(id, ())
            if event.kind == "injected" and self._source(event) == source
        }
        never = len(set(reported) - given)
        return Burst(source=source, first=period.first, last=period.last, patterns=tuple(reported), never_given=never)

    def _reports(self, source: str) -> list[HarmfulReport]:
        """Return all harmful reports of a source, also those by a harmful outcome."""
        loop, names = self.snapshot.loops.get(source), self.names.names_of(source)
        reports = [report_of_event(event) for name in names for event in self.harmful_events.get(name, ())]
        reports += [report_of_use(loop, use) for use in loop.injected] if loop else []
        success, at = self._verdict(source)
        if success is False:
            reports += [HarmfulReport(at, id) for id in self._without_result(source)]
        return [one for one in reports if one is not None and one.pattern_id in self.snapshot.patterns]

    def _without_result(self, work_id: str) -> set[str]:
        """Return the patterns that a work item applied without any recorded result."""
        loop = self.snapshot.loops.get(work_id)
        applied: set[str] = set().union(
            *(self.unresolved.get(name, frozenset()) for name in self.names.names_of(work_id))
        )
        if loop:
            applied |= {use.pattern_id for use in loop.injected if use.applied and use.successful is None}
        return {
            id
            for id in applied
            if not any(e.success is not None and self.owner_id(e.loop_id) == work_id for e in self.events.get(id, ()))
        }

    def _depending_on(self, source: str) -> set[str]:
        """Return the patterns whose evidence may depend on reports of a source."""
        return {report.pattern_id for report in self._reports(source)} | self._patterns_of([source])

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
        reports = [(self._source(event), report_of_event(event)) for event in self.events.get(pattern_id, ())]
        reports += [(loop.id, report_of_use(loop, use)) for loop, use in self.uses.get(pattern_id, ())]
        for source in self._sources_on(pattern_id) & self.ignored.keys():
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
        uses: Sequence[tuple[Loop, InjectedUse]] = self.uses.get(pattern.id, ())
        events: Sequence[Event] = self.events.get(pattern.id, ())
        for alias in dict.fromkeys(pattern.aliases):
            if alias not in self.snapshot.patterns:
                uses = [*uses, *self.uses.get(alias, ())]
                events = [*events, *self.events.get(alias, ())]
        discoverer, foreign = self.discoverers.get(pattern.id), self.snapshot.foreign
        if pattern.id in foreign.patterns:  # what files say about it is a claim; see docs/scoring.md#claims
            pattern = structs.replace(pattern, recorded_counts=RecordedCounts(), source_loops=(), trend=())
            uses, discoverer = (), None
            events = [event for event in events if foreign.is_own_event(event)]
        ignored: list[Observation] = []
        if self.ignored:
            uses = [(loop, self._without_report(loop, use, pattern, ignored)) for loop, use in uses]
        original = self.snapshot.patterns.get(pattern.inverted_from) if inverted_ids(pattern) else None
        is_known = original is not None and original.type is not PatternType.ANTI
        inherited = invert_uses(pattern, self._collect(original)) if original is not None and is_known else ()
        return collect_observations(pattern, uses, events, discoverer, self, ignored, inherited)

    def all_results(self, pattern: Pattern) -> tuple[Observation, ...]:
        """Return the evidence on one pattern without sightings, followed by that of the team's other projects."""
        sums = find_team_sums(self.snapshot, pattern) if self.snapshot.team.sums else None
        found = tuple(one for one in self.observations(pattern) if not one.is_sighting)
        return found if sums is None else (*found, *list_team_results(sums, self.snapshot.team))

    def shown_signals(self, work_id: str) -> OutcomeSignals | None:
        """Return the signals of a work item; of a session whose attempts are scored, those of the newest with any."""
        loop = self.snapshot.loops.get(work_id)
        if loop is None or not self.names.is_recorded_as_tasks(loop):
            return self.signals(work_id)
        newest_first = reversed(self.names.attempts_of(loop))
        return next((found for one in newest_first if (found := self.signals(one.id)) is not None), None)

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        """Return the patterns of a loop; empty for an unknown loop."""
        loop = self.snapshot.loops.get(loop_id)
        if loop is None:
            return LoopPatterns()
        found = (event for name in self.names.works_of(loop) for event in self.events_by_work.get(name, ()))
        events = sorted(found, key=lambda event: event.at)
        if not events and not loop.injected and not loop.extracted:
            return LoopPatterns()
        known = self.snapshot.patterns
        entries = loop.injected
        if self.ignored:
            patterns = (known.get(use.pattern_id) for use in entries)
            pairs = zip(entries, patterns, strict=True)
            entries = tuple(self._without_report(loop, use, one, []) if one else use for use, one in pairs)
        return collect_loop_patterns(loop, entries, events, known, self)

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


def _find_changed_keys(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {id for id in before.keys() | after.keys() if before.get(id) != after.get(id)}


def find_changed_patterns(before: CurationState, after: CurationState) -> set[str]:
    """Return the patterns about which two states of the decisions differ."""
    found = (before.extracted ^ after.extracted) | (before.imported.keys() ^ after.imported.keys())
    for name in ("pins", "inversions", "arrivals", "cleared", "approved", "guidance"):
        found |= _find_changed_keys(getattr(before, name), getattr(after, name))
    return set(found)
