"""Which patterns and work items a change of the records affects.

The evidence on a pattern depends on records that name it, on the work that used it, and on patterns that it was made
from or merged with. Only what is found here is scored again, so a rule of the evidence that looks further needs a line
here; the tests compare updates with scores from scratch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.learning.bursts import source_of
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import Link, change_links
from core.learning.finished_work import is_report
from core.learning.work_names import WorkNames
from core.records.event_log import EventChanges, find_event_changes

if TYPE_CHECKING:
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot


def suppose_inputs(before: EvidenceInputs, snapshot: Snapshot, delta: Delta) -> EvidenceInputs | None:
    """Return the inputs of a supposed change, without ignored reports; None if all must be collected."""
    changes = find_event_changes(before.snapshot.events, snapshot.events) if delta.events else EventChanges((), ())
    if changes is None or changes.removed:
        return None
    links = change_links(before.links, before.snapshot, snapshot, delta)
    events = before.events.extended(changes.added) if changes.added else before.events
    return EvidenceInputs(snapshot, before.settings, links, events, WorkNames(snapshot, links))


def settle(before: EvidenceInputs, after: EvidenceInputs, delta: Delta) -> tuple[EvidenceInputs, frozenset[str]] | None:
    """Find which reports do not count after a change, and the patterns that it affects.

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
    change.after.keep_latest(before, change.patterns)
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
        """Return the sources whose reports may count otherwise than before, by the IDs of their work."""
        return frozenset(inputs.owner_id(name) for inputs in self.both for name in (*self.sources, *self.works))

    def add_results(self, sources: Iterable[str]) -> None:
        """Add the patterns whose results come from the works, and those with reports that count otherwise."""
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
        """Yield the changed patterns before and after, and those that they were made from."""
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
