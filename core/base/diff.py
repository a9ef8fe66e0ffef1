"""Differences between texts and between patterns, as data.

The comparison takes quadratic time. Therefore the common beginning and end are removed first, and if more than
`MAX_COMPARED` items remain, they count as replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from core.records.patterns import Pattern

EQUAL: Final = "same"
DELETED: Final = "gone"
INSERTED: Final = "come"
MAX_COMPARED: Final = 400  # Words and blanks, or lines, that are compared: at most about 0.2 s.
_WORDS: Final = re.compile(r"\S+|\s+")


class DiffPiece(NamedTuple):
    """Piece of a compared text: some words, or a whole line with its line end."""

    mark: Literal["same", "gone", "come"]
    text: str


class FieldChange(NamedTuple):
    """Field that differs between two patterns; a list has one line per item."""

    name: str
    before: str
    after: str


def word_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Compare words; `before` has all but inserted pieces, `after` all but deleted."""
    pieces = _changes(_WORDS.findall(before), _WORDS.findall(after))
    return tuple(DiffPiece(mark, "".join(parts)) for mark, parts in pieces)


def line_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Compare two texts line by line, one piece per line; see `word_changes`."""
    pieces = _changes(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return tuple(DiffPiece(mark, line) for mark, lines in pieces for line in lines)


def field_changes(before: Pattern, after: Pattern) -> tuple[FieldChange, ...]:
    """Find the injected fields in which two patterns differ."""
    return tuple(
        FieldChange(name, one, two)
        for name in _FIELDS
        if (one := _field_text(getattr(before, name))) != (two := _field_text(getattr(after, name)))
    )


_FIELDS: Final = (
    *("title", "error_type", "error_message", "error_pattern", "places", "task_pattern", "description", "category"),
    *("steps", "tools", "preconditions", "benefits", "limitations", "symptoms", "location_hints"),
    *("why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
    *("template_language", "template_code", "placeholders", "diff_pattern"),
)


def _field_text(value: str | Sequence[str | tuple[str, str]]) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(item if isinstance(item, str) else ": ".join(item) for item in value)


def _changes(
    before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[Literal["same", "gone", "come"], Sequence[str]]]:
    start = next((n for n, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), None)
    if start is None:
        start = min(len(before), len(after))
    left = min(len(before), len(after)) - start
    end = next((n for n in range(left) if before[-1 - n] != after[-1 - n]), left)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if start:
        yield EQUAL, before[:start]
    if max(len(old), len(new)) > MAX_COMPARED:
        yield DELETED, old
        yield INSERTED, new
    else:
        for tag, one, two, three, four in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                yield EQUAL, old[one:two]
                continue
            if one < two:
                yield DELETED, old[one:two]
            if three < four:
                yield INSERTED, new[three:four]
    if end:
        yield EQUAL, before[len(before) - end :]
