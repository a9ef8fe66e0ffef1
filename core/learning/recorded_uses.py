"""Uses that somebody recorded: the event log and the loops, joined so that each counts once (semantics 1, 1-2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Pattern, SourceLoop

EVENT_LOG: Final = "event-log"
LOOP: Final = "loop"


@dataclass(slots=True, eq=False)
class _Use:
    """Facts on one use; each is set by the most trusted source that tells it."""

    iteration: int | None
    at: datetime | None
    source: str
    kind: str = "injected"
    success: bool | None = None
    weight: float = 1.0
    doubted: bool = False
    """Its newest result does not count, so that nobody knows how it went."""


class WorkItems(Protocol):
    """What is known of loops and attempts as a whole."""

    def user_id(self, work_id: str) -> str:
        """Whose uses those of a loop or attempt are, so that none counts twice.

        The id of the loop that goes by this one as well, or that the metadata of the attempt's task name: what its
        attempts use, the loop uses. Else the id itself.
        """

    def came_out(self, work_id: str) -> bool | None:
        """What the outcome of a loop or attempt says of a pattern that it applied (semantics 2)."""

    def is_open(self, work_id: str) -> bool:
        """Whether a loop or attempt has not come to its end."""

    def sets_aside(self, event: Event) -> bool:
        """Whether an event is a harmful mark that does not count."""


class _LoopUses:
    """The uses of one pattern by one loop; `every` has them all, a discovery included."""

    __slots__ = ("_placed", "_unplaced", "every")

    def __init__(self) -> None:
        self.every: list[_Use] = []
        self._placed: dict[int, _Use] = {}
        self._unplaced: list[_Use] = []

    def add(self, use: _Use) -> _Use:
        self.every.append(use)
        if use.kind != "discovered":
            if use.iteration is None:
                self._unplaced.append(use)
            else:
                self._placed.setdefault(use.iteration, use)
        return use

    def find(self, iteration: int | None) -> _Use | None:
        """The use that an entry is about: the same iteration, else one of an unknown iteration; for an entry
        without iteration the newest one, preferably still without a result."""
        if iteration in self._placed:
            return self._placed[iteration]
        if self._unplaced:
            return self._unplaced[0]
        if iteration is not None:
            return None
        newest = None
        for use in reversed(self.every):
            if use.kind != "discovered":
                newest = newest or use
                if use.success is None:
                    return use
        return newest

    def place(self, use: _Use, iteration: int | None) -> None:
        """A use of an unknown iteration was in this one."""
        if use.iteration is None and iteration is not None:
            self._unplaced.remove(use)
            use.iteration = iteration
            self._placed.setdefault(iteration, use)


class UseTable:
    """Joins what several records say of the same use.

    Args:
        pattern: The pattern that is used.
        work_items: The loops and attempts that use it.
    """

    def __init__(self, pattern: Pattern, work_items: WorkItems) -> None:
        self._pattern = pattern
        self._work_items = work_items
        self._by_loop: dict[str, _LoopUses] = {}

    def add_events(self, events: Iterable[Event]) -> None:
        """Source 1. The newest result of a use stands; an id counts once; an event of weight 0 not at all."""
        seen: set[str] = set()
        for event in sorted(events, key=lambda event: (event.at, event.id)):
            if event.id in seen or not event.weight > 0:
                continue
            if event.id:
                seen.add(event.id)
            if event.kind == "extracted":
                self._add_extraction(event)
            elif event.kind in ("injected", "applied", "outcome", "feedback"):
                self._add_event(event)

    def _add_extraction(self, event: Event) -> None:
        uses = self._of(self._work_items.user_id(event.loop_id))
        if not any(use.kind == "discovered" for use in uses.every):
            uses.add(_Use(event.iteration, event.at, EVENT_LOG, "discovered", True, _weight(event)))

    def _add_event(self, event: Event) -> None:
        if event.kind in ("outcome", "feedback") and event.success is None:
            return
        loop_id = self._work_items.user_id(event.loop_id)
        uses = self._of(loop_id)
        use = uses.find(event.iteration) if loop_id else None
        if self._work_items.sets_aside(event):
            if use is not None:
                use.success, use.doubted = None, True
            return
        if use is None:
            use = uses.add(_Use(event.iteration, event.at, EVENT_LOG))
        uses.place(use, event.iteration)
        if event.kind == "injected":
            return
        if use.kind == "injected":
            use.kind = "feedback" if event.kind == "feedback" else "applied"
            use.at = event.at
        if event.success is not None:
            use.success, use.doubted = event.success, False
            use.weight = _weight(event)

    def add_loops(self, uses: Iterable[tuple[Loop, InjectedUse]]) -> None:
        """Source 2. Fills in what the event log leaves open; of two entries for one use a failure wins."""
        sources = {source.loop_id: source for source in reversed(self._pattern.source_loops) if source.at}
        discovered = origin(self._pattern)
        for loop, entry in sorted(uses, key=_use_order):
            known = self._of(loop.id)
            use = known.find(entry.iteration)
            if use is None or (use.kind == "injected" and entry.applied):
                source = next((sources[name] for name in (loop.id, *loop.aliases) if name in sources), None)
                first = entry.applied and not any(other.kind != "injected" for other in known.every)
                at = _date(loop, entry, source, first and source is not discovered)
                if use is None:
                    use = known.add(_Use(entry.iteration, at, LOOP))
                else:  # that it was injected is no use: the time of the use is the loop's to tell
                    use.at, use.source = at or use.at, LOOP
            known.place(use, entry.iteration)
            if not entry.applied:
                continue
            if use.kind == "injected":
                use.kind = "applied"
            if use.source == LOOP and False in (use.success, entry.successful):
                use.success = False
            elif use.success is None:
                use.success = entry.successful

    def _of(self, loop_id: str) -> _LoopUses:
        uses = self._by_loop.get(loop_id)
        if uses is None:
            uses = self._by_loop[loop_id] = _LoopUses()
        return uses

    def observations(self) -> list[Observation]:
        """Every use as one observation; one that nothing tells the result of went as its loop."""
        found = []
        for loop_id, uses in self._by_loop.items():
            for use in uses.every:
                success = use.success
                if success is None and use.kind == "applied" and loop_id and not use.doubted:
                    success = self._work_items.came_out(loop_id)
                found.append(
                    Observation(
                        pattern_id=self._pattern.id,
                        kind=use.kind,
                        source=use.source,
                        loop_id=loop_id,
                        at=use.at,
                        success=success,
                        weight=use.weight,
                        iteration=use.iteration,
                        inferred=success is not use.success,
                    )
                )
        return found


def _use_order(pair: tuple[Loop, InjectedUse]) -> tuple[str, bool, int, bool, str]:
    """Entries that name their iteration first; otherwise any order that does not depend on the file's."""
    loop, use = pair
    return loop.id, use.iteration is None, use.iteration or 0, not use.applied, str(use.successful)


def _weight(event: Event) -> float:
    return min(event.weight, 1.0)


def _date(loop: Loop, entry: InjectedUse, source: SourceLoop | None, listed_for_it: bool) -> datetime | None:
    """When a use happened.

    A loop is listed once, when it first applies the pattern (0: add_source_loop), so that time is exact for the
    first use; for others it is only better than the loop's own times. The discovering loop is listed for the
    discovery instead.
    """
    listed = source.at if source else None
    own = (listed, entry.at) if listed_for_it else (entry.at, listed)
    return own[0] or own[1] or loop.ended_at or loop.last_activity or loop.started_at


def origin(pattern: Pattern) -> SourceLoop | None:
    """The source loop that discovered the pattern: that of `first_discovered`, else the first (C20)."""
    if not pattern.source_loops:
        return None
    if pattern.first_discovered is not None:
        for source in pattern.source_loops:
            if source.at == pattern.first_discovered:
                return source
    return pattern.source_loops[0]
