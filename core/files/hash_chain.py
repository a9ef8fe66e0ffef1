"""Hash chain of the decision log; reveals careless edits (docs/safety.md#log).

Each line ends with its number and the hash of everything since the last line with a hash:
`…,"line":12,"chain":"<SHA-256>"}`. So each hash depends on all lines before it. The anchor, a small file beside the
log, records the number and hash that the next line will have. A crash may leave the anchor behind the log, never ahead
of it.

The chain has no secret key: a program that can write the log can recompute chain and anchor. Only a comparison with a
head that was saved elsewhere detects such an edit, see `core.sources.ledger`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from core.base.regexes import lazy_regex
from core.base.text import plural
from core.files.atomic_write import put
from core.files.file_access import open_regular

NOT_AS_WRITTEN: Final = "not-as-written"  # code of the finding of a chain break

_LINK: Final = lazy_regex(rb',"line":([1-9][0-9]{0,11}),"chain":"([0-9a-f]{64})"\}\Z')
_MAX_LINK_BYTES: Final = 110
_MAX_LINES: Final = 10**11  # limit of line numbers, so that they fit into a link
_ANCHOR_BYTES: Final = 4096
UNANCHORED: Final = b'{"kind":"unanchored"}'  # a line recording that the anchor was missing


class Place(NamedTuple):
    """Position in the chain: the number and hash that a line has or must have."""

    line: Annotated[int, msgspec.Meta(ge=0, lt=_MAX_LINES)]  # number of its last line; 0 if it is empty
    chain: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]  # the hash that the next line must contain


def strip_link(line: bytes) -> bytes:
    """Return the JSON object of a line, without its link."""
    return line[:-_MAX_LINK_BYTES] + _LINK.sub(b"}", line[-_MAX_LINK_BYTES:])


def link_lines(documents: list[bytes], place: Place) -> tuple[list[bytes], Place]:
    """Link JSON objects as lines after a place; returns the lines and their end."""
    lines = []
    for document in documents:
        line = b'%b,"line":%d,"chain":"%b"}' % (document[:-1], place.line + 1, place.chain.encode())
        lines.append(line)
        place = Place(place.line + 1, sha256(line + b"\n").hexdigest())
    return lines, place


def anchor_of(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.anchor")


def read_anchor(ledger: Path) -> Place | None:
    """Read the recorded end of the log; None if the anchor is unusable."""
    try:
        handle = open_regular(anchor_of(ledger), os.O_RDONLY)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return msgspec.json.decode(file.read(_ANCHOR_BYTES), type=Place)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None


def write_anchor(ledger: Path, place: Place) -> None:
    """Record the end of the log; on failure, the anchor stays behind."""
    with suppress(OSError):
        put(anchor_of(ledger), msgspec.json.encode(place) + b"\n")


def end_of(anchor: Place | None, found: Place) -> Place:
    """Return the place that the next line must follow, so that a break stays visible."""
    return anchor if anchor is not None and anchor.line >= found.line else found


class ChainBreak(NamedTuple):
    """Line (from 1) that differs from what was written; `what` describes how."""

    line: int
    what: str


class Chain:
    """Incremental check of the lines of a decision log."""

    def __init__(self) -> None:
        self.linked = 0  # lines with a hash
        self.breaks: list[ChainBreak] = []  # in the order in which they were found
        self.places = [Place(0, sha256().hexdigest())]  # the end before the first line, and after each line
        self._hash = sha256()
        self._first = 1  # first line that the next hash covers

    @property
    def place(self) -> Place:
        """The end of the log; numbers continue from the last link despite gaps."""
        return self.places[-1]

    def feed(self, line: bytes) -> None:
        """Check the next line, without its line end."""
        before, number = self.place, len(self.places)
        found = _LINK.search(line[-_MAX_LINK_BYTES:])
        if found is not None:
            link = Place(int(found[1]), found[2].decode())
            if link != (before.line + 1, before.chain):
                self.breaks.append(_broken(number, self._first, link, before))
            if strip_link(line) == UNANCHORED:
                what = "reports that the anchor was missing: lines before it may be missing"
                self.breaks.append(ChainBreak(number, what))
            self._hash = sha256()
            self._first = number
            self.linked += 1
        elif self.linked:
            self.breaks.append(ChainBreak(number, "was not written by this program, or by an older version of it"))
        elif line.strip() and not _is_object(line):
            self.breaks.append(ChainBreak(number, "is not a JSON object: no version of this program wrote it"))
        self._hash.update(line + b"\n")
        self.places.append(Place(link.line if found else before.line + 1, self._hash.hexdigest()))


def last_lines(places: Sequence[Place], anchor: Place | None, *, is_begun: bool) -> list[ChainBreak]:
    """Return breaks at the end of the log that only the anchor reveals.

    `places` are those of `ChainCheck`. Read the `anchor` before the log. `is_begun`: whether any line has a hash.
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


def _broken(number: int, first: int, link: Place, before: Place) -> ChainBreak:
    """Return the break shown by a link that does not match the lines since `first`."""
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
