"""SQLite file of the search index."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from zlib import crc32

import msgspec

from core.base.errors import DamagedError
from core.storage import cache_database
from core.storage.user_cache import code_version

_PACKAGES: Final = ("records", "base", "redaction", "storage", "sources", "episodes", "search")
"""Packages that affect the texts of records; after a change in them, the index is built again."""
_LAST: Final = "\U0010ffff"
_SETTINGS: Final = ("page_size = 16384", "journal_mode = WAL")  # several blocks fit into a page
_TABLES: Final = (
    # `words` is the checksum of the word index; NULL from the first change until the end of an update.
    "CREATE TABLE identity (value BLOB, words INTEGER)",
    "INSERT INTO identity VALUES (randomblob(16), NULL)",
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

_Result = TypeVar("_Result")

_encode: Final = msgspec.msgpack.Encoder().encode


def connect(file: Path) -> sqlite3.Connection:
    """Open the index; a missing one is created empty. Raises as `cache_database.connect`."""
    return cache_database.connect(file, code_version(_PACKAGES), _SETTINGS, _TABLES)


class Access:
    """A connection that is opened when it is needed, for one thread at a time.

    If the file was removed, as a damaged one is, the next call opens the new one.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: os.stat_result | None = None  # the file of the connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def run(self, act: Callable[[sqlite3.Connection, bytes], _Result]) -> _Result | None:
        """Call `act` with the connection and the identity of the file; None if the index cannot be used."""
        with self._lock:
            return cache_database.use(self._file, lambda: self._open_and(act))

    def _open_and(self, act: Callable[[sqlite3.Connection, bytes], _Result]) -> _Result:
        try:
            if self._connection is None or not self._is_current():
                self.close()
                self._connection = connect(self._file)
                self._opened = self._file.stat()
            return act(self._connection, _identity(self._connection))
        except BaseException:
            self.close()
            raise

    def _is_current(self) -> bool:
        try:
            return self._opened is not None and os.path.samestat(self._opened, self._file.stat())
        except OSError:
            return False


def begin_update(connection: sqlite3.Connection) -> None:
    """Begin a transaction that may change the word index."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE identity SET words = NULL")


def end_update(connection: sqlite3.Connection) -> None:
    """Commit the last transaction of an update, and store the checksum of the word index."""
    connection.execute("COMMIT")  # only now does FTS5 write all that it has
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE identity SET words = ?", (_words_checksum(connection),))
    connection.execute("COMMIT")


def check_words(connection: sqlite3.Connection) -> None:
    """Raise DamagedError if the word index is not as written; SQLite would just find less in it."""
    connection.execute("BEGIN")
    [(known,)] = connection.execute("SELECT words FROM identity")
    if known is not None and known != _words_checksum(connection):
        raise DamagedError("the word index differs from its checksum")
    connection.execute("COMMIT")


def _words_checksum(connection: sqlite3.Connection) -> int:
    checksum = 0
    for sql in ("SELECT id, block FROM words_data", "SELECT segid, term, pgno FROM words_idx"):
        for row in connection.execute(sql):
            checksum = crc32(_encode(row), checksum)
    return checksum


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
