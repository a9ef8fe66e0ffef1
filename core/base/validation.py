"""Checks of given values and IDs: errors name field and value, or the nearest ID."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any, Final

from core.base.errors import BadInput, UnknownRecord
from core.base.text import plural, visible_line

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


MIN_FRAGMENT: Final = 3  # Fewest characters of a part of an ID.
MAX_NAMED: Final = 6  # Most IDs in an error message.
_MAX_NAME: Final = 200  # Characters of a name that are compared.
_MIN_RATIO: Final = 75.0  # Similarity 0..100 from which an ID is suggested.


def find_matching_ids(name: str, known: Collection[str], *, fragments: bool = False) -> list[str]:
    """Return IDs equal to `name`, else with it as prefix, else (`fragments`) as part."""
    if name in known:
        return [name]
    found = sorted(id for id in known if name and id.startswith(name))
    if not found and fragments and len(name) >= MIN_FRAGMENT:
        found = sorted(id for id in known if name.casefold() in id.casefold())
    return found


def require_one(found: Sequence[str], name: str, *, what: str, command: str, known: Collection[str] = ()) -> str:
    """Return the only ID of `found`, the matches of `name`.

    `what` is the kind of record, such as `debug session`; `command` lists such records. Raises UnknownRecord if several
    IDs match, or if none matches; the message then suggests the nearest of the `known` IDs.
    """
    if len(found) == 1:
        return found[0]
    shown = visible_line(name, 80)
    if found:
        raise ambiguous_id_error(name, found)
    raise UnknownRecord(f"no {what} {shown!r}; see: ralphdeck {command}{suggest_id(name, known)}")


def ambiguous_id_error(name: str, found: Sequence[str]) -> UnknownRecord:
    """Make the error for a name that matches several IDs, of which it lists the last."""
    return UnknownRecord(f"{visible_line(name, 80)!r} is ambiguous ({name_ids(found)}); use a longer id")


def name_ids(ids: Sequence[str]) -> str:
    """List the last IDs, and count the others."""
    names = ", ".join(visible_line(id, 80) for id in ids[-MAX_NAMED:])
    more = len(ids) - MAX_NAMED
    return f"{names} and {plural(more, 'other')}" if more > 0 else names


def suggest_id(name: str, known: Collection[str]) -> str:
    """Return "; did you mean ID?" with the nearest known ID (or part), "" if none is."""
    from rapidfuzz import fuzz, process  # only for a mistyped ID

    near = process.extractOne(name[:_MAX_NAME].casefold(), list(known), scorer=fuzz.WRatio, score_cutoff=_MIN_RATIO)
    return f"; did you mean {visible_line(near[0], 80)}?" if near else ""
