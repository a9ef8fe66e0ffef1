"""Confidence decay: what was seen long ago says less (2) Half-Life Formula."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from core.base.errors import BadInput
from core.base.validation import check_half_life, format_value
from core.records.times import parse_time

SECONDS_PER_DAY: Final = 86_400.0


def decayed_value(timestamp: str | datetime, now: str | datetime, half_life_days: float) -> float:
    """What one event of weight 1 is still worth: `0.5 ** (age_days / half_life_days)`, 0..1.

    A time after `now` counts as now, so that no clock can make an event worth more than 1.

    Raises:
        BadInput: A time that can't be parsed, or a half-life that is not a finite number above 0.
    """
    check_half_life(half_life_days)
    age = (moment(now, "now") - moment(timestamp, "timestamp")).total_seconds()
    return float(0.5 ** (max(age, 0.0) / SECONDS_PER_DAY / half_life_days))


def normalize_time(record: Struct, field: str, *, optional: bool = False) -> None:
    """Give a time of a record that is being made its one form, aware UTC.

    Args:
        optional: Whether it may be None.

    Raises:
        BadInput: It can't be parsed.
    """
    value = getattr(record, field)
    if value is not None or not optional:
        force_setattr(record, field, moment(value, field))


def moment(value: str | datetime, field: str) -> datetime:
    """`value` as an aware UTC time, else `BadInput` naming the field."""
    parsed = parse_time(value)
    if parsed is None:
        raise BadInput(f"{field} must be an ISO-8601 time, not {format_value(value)}")
    return parsed
