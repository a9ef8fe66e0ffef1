"""Blocks of consecutive records in a pattern file, so that a change is found without decoding the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import Raw

_RECORDS_IN_BLOCK: Final = 64
_LEAST_BLOCKS: Final = 4  # a smaller file is decoded as a whole
_decoder: Final = msgspec.json.Decoder(list[Raw])


class _Block(NamedTuple):
    """Text from the beginning of a record to that of another one: its length, digest and number of records."""

    size: int
    digest: bytes
    records: int

    @classmethod
    def of(cls, text: memoryview, records: int) -> Self:
        return cls(len(text), _digest(text), records)

    def equals(self, text: memoryview) -> bool:
        return len(text) == self.size and _digest(text) == self.digest


class Change(NamedTuple):
    """The records `start` to `end` of a file are replaced by `nodes`; `blocks` are those of the whole new file."""

    start: int
    end: int
    nodes: list[Raw]
    blocks: PatternBlocks

    @property
    def places(self) -> tuple[slice, slice, slice]:
        """Records before, of and after the change in the old file."""
        return slice(self.start), slice(self.start, self.end), slice(self.end, None)


class PatternBlocks(NamedTuple):
    """A file with one list of records: the text before the first record, blocks, and the text after the last one."""

    head: _Block
    blocks: list[_Block]
    tail: _Block

    @classmethod
    def of(cls, data: bytes, nodes: Sequence[Any]) -> Self | None:
        """Divide a file into blocks; None if it has few records, or is not valid UTF-8.

        `nodes` are all records of one list, in order, as views of `data`.
        """
        if len(nodes) < _RECORDS_IN_BLOCK * _LEAST_BLOCKS or not _is_utf8(data):
            return None
        first, end = _place(nodes[0], data), _place(nodes[-1], data) + len(memoryview(nodes[-1]))
        if not 0 < first < end < len(data):
            return None  # the records are views of a copy
        text = memoryview(data)
        blocks = list(_divide(text, nodes, first, end))
        return cls(_Block.of(text[:first], 0), blocks, _Block.of(text[end:], 0))

    def find_change(self, data: bytes) -> Change | None:
        """Find the records that differ in a newer text of the file; None if more than they may have changed."""
        text, start, end = memoryview(data), self.head.size, len(data) - self.tail.size
        if not (start < end and self.head.equals(text[:start]) and self.tail.equals(text[end:])):
            return None
        first, last = 0, len(self.blocks)
        while first < last - 1 and (block := self.blocks[first]).equals(text[start : min(start + block.size, end)]):
            start += block.size
            first += 1
        while first < last - 1 and (block := self.blocks[last - 1]).equals(text[max(end - block.size, start) : end]):
            end -= block.size
            last -= 1
        # A text before another block ends with a comma.
        changed = b"".join((b"[", text[start:end], b"]" if last == len(self.blocks) else b"null]"))
        try:
            nodes = _decoder.decode(changed)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if last < len(self.blocks):
            nodes.pop()
        if not nodes or not _is_utf8(changed):
            return None
        before = sum(block.records for block in self.blocks[:first])
        count = sum(block.records for block in self.blocks[first:last])
        new = _divide(memoryview(changed), nodes, 1, 1 + end - start)
        blocks = self._replace(blocks=[*self.blocks[:first], *new, *self.blocks[last:]])
        return Change(before, before + count, nodes, blocks)


def _divide(text: memoryview, nodes: Sequence[Any], start: int, end: int) -> Iterator[_Block]:
    """Yield the blocks of `text` from `start` to `end`."""
    firsts = range(0, len(nodes), _RECORDS_IN_BLOCK)
    places = [start, *(_place(nodes[first], text) for first in firsts[1:]), end]
    for place, following, first in zip(places, places[1:], firsts, strict=False):
        yield _Block.of(text[place:following], min(_RECORDS_IN_BLOCK, len(nodes) - first))


def _place(node: Any, text: bytes | memoryview) -> int:
    """Return where a view of a text begins in it."""
    import numpy as np  # only for files that are read again: workers and most commands read each once

    one, other = (np.frombuffer(buffer, np.uint8).__array_interface__["data"][0] for buffer in (node, text))
    return int(one - other)


def _digest(text: memoryview) -> bytes:
    return blake2b(text, digest_size=16).digest()


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
