"""Where a ledger is not as it was written; found line by line, so that one that only grows is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from core.base.text import plural
from core.storage.hash_chain import UNANCHORED, Chain, Link, Place, unlinked

CODE: Final = "not-as-written"
"""Of the findings that breaks are in a snapshot."""


class ChainBreak(NamedTuple):
    """Something that is not as it was written.

    Attributes:
        line: Where it shows, from 1.
    """

    line: int
    what: str


class ChainCheck:
    """What the lines of a ledger say of each other; a line costs its own length, however many there are.

    Attributes:
        chain: The lines so far.
        linked: How many of them bear a hash.
        breaks: What does not fit together, in the order in which it was found.
        places: The end of the ledger before its first line, and after each.
    """

    def __init__(self) -> None:
        self.chain = Chain()
        self.linked = 0
        self.breaks: list[ChainBreak] = []
        self.places = [self.chain.place]
        self._first = 1  # of the lines that the next link vouches for

    def feed(self, line: bytes) -> None:
        """Take in the next line, without its end."""
        before, was_begun = self.places[-1], self.chain.is_begun
        link = self.chain.feed(line)
        self.places.append(self.chain.place)
        number = self.chain.lines
        if link is not None:
            if link != (before.line + 1, before.chain):
                self.breaks.append(_broken(number, self._first, link, before))
            if unlinked(line) == UNANCHORED:
                what = "says that the anchor was missing: nobody can tell if lines before it are"
                self.breaks.append(ChainBreak(number, what))
            self._first = number
            self.linked += 1
        elif was_begun:
            self.breaks.append(ChainBreak(number, "was not written by this program, or by an older version of it"))
        elif line.strip() and not _is_object(line):
            self.breaks.append(ChainBreak(number, "is no JSON object: no version of this program has written it"))


def last_lines(places: Sequence[Place], anchor: Place | None, *, is_begun: bool) -> list[ChainBreak]:
    """What the anchor says that does not fit to the end of a ledger.

    Args:
        places: See `ChainCheck`.
        anchor: Read before the ledger was; None if there is none.
        is_begun: Whether a line bears a hash.
    """
    end = places[-1]
    if anchor == end:
        return []
    last = max(len(places) - 1, 1)
    if anchor is None:
        return [ChainBreak(last, "the anchor is missing: nobody can tell if lines after it are")] if is_begun else []
    if end.line < anchor.line:
        gone = anchor.line - end.line
        return [ChainBreak(last, f"{plural(gone, 'line')} after it {'is' if gone == 1 else 'are'} missing")]
    if anchor in places:
        return []
    if anchor.line == end.line:
        return [ChainBreak(last, "was changed after it was written, or what stood here is gone")]
    found = next((number for number, place in enumerate(places) if place.line == anchor.line), last)
    return [ChainBreak(max(found, 1), "was the last line once, and was changed since")]


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _broken(number: int, first: int, link: Link, before: Place) -> ChainBreak:
    """What a link says that does not fit to the lines from `first` on that stand before it."""
    ahead = link.line - before.line - 1
    if ahead > 0:
        return ChainBreak(number, f"{plural(ahead, 'line')} before it {'is' if ahead == 1 else 'are'} missing")
    if ahead < 0:
        return ChainBreak(number, f"was written as line {link.line}: moved or copied here, or lines were put in before")
    last = number - 1
    if last < 1:
        return ChainBreak(number, "lines before it are missing")
    if last == first:
        return ChainBreak(last, "was changed after it was written")
    return ChainBreak(first, f"one of lines {first} to {last} was changed after it was written")
