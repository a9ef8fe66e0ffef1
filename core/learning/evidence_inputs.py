"""What the scoreboard's evidence is made of, indexed by pattern and by who tells of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from core.config.settings import LearningSettings
from core.learning.bursts import (
    UNDATED,
    Burst,
    Mark,
    Stretch,
    dated,
    held_and_revoked,
    report_of_event,
    report_of_use,
    source_of,
    within,
)
from core.learning.decay import moment
from core.learning.evidence import (
    collect_observations,
    discoverers,
    group_events_by_pattern,
    group_uses_by_pattern,
    is_later,
)
from core.learning.finished_work import (
    Report,
    attempt_signals,
    collect_reports,
    is_report,
    joined,
    loop_signals,
    report_signals,
)
from core.learning.loop_patterns import LoopPatterns, collect_loop_patterns, group_events_by_work
from core.learning.outcomes import OutcomeSignals, Verdict, score_outcome
from core.learning.recorded_uses import LOOP
from core.learning.session_errors import moves_sessions, sessions_by_work
from core.learning.work_names import WorkNames
from core.records.debug_sessions import DebugSession
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop, Outcome
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Delta, Snapshot

_SUCCESS = {Verdict.HELPFUL: True, Verdict.HARMFUL: False}


class Aside(NamedTuple):
    """The times in which harmful marks of one source do not count."""

    held: tuple[Stretch, ...]
    """Until somebody decides."""
    revoked: tuple[Stretch, ...]


class IgnoredReport(NamedTuple):
    """A harmful mark on a pattern that does not count."""

    mark: Mark
    source: str
    revoked: bool
    """By a decision; else it waits for one."""


@dataclass(frozen=True)
class Inputs:
    """What the evidence is made of.

    Attributes:
        uses, found_by, by_event: Loops' entries, discovering loop and events of each pattern.
        inverted: Patterns that anti-patterns say they were made from, with the ids of these.
        heirs: Other ids by which patterns go, since one was merged into them, with the patterns' own.
        unresolved: Patterns that events say were applied, without a result of their own, by loop or attempt.
        reports: What the event log says of loops and attempts as a whole.
        blames: Events that are harmful marks, by source.
        by_user: Events about patterns of each loop or attempt, by the ID in the event.
        sessions: Debug sessions, by the loop or attempt whose errors they tell.
        aside: Sources whose harmful marks do not all count.
    """

    snapshot: Snapshot
    settings: LearningSettings
    uses: Mapping[str, list[tuple[Loop, InjectedUse]]]
    found_by: Mapping[str, Loop]
    by_event: Mapping[str, list[Event]]
    inverted: Mapping[str, frozenset[str]]
    heirs: Mapping[str, frozenset[str]]
    unresolved: Mapping[str, frozenset[str]]
    reports: Mapping[str, Report]
    blames: Mapping[str, tuple[Event, ...]]
    by_user: Mapping[str, list[Event]]
    sessions: Mapping[str, tuple[DebugSession, ...]] = field(default_factory=dict)
    aside: Mapping[str, Aside] = field(default_factory=dict)
    _verdicts: dict[str, tuple[bool | None, datetime]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings) -> Inputs:
        """Indexed from scratch."""
        loops, events = snapshot.loops, snapshot.events
        made = cls(
            snapshot,
            settings,
            group_uses_by_pattern(loops.values()),
            discoverers(loops.values()),
            group_events_by_pattern(events),
            _moved({}, (), snapshot.patterns.values(), _made_from),
            _moved({}, (), snapshot.patterns.values(), _aliases),
            _unresolved(events),
            collect_reports(events),
            _blames(events),
            group_events_by_work(events),
        )
        return replace(made, sessions=sessions_by_work(snapshot, made.row_id)).under(settings)

    def under(self, settings: LearningSettings) -> Inputs:
        """The same under other thresholds."""
        made = replace(self, settings=settings, aside={}, _verdicts={})
        told: Counter[str] = Counter()
        for loop in self.snapshot.loops.values():
            told[loop.id] = len(loop.injected)
        for source, marks in self.blames.items():
            told[self.user_id(source)] += len(marks)
        for work_id, patterns in self.unresolved.items():
            told[self.user_id(work_id)] += len(patterns)
        suspects = {source for source, count in told.items() if count > settings.max_marks}
        return replace(made, aside=made._judged(suspects | set(map(self.user_id, self.snapshot.curation.bursts))))

    def changed(self, snapshot: Snapshot, delta: Delta) -> tuple[Inputs, set[str]]:
        """What they are after a change, and which patterns it touches."""
        touched = set(delta.patterns)
        sources = {*delta.loops, *delta.attempts}
        after = replace(self, snapshot=snapshot, _verdicts={})
        if delta.events:
            after, affected, told = after._with_events(self.snapshot.events)
            touched |= affected
            sources |= told
        if delta.loops:
            after, affected = after._with_loops(self.snapshot.loops, delta.loops)
            touched |= affected
        if moves_sessions(self.snapshot, snapshot, delta):
            after, told = after._with_sessions()
            touched |= after._patterns_of(told)
            sources |= told
        for id in delta.attempts:
            touched |= after.unresolved.get(id, frozenset())
        old, new = self.snapshot.curation, snapshot.curation
        touched |= {id for id in old.pins.keys() | new.pins.keys() if old.pins.get(id) != new.pins.get(id)}
        verdicts = old.inversions.keys() | new.inversions.keys()
        touched |= {id for id in verdicts if old.inversions.get(id) != new.inversions.get(id)}
        arrived = old.arrivals.keys() | new.arrivals.keys()
        touched |= {id for id in arrived if old.arrivals.get(id) != new.arrivals.get(id)}
        touched |= {id for id in old.cleared.keys() | new.cleared.keys() if old.cleared.get(id) != new.cleared.get(id)}
        approved = old.approved.keys() | new.approved.keys()
        touched |= {id for id in approved if old.approved.get(id) != new.approved.get(id)}
        touched |= (old.extracted ^ new.extracted) | (old.imported.keys() ^ new.imported.keys())
        judged = {id for id in old.bursts.keys() | new.bursts.keys() if old.bursts.get(id) != new.bursts.get(id)}
        sources |= set(map(after.user_id, judged))
        gone = [self.snapshot.patterns[id] for id in delta.patterns if id in self.snapshot.patterns]
        come = [snapshot.patterns[id] for id in delta.patterns if id in snapshot.patterns]
        touched |= {pattern.inverted_from for pattern in (*gone, *come)}
        for id in {pattern.id for pattern in gone} ^ {pattern.id for pattern in come}:
            sources |= after._sources_on(id)
        aside = {source: found for source, found in self.aside.items() if source not in sources}
        aside |= after._judged(sources)
        for source in sources:
            if aside.get(source) != self.aside.get(source):
                touched |= self._held_by(source) | after._held_by(source)
        heirs = _moved(self.heirs, gone, come, _aliases)
        for id in tuple(touched):
            touched |= self.heirs.get(id, frozenset()) | heirs.get(id, frozenset())
        inverted = _moved(self.inverted, gone, come, _made_from)
        return replace(after, inverted=inverted, heirs=heirs, aside=aside), touched

    def _with_loops(self, before: Mapping[str, Loop], changed: frozenset[str]) -> tuple[Inputs, set[str]]:
        loops = self.snapshot.loops
        gone = [before[id] for id in changed if id in before]
        come = [loops[id] for id in changed if id in loops]
        affected = {use.pattern_id for loop in (*gone, *come) for use in loop.injected}
        uses, new = dict(self.uses), group_uses_by_pattern(come)
        for id in affected:
            kept = [pair for pair in uses.get(id, ()) if pair[0].id not in changed]
            uses[id] = kept + new.get(id, [])
        extracted = {entry.pattern_id for loop in (*gone, *come) for entry in loop.extracted}
        found_by = discoverers(loops.values()) if extracted else self.found_by
        for loop in (*gone, *come):
            for name in self._told_by(loop.id):
                affected |= self.unresolved.get(name, frozenset())
        return replace(self, uses=uses, found_by=found_by), affected | extracted

    def _with_events(self, before: Sequence[Event]) -> tuple[Inputs, set[str], set[str]]:
        """These with the events of the snapshot; which patterns, and which sources, the new ones touch."""
        events, known = self.snapshot.events, len(before)
        if known and (len(events) < known or events[0] is not before[0] or events[known - 1] is not before[-1]):
            fresh = replace(
                self,
                by_event=group_events_by_pattern(events),
                unresolved=_unresolved(events),
                reports=collect_reports(events),
                blames=_blames(events),
                by_user=group_events_by_work(events),
            )
            work_items = self.reports.keys() | fresh.reports.keys()
            touched = self.by_event.keys() | fresh.by_event.keys() | fresh._patterns_of(work_items)
            told = {event.loop_id for event in (*before, *events)} | self.blames.keys() | fresh.blames.keys()
            return fresh, set(touched), set(map(fresh.user_id, told))
        new = events[known:]
        found, marks = group_events_by_pattern(new), _blames(new)
        by_event, blames, reports = dict(self.by_event), dict(self.blames), dict(self.reports)
        for id, added in found.items():
            by_event[id] = by_event.get(id, []) + added
        by_user = dict(self.by_user)
        for id, added in group_events_by_work(new).items():
            by_user[id] = by_user.get(id, []) + added
        for source, added_marks in marks.items():
            blames[source] = blames.get(source, ()) + added_marks
        for event in filter(is_report, new):
            reports[event.loop_id] = reports.get(event.loop_id, Report()).with_event(event)
        unresolved = dict(self.unresolved)
        for work_id, patterns in _unresolved(new).items():
            unresolved[work_id] = unresolved.get(work_id, frozenset()) | patterns
        after = replace(self, by_event=by_event, unresolved=unresolved, reports=reports, blames=blames, by_user=by_user)
        reported = {event.loop_id for event in filter(is_report, new)}
        told = reported | marks.keys() | {event.loop_id for event in new if event.pattern_id and event.loop_id}
        return after, found.keys() | after._patterns_of(reported), set(map(after.user_id, told))

    def _with_sessions(self) -> tuple[Inputs, set[str]]:
        """These with the debug sessions of the snapshot; which loops and attempts have others now."""
        sessions = sessions_by_work(self.snapshot, self.row_id)
        work_items = self.sessions.keys() | sessions.keys()
        return replace(self, sessions=sessions), {id for id in work_items if self.sessions.get(id) != sessions.get(id)}

    def _patterns_of(self, work_items: Iterable[str]) -> set[str]:
        """Patterns whose results may be those of these loops or attempts, which may go by any of their ids."""
        found: set[str] = set()
        for work_id in work_items:
            user = self.user_id(work_id)
            loop = self.snapshot.loops.get(user)
            for name in (work_id, *self._told_by(user)):
                found |= self.unresolved.get(name, frozenset())
            found |= {use.pattern_id for use in loop.injected} if loop else set()
        return found

    def renames(self, snapshot: Snapshot, delta: Delta) -> bool:
        """Whether what events call a loop or attempt is another one's by now; then all has to be indexed anew."""
        return self._names.differ(WorkNames(snapshot), delta, (event.loop_id for event in snapshot.events))

    @cached_property
    def _names(self) -> WorkNames:
        return WorkNames(self.snapshot)

    @cached_property
    def _work_items(self) -> Mapping[str, Sequence[str]]:
        """By whose uses they are, what the event log and verdicts call loops and attempts beside that."""
        found: dict[str, list[str]] = {}
        for work_id in sorted({*self.unresolved, *self.blames, *self.snapshot.curation.bursts}):
            user = self.user_id(work_id)
            if user != work_id:
                found.setdefault(user, []).append(work_id)
        return found

    def _told_by(self, user_id: str) -> list[str]:
        """The names under which the event log and verdicts tell of the uses of a loop or attempt."""
        return [user_id, *self._work_items.get(user_id, ())]

    def _source(self, event: Event) -> str:
        return self.user_id(source_of(event))

    def _sources_on(self, pattern_id: str) -> set[str]:
        """Who may mark a pattern as harmful."""
        told = {self._source(event) for event in self.by_event.get(pattern_id, ())}
        return told | {loop.id for loop, _ in self.uses.get(pattern_id, ())}

    # How loops and attempts came out

    def signals(self, work_id: str) -> OutcomeSignals | None:
        """How a loop, an attempt or something that only the event log knows came out; None if it has not."""
        loop = self.snapshot.loops.get(work_id)
        report = joined(self.reports[name] for name in self._names.of_row(work_id) if name in self.reports)
        sessions = self.sessions.get(work_id, ())
        if loop is not None:
            return loop_signals(loop, report, sessions)
        attempt = self.snapshot.attempts.get(work_id)
        return attempt_signals(attempt, report, sessions) if attempt else report_signals(work_id, report)

    def finished(self) -> Iterator[str]:
        """Ids of all that has come out somehow: loops, attempts, and what only the event log knows."""
        loops, attempts = self.snapshot.loops, self.snapshot.attempts
        others = (id for id in self.reports if self.row_id(id) not in loops and id not in attempts)
        return (id for id in (*loops, *attempts, *others) if self.signals(id) is not None)

    def row_id(self, work_id: str) -> str:
        """See `core.learning.work_names.WorkNames.row_id`."""
        return self._names.row_id(work_id)

    def user_id(self, work_id: str) -> str:
        """See `core.learning.recorded_uses.WorkItems`."""
        return self._names.user_id(work_id)

    def is_open(self, work_id: str) -> bool:
        """Whether a loop or attempt is open; one that only the event log names is open until it has an outcome."""
        loop, attempt = self.snapshot.loops.get(work_id), self.snapshot.attempts.get(work_id)
        ended = loop.status.ended if loop else attempt is not None and attempt.outcome is not Outcome.UNKNOWN
        return not ended and self.signals(work_id) is None

    def came_out(self, work_id: str) -> bool | None:
        """See `core.learning.recorded_uses.WorkItems`."""
        success, at = self._verdict(work_id)
        if success is False and work_id in self.aside and self._revoked(work_id, Mark(at, "")) is not None:
            return None
        return success

    def sets_aside(self, event: Event) -> bool:
        """See `core.learning.recorded_uses.WorkItems`."""
        return bool(self.aside) and self._revoked(self._source(event), report_of_event(event)) is not None

    def _verdict(self, work_id: str) -> tuple[bool | None, datetime]:
        """What the outcome says of patterns that were applied, and when it came out."""
        if work_id not in self._verdicts:
            signals = self.signals(work_id)
            self._verdicts[work_id] = (
                (None, UNDATED) if signals is None else (self._success(signals), moment(signals.timestamp, "timestamp"))
            )
        return self._verdicts[work_id]

    def _success(self, signals: OutcomeSignals) -> bool | None:
        verdict = score_outcome(signals, signals.timestamp, self.settings).verdict
        neutral = False if self.settings.neutral_counts_as == "failure" else None
        return _SUCCESS.get(verdict, neutral)

    # Bursts

    def bursts(self) -> tuple[Burst, ...]:
        """The bursts that wait for a verdict, of each source the earliest, the largest first."""
        found = [self._burst(source, aside.held[0]) for source, aside in self.aside.items() if aside.held]
        return tuple(sorted(found, key=lambda burst: (-len(burst.patterns), burst.source, burst.first)))

    def _burst(self, source: str, stretch: Stretch) -> Burst:
        blamed = sorted({mark.pattern_id for mark in self._marks(source) if within(mark.at, (stretch,))})
        loop = self.snapshot.loops.get(source)
        applied = {use.pattern_id for use in loop.injected} if loop else set()
        applied |= {
            event.pattern_id
            for id in blamed
            for event in self.by_event.get(id, ())
            if self._source(event) == source
            and event.kind in ("injected", "applied")
            and report_of_event(event) is None
        }
        return Burst(
            source=source,
            first=stretch.first,
            last=stretch.last,
            patterns=tuple(blamed),
            never_applied=len(set(blamed) - applied),
        )

    def _marks(self, source: str) -> list[Mark]:
        """All harmful marks of a source on known patterns; if its outcome is one, that is one on each it applied."""
        loop, names = self.snapshot.loops.get(source), self._told_by(source)
        marks = [report_of_event(event) for name in names for event in self.blames.get(name, ())]
        marks += [report_of_use(loop, use) for use in loop.injected] if loop else []
        success, at = self._verdict(source)
        if success is False:
            marks += [Mark(at, id) for id in self._without_result(source)]
        return [mark for mark in marks if mark is not None and mark.pattern_id in self.snapshot.patterns]

    def _without_result(self, work_id: str) -> set[str]:
        """Patterns that a loop or attempt applied, and nothing else tells of how that went."""
        loop = self.snapshot.loops.get(work_id)
        applied: set[str] = set().union(*(self.unresolved.get(name, frozenset()) for name in self._told_by(work_id)))
        applied |= (
            {use.pattern_id for use in loop.injected if use.applied and use.successful is None} if loop else set()
        )
        return {
            id
            for id in applied
            if not any(e.success is not None and self.user_id(e.loop_id) == work_id for e in self.by_event.get(id, ()))
        }

    def _held_by(self, source: str) -> set[str]:
        """Patterns whose evidence can depend on whether marks of a source count."""
        return {mark.pattern_id for mark in self._marks(source)} | self._patterns_of([source])

    def _judged(self, sources: Iterable[str]) -> dict[str, Aside]:
        verdicts = self.snapshot.curation.bursts
        found = {}
        for source in sources:
            marks = self._marks(source)
            given = [verdict for name in self._told_by(source) for verdict in verdicts.get(name, ())]
            held, revoked = held_and_revoked(marks, given, self.settings)
            if held or revoked:
                found[source] = Aside(held, revoked)
        return found

    def set_aside(self, pattern_id: str) -> tuple[IgnoredReport, ...]:
        """The harmful marks on a pattern that do not count."""
        if not self.aside:
            return ()
        told = [(self._source(event), report_of_event(event)) for event in self.by_event.get(pattern_id, ())]
        told += [(loop.id, report_of_use(loop, use)) for loop, use in self.uses.get(pattern_id, ())]
        for source in self._sources_on(pattern_id) & self.aside.keys():
            success, at = self._verdict(source)
            if success is False and pattern_id in self._without_result(source):
                told.append((source, Mark(at, pattern_id)))
        return tuple(
            IgnoredReport(mark, source, revoked)
            for source, mark in told
            if mark is not None and (revoked := self._revoked(source, mark)) is not None
        )

    def _revoked(self, source: str, mark: Mark | None) -> bool | None:
        """Whether a mark is revoked (True) or held (False); None if it counts."""
        aside = self.aside.get(source)
        if aside is None or mark is None:
            return None
        if within(mark.at, aside.revoked):
            return True
        return False if within(mark.at, aside.held) else None

    # Evidence

    def observations(self, pattern: Pattern) -> tuple[Observation, ...]:
        """The evidence on one pattern, see `core.learning.evidence.collect_observations`."""
        uses: Sequence[tuple[Loop, InjectedUse]] = self.uses.get(pattern.id, ())
        events: Sequence[Event] = self.by_event.get(pattern.id, ())
        for alias in dict.fromkeys(pattern.aliases):
            if alias not in self.snapshot.patterns:
                uses = [*uses, *self.uses.get(alias, ())]
                events = [*events, *self.by_event.get(alias, ())]
        aside: list[Observation] = []
        if self.aside:
            uses = [(loop, self._without_mark(loop, use, pattern, aside)) for loop, use in uses]
        return collect_observations(pattern, uses, events, self.found_by.get(pattern.id), self, aside)

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        """The patterns of a loop, see `core.learning.loop_patterns`; none for an unknown one."""
        loop = self.snapshot.loops.get(loop_id)
        if loop is None:
            return LoopPatterns()
        names = dict.fromkeys((*self._names.of_row(loop_id), *self._attempts.get(loop_id, ())))
        events = sorted((event for name in names for event in self.by_user.get(name, ())), key=lambda event: event.at)
        if not events and not loop.injected and not loop.extracted:
            return LoopPatterns()
        known = self.snapshot.patterns
        entries = [
            self._without_mark(loop, use, known[use.pattern_id], []) if self.aside and use.pattern_id in known else use
            for use in loop.injected
        ]
        return collect_loop_patterns(loop, entries, events, known, self)

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[str]]:
        """By loop, the tasks and attempts whose uses are the loop's, as far as events name them."""
        found: dict[str, list[str]] = {}
        for work_id in self.by_user:
            if work_id in self.snapshot.attempts or work_id in self.snapshot.tasks:
                found.setdefault(self.user_id(work_id), []).append(work_id)
        return found

    def _without_mark(self, loop: Loop, use: InjectedUse, pattern: Pattern, aside: list[Observation]) -> InjectedUse:
        """The entry as an exposure, if the mark that it gives does not count; a loop has its uses claimed, too."""
        mark = report_of_use(loop, use)
        if mark is None or self._revoked(loop.id, mark) is None:
            return use
        failed = Observation(pattern_id=use.pattern_id, kind="applied", source=LOOP, at=dated(mark.at), success=False)
        if not is_later(failed, pattern):
            aside.append(failed)
        return InjectedUse(pattern_id=use.pattern_id, iteration=use.iteration, at=use.at)


