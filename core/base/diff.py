"""Differences of texts and of patterns, as data: what stays, what goes, what comes.

Comparing takes time with the square of what differs, so ends that are the same are set apart first, and of what is
left only so much is compared; longer texts count as replaced as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from core.records.patterns import Pattern

EQUAL: Final = "same"
DELETED: Final = "gone"
INSERTED: Final = "come"
MAX_COMPARED: Final = 400
"""Words and blanks, or lines, that are compared; texts made to be slow take some 0.2 s."""
_WORDS: Final = re.compile(r"\S+|\s+")


class DiffPiece(NamedTuple):
    """Part of a text; a line with its end, or some words."""

    mark: Literal["same", "gone", "come"]
    text: str


class FieldChange(NamedTuple):
    """A field of two patterns; a list has one line for each of its items."""

    name: str
    before: str
    after: str


def word_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """What becomes of the words of a text.

    The `same` and `gone` pieces together are `before`, the `same` and `come` ones `after`.
    """
    pieces = _changes(_WORDS.findall(before), _WORDS.findall(after))
    return tuple(DiffPiece(mark, "".join(parts)) for mark, parts in pieces)


def line_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """What becomes of the lines of a text, a piece each; see `word_changes`."""
    pieces = _changes(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return tuple(DiffPiece(mark, line) for mark, lines in pieces for line in lines)


def field_changes(before: Pattern, after: Pattern) -> tuple[FieldChange, ...]:
    """The fields of what would be injected in which two patterns differ."""
    return tuple(
        FieldChange(name, one, two)
        for name in _FIELDS
        if (one := _told(getattr(before, name))) != (two := _told(getattr(after, name)))
    )


_FIELDS: Final = (
    *("title", "error_type", "error_pattern", "task_pattern", "description", "category"),
    *("steps", "tools", "preconditions", "benefits", "limitations", "symptoms", "location_hints"),
    *("why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
    *("template_language", "template_code", "placeholders", "diff_pattern"),
)


def _told(value: str | Sequence[str | tuple[str, str]]) -> str:
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
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    if start:
        yield EQUAL, before[:start]
    if max(len(gone), len(come)) > MAX_COMPARED:
        yield DELETED, gone
        yield INSERTED, come
    else:
        for tag, one, two, three, four in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
            if tag == "equal":
                yield EQUAL, gone[one:two]
                continue
            if one < two:
                yield DELETED, gone[one:two]
            if three < four:
                yield INSERTED, come[three:four]
    if end:
        yield EQUAL, before[len(before) - end :]
