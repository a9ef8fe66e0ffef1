"""Recorded uses by pattern and by loop, each once; docs/scoring.md#evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Final, Protocol

from msgspec import Struct

from core.records.events import EVENT_LOG, INJECTED_REFLECTION, Event, Observation
from core.records.loops import ExtractedPattern, InjectedUse, Loop
from core.records.patterns import Pattern, PatternType, SourceLoop

_USES: Final = frozenset({"injected", "applied"})
_RESULTS: Final = frozenset({"outcome", "feedback"})
_KINDS: Final = _USES | _RESULTS | {"extracted"}
LOOP: Final = "loop"
_BY_TIME: Final = attrgetter("at", "id")


@dataclass(slots=True, eq=False)
class _Use:
    """One use; each field comes from the most trusted source that has it."""

    iteration: int | None
    at: datetime | None
    source: str
    kind: str = "injected"
    success: bool | None = None
    weight: float = 1.0
    given: int = 0  # how often the pattern was injected
    is_ignored: bool = False  # the newest result does not count, so the result is unknown


class WorkItems(Protocol):
    """Looks up loops and attempts."""

    def owner_id(self, work_id: str) -> str:
        """Return the ID of the loop that the uses of a work item count for.

        This is `work_id` itself if it is neither an alias of a loop nor an attempt at its task.
        """

    def voter_id(self, owner_id: str) -> str:
        """Return the loop or task whose uses of a pattern have one result together: its attempts are one task."""

    def outcome_success(self, work_id: str) -> bool | None:
        """Return the result of applied patterns according to the work item's outcome."""

    def is_open(self, work_id: str) -> bool:
        """Return whether a work item has not finished."""

    def ignores(self, event: Event) -> bool:
        """Return whether an event is a harmful report that does not count."""


class _LoopUses:
    """The uses of one pattern by one loop; `every` also contains a discovery."""

    __slots__ = ("_by_iteration", "every")

    def __init__(self) -> None:
        self.every: list[_Use] = []
        self._by_iteration: dict[int | None, _Use] = {}  # at most one use in an unknown iteration

    def add(self, use: _Use) -> _Use:
        self.every.append(use)
        if use.kind != "discovered":
            self._by_iteration.setdefault(use.iteration, use)
        return use

    def find(self, iteration: int | None) -> _Use | None:
        """Find the use that an entry describes.

        This is the use in the same iteration, or one in an unknown iteration. An entry without an iteration describes
        the newest use, preferably one without a result.
        """
        if not self.every:  # most loops use a pattern once
            return None
        found = self._by_iteration.get(iteration) or self._by_iteration.get(None)
        if found is not None or iteration is not None:
            return found
        newest_first = [use for use in reversed(self.every) if use.kind != "discovered"]
        return next((use for use in newest_first if use.success is None), newest_first[0] if newest_first else None)

    def place(self, use: _Use, iteration: int | None) -> None:
        """Set the iteration of a use whose iteration is unknown."""
        if use.iteration is None and iteration is not None:
            del self._by_iteration[None]
            use.iteration = iteration
            self._by_iteration[iteration] = use


class UseTable:
    """Merges all records of the uses of one pattern."""

    def __init__(self, pattern: Pattern, work_items: WorkItems) -> None:
        self._pattern = pattern
        self._work_items = work_items
        self._by_loop: defaultdict[str, _LoopUses] = defaultdict(_LoopUses)

    def add_events(self, events: Iterable[Event]) -> None:
        """Add uses from events. The newest result of a use counts; weight 0 is ignored."""
        known: set[str] = set()
        for event in sorted(events, key=_BY_TIME):
            if (event.id and event.id in known) or not event.weight > 0:
                continue
            known.add(event.id)
            if event.kind == "extracted":
                uses = self._by_loop[self._work_items.owner_id(event.loop_id)]
                if not any(use.kind == "discovered" for use in uses.every):
                    uses.add(_Use(event.iteration, event.at, EVENT_LOG, "discovered", True, min(event.weight, 1.0)))
            elif event.kind in _USES or (event.kind in _RESULTS and event.success is not None):
                self._add_event(event)

    def _add_event(self, event: Event) -> None:
        loop_id = self._work_items.owner_id(event.loop_id)
        uses = self._by_loop[loop_id]
        use = uses.find(event.iteration) if loop_id else None
        if self._work_items.ignores(event):
            if use is not None:
                use.success, use.is_ignored = None, True
            return
        if use is None:
            use = uses.add(_Use(event.iteration, event.at, EVENT_LOG))
        uses.place(use, event.iteration)
        if event.kind == "injected":
            use.given += 1
            return
        if use.kind == "injected":
            use.kind = "feedback" if event.kind == "feedback" else "applied"
            use.at = event.at
        if event.success is not None:
            use.success, use.is_ignored, use.weight = event.success, False, min(event.weight, 1.0)

    def add_loops(self, uses: Iterable[tuple[Loop, InjectedUse]]) -> None:
        """Add uses from loops where events have gaps; a failure overrides a success."""
        sources = {source.loop_id: source for source in reversed(self._pattern.source_loops) if source.at}
        discovered = find_origin(self._pattern)
        for loop, entry in sorted(uses, key=_use_order):
            known = self._by_loop[loop.id]
            use = known.find(entry.iteration)
            if use is None or (use.kind == "injected" and entry.applied):
                source = next((sources[name] for name in (loop.id, *loop.aliases) if name in sources), None)
                first = entry.applied and not any(other.kind != "injected" for other in known.every)
                at = _date(loop, entry, source, first and source is not discovered)
                if use is None:
                    use = known.add(_Use(entry.iteration, at, LOOP))
                else:  # an injection is not a use: use the time of the loop's entry
                    use.at, use.source = at or use.at, LOOP
            known.place(use, entry.iteration)
            use.given = max(use.given, 1)
            if not entry.applied:
                continue
            if use.kind == "injected":
                use.kind = "applied"
            if use.source == LOOP and False in (use.success, entry.successful):
                use.success = False
            elif use.success is None:
                use.success = entry.successful

    def observations(self) -> list[Observation]:
        """Return every use; a use without a result gets the result of its loop."""
        found = []
        for loop_id, uses in self._by_loop.items():
            for use in uses.every:
                success = use.success
                if success is None and use.kind == "applied" and loop_id and not use.is_ignored:
                    success = self._work_items.outcome_success(loop_id)
                observation = Observation(
                    pattern_id=self._pattern.id,
                    kind=use.kind,
                    source=use.source,
                    loop_id=loop_id,
                    at=use.at,
                    success=success,
                    weight=use.weight,
                    iteration=use.iteration,
                    inferred=success is not use.success,
                    given=use.given,
                    seen=int(use.kind == "discovered"),
                )
                found.append(observation)
        return found


