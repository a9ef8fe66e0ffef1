"""Parse filters such as `type:error uses:<3 tag:auth -flaky null`.

All terms must match. `field:value` matches one field, a leading `-` negates a term, and quotes protect spaces.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from core.base.text import visible_line

MAX_QUERY: Final = 500  # characters; the rest of a longer query is ignored
MAX_ID_QUERY: Final = 300  # maximum length of a query for several IDs; it must fit into the filter input
_TOKEN: Final = re.compile(r'(-?)(?:([A-Za-z_]+):)?("[^"]*"?|\S+)')
_NUMBER: Final = re.compile(r"(<=|>=|<|>|=)?(\d+(?:\.\d+)?|\.\d+)(%)?")
_AGE: Final = re.compile(r"(<=|>=|<|>|=)?(\d{1,6})([hdwmy])")
_TAIL: Final = re.compile(r'(?:^|\s)-?(?P<name>[A-Za-z_]+)(?P<colon>:?)(?P<value>[^\s":]*)$')
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_MAX_AGE: Final = timedelta(days=365 * 1000)  # longer ages are cut to this, so that date arithmetic does not overflow

Comparison: TypeAlias = Callable[[Any, Any], Any]
_COMPARISONS: Final[dict[str, Comparison]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    # Numbers are displayed with two decimals, so values that look the same must match.
    "=": lambda one, other: abs(one - other) < 0.005,
}


class FieldKind(Enum):
    """Type of the values of a field."""

    TEXT = auto()
    NUMBER = auto()
    SHARE = auto()  # A number 0..1, which may be entered as a percentage.
    AGE = auto()
    PALETTE = auto()  # A filter that only the command palette knows.


_EXAMPLES: Final = {FieldKind.NUMBER: ">3", FieldKind.SHARE: ">50%", FieldKind.AGE: "<7d"}

Fields: TypeAlias = Mapping[str, FieldKind | tuple[str, ...]]  # a kind, or all valid words, which may be abbreviated


class Term(Struct, frozen=True):
    """One term: a word (`field` is empty) or `field:value`, in lower case."""

    field: str
    value: str
    negated: bool = False


class Query(Struct, frozen=True):
    """A parsed filter and the problems found in its text."""

    terms: tuple[Term, ...]
    problems: tuple[str, ...] = ()


def parse_query(text: str, fields: Fields) -> Query:
    """Parse a filter; the term of an unknown field is a problem, searched as text.

    Terms with an invalid number or age, or of the command palette, are problems and are ignored; a field that has no
    value yet is ignored.
    """
    terms: list[Term] = []
    problems: list[str] = []
    for sign, field, raw in _TOKEN.findall(text[:MAX_QUERY]):
        value = raw.strip('"').lower()
        name = field.lower()
        if name and name not in fields:
            shown, term = visible_line(name, MAX_QUERY), visible_line(f"{field}:{raw}", MAX_QUERY)
            problems.append(f"unknown field {shown!r} in {term}; use {_names(fields)}")
            name, value = "", f"{name}:{value}"
        elif not name and value.endswith(":") and value[:-1] in fields:
            continue
        elif name:
            kind = fields[name]
            if kind is FieldKind.PALETTE:
                problems.append(f"{name}: works in the command palette, not in this filter")
                continue
            if kind in (FieldKind.NUMBER, FieldKind.SHARE) and parse_number(value) is None:
                example = "50%" if kind is FieldKind.SHARE else "3"
                problems.append(f"{name}: needs a number, as in {name}:>{example}")
                continue
            if kind is FieldKind.AGE and parse_age(value) is None:
                problems.append(f"{name}: needs an age, as in {name}:<7d (h, d, w, m, y)")
                continue
            if isinstance(kind, tuple) and not any(word.startswith(value) for word in kind):
                problems.append(f"{name}: must be one of {', '.join(kind)}")
        if value:
            terms.append(Term(name, value, bool(sign)))
    return Query(tuple(terms), tuple(problems))


def completions(text: str, fields: Fields) -> tuple[str, ...]:
    """Return `text` with each possible last term: a field or a value of its field.

    A field with numbers or ages offers an example. A term that is complete, and a plain word, have no completions.
    """
    found = _TAIL.search(text[:MAX_QUERY])
    if found is None:
        return ()
    name, colon, value = found["name"].lower(), found["colon"], found["value"].lower()
    start = text[: found.start("name")]
    if not colon:
        return tuple(f"{start}{field}:" for field in fields if field.startswith(name))
    kind = fields.get(name)
    words = kind if isinstance(kind, tuple) else (_EXAMPLES[kind],) if kind in _EXAMPLES and not value else ()
    return tuple(f"{start}{name}:{word}" for word in words if word.startswith(value) and word != value)


def _names(fields: Fields) -> str:
    return ", ".join(sorted(name for name, kind in fields.items() if kind is not FieldKind.PALETTE))


def parse_number(value: str) -> tuple[Comparison, float] | None:
    """Parse `>0.5` or `50%` into a comparison and a number; return None if invalid."""
    found = _NUMBER.fullmatch(value)
    if found is None:
        return None
    sign, digits, percent = found.groups()
    return _COMPARISONS[sign or "="], float(digits) / (100 if percent else 1)


def parse_age(value: str) -> tuple[Comparison, timedelta] | None:
    """Parse `<7d` into a comparison and an age, `7d` as `<=7d`; None if invalid."""
    found = _AGE.fullmatch(value)
    if found is None:
        return None
    sign, digits, unit = found.groups()
    compare = _COMPARISONS[sign] if sign and sign != "=" else operator.le
    return compare, min(timedelta(hours=int(digits) * _HOURS[unit]), _MAX_AGE)


def build_id_query(ids: Sequence[str]) -> tuple[str, int]:
    """Build a query for as many IDs as fit; also return the number of omitted IDs."""
    text = ""
    for number, pattern_id in enumerate(ids):
        longer = f"{text},{pattern_id}" if text else f"id:{pattern_id}"
        if len(longer) > MAX_ID_QUERY:
            return text, len(ids) - number
        text = longer
    return text, 0


# Matching records of any kind

_Record = TypeVar("_Record")
Tests = Mapping[str, Callable[[_Record, str], bool]]  # (record, lower-case value) -> match, by field; "" for text


def matches(record: _Record, query: Query, tests: Tests[_Record]) -> bool:
    """Return whether a record matches all terms of a query."""
    return all(tests.get(term.field, tests[""])(record, term.value) != term.negated for term in query.terms)


def matches_flag(word: str, **flags: bool) -> bool:
    """Return whether a flag that is set begins with a word."""
    return any(is_set and name.startswith(word) for name, is_set in flags.items())
