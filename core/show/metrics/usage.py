"""Tokens and reported cost of loops, by day, source, agent or model (docs/metrics.md#usage)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from typing import Final

from msgspec import Struct

from core.base.grouping import group_pairs
from core.records.loops import Loop, Usage

UNKNOWN: Final = "unknown"
_DAY: Final = timedelta(days=1)


class UsageGroup(Struct, frozen=True, kw_only=True):
    """The summed usage of a group of loops."""

    name: str  # the day in ISO format (UTC), or the source, agent or model; may be untrusted
    usage: Usage
    loops: int


def usage_day(loop: Loop) -> str:
    """Return the day (UTC) on which the usage of a loop counts: that of its end or last activity."""
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
    """Sum the usage of the loops that have any; `by` is one of `GROUPINGS`. Days newest first, others by tokens."""
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
    """Return the usage of each of the last `days` days from the first one with a loop, oldest first."""
    known = {group.name: group for group in group_usage(loops, "day")}
    today = now.astimezone(UTC).date()
    names = [(today - _DAY * back).isoformat() for back in range(days - 1, -1, -1)]
    used = dropwhile(lambda name: name not in known, names)
    return tuple(known.get(name, UsageGroup(name=name, usage=Usage(), loops=0)) for name in used)
