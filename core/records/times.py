"""Parse and format times; all are aware `datetime`s in UTC."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

_EPOCH_MS_FROM: Final = 1e11
"""Numbers from this on are epoch milliseconds, smaller ones epoch seconds (1e11 s is the year 5138)."""
# Some agents write hours with three digits ("T010:00:00Z"); otherwise, only ISO-8601 is accepted.
_LONG_HOUR: Final = re.compile(r"T0(\d\d):")
MAX_TIME_LENGTH: Final = 64
_LAST_SECOND: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def parse_time(value: Any) -> datetime | None:
    """Parse an ISO-8601 string or epoch number (s or ms); return None if invalid.

    A string without a time zone is taken as UTC.
    """
    if type(value) is str:
        return _parse_text(value) if 8 <= len(value) <= MAX_TIME_LENGTH else None
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, int | float):
            if not math.isfinite(value) or value <= 0:
                return None
            return datetime.fromtimestamp(value / 1000 if value >= _EPOCH_MS_FROM else value, UTC)
        return _in_utc(value) if isinstance(value, datetime) else None
    except (ValueError, OverflowError, OSError):
        return None


def time_at(seconds: float) -> datetime:
    """Return a time in seconds since 1970, limited to the years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC)


@lru_cache(1024)  # the files of one loop repeat its times
def _parse_text(text: str) -> datetime | None:
    text = text.strip()
    is_usual = text[13:14] == ":"  # skips the substitution, the slowest step, for valid times
    try:
        return _in_utc(datetime.fromisoformat(text if is_usual else _LONG_HOUR.sub(r"T\1:", text)))
    except (ValueError, OverflowError):
        return None


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def day_of(moment: datetime) -> str:
    """Format the date, such as `2026-02-02`."""
    return moment.date().isoformat()


def minute_of(moment: datetime) -> str:
    """Format date and time, such as `2026-02-02 15:04`."""
    return f"{day_of(moment)} {moment:%H:%M}"


def iso(moment: datetime | None) -> str | None:
    """Format a time for files and JSON: ISO-8601, UTC, milliseconds, `Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def newest(*times: datetime | None) -> datetime | None:
    """Return the latest time; None if all are None."""
    known = [time for time in times if time is not None]  # a list is twice as fast as a generator, for each loop
    return max(known) if known else None