def _use_order(pair: tuple[Loop, InjectedUse]) -> tuple[str, bool, int, bool, str]:
    """Sort key: entries with an iteration first, in an order that no file determines."""
    loop, use = pair
    return loop.id, use.iteration is None, use.iteration or 0, not use.applied, str(use.successful)


def _date(loop: Loop, entry: InjectedUse, source: SourceLoop | None, is_first_use: bool) -> datetime | None:
    """Return the time of a use.

    A record lists each source loop once, with the time when it first applied the pattern. This time is exact for the
    first use; for others the time of the entry has priority. The discovering loop is listed for its discovery.
    """
    listed = source.at if source else None
    own = (listed, entry.at) if is_first_use else (entry.at, listed)
    return own[0] or own[1] or loop.ended_at or loop.last_activity or loop.started_at


def find_origin(pattern: Pattern) -> SourceLoop | None:
    """Return the source loop with the time of discovery, or the first source loop; lessons are skipped."""
    if not pattern.source_loops:
        return None
    sources = [source for source in pattern.source_loops if not source.file]
    same_time = (one for one in sources if pattern.first_discovered is not None and one.at == pattern.first_discovered)
    return next(same_time, sources[0] if sources else None)


class LoopPatterns(Struct, frozen=True, kw_only=True):
    """Patterns of one loop in the order of discovery, with results from the evidence."""

    uses: tuple[Observation, ...] = ()  # kinds: `injected` (not applied), `applied` and `feedback`
    extracted: tuple[ExtractedPattern, ...] = ()  # `new` is False if another loop discovered the pattern
    reflections: tuple[str, ...] = ()  # IDs of the reflections in its context, oldest first

    @property
    def injected_ids(self) -> list[str]:
        """IDs of the patterns that were injected or applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses))

    @property
    def applied_ids(self) -> list[str]:
        """IDs of the patterns that were applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses if use.kind != "injected"))


def is_about_pattern(event: Event) -> bool:
    """Return whether an event is about the use or discovery of a pattern, or about an injected reflection."""
    return bool(event.pattern_id and event.kind in _KINDS) or event.kind == INJECTED_REFLECTION


def collect_loop_patterns(
    loop: Loop,
    entries: Sequence[InjectedUse],
    events: Sequence[Event],
    patterns: Mapping[str, Pattern],
    work_items: WorkItems,
) -> LoopPatterns:
    """Collect the patterns of a loop, with each use and extraction once.

    `entries` are the `injected` entries of the loop, without reports that do not count. `events` name the loop, one of
    its aliases, or an attempt at its task. `patterns` are the registered patterns.
    """
    uses: list[Observation] = []
    ids = dict.fromkeys([*(entry.pattern_id for entry in entries), *(one.pattern_id for one in events)])
    for pattern_id in filter(None, ids):
        pattern = patterns.get(pattern_id) or Pattern(id=pattern_id, type=PatternType.ERROR, title="")
        table = UseTable(pattern, work_items)
        table.add_events(event for event in events if event.pattern_id == pattern_id)
        table.add_loops((loop, entry) for entry in entries if entry.pattern_id == pattern_id)
        uses += (use for use in table.observations() if use.kind != "discovered")
    extracted = {entry.pattern_id: entry for entry in loop.extracted}
    for event in events:
        if event.kind == "extracted" and event.pattern_id not in extracted:
            found = patterns.get(event.pattern_id)
            first = find_origin(found) if found else None
            new = first is None or first.loop_id in (loop.id, *loop.aliases, event.loop_id)
            extracted[event.pattern_id] = ExtractedPattern(pattern_id=event.pattern_id, new=new)
    shown = dict.fromkeys(event.reflection_id for event in events if event.kind == INJECTED_REFLECTION)
    reflections = tuple(filter(None, shown))
    return LoopPatterns(uses=tuple(uses), extracted=tuple(extracted.values()), reflections=reflections)


def loops_with_reflections(events: Iterable[Event]) -> set[str]:
    """Return the IDs of loops whose context contains reflections, as in the events."""
    return {event.loop_id for event in events if event.kind == INJECTED_REFLECTION and event.loop_id}
