"""SQLite file of the search index."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import msgspec

from core.storage.user_cache import code_digest

_PACKAGES: Final = ("records", "base", "redaction", "storage", "sources", "episodes", "search")
"""Packages that affect the texts of records; after a change in them, the index is built again."""
_APPLICATION: Final = 0x72616C70
_LAST: Final = "\U0010ffff"
_BUSY_SECONDS: Final = 0.2
_PAGE_BYTES: Final = 1 << 14  # several blocks fit into a page
_TABLES: Final = (
    "CREATE TABLE identity (value BLOB)",
    "CREATE TABLE unit (id INTEGER PRIMARY KEY, path TEXT UNIQUE, task TEXT, attempt INTEGER, stamps BLOB, owner BLOB,"
    " end INTEGER, lines INTEGER, actions INTEGER, checksum INTEGER)",
    "CREATE INDEX of_task ON unit (task)",
    # Several records, compressed together; `kinds` has a bit for each kind, `first` and `last` are their times.
    "CREATE TABLE block (id INTEGER PRIMARY KEY AUTOINCREMENT, unit INTEGER, kinds INTEGER, first INTEGER,"
    " last INTEGER, data BLOB, checksum INTEGER)",
    "CREATE INDEX of_unit ON block (unit)",
    # Trigrams find any part of a word; without positions they take little space, and the text decides.
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, detail=none,"
    " tokenize='trigram case_sensitive 1')",
)
_PASSING: Final = frozenset(
    getattr(sqlite3, f"SQLITE_{name}") for name in ("BUSY", "LOCKED", "FULL", "IOERR", "CANTOPEN", "READONLY", "NOMEM")
)  # primary error codes that do not mean that the file is damaged

_Result = TypeVar("_Result")


class DamagedError(Exception):
    """The index contains something that it did not write."""


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file must be written again."""
    code = getattr(error, "sqlite_errorcode", None)
    return not isinstance(error, OSError) and (code is None or code & 0xFF not in _PASSING)


def remove(file: Path) -> None:
    """Delete the index and its journal files."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            file.with_name(file.name + ending).unlink()


def connect(file: Path) -> sqlite3.Connection:
    """Open the index; a missing one, or one of another version, is created empty.

    Raises OSError or sqlite3.Error.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{file} is not a regular file")
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        # Do not wait for the disk: an index damaged by a power cut is built again.
        connection.execute("PRAGMA synchronous = OFF")
        version = int.from_bytes(code_digest(_PACKAGES)[:4]) >> 1
        if _is_of(connection, version):
            return connection
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables:
            raise DamagedError("the index is of another version")
        connection.execute("BEGIN IMMEDIATE")
        if not _is_of(connection, version):  # otherwise another process has just created the tables
            for table in _TABLES:
                connection.execute(table)
            connection.execute("INSERT INTO identity VALUES (?)", (os.urandom(16),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except (sqlite3.Error, DamagedError):
        connection.close()
        raise
    return connection


class Access:
    """A connection that is opened when it is needed, for one thread at a time.

    If the index turns out to be damaged, its file is deleted, and every other `Access` to it opens the new one.
    """

    _removals: ClassVar[Counter[Path]] = Counter()  # of files, in this process

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._number = 0

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def run(self, act: Callable[[sqlite3.Connection, bytes], _Result]) -> _Result | None:
        """Call `act` with the connection and the identity of the file; None if the index cannot be used."""
        with self._lock:
            for is_last in (False, True):
                try:
                    if self._number != self._removals[self._file]:
                        self.close()
                    if self._connection is None:
                        self._number = self._removals[self._file]
                        self._connection = connect(self._file)
                    return act(self._connection, _identity(self._connection))
                except (OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, TypeError, ValueError) as error:
                    self.close()
                    if not is_damage(error):
                        return None
                    remove(self._file)
                    self._removals[self._file] += 1
                    if is_last:
                        return None
        return None


def list_terms(connection: sqlite3.Connection, start: str) -> list[str]:
    """Return the indexed trigrams that begin with `start`."""
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.term USING fts5vocab(main, words, row)")
    sql = "SELECT term FROM temp.term WHERE term >= ? AND term < ?"
    return [term for (term,) in connection.execute(sql, (start, start + _LAST))]


def _identity(connection: sqlite3.Connection) -> bytes:
    [(value,)] = connection.execute("SELECT value FROM identity")
    if not isinstance(value, bytes):
        raise DamagedError("the index has no identity")
    return value


def _is_of(connection: sqlite3.Connection, version: int) -> bool:
    ids = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    return ids == [_APPLICATION, version]
