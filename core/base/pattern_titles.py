"""Titles of patterns: a message or a name, not a regular expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.base.regexes import lazy_regex
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.records.patterns import Pattern

_MAX_SAMPLE: Final = 300  # characters of an expression that are read
_MAX_GROUPS: Final = 20  # which may be nested
_GAP: Final = "…"
_GAPS: Final = lazy_regex(r"…( ?…)*")
_LITERAL: Final = lazy_regex(r"[^\\.^$*+?{\[()|]+")
_QUANTIFIER: Final = lazy_regex(r"[*+?]|\{\d*,?\d*\}")
_WARNING: Final = lazy_regex(r"(?i)(avoid|never|do not|don['’]t)\b")
_FLAGS: Final = lazy_regex(r"^\(\?[a-z]+\)")


def pattern_title(pattern: Pattern) -> str:
    """Return the one title that lists, cards and commands show; untrusted.

    A message of the error, or else the name of the pattern; what an anti-pattern names follows "Avoid: ".
    """
    name = pattern.title.removeprefix("Other: ") or pattern.description or pattern.id
    if pattern.type is PatternType.ANTI:
        return name if _WARNING.match(name) else f"Avoid: {name}"
    if pattern.type is not PatternType.ERROR:
        return name
    return pattern.error_message or sample_message(pattern.error_pattern) or name


def name_apart(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the names of rows by ID; rows with the same name have their ID after it."""
    names = dict(rows)
    counts = Counter(names.values())
    return {id: f"{name} ({id})" if counts[name] > 1 else name for id, name in names.items()}


@lru_cache(4096)
def sample_message(expression: str) -> str:
    """Return what a regular expression for an error matches, with … for what varies: `Type '…' is missing`.

    Returns "" if it matches several messages, or is too long or too unusual to read.
    """
    if len(expression) > _MAX_SAMPLE or expression.count("(") > _MAX_GROUPS:
        return ""
    text = _FLAGS.sub("", expression)
    sample, end = _read(text, 0)
    if end != len(text):  # a second message begins, or a bracket is not closed
        return ""
    sample = " ".join(_GAPS.sub(_GAP, sample).split())
    return sample if any(char.isalpha() for char in sample) else ""


def _read(text: str, at: int) -> tuple[str, int]:
    """Return the literal text from a place to the next `|`, `)` or the end, and where that is."""
    parts: list[str] = []
    while at < len(text) and text[at] not in "|)":
        if literal := _LITERAL.match(text, at):
            part, at = literal[0], literal.end()
        else:
            part, at = _read_one(text, at)
        if found := _QUANTIFIER.match(text, at):
            at = found.end()
        parts.append(part)
    return "".join(parts), at


def _read_one(text: str, at: int) -> tuple[str, int]:
    """Return the literal text of one element, … if it varies, and where the next one begins."""
    char = text[at]
    if char == "\\" and at + 1 < len(text):
        escaped = text[at + 1]
        known = {"s": " ", "b": "", "B": "", "A": "", "Z": ""}
        return (known.get(escaped, _GAP), at + 2) if escaped.isalnum() else (escaped, at + 2)
    if char == "(":
        start = at + 1
        if text.startswith("?", start):
            start = text.find(":", start) + 1 or len(text)
        sample, end = _read(text, start)
        while end < len(text) and text[end] == "|":
            _, end = _read(text, end + 1)
        return sample, end + 1
    if char == "[":
        end = text.find("]", at + 2)
        return _GAP, end + 1 if end >= 0 else len(text) + 1
    return {".": _GAP, "^": "", "$": ""}.get(char, char), at + 1
