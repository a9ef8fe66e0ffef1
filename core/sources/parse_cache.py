"""What was read before, kept between runs: contributions by path and stamp in one SQLite file a project.

A cache is never trusted and never needed: one that is missing, locked, damaged, of another version or of
somebody else behaves as empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import platformdirs

from core.sources.parsed_file import ParsedFile
from core.storage.file_reader import Stamp

_CODE: Final = (
    *("core/records/*.py", "core/base/*.py", "core/redaction/*.py", "core/scanning/*.py"),
    *("core/storage/*.py", "core/sources/*.py", "core/ledger/*.py"),
)
"""What decides how a file is read; when any of it changes, everything is read anew."""
_TABLE: Final = "CREATE TABLE IF NOT EXISTS contribution (path TEXT PRIMARY KEY, stamp BLOB, value BLOB)"
_BUSY_SECONDS: Final = 0.2

_decoder: Final = msgspec.msgpack.Decoder(ParsedFile)
_encoder: Final = msgspec.msgpack.Encoder()


class Cached(NamedTuple):
    """One file as it was read: the stamp it had, and what it said."""

    stamp: Stamp
    parsed: ParsedFile


def cache_file(project: Path) -> Path:
    """Where the cache of a project lies: in the user's cache folder, named after the project's path."""
    name = hashlib.sha256(str(project.resolve()).encode(errors="surrogateescape")).hexdigest()[:24]
    return platformdirs.user_cache_path("ralphdeck") / f"{name}.sqlite3"


def decoded(value: bytes) -> ParsedFile | None:
    """What `Cache.load` gives for one file, or None where it is damaged."""
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _encoded(said: ParsedFile) -> bytes | None:
    """`said` for `decoded`; None where it holds what MessagePack does not, such as an integer of 30 digits."""
    try:
        return _encoder.encode(said)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None


class Cache:
    """Contributions of one project between runs. No method raises for what is wrong with the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version = _version()

    def load(self, stamps: Mapping[str, Stamp]) -> dict[str, bytes]:
        """What was kept of each file that still has the stamp it was read with; for `decoded`."""
        found: dict[str, bytes] = {}
        encoded = {path: _encoder.encode(stamp) for path, stamp in stamps.items()}
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as connection:
            for path, stamp, value in connection.execute("SELECT path, stamp, value FROM contribution"):
                if encoded.get(path) == stamp:
                    found[path] = value
        return found

    def save(self, changed: Mapping[str, Cached], gone: Iterable[str]) -> None:
        """Keep `changed` and forget `gone`, all or nothing; what cannot be encoded is read again the next time."""
        rows = [
            (path, _encoder.encode(stamp), value)
            for path, (stamp, said) in changed.items()
            if (value := _encoded(said))
        ]
        unkept = changed.keys() - {path for path, _, _ in rows}
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as connection, connection:
            connection.executemany("DELETE FROM contribution WHERE path = ?", ((path,) for path in (*gone, *unkept)))
            connection.executemany("REPLACE INTO contribution VALUES (?, ?, ?)", rows)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The open file with an up-to-date table; a damaged file is thrown away and made anew once."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            connection = self._connect()
        except sqlite3.OperationalError:  # locked, or no place for it: not damaged
            raise
        except sqlite3.DatabaseError:
            self._file.unlink()
            connection = self._connect()
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_BUSY_SECONDS)
        try:
            # Nothing here is worth waiting for the disk: what a power cut damages is made anew.
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


def _version() -> int:
    """A number for the code that reads files, as installed."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(file for glob in _CODE for file in root.glob(glob)):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return int.from_bytes(digest.digest()[:4]) >> 1
