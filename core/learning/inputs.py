"""What the scoreboard's evidence is made of, indexed by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.learning.evidence import discoverers, events_by_pattern, observations_of, uses_by_pattern
from core.records.decisions import CurationState
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Pattern, PatternType
from core.snapshot import Delta


@dataclass(frozen=True)
class Inputs:
    """What the evidence is made of, indexed by pattern."""

    patterns: Mapping[str, Pattern]
    loops: Mapping[str, Loop]
    events: Sequence[Event]
    curation: CurationState
    uses: Mapping[str, list[tuple[Loop, InjectedUse]]]
    found_by: Mapping[str, Loop]
    by_event: Mapping[str, list[Event]]
    inverted: Mapping[str, frozenset[str]]
    """Patterns that anti-patterns say they were made from, with the ids of these."""

    @classmethod
    def of(
        cls,
        patterns: Mapping[str, Pattern],
        loops: Mapping[str, Loop],
        events: Sequence[Event],
        curation: CurationState,
    ) -> Inputs:
        return cls(
            patterns,
            loops,
            events,
            curation,
            uses_by_pattern(loops.values()),
            discoverers(loops.values()),
            events_by_pattern(events),
            _moved({}, (), patterns.values()),
        )

    def changed(
        self,
        patterns: Mapping[str, Pattern],
        loops: Mapping[str, Loop],
        events: Sequence[Event],
        curation: CurationState,
        delta: Delta,
    ) -> tuple[Inputs, set[str]]:
        """What they are after a change, and which patterns it touches."""
        touched = set(delta.patterns)
        uses, found_by, by_event = self.uses, self.found_by, self.by_event
        if delta.loops:
            uses, found_by, affected = self._changed_loops(loops, delta.loops)
            touched |= affected
        if delta.events:
            by_event, affected = self._changed_events(events)
            touched |= affected
        for old, new in (
            (self.curation.pins, curation.pins),
            (self.curation.inversions, curation.inversions),
        ):
            touched |= {id for id in old.keys() | new.keys() if old.get(id) != new.get(id)}
        before = [self.patterns[id] for id in delta.patterns if id in self.patterns]
        after = [patterns[id] for id in delta.patterns if id in patterns]
        touched |= {pattern.inverted_from for pattern in (*before, *after)}
        inverted = _moved(self.inverted, before, after)
        return (
            Inputs(patterns, loops, events, curation, uses, found_by, by_event, inverted),
            touched,
        )

    def _changed_loops(
        self, loops: Mapping[str, Loop], changed: frozenset[str]
    ) -> tuple[Mapping[str, list[tuple[Loop, InjectedUse]]], Mapping[str, Loop], set[str]]:
        before = [self.loops[id] for id in changed if id in self.loops]
        after = [loops[id] for id in changed if id in loops]
        affected = {use.pattern_id for loop in (*before, *after) for use in loop.injected}
        uses, new = dict(self.uses), uses_by_pattern(after)
        for id in affected:
            kept = [pair for pair in uses.get(id, ()) if pair[0].id not in changed]
            uses[id] = kept + new.get(id, [])
        extracted = {entry.pattern_id for loop in (*before, *after) for entry in loop.extracted}
        found_by = discoverers(loops.values()) if extracted else self.found_by
        return uses, found_by, affected | extracted

    def _changed_events(self, events: Sequence[Event]) -> tuple[Mapping[str, list[Event]], set[str]]:
        known = len(self.events)
        if known and (len(events) < known or events[0] != self.events[0] or events[known - 1] != self.events[-1]):
            fresh = events_by_pattern(events)
            return fresh, fresh.keys() | self.by_event.keys()
        new = events_by_pattern(events[known:])
        by_event = dict(self.by_event)
        for id, added in new.items():
            by_event[id] = by_event.get(id, []) + added
        return by_event, set(new)

    def observations(self, pattern: Pattern) -> tuple[Observation, ...]:
        return observations_of(
            pattern,
            self.uses.get(pattern.id, ()),
            self.by_event.get(pattern.id, ()),
            self.found_by.get(pattern.id),
        )


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
