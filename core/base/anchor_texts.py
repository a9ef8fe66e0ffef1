"""Anchors of patterns, and what became of them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_age
from core.base.text import visible_line
from core.records.anchors import Anchor, AnchorChange, parse_anchor

if TYPE_CHECKING:
    from core.records.patterns import Pattern

_SHORT_COMMIT: Final = 7
_MAX_CHARS: Final = 120
_SHORT_PATH: Final = 20  # characters of a path in a title


def describe_change(one: AnchorChange, now: datetime) -> str:
    """Describe a change in one line: `cart.py was removed in 3f2c1a9, 12 d ago`."""
    new = parse_anchor(one.to)
    to = f" to {visible_line(new.file, _MAX_CHARS)}" if new is not None else ""
    return f"{name_anchor(one.anchor)} was {one.verb}{to} in {short_commit(one)}, {format_age(one.at, now)}"


def summarize_change(one: AnchorChange, now: datetime) -> str:
    """Describe a change in few words, without folders that stay the same: `cart.py is now basket.py`."""
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
    """Yield the anchors of a pattern, renamed ones under their new names: `basket.py (was cart.py)`."""
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
