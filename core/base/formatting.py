"""Formatting of numbers, rates, durations and dates: `0.86`, `86 %`, `12 m`."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from math import floor

from core.base.text import visible_line


def format_decimal(value: float) -> str:
    """Format a number with two decimal digits, half rounded up: `0.86`, `1.00`."""
    return f"{Decimal(str(value)).quantize(Decimal('0.01'), ROUND_HALF_UP):f}"


def format_percent(rate: float) -> str:
    """Format a rate (0..1) in whole percent, half rounded up: `86 %`."""
    return f"{floor(rate * 100 + 0.5)} %"


def format_duration(seconds: float) -> str:
    """Format seconds in the largest unit that fits: `0.4 s`, `12 m`, `5 h`, `3 d`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (48 * 3600, 3600, "h"), (365 * 86400, 86400, "d")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    years = seconds / (365.25 * 86400)
    return f"{years:.1f} y" if years < 1000 else "ages"


def format_day(moment: datetime) -> str:
    """Format a date for a message: `3 May 2026` (UTC)."""
    return f"{moment.day} {moment:%B %Y}"


def shorten_id(identifier: str) -> str:
    """Return the visible characters of an ID, at most 80, for a message."""
    return visible_line(identifier, 80)
