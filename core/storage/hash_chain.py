"""The hash chain of the ledger: shows accidents and careless edits.

Each line ends with its number and the hash of everything since the last line that has one:
`…,"line":12,"chain":"<SHA-256>"}`. So each hash depends on all lines before. The anchor, a small file beside the
ledger, records the number and the hash that the next line will have. A crash may leave it behind the ledger, never
ahead of it.

There is no key: whoever can write the ledger can compute the chain and the anchor anew. Such an edit is only found
against a head that was kept elsewhere; see `core.ledger.trusted_heads` and docs/safety.md#log.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from core.storage.atomic_write import put
from core.storage.locks import open_regular

_LINK: Final = re.compile(rb',"line":([1-9][0-9]{0,11}),"chain":"([0-9a-f]{64})"\}\Z')
_MOST: Final = 110
"""Bytes at the end of a line that its link takes at most."""
_LINES: Final = 10**11
"""More than any ledger has; the number of a line stays within what a link can say."""
_ANCHOR_BYTES: Final = 4096
UNANCHORED: Final = b'{"kind":"unanchored"}'
"""A line that says: when what follows was written, there was no anchor, though lines before it bear a hash."""


class Link(NamedTuple):
    """What ties a line to those before.

    Attributes:
        line: Its number in the ledger, from 1.
        chain: SHA-256, in hex.
    """

    line: int
    chain: str


class Place(NamedTuple):
    """An end of the ledger.

    Attributes:
        line: The number of its last line; 0 if there is none.
        chain: What the next line has to bear.
    """

    line: Annotated[int, msgspec.Meta(ge=0, lt=_LINES)]
    chain: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Chain:
    """The lines read so far, and what the next one has to bear; a line costs its own length, however many there are.

    Attributes:
        lines: How many there are.
        is_begun: Whether one of them bears a link.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.is_begun = False
        self._number = 0
        self._hash = sha256()

    @property
    def place(self) -> Place:
        """Where the ledger ends. The numbers go on from what the last link says, also where lines are missing."""
        return Place(self._number, self._hash.hexdigest())

    def feed(self, line: bytes) -> Link | None:
        """Take in the next line, without its end; returns its link."""
        link = link_of(line)
        self.lines += 1
        if link is None:
            self._number += 1
        else:
            self.is_begun = True
            self._number = link.line
            self._hash = sha256()
        self._hash.update(line)
        self._hash.update(b"\n")
        return link


def link_of(line: bytes) -> Link | None:
    """The link that a line bears; None for a line of an older version, or of another hand."""
    found = _LINK.search(line[-_MOST:])
    return Link(int(found[1]), found[2].decode()) if found else None


def unlinked(line: bytes) -> bytes:
    """The JSON object of a line, without the link that it may bear."""
    return line[:-_MOST] + _LINK.sub(b"}", line[-_MOST:])


def linked(documents: list[bytes], place: Place) -> tuple[list[bytes], Place]:
    """JSON objects as lines that follow a place, and the place after them."""
    lines = []
    for document in documents:
        line = b'%b,"line":%d,"chain":"%b"}' % (document[:-1], place.line + 1, place.chain.encode())
        lines.append(line)
        place = Place(place.line + 1, sha256(line + b"\n").hexdigest())
    return lines, place


def anchor_of(ledger: Path) -> Path:
    """The file that the anchor is in."""
    return ledger.with_name(f"{ledger.name}.anchor")


def read_anchor(ledger: Path) -> Place | None:
    """Where the ledger ended when it was last written; None where nothing says so that can be read."""
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
    """Say where the ledger ends; where that cannot be written, it stays behind."""
    with suppress(OSError):
        put(anchor_of(ledger), msgspec.json.encode(place) + b"\n")


def end_of(told: Place | None, found: Place) -> Place:
    """What the next line has to follow, of what the anchor tells and what was found in the ledger.

    Where lines at the end are gone or changed, the next line follows those that stood there: it will not fit to those
    that do now.
    """
    return told if told is not None and told.line >= found.line else found
