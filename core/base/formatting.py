"""Numbers, rates, durations and times for people: `0.86`, `12 m`, `4.1 M`, `7d`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import floor
from typing import Final

from core.base.errors import BadInput
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.records.times import MAX_TIME_LENGTH, parse_time

CLOCK_SKEW: Final = timedelta(minutes=1)
"""Maximum difference between clocks; a time less than this in the future is shown as now."""


def format_decimal(value: float) -> str:
    """Format a number with two decimal digits, half rounded up: `0.86`, `1.00`."""
    return f"{Decimal(str(value)).quantize(Decimal('0.01'), ROUND_HALF_UP):f}"


def format_percent(rate: float | None) -> str:
    """Format a rate (0..1) in whole percent, half rounded up: `86 %`; `—` for None."""
    return "—" if rate is None else f"{floor(rate * 100 + 0.5)} %"


def format_count(count: int) -> str:
    """Format a large count in at most six characters: `950`, `12.3 k`, `4.1 M`."""
    if count < 1000:
        return str(count)
    for size, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        if count < size * 999.95:
            return f"{count / size:.1f} {unit}" if count < size * 99.95 else f"{count / size:.0f} {unit}"
    return "many"


def format_cost(dollars: float) -> str:
    """Format a cost in US dollars: `$0.42`, `$1,250`."""
    return f"${dollars:,.2f}" if dollars < 100 else f"${dollars:,.0f}"


def format_duration(seconds: float) -> str:
    """Format seconds in the largest unit that fits, rounded down: `0.4 s`, `12 m`."""
    return f"{max(seconds, 0.0):.1f} s" if seconds < 9.95 else format_span(seconds)


def format_span(seconds: float) -> str:
    """Format a time span, rounded down: `0 s`, `12 m`, `3 d`; years have a decimal."""
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (48 * 3600, 3600, "h"), (365 * 86400, 86400, "d")):
        if seconds < limit:
            return f"{max(seconds, 0) // size:.0f} {unit}"
    years = floor(seconds / (365.25 * 86400) * 10) / 10
    return f"{years:.1f} y" if years < 1000 else "ages"


def format_age(moment: datetime | None, now: datetime) -> str:
    """Format an age: `5 h ago`, `in 3 d`; `now` within 1 s or clock skew; `—`: None."""
    if moment is None:
        return "—"
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return "now" if -seconds < CLOCK_SKEW.total_seconds() else f"in {format_span(-seconds)}"
    return f"{format_span(seconds)} ago" if seconds >= 1 else "now"


def format_day(moment: datetime) -> str:
    """Format a date for a message: `3 May 2026` (UTC)."""
    return f"{moment.day} {moment:%B %Y}"


def shorten_id(identifier: str) -> str:
    """Return the visible characters of an ID, at most 80, for a message."""
    return visible_line(identifier, 80)


LAST_VISIT: Final = "last_visit"
"""Key of the time at which the dashboard was closed, in the user state of each project."""
LAST_SEEN: Final = "last_seen"
"""Key of the last time at which the dashboard was open, for one that is open or was not closed properly."""
_DAY: Final = lazy_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AGO: Final = lazy_regex(r"([1-9][0-9]{0,3})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LAST: Final = timedelta(days=1) - timedelta(microseconds=1)


def parse_past_time(text: str, now: datetime, *, end_of_day: bool) -> datetime:
    """Parse a past time in UTC: `2026-11-15`, ISO 8601 or an age (`36h`, `7d`, `2w`).

    A date means the beginning of that day or, with `end_of_day`, its end; the end of today is `now`. Raises BadInput if
    the text is invalid or the time is in the future.
    """
    text = text.strip()
    ago = _AGO.fullmatch(text)
    moment = now - int(ago[1]) * _UNITS[ago[2]] if ago else parse_time(text) if len(text) <= MAX_TIME_LENGTH else None
    if moment is None:
        raise BadInput(f"Invalid time {visible_line(text, 40)!r}. Use 2026-11-15, 2026-11-15T09:00 or 7d")
    if _DAY.fullmatch(text):
        if moment > now:
            raise BadInput(f"{text} is in the future")
        return min(moment + _LAST, now) if end_of_day else moment
    if moment > now:
        raise BadInput(f"{visible_line(text, 40)} is in the future")
    return moment.astimezone(UTC)
