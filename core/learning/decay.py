"""Decay of evidence with a half-life; docs/scoring.md#half-life."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import force_setattr

from core.base.errors import BadInput
from core.base.validation import check_half_life, format_value
from core.records.times import parse_time

if TYPE_CHECKING:
    from msgspec import Struct

SECONDS_PER_DAY: Final = 86_400.0


def decayed_value(timestamp: str | datetime, now: str | datetime, half_life_days: float) -> float:
    """Return the decay factor of an event: `0.5 ** (age_days / half_life_days)`.

    A time after `now` counts as now. Raises BadInput for a time that can't be parsed, or a half-life that is not a
    finite number above 0.
    """
    check_half_life(half_life_days)
    age = parse_moment(now, "now") - parse_moment(timestamp, "timestamp")
    return decay_factor(age.total_seconds(), half_life_days)


def decay_factor(age: float, half_life_days: float) -> float:
    """Return `decayed_value` of an age in seconds, without checks."""
    return float(0.5 ** (max(age, 0.0) / SECONDS_PER_DAY / half_life_days))


def normalize_time(record: Struct, field: str, *, optional: bool = False) -> None:
    """Convert a time field of a new record to UTC; raises BadInput if it is invalid."""
    value = getattr(record, field)
    if value is not None or not optional:
        force_setattr(record, field, parse_moment(value, field))


def parse_moment(value: str | datetime, field: str) -> datetime:
    """Convert `value` to an aware UTC time; raises BadInput if it is invalid."""
    parsed = parse_time(value)
    if parsed is None:
        raise BadInput(f"{field} must be an ISO-8601 time, not {format_value(value)}")
    return parsed
