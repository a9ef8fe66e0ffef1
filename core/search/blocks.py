"""Blocks of records, as the search index stores them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from core.base.errors import DamagedError
from core.redaction.masking import mask_secrets
from core.redaction.prefilter import may_contain_secret
from core.search.trigrams import indexed_text
from core.search.words import HitKind, SearchHit, SearchWords

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BETWEEN: Final = "\n\x1e\n"
_LEVEL: Final = 1  # of compression; higher levels take much longer and save little
_MAX_BYTES: Final = 1 << 28  # maximum size of a block that was not damaged, uncompressed
_Record = tuple[int, int | None, int | None, int | None, bytes | None, bytes, bytes, bytes]
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[_Record]).decode


class Block(NamedTuple):
    """Records of one unit, compressed; `kinds` has a bit for each kind, `first` and `last` are times."""

    kinds: int
    first: int | None
    last: int | None
    data: bytes
    checksum: int


def pack(hits: Sequence[SearchHit], file: str) -> tuple[Block, str]:
    """Return records of a unit, most of them in `file`, and the text to index, both without secrets."""
    records: list[tuple[Any, ...]] = []
    texts = _mask_all([hit.text for hit in hits])
    for hit, text in zip(hits, texts, strict=True):
        name = None if hit.file == file else _to_bytes(hit.file)
        at = microseconds(hit.at)
        parts = (hit.pointer, hit.tool, text)
        records.append((hit.kind, hit.attempt, hit.action, at, name, *map(_to_bytes, parts)))
    times = [at for at in (record[3] for record in records) if at is not None]
    data = zlib.compress(_encode(records), _LEVEL)
    kinds = kinds_mask(hit.kind for hit in hits)
    return Block(kinds, min(times, default=None), max(times, default=None), data, zlib.crc32(data)), indexed_text(texts)


def unpack(data: object, checksum: object, file: str, task: str, words: SearchWords, kinds: int) -> list[SearchHit]:
    """Return the records of a block that contain all words and have one of these kinds.

    Raises DamagedError if the block is not as written.
    """
    if not isinstance(data, bytes) or zlib.crc32(data) != checksum:
        raise DamagedError("a block differs from its checksum")
    try:
        records = _decode(zlib.decompressobj().decompress(data, _MAX_BYTES))
    except zlib.error as error:
        raise DamagedError(f"a block cannot be unpacked: {error}") from None
    hits: list[SearchHit] = []
    for kind, attempt, action, at, name, pointer, tool, packed in records:
        if 1 << kind & kinds and words.are_in(text := _to_text(packed)):
            found = _to_text(name) if name is not None else file
            when = None if at is None else _EPOCH + at * _MICROSECOND
            hit = SearchHit(found, task, text, when, attempt, _to_text(pointer), HitKind(kind), action)
            hits.append(hit._replace(tool=_to_text(tool)) if tool else hit)
    return hits


def kinds_mask(kinds: Iterable[int]) -> int:
    """Return a number with a bit for each kind."""
    return sum(1 << kind for kind in set(kinds))


def microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _mask_all(texts: list[str]) -> list[str]:
    """Mask the secrets in all texts, in one call if no secret reaches from one into the next."""
    if not may_contain_secret("\n".join(texts)):
        return texts
    wanted = [number for number, text in enumerate(texts) if may_contain_secret(text)]
    masked = mask_secrets(_BETWEEN.join(texts[number] for number in wanted)).split(_BETWEEN) if wanted else []
    if len(masked) != len(wanted):
        masked = [mask_secrets(texts[number]) for number in wanted]
    for number, text in zip(wanted, masked, strict=True):
        texts[number] = text
    return texts
