"""Evidence: which uses of a pattern are known, each counted once (semantics 1).

Five sources, most trusted first: the event log, what loops say of injected patterns, the discovery, the
effectiveness trend, and the sums that the pattern's own record claims. A later source adds only what the
earlier ones leave unexplained.

Once ralphdeck keeps the counts of a record up to date, they hold uses that the first two sources tell of as well,
and results that change later. So what the last three told until then is written into the event log (kind
`counted`), and stands from then on; of the record only what is beyond all that is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from core.learning.aggregate_evidence import Counts, aggregates, unrecorded, usable_trend
from core.learning.recorded_uses import EVENT_LOG, UseTable, WorkItems, origin
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Pattern

DISCOVERY: Final = "discovery"
_SAME_TIME: Final = timedelta(seconds=60)
"""Who updates a record and tells the event log of it does not do both at the same instant."""

_USES: Final = ("applied", "outcome", "feedback")

_UNDATED: Final = datetime.max.replace(tzinfo=UTC)


def group_uses_by_pattern(loops: Iterable[Loop]) -> dict[str, list[tuple[Loop, InjectedUse]]]:
    """Which loops had which pattern injected."""
    found: dict[str, list[tuple[Loop, InjectedUse]]] = {}
    for loop in loops:
        for use in loop.injected:
            found.setdefault(use.pattern_id, []).append((loop, use))
    return found


def discoverers(loops: Iterable[Loop]) -> dict[str, Loop]:
    """The loop that says of itself that it extracted a new pattern; the earliest if several do."""
    found: dict[str, Loop] = {}
    for loop in loops:
        for extracted in loop.extracted:
            known = found.get(extracted.pattern_id)
            if extracted.new and (known is None or _order(loop) < _order(known)):
                found[extracted.pattern_id] = loop
    return found


def _order(loop: Loop) -> tuple[datetime, str]:
    return loop.started_at or _UNDATED, loop.id


def group_events_by_pattern(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events that name a pattern, by its id."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.pattern_id:
            found.setdefault(event.pattern_id, []).append(event)
    return found


def collect_observations(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]] = (),
    events: Sequence[Event] = (),
    discoverer: Loop | None = None,
    work_items: WorkItems | None = None,
    revoked: Sequence[Observation] = (),
) -> tuple[Observation, ...]:
    """All evidence on one pattern, no use counted twice, oldest first (undated last).

    One use is one loop's use in one iteration; an entry without an iteration is the same use as one with it.
    A pattern that was injected and not applied gives an exposure (kind `injected`). One applied without a
    result of its own gets that of the whole loop (semantics 2), or else is a use without success or failure.

    Args:
        pattern: The record; its claim and trend are sources 4 and 5.
        uses: Loops' entries for this pattern, source 2.
        events: Events that name this pattern, source 1.
        discoverer: A loop that says it extracted the pattern, for a record that names no source loop.
        work_items: What is known of loops and attempts; without it only the loops of `uses` are.
        revoked: Uses that the record may claim, but whose results do not count: they are taken off the claim.
    """
    recorded: list[Observation] = []
    work_items = work_items or _Alone(loop for loop, _ in uses)
    if uses or events:
        table = UseTable(pattern, work_items)
        table.add_events(events)
        table.add_loops(uses)
        recorded = table.observations()
    kept = find_counted_event(pattern, events)
    if kept is not None:
        held = _held(events, pattern.id, work_items)
        return _with_kept(pattern, recorded, kept.unrecorded, uses, work_items, (*revoked, *held))
    found = _discovery(pattern, uses, recorded, discoverer, work_items)
    if found is not None:
        recorded.append(found)
    counted = [*(seen for seen in recorded if _may_be_claimed(seen, pattern, work_items)), *revoked]
    recorded.extend(unrecorded(pattern, counted, Counts.claimed(pattern.recorded_counts)))
    if len(recorded) > 1:
        recorded.sort(key=_age_order)
    return tuple(recorded)


def find_counted_event(pattern: Pattern, events: Iterable[Event]) -> Event | None:
    """The newest event that says what the pattern's record alone told of; None if ralphdeck does not keep its counts.

    A record that claims less than that by now is another one: it speaks for itself again.
    """
    newest = max((event for event in events if event.kind == "counted"), key=_event_order, default=None)
    if newest is None:
        return None
    recorded_counts = Counts.claimed(pattern.recorded_counts)
    claimed = max(recorded_counts.uses if recorded_counts else 0, *(size for _, size, _ in usable_trend(pattern)), 0)
    return newest if sum(s.count for s in newest.unrecorded if s.kind != "discovered") <= claimed else None


def _event_order(event: Event) -> tuple[datetime, str]:
    return event.at, event.id


def _with_kept(
    pattern: Pattern,
    recorded: list[Observation],
    unrecorded: Iterable[Observation],
    uses: Sequence[tuple[Loop, InjectedUse]],
    work_items: WorkItems,
    set_aside: Iterable[Observation],
) -> tuple[Observation, ...]:
    """The evidence on a pattern whose counts ralphdeck keeps; uses that are open are among these counts."""
    kept = []
    for seen in unrecorded:
        names = (work_items.user_id(seen.loop_id), seen.loop_id)
        if seen.kind != "discovered" or not _is_recorded(names, seen.at, recorded, uses):
            kept.append(seen)
    recorded_counts = Counts.claimed(pattern.recorded_counts)
    beyond: list[Observation] = []
    if recorded_counts is not None:
        counted = (seen for seen in (*recorded, *set_aside) if not is_later(seen, pattern))
        beyond = aggregates(pattern, recorded_counts.less((*kept, *counted)))
    return tuple(sorted((*recorded, *kept, *beyond), key=_age_order))


def _held(events: Iterable[Event], pattern_id: str, work_items: WorkItems) -> Iterator[Observation]:
    """Harmful marks that do not count, but may be in the record's counts from when they did."""
    for event in events:
        if event.kind in _USES and event.success is False and work_items.sets_aside(event):
            yield Observation(pattern_id=pattern_id, kind="applied", source=EVENT_LOG, at=event.at, success=False)


