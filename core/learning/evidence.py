"""Evidence on a pattern, each use counted once; docs/scoring.md#evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final

from core.base.grouping import group_pairs
from core.learning.aggregate_evidence import UseCounts, list_aggregates, list_unrecorded, usable_trend
from core.learning.recorded_uses import EVENT_LOG, UseTable, WorkItems, find_origin
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Pattern

DISCOVERY: Final = "discovery"
_SAME_TIME: Final = timedelta(seconds=60)  # maximum time between updating a record and logging the event
_USES: Final = ("applied", "outcome", "feedback")
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)


def group_uses_by_pattern(loops: Iterable[Loop]) -> dict[str, list[tuple[Loop, InjectedUse]]]:
    """Group the `injected` entries of loops by pattern."""
    return group_pairs((use.pattern_id, (loop, use)) for loop in loops for use in loop.injected)


def find_discoverers(loops: Iterable[Loop]) -> dict[str, Loop]:
    """Return the earliest loop that records a pattern as newly extracted, by pattern."""
    extracting = (loop for loop in loops if loop.extracted)
    newest_first = sorted(extracting, key=lambda loop: (loop.started_at or _UNDATED, loop.id), reverse=True)
    return {entry.pattern_id: loop for loop in newest_first for entry in loop.extracted if entry.new}


def collect_observations(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]],
    events: Sequence[Event],
    discoverer: Loop | None,
    work_items: WorkItems,
    revoked: Sequence[Observation] = (),
) -> tuple[Observation, ...]:
    """Collect all evidence on one pattern, oldest first, undated last.

    `events` that name the pattern are source 1, `uses` (entries of loops) source 2; counts and trend of the record are
    sources 4 and 5. `discoverer` is a loop that records the extraction, for a pattern without source loops. `revoked`
    are uses whose results do not count: they are subtracted from the counts of the record, which may contain them.
    """
    recorded: list[Observation] = []
    if uses or events:
        table = UseTable(pattern, work_items)
        table.add_events(events)
        table.add_loops(uses)
        recorded = table.observations()
    counted_event = find_counted_event(pattern, events)
    if counted_event is not None:
        held = (  # reports that do not count, but may have been counted in the record
            Observation(pattern_id=pattern.id, kind="applied", source=EVENT_LOG, at=event.at, success=False)
            for event in events
            if event.kind in _USES and event.success is False and work_items.ignores(event)
        )
        return _with_counted(pattern, recorded, counted_event.unrecorded, uses, work_items, (*revoked, *held))
    found = _discovery(pattern, uses, recorded, discoverer, work_items)
    if found is not None:
        recorded.append(found)
    counted = [*(use for use in recorded if _may_be_counted(use, pattern, work_items)), *revoked]
    recorded.extend(list_unrecorded(pattern, counted, UseCounts.of_record(pattern.recorded_counts)))
    if len(recorded) > 1:
        recorded.sort(key=_age_order)
    return tuple(recorded)


def find_counted_event(pattern: Pattern, events: Iterable[Event]) -> Event | None:
    """Return the newest `counted` event if its counts are still in the record.

    Also None if the record now counts fewer uses than the event: then another program replaced it.
    """
    counted = (event for event in events if event.kind == "counted")
    newest = max(counted, key=attrgetter("at", "id"), default=None)
    if newest is None:
        return None
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    in_record = max(recorded_counts.uses if recorded_counts else 0, *(size for _, size, _ in usable_trend(pattern)), 0)
    in_event = sum(use.count for use in newest.unrecorded if use.kind != "discovered")
    return newest if in_event <= in_record else None


def _with_counted(
    pattern: Pattern,
    recorded: list[Observation],
    unrecorded: Iterable[Observation],
    uses: Sequence[tuple[Loop, InjectedUse]],
    work_items: WorkItems,
    ignored: Iterable[Observation],
) -> tuple[Observation, ...]:
    """Return the evidence on a pattern with a `counted` event."""
    before = [
        use
        for use in unrecorded
        if use.kind != "discovered"
        or not _is_recorded((work_items.owner_id(use.loop_id), use.loop_id), use.at, recorded, uses)
    ]
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    beyond: list[Observation] = []
    if recorded_counts is not None:
        counted = (use for use in (*recorded, *ignored) if not is_later(use, pattern))
        beyond = list_aggregates(pattern, recorded_counts.minus((*before, *counted)))
    return tuple(sorted((*recorded, *before, *beyond), key=_age_order))


def _may_be_counted(use: Observation, pattern: Pattern, work_items: WorkItems) -> bool:
    """Return whether the record may count a use: it is not later and has a result."""
    without_result = use.success is None and use.kind == "applied"
    if without_result and (not use.loop_id or work_items.is_open(use.loop_id)):
        return False
    return not is_later(use, pattern)


def is_later(use: Observation, pattern: Pattern) -> bool:
    """Return whether a use is later than `last_used` of the record."""
    return pattern.last_used is not None and use.at is not None and use.at - pattern.last_used > _SAME_TIME


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
    """Return the discovery as the first success, unless it is recorded already.

    A record that counts failures and no success refutes it.
    """
    source = find_origin(pattern)
    if source is not None:
        names: tuple[str, ...] = (work_items.owner_id(source.loop_id), source.loop_id)
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
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
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
    """Return whether an event or loop with one of these names records the discovery."""
    if any(use.loop_id in names and use.kind == "discovered" for use in recorded):
        return True
    return any(
        entry.applied and entry.at in (None, at) and not {loop.id, *loop.aliases}.isdisjoint(names)
        for loop, entry in uses
    )