def _unresolved(events: Iterable[Event]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for event in events:
        if event.success is None and event.kind == "applied" and event.pattern_id and event.loop_id:
            found.setdefault(event.loop_id, set()).add(event.pattern_id)
    return {work_id: frozenset(patterns) for work_id, patterns in found.items()}


def _blames(events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.success is False and report_of_event(event) is not None:
            found.setdefault(source_of(event), []).append(event)
    return {source: tuple(marks) for source, marks in found.items()}


def _moved(
    names: Mapping[str, frozenset[str]],
    before: Iterable[Pattern],
    after: Iterable[Pattern],
    named: Callable[[Pattern], Iterable[str]],
) -> Mapping[str, frozenset[str]]:
    """Which names (`named`) lead to which patterns, with `after` in the place of `before`."""
    moved: dict[str, frozenset[str]] | None = None
    for patterns, there in ((before, False), (after, True)):
        for pattern in patterns:
            for name in named(pattern):
                moved = dict(names) if moved is None else moved
                own = frozenset({pattern.id})
                moved[name] = moved.get(name, frozenset()) | own if there else moved[name] - own
    return names if moved is None else moved


def _made_from(pattern: Pattern) -> tuple[str, ...]:
    return (pattern.inverted_from,) if pattern.inverted_from and pattern.type is PatternType.ANTI else ()


def _aliases(pattern: Pattern) -> tuple[str, ...]:
    return pattern.aliases
