"""Validation of arguments; each check raises `BadInput` with field and value."""

from __future__ import annotations

import sys
from typing import Any, Final

from core.base.errors import BadInput
from core.base.text import visible_line

MAX_COUNT: Final = 10**15  # Largest count; a float cannot represent every whole number beyond it.
RETRY_SECONDS: Final = (0.025, 0.05, 0.1, 0.4)  # default delays before an incomplete file is read again
MAX_AMOUNT: Final = sys.float_info.max
MIN_HALF_LIFE: Final = 1e-9  # Shortest half-life in days, so that ages in half-lives do not overflow a float.
_SHOWN_CHARS: Final = 80


def format_value(value: object) -> str:
    """Format the `repr` of a value on one short line, for messages."""
    start = value[: _SHOWN_CHARS + 1] if isinstance(value, str) else value
    try:
        return visible_line(repr(start), _SHOWN_CHARS)
    except ValueError:  # Python does not convert numbers of thousands of digits
        return "a number too long to show"


def check_text(value: Any, field: str) -> None:
    """Raise `BadInput` unless `value` is a string."""
    if not isinstance(value, str):
        raise BadInput(f"{field} must be a text, not {format_value(value)}")


def check_texts(value: Any, field: str) -> None:
    """Raise `BadInput` unless `value` is a tuple or list of strings."""
    if not isinstance(value, tuple | list):
        raise BadInput(f"{field} must be a list of texts, not {format_value(value)}")
    for text in value:
        check_text(text, field)


def check_flag(value: Any, field: str) -> None:
    """Raise `BadInput` unless `value` is True or False."""
    if not isinstance(value, bool):
        raise BadInput(f"{field} must be true or false, not {format_value(value)}")


def check_count(value: Any, field: str, most: int = MAX_COUNT) -> None:
    """Raise `BadInput` unless `value` is an int (not a bool) from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        limits = "of at least 0" if most == MAX_COUNT else f"from 0 to {most:,}"
        raise BadInput(f"{field} must be a whole number {limits}, not {format_value(value)}")


def check_amount(value: Any, field: str, most: float = MAX_AMOUNT, *, least: float = 0) -> None:
    """Raise `BadInput` unless `value` is a number (no bool) from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        limits = (
            f"a finite number of at least {least:g}"
            if most == MAX_AMOUNT
            else f"a number from {least:g} to {most:,.0f}"
        )
        raise BadInput(f"{field} must be {limits}, not {format_value(value)}")


def check_choice(value: Any, field: str, choices: tuple[str, ...]) -> None:
    """Raise `BadInput` unless `value` is one of `choices`."""
    if value not in choices:
        raise BadInput(f"{field} must be {' or '.join(choices)}, not {format_value(value)}")


def check_half_life(days: Any, field: str = "half_life_days") -> None:
    """Raise `BadInput` unless `days` is a finite number of at least `MIN_HALF_LIFE`."""
    if isinstance(days, bool) or not isinstance(days, int | float) or not MIN_HALF_LIFE <= days <= MAX_AMOUNT:
        raise BadInput(f"{field} must be a number of days above 0, not {format_value(days)}")
