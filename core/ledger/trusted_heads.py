"""Heads of the decision log that were saved elsewhere: its length and last hash.

See docs/safety.md#log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from core.base.errors import BadInput
from core.base.text import plural
from core.records.times import iso
from core.storage.chain_check import ChainBreak
from core.storage.hash_chain import Place

MAX_BYTES: Final = 1 << 20
"""Maximum size of a file of heads."""


class Head(Struct, frozen=True, kw_only=True):
    """The end of a decision log at one moment, stored as a line of JSON.

    Attributes:
        kind: Distinguishes a head from other files.
        project: Random ID of the project, 16 hex digits; "" if it could not be created.
        lines: Number of the last line; 0 for an empty log.
        hash: The hash that the next line must contain; it depends on every line before.
        at: When the head was taken, UTC.
    """

    kind: Literal["ralphdeck-log-head"]
    project: Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{16})?\Z")] = ""
    lines: Annotated[int, Meta(ge=0, lt=10**11)]
    hash: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    at: Annotated[datetime, Meta(tz=True)]

    @property
    def place(self) -> Place:
        """This end as a place of the chain."""
        return Place(self.lines, self.hash)

    def encoded(self) -> bytes:
        """Encode as one line of JSON."""
        return msgspec.json.encode(self) + b"\n"


def read_heads(data: bytes, name: str) -> tuple[Head, ...]:
    """Read the heads in a file: one JSON object, or one per line.

    Args:
        data: Its content.
        name: Its displayable name for messages.

    Raises:
        BadInput: It is empty or contains anything else.
    """
    try:
        return (msgspec.json.decode(data, type=Head),)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not lines:
        raise BadInput(f"{name} is empty; write a head with: ralphdeck log --head --output FILE")
    heads = []
    for number, line in lines:
        try:
            heads.append(msgspec.json.decode(line, type=Head))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadInput(f"{name} line {number} is not a head; write one with: ralphdeck log --head") from None
    return tuple(heads)


def check_project(heads: Sequence[Head], project: str, name: str) -> None:
    """Refuse heads of another project.

    Args:
        heads: The saved heads.
        project: ID of this project; "" if it has none.
        name: See `read_heads`.

    Raises:
        BadInput: A head has the ID of another project.
    """
    for head in heads:
        if project and head.project and head.project != project:
            raise BadInput(f"{name} is the head of project {head.project}, and this is project {project}")


def missing_heads(heads: Sequence[Head], places: Sequence[Place]) -> Iterator[ChainBreak]:
    """Breaks where the decision log does not contain a head.

    Args:
        heads: The saved heads.
        places: See `ChainCheck`.
    """
    known, end = set(places), places[-1].line
    for head in heads:
        if head.place in known:
            continue
        taken = f"the head of {iso(head.at)}"
        if head.lines > end:
            missing = plural(head.lines - end, "line")
            yield ChainBreak(
                max(end, 1), f"{taken} was taken at line {head.lines}: {missing} after this one are missing"
            )
        else:
            yield ChainBreak(max(head.lines, 1), f"{taken} does not fit: lines up to this one were rewritten")
