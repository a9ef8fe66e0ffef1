"""Indexes of the events behind the evidence, by pattern and by work item."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from core.base.grouping import group_pairs
from core.learning.bursts import report_of_event, source_of
from core.learning.finished_work import collect_reports, is_report, merge_reports
from core.learning.recorded_uses import group_events_by_work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from core.learning.finished_work import WorkReport
    from core.records.event_log import EventChanges
    from core.records.events import Event

_AT: Final = attrgetter("at")


class EventIndexes(Protocol):
    """The indexes that `index_events` builds."""

    @property
    def events(self) -> Mapping[str, list[Event]]: ...  # by pattern
    @property
    def unresolved(self) -> Mapping[str, frozenset[str]]: ...
    @property
    def reports(self) -> Mapping[str, WorkReport]: ...
    @property
    def harmful_events(self) -> Mapping[str, list[Event]]: ...  # by source
    @property
    def events_by_work(self) -> Mapping[str, list[Event]]: ...


def index_events(events: Sequence[Event]) -> dict[str, Any]:
    """Build the indexes of events; see `EvidenceIndex` for the fields."""
    unresolved = group_pairs((event.loop_id, event.pattern_id) for event in events if _is_unresolved(event))
    return {
        "events": group_pairs((event.pattern_id, event) for event in events if event.pattern_id),
        "unresolved": {work_id: frozenset(patterns) for work_id, patterns in unresolved.items()},
        "reports": collect_reports(events),
        "harmful_events": group_pairs((source_of(event), event) for event in events if report_of_event(event)),
        "events_by_work": group_events_by_work(events),
    }


def _is_unresolved(event: Event) -> bool:
    """Return whether an event reports a pattern as applied without a result."""
    return event.success is None and event.kind == "applied" and bool(event.pattern_id and event.loop_id)


def index_changes(known: EventIndexes, changes: EventChanges) -> dict[str, dict[str, Any]] | None:
    """Return the entries of each index that change; None if all indexes must be built again."""
    if any(map(is_report, changes.removed)):
        return None
    added, lost = index_events(sorted(changes.added, key=_AT)), index_events(changes.removed)
    removed_ids = {event.id for event in changes.removed}
    found: dict[str, dict[str, Any]] = {}
    for name in ("events", "harmful_events", "events_by_work"):
        old: Mapping[str, list[Event]] = getattr(known, name)
        keys = {**lost[name], **added[name]}
        found[name] = {key: _merge(old.get(key, []), added[name].get(key, []), removed_ids) for key in keys}
    found["reports"] = {
        id: merge_reports((new, known.reports[id])) if id in known.reports else new
        for id, new in added["reports"].items()
    }
    found["unresolved"] = {
        id: frozenset(event.pattern_id for event in found["events_by_work"][id] if _is_unresolved(event))
        for id in {**lost["unresolved"], **added["unresolved"]}
    }
    return found


def _merge(old: list[Event], new: list[Event], removed_ids: Set[str]) -> list[Event]:
    """Return the events in order of time, without those with `removed_ids`."""
    kept = [event for event in old if event.id not in removed_ids] if removed_ids else old
    merged = kept + new
    if kept and new and new[0].at < kept[-1].at:
        merged.sort(key=_AT)
    return merged
