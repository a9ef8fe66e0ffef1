"""Sessions' causes of failures, tokens and cost; docs/metrics.md#usage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.steps import group_pairs
from core.records.loops import Loop, Usage

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession
    from core.records.events import Event
    from core.records.snapshot import Snapshot


ROOT_CAUSE: Final = "root cause"
FAILURE_MODE: Final = "failure mode"
ERROR: Final = "error"
MAX_CAUSES: Final = 20  # number of listed causes
_UNKNOWN: Final = frozenset({"", "unknown", "other"})  # names without information


class Cause(Struct, frozen=True, kw_only=True):
    """A cause of failures.

    `kind` is `root cause` (counted once per debug session), `failure mode` (once per outcome) or `error` (once per
    debug session, and once per reported error).
    """

    kind: str
    name: str  # as written in the files: untrusted
    count: int
    newest: datetime  # time of the last occurrence
    loop_id: str = ""  # loop or attempt of the last occurrence; "" if unknown


def top_causes(snapshot: Snapshot, since: datetime, now: datetime) -> tuple[Cause, ...]:
    """Return the most frequent causes since a time, at most `MAX_CAUSES`."""
    occurrences = (*_of_sessions(snapshot.debug_sessions.values(), since), *_of_events(snapshot.events, since))
    informative = (one for one in occurrences if one[1].lower() not in _UNKNOWN)
    found: dict[tuple[str, str], Cause] = {}
    for kind, name, at, loop_id in sorted(informative, key=lambda one: one[2]):
        known = found.get((kind, name))
        count = known.count + 1 if known else 1
        found[kind, name] = Cause(kind=kind, name=name, count=count, newest=min(at, now), loop_id=loop_id)
    ordered = sorted(found.values(), key=lambda cause: (-cause.count, cause.kind, cause.name))
    return tuple(ordered[:MAX_CAUSES])


def count_failed_loops(loops: Iterable[Loop], since: datetime, now: datetime) -> int:
    """Count loops that ended without success in a time range, whatever the reason."""
    times = ((loop.ended_at or loop.last_activity) for loop in loops if loop.success is False)
    return sum(at is not None and since <= min(at, now) for at in times)


_Occurrence = tuple[str, str, datetime, str]  # kind, name, time, loop


def _of_sessions(sessions: Iterable[DebugSession], since: datetime) -> Iterator[_Occurrence]:
    for session in sessions:
        at = session.changed_at
        if at is not None and at >= since:
            causes = {run.analysis.category for run in session.executions if run.analysis is not None}
            errors = {failure.error_type for run in session.executions for failure in run.failures}
            yield from ((ROOT_CAUSE, name, at, session.loop_id) for name in causes)
            yield from ((ERROR, name, at, session.loop_id) for name in errors)


def _of_events(events: Sequence[Event], since: datetime) -> Iterator[_Occurrence]:
    for event in events[bisect_left(events, since, key=attrgetter("at")) :]:
        if event.error is not None:
            yield ERROR, event.error.error_type.value, event.at, event.loop_id
        elif event.signals is not None:
            yield FAILURE_MODE, event.signals.failure_mode, event.at, event.loop_id


UNKNOWN: Final = "unknown"
_DAY: Final = timedelta(days=1)


class UsageGroup(Struct, frozen=True, kw_only=True):
    """The summed usage of a group of loops."""

    name: str  # the day in ISO format (UTC), or the source, agent or model; may be untrusted
    usage: Usage
    loops: int


def usage_day(loop: Loop) -> str:
    """Return the day (UTC) of a loop's usage: of its end or last activity."""
    at = loop.ended_at or loop.last_activity or loop.updated_at or loop.started_at
    return UNKNOWN if at is None else at.astimezone(UTC).date().isoformat()


GROUPINGS: Final[dict[str, Callable[[Loop], str]]] = {
    "day": usage_day,
    "source": lambda loop: loop.source_name,
    "agent": lambda loop: loop.agent or UNKNOWN,
    "model": lambda loop: loop.model or UNKNOWN,
    "loop": lambda loop: loop.id,
}


def sum_usage(loops: Iterable[Loop]) -> Usage:
    """Return the usage of all loops together."""
    total = Usage()
    for loop in loops:
        total += loop.usage
    return total


def group_usage(loops: Iterable[Loop], by: str) -> tuple[UsageGroup, ...]:
    """Sum usage by one of `GROUPINGS`; days newest first, others by tokens."""
    name_of = GROUPINGS[by]
    groups = group_pairs((name_of(loop), loop) for loop in loops if has_usage(loop))
    found = [UsageGroup(name=name, usage=sum_usage(group), loops=len(group)) for name, group in groups.items()]
    if by == "day":
        return tuple(sorted(found, key=lambda group: group.name, reverse=True))
    return tuple(sorted(found, key=lambda group: (-(group.usage.total or 0), group.name)))


def has_usage(loop: Loop) -> bool:
    """Return whether tokens or a cost are known."""
    return loop.usage.total is not None or loop.usage.cost_usd is not None


def daily_usage(loops: Iterable[Loop], now: datetime, days: int) -> tuple[UsageGroup, ...]:
    """Return the usage of the last `days` days since the first loop, oldest first."""
    known = {group.name: group for group in group_usage(loops, "day")}
    today = now.astimezone(UTC).date()
    names = [(today - _DAY * back).isoformat() for back in range(days - 1, -1, -1)]
    used = dropwhile(lambda name: name not in known, names)
    return tuple(known.get(name, UsageGroup(name=name, usage=Usage(), loops=0)) for name in used)
