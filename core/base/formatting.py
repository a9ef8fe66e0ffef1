"""Numbers as text, in one form everywhere: `0.86` and `86 %`."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from math import floor
from typing import Final

from core.base.text import visible_line

_CENT: Final = Decimal("0.01")


def decimal_text(value: float) -> str:
    """A number with two digits after the point, half rounded up: `0.86`, `1.00`."""
    return f"{Decimal(str(value)).quantize(_CENT, ROUND_HALF_UP):f}"


def percent_text(rate: float) -> str:
    """A rate 0..1 in whole percent, half rounded up: `86 %`."""
    return f"{floor(rate * 100 + 0.5)} %"


def format_day(moment: datetime) -> str:
    """A date as messages write it: `3 May 2026` (UTC)."""
    return f"{moment.day} {moment:%B %Y}"


def short_id(identifier: str) -> str:
    """An ID as messages quote it: visible characters only, at most 80."""
    return visible_line(identifier, 80)
