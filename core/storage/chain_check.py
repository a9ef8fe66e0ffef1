"""Detect breaks in the hash chain of the decision log, line by line (docs/safety.md#log)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from core.base.text import plural
from core.storage.hash_chain import UNANCHORED, Chain, Link, Place, unlinked

CODE: Final = "not-as-written"
"""Code of the finding of a chain break."""


class ChainBreak(NamedTuple):
    """A line that differs from what was written; `line` counts from 1, `what` is for people."""

    line: int
    what: str


class ChainCheck:
    """Checks the lines of a decision log incrementally.

    Attributes:
        chain: The hash chain of the lines so far.
        linked: Number of lines with a hash.
        breaks: In the order in which they were found.
        places: The end of the chain before the first line, and after each line.
    """

    def __init__(self) -> None:
        self.chain = Chain()
        self.linked = 0
        self.breaks: list[ChainBreak] = []
        self.places = [self.chain.place]
        self._first = 1  # first line that the next hash covers

    def feed(self, line: bytes) -> None:
        """Check the next line, without its line end."""
        before, was_begun = self.places[-1], self.chain.is_begun
        link = self.chain.feed(line)
        self.places.append(self.chain.place)
        number = self.chain.lines
        if link is not None:
            if link != (before.line + 1, before.chain):
                self.breaks.append(_broken(number, self._first, link, before))
            if unlinked(line) == UNANCHORED:
                what = "reports that the anchor was missing: lines before it may be missing"
                self.breaks.append(ChainBreak(number, what))
            self._first = number
            self.linked += 1
        elif was_begun:
            self.breaks.append(ChainBreak(number, "was not written by this program, or by an older version of it"))
        elif line.strip() and not _is_object(line):
            self.breaks.append(ChainBreak(number, "is not a JSON object: no version of this program wrote it"))


def last_lines(places: Sequence[Place], anchor: Place | None, *, is_begun: bool) -> list[ChainBreak]:
    """Breaks that only the anchor shows at the end of a decision log.

    Args:
        places: See `ChainCheck`.
        anchor: Read before the log was; None if there is none.
        is_begun: Whether any line has a hash.
    """
    end = places[-1]
    if anchor == end:
        return []
    last = max(len(places) - 1, 1)
    if anchor is None:
        return [ChainBreak(last, "the anchor is missing: lines after it may be missing")] if is_begun else []
    if end.line < anchor.line:
        missing = anchor.line - end.line
        return [ChainBreak(last, f"{plural(missing, 'line')} after it {'is' if missing == 1 else 'are'} missing")]
    if anchor in places:
        return []
    if anchor.line == end.line:
        return [ChainBreak(last, "was changed after it was written, or replaced")]
    found = next((number for number, place in enumerate(places) if place.line == anchor.line), last)
    return [ChainBreak(max(found, 1), "was once the last line, and has been changed")]


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _broken(number: int, first: int, link: Link, before: Place) -> ChainBreak:
    """The break shown by a link that does not match the lines before it, from `first` on."""
    ahead = link.line - before.line - 1
    if ahead > 0:
        return ChainBreak(number, f"{plural(ahead, 'line')} before it {'is' if ahead == 1 else 'are'} missing")
    if ahead < 0:
        return ChainBreak(
            number, f"was written as line {link.line}: moved or copied here, or lines were inserted before"
        )
    last = number - 1
    if last < 1:
        return ChainBreak(number, "lines before it are missing")
    if last == first:
        return ChainBreak(last, "was changed after it was written")
    return ChainBreak(first, f"one of lines {first} to {last} was changed after it was written")
