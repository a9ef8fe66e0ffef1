"""Formatting of numbers, rates, durations and dates: `0.86`, `86 %`, `12 m`, `4.1 M`."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import floor
from typing import Final

from core.base.text import visible_line

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
    """Format seconds in the largest unit that fits, rounded down: `0.4 s`, `12 m`, `5 h`, `3 d`."""
    return f"{max(seconds, 0.0):.1f} s" if seconds < 9.95 else format_span(seconds)


def format_span(seconds: float) -> str:
    """Format the time since something in whole units, rounded down: `0 s`, `12 m`, `5 h`, `3 d`; years have a digit."""
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (48 * 3600, 3600, "h"), (365 * 86400, 86400, "d")):
        if seconds < limit:
            return f"{max(seconds, 0) // size:.0f} {unit}"
    years = floor(seconds / (365.25 * 86400) * 10) / 10
    return f"{years:.1f} y" if years < 1000 else "ages"


def format_age(moment: datetime | None, now: datetime) -> str:
    """Format an age: `5 h ago`, `in 3 d`; `now` within a second or the clock skew, `—` for None."""
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
