"""Pattern titles (message or name, not a regex), and anchor changes in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_age
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.records.anchors import Anchor, AnchorChange, parse_anchor
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.records.patterns import (
        Pattern,
    )

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
    """Return what an error regex matches, … for what varies: `Type '…' is missing`.

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
    """Return the literal text up to the next `|`, `)` or the end, and where that is."""
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
    """Return an element's literal text, … if it varies, and where the next begins."""
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


_SHORT_COMMIT: Final = 7
_MAX_CHARS: Final = 120
_SHORT_PATH: Final = 20  # characters of a path in a title


def describe_change(one: AnchorChange, now: datetime) -> str:
    """Describe a change in one line: `cart.py was removed in 3f2c1a9, 12 d ago`."""
    new = parse_anchor(one.to)
    to = f" to {visible_line(new.file, _MAX_CHARS)}" if new is not None else ""
    return f"{name_anchor(one.anchor)} was {one.verb}{to} in {short_commit(one)}, {format_age(one.at, now)}"


def summarize_change(one: AnchorChange, now: datetime) -> str:
    """Describe a change without equal parent folders: `cart.py is now basket.py`."""
    old, new = (parse_anchor(text) or Anchor(text) for text in (one.anchor, one.to))
    before, after, same = old.file.split("/"), new.file.split("/"), 0
    while new.file and same < min(len(before), len(after)) - 1 and before[same] == after[same]:
        same += 1
    file, to = _shorten("/".join(before[same:])), _shorten("/".join(after[same:]))
    name = visible_line(old.name, _SHORT_PATH)
    match one.change:
        case "renamed":
            return f"{file} is now {to}"
        case "moved":
            return f"{name} is now in {to}"
    return f"{name or file} was {one.verb} {format_age(one.at, now)}"


def _shorten(path: str) -> str:
    """Cut a path at its begin."""
    path = visible_line(path, _MAX_CHARS)
    return path if len(path) <= _SHORT_PATH else f"…{path[1 - _SHORT_PATH :]}"


def select_main(changes: Sequence[AnchorChange]) -> list[AnchorChange]:
    """Leave out the names in files that the same commit removed or renamed."""
    files = {(one.anchor, one.commit, one.change) for one in changes}
    return [one for one in changes if (one.anchor.rpartition("#")[0], one.commit, one.change) not in files]


def name_anchor(text: str) -> str:
    """Name an anchor: `cart.py`, or `total in cart.py`."""
    anchor = parse_anchor(text)
    file = visible_line(anchor.file if anchor is not None else text, _MAX_CHARS)
    return f"{visible_line(anchor.name, _MAX_CHARS)} in {file}" if anchor is not None and anchor.name else file


def short_commit(one: AnchorChange) -> str:
    return one.commit[:_SHORT_COMMIT]


def list_anchor_texts(pattern: Pattern, changes: Sequence[AnchorChange]) -> Iterator[str]:
    """Yield a pattern's anchors, renamed ones with new names: `b.py (was a.py)`."""
    known = {one.anchor: one for one in changes}
    for anchor in pattern.anchors:
        change = known.get(anchor)
        old = visible_line(anchor, _MAX_CHARS)
        if change is None:
            yield old
        elif change.to:
            yield f"{visible_line(change.to, _MAX_CHARS)} (was {old})"
        else:
            yield f"{old} ({change.verb})"