def _may_be_claimed(seen: Observation, pattern: Pattern, work_items: WorkItems) -> bool:
    """Whether a recorded use can be one of those that the pattern's own record counts.

    By (0) a record counts a use when its result is known: one whose result is still to come is not among them.
    """
    without_result = seen.success is None and seen.kind == "applied"
    if without_result and (not seen.loop_id or work_items.is_open(seen.loop_id)):
        return False
    return not is_later(seen, pattern)


def is_later(seen: Observation, pattern: Pattern) -> bool:
    """Whether a use came after the last one that the pattern's own record counts: that tells its time (0)."""
    return pattern.last_used is not None and seen.at is not None and seen.at - pattern.last_used > _SAME_TIME


class _Alone:
    """`WorkItems` of loops that nothing more is known of than what they say of a pattern."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        self._ids = {alias: loop.id for loop in loops for alias in loop.aliases}

    def user_id(self, work_id: str) -> str:
        return self._ids.get(work_id, work_id)

    def came_out(self, _work_id: str) -> bool | None:
        return None

    def is_open(self, _work_id: str) -> bool:
        return False

    def sets_aside(self, _event: Event) -> bool:
        return False


def _age_order(observation: Observation) -> tuple[datetime, str, int, str]:
    return (
        observation.at or _UNDATED,
        observation.loop_id,
        -1 if observation.iteration is None else observation.iteration,
        f"{observation.kind} {observation.success}",
    )


def _discovery(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]],
    recorded: Sequence[Observation],
    discoverer: Loop | None,
    work_items: WorkItems,
) -> Observation | None:
    """The discovering loop's first success (0), unless it is recorded already.

    It is recorded if the event log has the extraction, or if the same loop says that it applied the pattern
    and gives no time that would tell that use from the discovery. A record that claims uses and not one
    success refutes it.
    """
    source = origin(pattern)
    if source is not None:
        names: tuple[str, ...] = (work_items.user_id(source.loop_id), source.loop_id)
        outcome = source.outcome
        at = source.at or pattern.first_discovered
    elif discoverer is not None:
        names = (discoverer.id, *discoverer.aliases)
        outcome = ""
        at = pattern.first_discovered or discoverer.ended_at or discoverer.last_activity or discoverer.started_at
    else:
        return None
    if at is None and pattern.trend:
        at = min((point.at for point in pattern.trend if point.at), default=None)
    if _is_recorded(names, at, recorded, uses):
        return None
    recorded_counts = Counts.claimed(pattern.recorded_counts)
    if recorded_counts is not None and recorded_counts.failures and not recorded_counts.successes:
        return None
    return Observation(
        pattern_id=pattern.id,
        kind="discovered",
        source=DISCOVERY,
        loop_id=names[0],
        at=at,
        success={"failure": False, "partial": None}.get(outcome, True),
    )


def _is_recorded(
    names: tuple[str, ...],
    at: datetime | None,
    recorded: Iterable[Observation],
    uses: Iterable[tuple[Loop, InjectedUse]],
) -> bool:
    """Whether an event or a loop tells of the discovery itself, by a loop of these names."""
    if any(seen.loop_id in names and seen.kind == "discovered" for seen in recorded):
        return True
    return any(
        entry.applied and entry.at in (None, at) and not {loop.id, *loop.aliases}.isdisjoint(names)
        for loop, entry in uses
    )
