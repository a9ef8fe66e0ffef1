"""The patterns of one loop: injected, applied and extracted, from its state file and the event log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from core.base.grouping import group_pairs
from core.learning.recorded_uses import UseTable, WorkItems, find_origin
from core.records.events import INJECTED_REFLECTION, Event, Observation
from core.records.loops import ExtractedPattern, InjectedUse, Loop
from core.records.patterns import Pattern, PatternType

_DISCOVERED = "discovered"
_KINDS = frozenset({"injected", "applied", "outcome", "feedback", "extracted"})


class LoopPatterns(Struct, frozen=True, kw_only=True):
    """Patterns of one loop.

    Attributes:
        uses: One entry for each use, in the order of discovery: kind `injected` (not applied), `applied` or
            `feedback`; results as in the evidence.
        extracted: Patterns extracted from the loop; `new` is False if another loop discovered the pattern.
        reflections: IDs of the reflections in its context, oldest first.
    """

    uses: tuple[Observation, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    reflections: tuple[str, ...] = ()

    @property
    def injected_ids(self) -> list[str]:
        """Patterns that were injected or applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses))

    @property
    def applied_ids(self) -> list[str]:
        """Patterns that were applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses if use.kind != "injected"))


def group_events_by_work(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Group events about patterns and injected reflections by the work ID in the event."""
    return group_pairs(
        (event.loop_id, event)
        for event in events
        if event.loop_id and ((event.pattern_id and event.kind in _KINDS) or event.kind == INJECTED_REFLECTION)
    )


def collect_loop_patterns(
    loop: Loop,
    entries: Sequence[InjectedUse],
    events: Sequence[Event],
    patterns: Mapping[str, Pattern],
    work_items: WorkItems,
) -> LoopPatterns:
    """Join the records of a loop's patterns in its state file and the event log, each use and extraction once.

    Args:
        entries: The loop's `injected` entries, without reports that do not count.
        events: Events that name the loop, one of its aliases, or an attempt at its task.
        patterns: The registry.
        work_items: Results of whole loops.
    """
    uses: list[Observation] = []
    ids = dict.fromkeys([*(entry.pattern_id for entry in entries), *(one.pattern_id for one in events)])
    for pattern_id in filter(None, ids):
        pattern = patterns.get(pattern_id) or Pattern(id=pattern_id, type=PatternType.ERROR, title="")
        table = UseTable(pattern, work_items)
        table.add_events(event for event in events if event.pattern_id == pattern_id)
        table.add_loops((loop, entry) for entry in entries if entry.pattern_id == pattern_id)
        uses += (use for use in table.observations() if use.kind != _DISCOVERED)
    extracted = {entry.pattern_id: entry for entry in loop.extracted}
    for event in events:
        if event.kind == "extracted" and event.pattern_id not in extracted:
            found = patterns.get(event.pattern_id)
            first = find_origin(found) if found else None
            new = first is None or first.loop_id in (loop.id, *loop.aliases, event.loop_id)
            extracted[event.pattern_id] = ExtractedPattern(pattern_id=event.pattern_id, new=new)
    reflections = dict.fromkeys(event.reflection_id for event in events if event.kind == INJECTED_REFLECTION)
    return LoopPatterns(
        uses=tuple(uses), extracted=tuple(extracted.values()), reflections=tuple(filter(None, reflections))
    )


def loops_with_reflections(events: Iterable[Event]) -> set[str]:
    """Return the IDs, as in the events, of loops with reflections in their context."""
    return {event.loop_id for event in events if event.kind == INJECTED_REFLECTION and event.loop_id}
