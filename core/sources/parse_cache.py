"""Cache parsed files by path and stamp, in one SQLite file per project.

The cache is optional: if its file is missing, locked, damaged, or belongs to another version or user, it behaves like
an empty cache.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from zlib import crc32

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from core.sources.parsed_file import ParsedFile
from core.storage import cache_database
from core.storage.file_reader import Stamp
from core.storage.user_cache import code_version

if TYPE_CHECKING:
    from core.sources.shared_values import SharedValues

_PACKAGES: Final = ("records", "base", "redaction", "scanning", "storage", "sources", "ledger", "project")
"""Packages that affect parsing; after a change in them, all files are parsed again."""
_TABLES: Final = ("CREATE TABLE contribution (path TEXT PRIMARY KEY, stamp BLOB, value BLOB, checksum INTEGER)",)

_PART: Final = 1000  # patterns of a file that are decoded before their values are shared with those of others

_Result = TypeVar("_Result")

_decoder: Final = msgspec.msgpack.Decoder(ParsedFile | list[Raw])
_part_decoder: Final = msgspec.msgpack.Decoder(ParsedFile)
_encoder: Final = msgspec.msgpack.Encoder(enc_hook=attrgetter("in_log_order"))


class CachedFile(Struct, frozen=True, gc=False):
    """A parsed file, and its stamp at the time it was read."""

    stamp: Stamp
    parsed: ParsedFile


def decode_cached(value: bytes, values: SharedValues) -> ParsedFile | None:
    """Decode one value of `ParseCache.load`; None if it is damaged."""
    try:
        found = _decoder.decode(value)
        if isinstance(found, ParsedFile):
            return values.share(found)
        parts = [values.share(_part_decoder.decode(part)) for part in found]
        patterns = tuple(chain.from_iterable(part.patterns for part in parts))
        return replace(parts[0], patterns=patterns) if parts else None
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _encode(parsed: ParsedFile) -> bytes | None:
    """Encode a parsed file, one with many patterns in parts; None if MessagePack cannot (as with 30-digit integers)."""
    try:
        if len(parsed.patterns) <= _PART:
            return _encoder.encode(parsed)
        several = [parsed.patterns[start : start + _PART] for start in range(0, len(parsed.patterns), _PART)]
        parts = [replace(parsed, patterns=several[0]), *(ParsedFile(patterns=part) for part in several[1:])]
        return _encoder.encode([Raw(_encoder.encode(part)) for part in parts])
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError, OverflowError, RecursionError):
        return None


class ParseCache:
    """Stores the parsed files of a project between runs. A damaged file never raises."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._version = code_version(_PACKAGES)

    def load(self, stamps: Mapping[str, Stamp]) -> dict[str, bytes]:
        """Load files with unchanged stamps by path, still encoded; see `decode_cached`."""

        def load(connection: sqlite3.Connection) -> dict[str, bytes]:
            rows = connection.execute("SELECT path, stamp, value, checksum FROM contribution")
            return {
                path: value
                for path, stamp, value, checksum in rows
                if path in stamps
                and _encoder.encode(stamps[path]) == stamp
                and _checksum(path, stamp, value) == checksum
            }

        return self._run(load) or {}

    def save(self, changed: Mapping[str, CachedFile], removed: Iterable[str]) -> None:
        """Save `changed`, and delete `removed` and files that cannot be encoded."""
        deleted = [(path,) for path in (*removed, *changed)]

        def save(connection: sqlite3.Connection) -> None:
            rows = (  # encoded one by one, since together they take as much memory as the records
                (path, stamp, value, _checksum(path, stamp, value))
                for path, cached in changed.items()
                if (value := _encode(cached.parsed)) and (stamp := _encoder.encode(cached.stamp))
            )
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM contribution WHERE path = ?", deleted)
            connection.executemany("INSERT INTO contribution VALUES (?, ?, ?, ?)", rows)
            connection.execute("COMMIT")

        self._run(save)

    def _run(self, act: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Call `act` with the open cache, again if it was damaged; None if it cannot be used."""
        with self._lock:
            return cache_database.use(self._file, lambda: self._open_and(act))

    def _open_and(self, act: Callable[[sqlite3.Connection], _Result]) -> _Result:
        with contextlib.closing(cache_database.connect(self._file, self._version, (), _TABLES)) as opened:
            return act(opened)


def _checksum(path: str, stamp: bytes, value: object) -> int | None:
    """Return the CRC-32 of a row; None if the value cannot be one that was saved."""
    if not isinstance(value, bytes):
        return None
    return crc32(value, crc32(stamp, crc32(path.encode(errors="surrogateescape"))))
