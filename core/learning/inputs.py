"""What the scoreboard's evidence is made of, indexed by pattern and by who tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from core.learning.bursts import (
    Burst,
    Mark,
    Stretch,
    dated,
    held_and_set_aside,
    mark_of_event,
    mark_of_use,
    source_of,
)
from core.learning.evidence import discoverers, events_by_pattern, is_later, observations_of, uses_by_pattern
from core.learning.finished import (
    Report,
    is_report,
    reports_of,
    signals_of_attempt,
    signals_of_loop,
    signals_of_report,
)
from core.learning.outcomes import OutcomeSignals, Verdict, score_outcome
from core.learning.uses import LOOP
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop, Outcome
from core.records.patterns import Pattern, PatternType
from core.settings import LearningSettings
from core.snapshot import Delta, Snapshot

_SUCCESS = {Verdict.HELPFUL: True, Verdict.HARMFUL: False}


class Aside(NamedTuple):
    """The times in which harmful marks of one source do not count."""

    held: tuple[Stretch, ...]
    """Until somebody decides."""
    revoked: tuple[Stretch, ...]


class SetAside(NamedTuple):
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
        unresolved: Patterns that events say were applied, without a result of their own, by loop or attempt.
        reports: What the event log says of loops and attempts as a whole.
        blames: Events that are harmful marks, by source.
        aside: Sources whose harmful marks do not all count.
    """

    snapshot: Snapshot
    settings: LearningSettings
    uses: Mapping[str, list[tuple[Loop, InjectedUse]]]
    found_by: Mapping[str, Loop]
    by_event: Mapping[str, list[Event]]
    inverted: Mapping[str, frozenset[str]]
    unresolved: Mapping[str, frozenset[str]]
    reports: Mapping[str, Report]
    blames: Mapping[str, tuple[Event, ...]]
    aside: Mapping[str, Aside] = field(default_factory=dict)
    _verdicts: dict[str, bool | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings) -> Inputs:
        """Indexed from scratch."""
        loops, events = snapshot.loops, snapshot.events
        return cls(
            snapshot,
            settings,
            uses_by_pattern(loops.values()),
            discoverers(loops.values()),
            events_by_pattern(events),
            _moved({}, (), snapshot.patterns.values()),
            _unresolved(events),
            reports_of(events),
            _blames(events),
        ).under(settings)

    def under(self, settings: LearningSettings) -> Inputs:
        """The same under other thresholds."""
        loops = self.snapshot.loops.values()
        suspects = {source for source, found in self.blames.items() if len(found) > settings.max_marks}
        suspects |= {loop.id for loop in loops if len(loop.injected) > settings.max_marks}
        suspects |= {loop.id for loop in loops if loop.injected and loop.id in self.blames}
        made = replace(self, settings=settings, aside={}, _verdicts={})
        return replace(made, aside=made._judged(suspects | self.snapshot.curation.bursts.keys()))

    def changed(self, snapshot: Snapshot, delta: Delta) -> tuple[Inputs, set[str]]:
        """What they are after a change, and which patterns it touches."""
        touched = set(delta.patterns)
        sources = set(delta.loops)
        after = replace(self, snapshot=snapshot, _verdicts={})
        if delta.events:
            after, affected, told = after._with_events(self.snapshot.events)
            touched |= affected
            sources |= told
        if delta.loops:
            after, affected = after._with_loops(self.snapshot.loops, delta.loops)
            touched |= affected
        for id in delta.attempts:
            touched |= after.unresolved.get(id, frozenset())
        old, new = self.snapshot.curation, snapshot.curation
        touched |= {id for id in old.pins.keys() | new.pins.keys() if old.pins.get(id) != new.pins.get(id)}
        verdicts = old.inversions.keys() | new.inversions.keys()
        touched |= {id for id in verdicts if old.inversions.get(id) != new.inversions.get(id)}
        sources |= {id for id in old.bursts.keys() | new.bursts.keys() if old.bursts.get(id) != new.bursts.get(id)}
        gone = [self.snapshot.patterns[id] for id in delta.patterns if id in self.snapshot.patterns]
        come = [snapshot.patterns[id] for id in delta.patterns if id in snapshot.patterns]
        touched |= {pattern.inverted_from for pattern in (*gone, *come)}
        aside = {source: found for source, found in self.aside.items() if source not in sources}
        aside |= after._judged(sources)
        for source in sources:
            if aside.get(source) != self.aside.get(source):
                touched |= self._blamed(source) | after._blamed(source)
        return replace(after, inverted=_moved(self.inverted, gone, come), aside=aside), touched

    def _with_loops(self, before: Mapping[str, Loop], changed: frozenset[str]) -> tuple[Inputs, set[str]]:
        loops = self.snapshot.loops
        gone = [before[id] for id in changed if id in before]
        come = [loops[id] for id in changed if id in loops]
        affected = {use.pattern_id for loop in (*gone, *come) for use in loop.injected}
        uses, new = dict(self.uses), uses_by_pattern(come)
        for id in affected:
            kept = [pair for pair in uses.get(id, ()) if pair[0].id not in changed]
            uses[id] = kept + new.get(id, [])
        extracted = {entry.pattern_id for loop in (*gone, *come) for entry in loop.extracted}
        found_by = discoverers(loops.values()) if extracted else self.found_by
        for loop in (*gone, *come):
            for name in (loop.id, *loop.aliases):
                affected |= self.unresolved.get(name, frozenset())
        return replace(self, uses=uses, found_by=found_by), affected | extracted

    def _with_events(self, before: Sequence[Event]) -> tuple[Inputs, set[str], set[str]]:
        """These with the events of the snapshot; which patterns, and which sources, the new ones touch."""
        events, known = self.snapshot.events, len(before)
        if known and (len(events) < known or events[0] != before[0] or events[known - 1] != before[-1]):
            fresh = replace(
                self,
                by_event=events_by_pattern(events),
                unresolved=_unresolved(events),
                reports=reports_of(events),
                blames=_blames(events),
            )
            beads = self.reports.keys() | fresh.reports.keys()
            touched = self.by_event.keys() | fresh.by_event.keys() | fresh._patterns_of(beads)
            return fresh, set(touched), set(self.blames.keys() | fresh.blames.keys())
        new = events[known:]
        found, marks = events_by_pattern(new), _blames(new)
        by_event, blames, reports = dict(self.by_event), dict(self.blames), dict(self.reports)
        for id, added in found.items():
            by_event[id] = by_event.get(id, []) + added
        for source, added_marks in marks.items():
            blames[source] = blames.get(source, ()) + added_marks
        for event in filter(is_report, new):
            reports[event.loop_id] = reports.get(event.loop_id, Report()).with_event(event)
        unresolved = dict(self.unresolved)
        for bead, patterns in _unresolved(new).items():
            unresolved[bead] = unresolved.get(bead, frozenset()) | patterns
        after = replace(self, by_event=by_event, unresolved=unresolved, reports=reports, blames=blames)
        reported = {event.loop_id for event in filter(is_report, new)}
        return after, found.keys() | after._patterns_of(reported), set(marks)

    def _patterns_of(self, beads: Iterable[str]) -> set[str]:
        """Patterns whose results may be those of these loops or attempts, which may go by any of their ids."""
        found: set[str] = set()
        for bead in beads:
            loop = self.snapshot.loops.get(self.row_id(bead))
            for name in (bead, *((loop.id, *loop.aliases) if loop else ())):
                found |= self.unresolved.get(name, frozenset())
            found |= {use.pattern_id for use in loop.injected} if loop else set()
        return found

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: loop.id for loop in self.snapshot.loops.values() for alias in loop.aliases}

    # How loops and attempts came out

    def signals(self, bead_id: str) -> OutcomeSignals | None:
        """How a loop, an attempt or something that only the event log knows came out; None if it has not."""
        loop = self.snapshot.loops.get(bead_id)
        if loop is not None:
            names = (name for name in (loop.id, *loop.aliases) if name in self.reports)
            return signals_of_loop(loop, self.reports.get(next(names, ""), Report()))
        report = self.reports.get(bead_id, Report())
        attempt = self.snapshot.attempts.get(bead_id)
        return signals_of_attempt(attempt, report) if attempt else signals_of_report(bead_id, report)

    def finished(self) -> Iterator[str]:
        """Ids of all that has come out somehow: loops, attempts, and what only the event log knows."""
        loops, attempts = self.snapshot.loops, self.snapshot.attempts
        others = (id for id in self.reports if self.row_id(id) not in loops and id not in attempts)
        return (id for id in (*loops, *attempts, *others) if self.signals(id) is not None)

    def row_id(self, bead_id: str) -> str:
        """See `core.learning.uses.Beads`."""
        loops = self.snapshot.loops
        return bead_id if bead_id in loops else self._aliases.get(bead_id, bead_id)

    def is_open(self, bead_id: str) -> bool:
        """See `core.learning.uses.Beads`; what only the event log knows is open until it tells of an outcome."""
        loop, attempt = self.snapshot.loops.get(bead_id), self.snapshot.attempts.get(bead_id)
        ended = loop.status.ended if loop else attempt is not None and attempt.outcome is not Outcome.UNKNOWN
        return not ended and self.signals(bead_id) is None

    def came_out(self, bead_id: str) -> bool | None:
        """See `core.learning.uses.Beads`."""
        if bead_id not in self._verdicts:
            signals = self.signals(bead_id)
            self._verdicts[bead_id] = None if signals is None else self._success(signals)
        return self._verdicts[bead_id]

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
        blamed = sorted({mark.pattern_id for mark in self._marks(source) if stretch.holds(mark.at)})
        loop = self.snapshot.loops.get(source)
        applied = {use.pattern_id for use in loop.injected} if loop else set()
        applied |= {
            event.pattern_id
            for id in blamed
            for event in self.by_event.get(id, ())
            if event.loop_id == source and event.kind in ("injected", "applied") and mark_of_event(event) is None
        }
        return Burst(
            source=source,
            first=stretch.first,
            last=stretch.last,
            patterns=tuple(blamed),
            never_applied=len(set(blamed) - applied),
        )

    def _marks(self, source: str) -> list[Mark]:
        loop = self.snapshot.loops.get(source)
        marks = [mark_of_event(event) for event in self.blames.get(source, ())]
        marks += [mark_of_use(loop, use) for use in loop.injected] if loop else []
        return [mark for mark in marks if mark is not None]

    def _blamed(self, source: str) -> set[str]:
        return {mark.pattern_id for mark in self._marks(source)}

    def _judged(self, sources: Iterable[str]) -> dict[str, Aside]:
        verdicts = self.snapshot.curation.bursts
        found = {}
        for source in sources:
            marks = self._marks(source)
            held, revoked = held_and_set_aside(marks, verdicts.get(source, ()), self.settings)
            if held or revoked:
                found[source] = Aside(held, revoked)
        return found

    def set_aside(self, pattern_id: str) -> tuple[SetAside, ...]:
        """The harmful marks on a pattern that do not count."""
        if not self.aside:
            return ()
        told = [(source_of(event), mark_of_event(event)) for event in self.by_event.get(pattern_id, ())]
        told += [(loop.id, mark_of_use(loop, use)) for loop, use in self.uses.get(pattern_id, ())]
        return tuple(
            SetAside(mark, source, revoked)
            for source, mark in told
            if mark is not None and (revoked := self._revoked(source, mark)) is not None
        )

    def _revoked(self, source: str, mark: Mark | None) -> bool | None:
        """Whether a mark is revoked (True) or held (False); None if it counts."""
        aside = self.aside.get(source)
        if aside is None or mark is None:
            return None
        if any(stretch.holds(mark.at) for stretch in aside.revoked):
            return True
        return False if any(stretch.holds(mark.at) for stretch in aside.held) else None

    # Evidence

    def observations(self, pattern: Pattern) -> tuple[Observation, ...]:
        """The evidence on one pattern, see `core.learning.evidence.observations_of`."""
        uses: Sequence[tuple[Loop, InjectedUse]] = self.uses.get(pattern.id, ())
        events: Sequence[Event] = self.by_event.get(pattern.id, ())
        aside: list[Observation] = []
        if self.aside:
            events = [e for e in events if self._revoked(source_of(e), mark_of_event(e)) is None]
            uses = [(loop, self._without_mark(loop, use, pattern, aside)) for loop, use in uses]
        return observations_of(pattern, uses, events, self.found_by.get(pattern.id), self, aside)

    def _without_mark(self, loop: Loop, use: InjectedUse, pattern: Pattern, aside: list[Observation]) -> InjectedUse:
        """The entry as an exposure, if the mark that it gives does not count; a loop has its uses claimed, too."""
        mark = mark_of_use(loop, use)
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
    return {bead: frozenset(patterns) for bead, patterns in found.items()}


def _blames(events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.success is False and mark_of_event(event) is not None:
            found.setdefault(source_of(event), []).append(event)
    return {source: tuple(marks) for source, marks in found.items()}


def _moved(
    inverted: Mapping[str, frozenset[str]], before: Iterable[Pattern], after: Iterable[Pattern]
) -> dict[str, frozenset[str]]:
    """Which anti-patterns are made from which patterns, with `after` in the place of `before`."""
    moved = dict(inverted)
    for pattern in before:
        if pattern.inverted_from and pattern.type is PatternType.ANTI:
            moved[pattern.inverted_from] -= {pattern.id}
    for pattern in after:
        if pattern.inverted_from and pattern.type is PatternType.ANTI:
            moved[pattern.inverted_from] = moved.get(pattern.inverted_from, frozenset()) | {pattern.id}
    return moved
