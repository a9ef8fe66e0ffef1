"""Numbers as text, in one form everywhere: `0.86` and `86 %`."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import floor
from typing import Final

_CENT: Final = Decimal("0.01")


def decimal_text(value: float) -> str:
    """A number with two digits after the point, half rounded up: `0.86`, `1.00`."""
    return f"{Decimal(str(value)).quantize(_CENT, ROUND_HALF_UP):f}"


def percent_text(rate: float) -> str:
    """A rate 0..1 in whole percent, half rounded up: `86 %`."""
    return f"{floor(rate * 100 + 0.5)} %"
