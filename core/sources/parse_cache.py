"""Cache parsed files by path and stamp, in one SQLite file per project.

The cache is optional: if its file is missing, locked, damaged, or belongs to another version or user, it behaves like
an empty cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import platformdirs

from core.sources.parsed_file import ParsedFile

if TYPE_CHECKING:
    from core.storage.file_reader import Stamp

_PACKAGES: Final = ("records", "base", "redaction", "scanning", "storage", "sources", "ledger", "project")
"""Packages that affect parsing; after a change in them, all files are parsed again."""
_TABLE: Final = "CREATE TABLE IF NOT EXISTS contribution (path TEXT PRIMARY KEY, stamp BLOB, value BLOB)"
_BUSY_SECONDS: Final = 0.2

_decoder: Final = msgspec.msgpack.Decoder(ParsedFile)
_encoder: Final = msgspec.msgpack.Encoder(enc_hook=attrgetter("in_log_order"))


class CachedFile(NamedTuple):
    """A parsed file, and its stamp at the time it was read."""

    stamp: Stamp
    parsed: ParsedFile


def cache_file(project: Path) -> Path:
    """Return the cache file of a project, in the user's cache folder."""
    name = hashlib.sha256(str(project.resolve()).encode(errors="surrogateescape")).hexdigest()[:24]
    return platformdirs.user_cache_path("ralphdeck") / f"{name}.sqlite3"


def decode_cached(value: bytes) -> ParsedFile | None:
    """Decode one value of `ParseCache.load`; None if it is damaged."""
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _encode(parsed: ParsedFile) -> bytes | None:
    """Encode a parsed file; None if MessagePack cannot (as with 30-digit integers)."""
    try:
        return _encoder.encode(parsed)
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError, OverflowError, RecursionError):
        return None


class ParseCache:
    """Stores the parsed files of a project between runs. A damaged file never raises."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._version = code_version()

    def load(self, stamps: Mapping[str, Stamp]) -> dict[str, bytes]:
        """Load files with unchanged stamps by path, still encoded; see `decode_cached`."""
        found: dict[str, bytes] = {}
        encoded = {path: _encoder.encode(stamp) for path, stamp in stamps.items()}
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as connection:
            for path, stamp, value in connection.execute("SELECT path, stamp, value FROM contribution"):
                if encoded.get(path) == stamp:
                    found[path] = value
        return found

    def save(self, changed: Mapping[str, CachedFile], removed: Iterable[str]) -> None:
        """Save `changed`, and delete `removed` and files that cannot be encoded."""
        rows = [
            (path, _encoder.encode(stamp), value)
            for path, (stamp, parsed) in changed.items()
            if (value := _encode(parsed))
        ]
        unsaved = changed.keys() - {path for path, _, _ in rows}
        with self._lock, contextlib.suppress(sqlite3.Error, OSError), self._open() as connection, connection:
            connection.executemany(
                "DELETE FROM contribution WHERE path = ?", ((path,) for path in (*removed, *unsaved))
            )
            connection.executemany("REPLACE INTO contribution VALUES (?, ?, ?)", rows)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the cache; a table of another version or a damaged file is created again."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            connection = self._connect()
        except sqlite3.OperationalError:  # locked or disk full, but not damaged
            raise
        except sqlite3.DatabaseError:
            self._file.unlink()
            connection = self._connect()
        with contextlib.closing(connection):
            yield connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_BUSY_SECONDS)
        try:
            # Do not wait for the disk: a cache damaged by a power cut is created again.
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone() != (self._version,):
                with connection:
                    connection.execute("DROP TABLE IF EXISTS contribution")
                    connection.execute(_TABLE)
                    connection.execute(f"PRAGMA user_version = {self._version}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


@cache
def code_version() -> int:
    """Return a number that changes with the installed parsing code."""
    core = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(
        file for name in _PACKAGES for ending in ("py", "yaml") for file in core.glob(f"{name}/**/*.{ending}")
    ):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return int.from_bytes(digest.digest()[:4]) >> 1
