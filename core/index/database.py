"""The index file: tables, damage, transactions; see docs/architecture.md#index.

The index is derived from files, code and settings, so it may be deleted at any moment. It is in the user's cache
folder; if that cannot be used, in a temporary folder that goes with the process.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from core.base.errors import DamagedError, Unwritable
from core.base.paths import cache_folder
from core.base.text import visible_line
from core.files import cache_database
from core.files.user_files import code_version, index_file

_ROOMS: Final = ("records", "base", "files", "trust", "learning", "retrieval", "sources", "tasks", "index")
"""Rooms that decide what is in the index; after a change in them, it is made again."""
_SETTINGS: Final = ("page_size = 8192", "journal_mode = WAL", "cache_size = -16000")
_LONG_LOG: Final = 1 << 20  # bytes of a write-ahead log: the first process to open an index reads all of it
_TEMPORARY: Final = "ralphdeck-index-"  # prefix of the names of temporary folders
_LEFT_SECONDS: Final = 60.0  # age of a temporary folder that its process has surely locked
_READ_SECONDS: Final = 1.0
_WRITE_SECONDS: Final = 30.0  # time to wait for another process that writes
_NETWORK_SYSTEMS: Final = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "ceph", "lustre")
_TABLES: Final = (
    # Values of the whole project by name.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    # Files that were read, with their stamps at that time, and folders with what they contain.
    "CREATE TABLE file (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, inode INT, size INT, mtime INT,"
    " ctime INT)",
    "CREATE TABLE folder (path TEXT PRIMARY KEY, inode INT, size INT, mtime INT, ctime INT, folders TEXT, files TEXT)"
    " WITHOUT ROWID",
    # Files whose content was incomplete when they were last read: since when, and whether that is a finding.
    "CREATE TABLE torn (path TEXT PRIMARY KEY, since REAL, is_reported INT, problem BLOB) WITHOUT ROWID",
    # What single files say. Parts with the same kind and key are joined to records.
    "CREATE TABLE part (number INTEGER PRIMARY KEY, file INT NOT NULL, kind INT NOT NULL, key TEXT NOT NULL,"
    " loop TEXT, data BLOB NOT NULL)",
    "CREATE INDEX part_by_key ON part (kind, key)",
    "CREATE INDEX part_by_file ON part (file)",
    "CREATE INDEX part_by_loop ON part (kind, loop) WHERE loop IS NOT NULL",
    # Records of the project. A changed record gets a new number; `is_open` if time alone may change it.
    "CREATE TABLE record (number INTEGER PRIMARY KEY AUTOINCREMENT, kind INT NOT NULL, id TEXT NOT NULL,"
    " key TEXT NOT NULL, place REAL, is_open INT NOT NULL, data BLOB NOT NULL)",
    "CREATE UNIQUE INDEX record_by_id ON record (kind, id)",
    "CREATE INDEX record_by_key ON record (kind, key)",
    "CREATE INDEX record_by_place ON record (kind, place DESC, id)",
    "CREATE INDEX record_open ON record (kind) WHERE is_open",
    # IDs of removed records, for views that showed them.
    "CREATE TABLE removed (number INTEGER PRIMARY KEY AUTOINCREMENT, kind INT NOT NULL, id TEXT NOT NULL)",
    # Other IDs of loops, and the tasks in which a session of an agent worked.
    "CREATE TABLE alias (kind INT, name TEXT, id TEXT, PRIMARY KEY (kind, name, id)) WITHOUT ROWID",
    "CREATE INDEX alias_by_id ON alias (kind, id)",
    "CREATE TABLE session_work (loop TEXT, task TEXT, PRIMARY KEY (loop, task)) WITHOUT ROWID",
    "CREATE INDEX session_work_by_task ON session_work (task)",
    # Patterns have a place, which is their row in columns and posting lists. A place is given once.
    "CREATE TABLE pattern (place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE reference (source TEXT, target TEXT, PRIMARY KEY (source, target)) WITHOUT ROWID",
    "CREATE INDEX reference_by_target ON reference (target)",
    # Findings by what they are about: a file, a folder, a group of loops, a pattern.
    "CREATE TABLE finding (about TEXT, number INT, data BLOB NOT NULL, PRIMARY KEY (about, number)) WITHOUT ROWID",
    # Verdicts of the searches for review questions, which are not filled from files.
    "CREATE TABLE verdict (kind TEXT, key TEXT, owner BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, key))"
    " WITHOUT ROWID",
    "CREATE TABLE cells (name TEXT, chunk INT, data BLOB NOT NULL, PRIMARY KEY (name, chunk)) WITHOUT ROWID",
    # IDs of records by what they name; `kind` is a `Link`.
    "CREATE TABLE link (kind INT, name TEXT, id TEXT, PRIMARY KEY (kind, name, id)) WITHOUT ROWID",
    # Where the lines of events start: by ID, pattern, and work or source of a report.
    "CREATE TABLE event_id (key INTEGER PRIMARY KEY, start INT)",
    "CREATE TABLE event_pattern (key INT, start INT, PRIMARY KEY (key, start)) WITHOUT ROWID",
    "CREATE TABLE event_work (key INT, start INT, PRIMARY KEY (key, start)) WITHOUT ROWID",
    "CREATE TABLE event_report (key TEXT, start INT, PRIMARY KEY (key, start)) WITHOUT ROWID",
    # Where every 256th event is, and lines without an event.
    "CREATE TABLE event_mark (place INTEGER PRIMARY KEY, start INT)",
    "CREATE TABLE event_gap (start INTEGER PRIMARY KEY)",
    # Positions of events that are older than one before them, that have an error, that have a trial, and that a
    # decision caused.
    "CREATE TABLE event_late (place INTEGER PRIMARY KEY)",
    "CREATE TABLE event_error (place INTEGER PRIMARY KEY)",
    "CREATE TABLE event_trial (place INTEGER PRIMARY KEY)",
    "CREATE TABLE event_decision (decision TEXT, place INT, PRIMARY KEY (decision, place)) WITHOUT ROWID",
    "CREATE TABLE event_doubtful (source TEXT PRIMARY KEY, count INT) WITHOUT ROWID",
    # When patterns were used, 512 places in each chunk.
    "CREATE TABLE use_time (chunk INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # A task without its logs (`attempt` is NULL), or one log. Of a task, `is_current` is whether all of its units are
    # those of the files, as far as is known.
    "CREATE TABLE search_unit (id INTEGER PRIMARY KEY, path TEXT UNIQUE, task TEXT, attempt INTEGER,"
    " is_current INTEGER, stamps BLOB, owner BLOB, end INTEGER, lines INTEGER, actions INTEGER, checksum INTEGER)",
    "CREATE INDEX search_unit_by_task ON search_unit (task)",
    "CREATE INDEX search_unit_outdated ON search_unit (task) WHERE is_current = 0",
    # Several records, compressed together; `kinds` has a bit for each kind, `first` and `last` are their times.
    "CREATE TABLE search_block (id INTEGER PRIMARY KEY AUTOINCREMENT, unit INTEGER, kinds INTEGER, first INTEGER,"
    " last INTEGER, data BLOB, checksum INTEGER)",
    "CREATE INDEX search_block_by_unit ON search_block (unit)",
    # Trigrams find any part of a word; without positions they take little space, and the text decides.
    "CREATE VIRTUAL TABLE search_words USING fts5(text, content='', columnsize=0, detail=none,"
    " tokenize='trigram case_sensitive 1')",
    # Rows of each word, tag and so on; in each chunk ascending, as 16-bit numbers that begin with the chunk.
    "CREATE TABLE term (kind INT, term BLOB, chunk INT, rows BLOB NOT NULL, PRIMARY KEY (kind, term, chunk))"
    " WITHOUT ROWID",
    # Tags by the content words in them.
    "CREATE TABLE tag_word (word BLOB, tag BLOB, PRIMARY KEY (word, tag)) WITHOUT ROWID",
    # Learnings by row, with the reflection or memory task that each is from.
    "CREATE TABLE learning (row INTEGER PRIMARY KEY, source BLOB, id BLOB, work INT, data BLOB NOT NULL)",
    "CREATE INDEX learning_by_source ON learning (source, row)",
    "CREATE INDEX learning_by_id ON learning (id)",
    "CREATE INDEX learning_by_work ON learning (work)",
    # What the learnings of a source depend on besides the source: tasks, loops and attempts.
    "CREATE TABLE learning_need (need BLOB, source BLOB, PRIMARY KEY (need, source)) WITHOUT ROWID",
    "CREATE INDEX learning_need_by_source ON learning_need (source)",
    # Tasks and loops with learnings by row, with their content words.
    "CREATE TABLE work (row INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, words BLOB NOT NULL)",
    # Tasks of loops in which patterns worked, with the place that sorts the loops.
    "CREATE TABLE worked (loop BLOB PRIMARY KEY, place REAL, data BLOB NOT NULL) WITHOUT ROWID",
    "CREATE INDEX worked_by_place ON worked (place DESC, loop)",
)


def list_tables() -> Iterator[str]:
    """Yield the statements that create all tables."""
    from core.tasks.debug_index import TABLES as DEBUG_TABLES  # for a new index alone

    yield from _TABLES
    yield from DEBUG_TABLES


def pack(data: bytes) -> bytes:
    """Return a value as stored, with a checksum: SQLite misses damaged pages."""
    return crc32(data).to_bytes(4) + data


def unpack(stored: object) -> memoryview:
    """Return a stored value; raises DamagedError if it is not what was stored."""
    if not isinstance(stored, bytes) or len(stored) < 4:
        raise DamagedError("a value of the index is missing; try again")
    data = memoryview(stored)[4:]
    if crc32(data) != int.from_bytes(stored[:4]):
        raise DamagedError("a value of the index is damaged; try again")
    return data


class Database:
    """The index of one project: a connection that writes, and one for each view.

    A view is an open read transaction: it stays the same while this or another process writes.
    """

    def __init__(self, file: Path, writer: sqlite3.Connection, version: int) -> None:
        self.file = file
        self.writer = writer
        self._version = version
        self._inode = _inode_of(file)
        self._mutex = threading.RLock()
        self._end: Callable[[], object] = lambda: None  # removes a temporary folder
        self.decoded: dict[int, Any] = {}
        """Decoded records by number, shared by all views."""

    @classmethod
    def open(cls, project: Path, *, is_kept: bool = True, wait_seconds: float = _WRITE_SECONDS) -> Database:
        """Open the index of a project, or create an empty one.

        Raises Unwritable if no folder can be used. Without `is_kept`, it is in a temporary folder from the start.
        """
        version = code_version(_ROOMS)
        if is_kept:
            file = index_file(project)
            with suppress(OSError, sqlite3.Error, DamagedError):
                if _has_locks(file.parent):
                    return cls(file, _connect(file, version, wait_seconds), version)
        import shutil
        import tempfile

        folder = None
        try:  # on a network, too: no other machine uses the file
            _remove_left(Path(tempfile.gettempdir()))
            folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
            file = folder / "index"
            database = cls(file, _connect(file, version, wait_seconds), version)
            database._end = weakref.finalize(database, _remove, folder, _lock(folder))
        except (OSError, sqlite3.Error) as error:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise unwritable(error) from error
        return database

    @property
    def exists(self) -> bool:
        """Whether the file is still the one that was opened."""
        return _inode_of(self.file) == self._inode

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; one thread and process at a time.

        Raises sqlite3.Error, or DamagedError if the file was deleted: other processes would not read what is written.
        """
        with self._mutex:
            if not self.exists:
                raise DamagedError("the index was deleted")
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            except BaseException:
                self.decoded.clear()  # the numbers of records that were not written are given again
                with suppress(sqlite3.Error):
                    self.writer.execute("ROLLBACK")
                raise

    @property
    def has_long_log(self) -> bool:
        """Whether the write-ahead log should be emptied."""
        return _has_long_log(self.file)

    def empty_log(self) -> None:
        """Copy the write-ahead log into the file, and empty it if no view needs it.

        Afterwards the newest view needs it no more if it is opened again.
        """
        with self._mutex:
            _empty_log(self.writer, self.file)

    def read(self) -> sqlite3.Connection:
        """Return a connection that sees the current index, for any thread that locks it."""
        return _read(self.file, self._version, self._inode)

    def remove(self) -> None:
        """Delete a damaged index if it is the opened one; open views still work."""
        self.close()
        if self.exists:
            cache_database.remove(self.file)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.writer.close()
        self._end()


def _lock(folder: Path) -> int:
    """Lock a temporary folder until the handle closes; raises OSError if in use."""
    # Not the folder itself: `cache_database` locks that while it creates or deletes a database.
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove(folder: Path, handle: int) -> None:
    """Remove a temporary folder that is locked."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    os.close(handle)


def _remove_left(parent: Path) -> None:
    """Remove temporary folders of killed processes, such as hooks that gave up."""
    for folder in parent.glob(f"{_TEMPORARY}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if is_own and time.time() - status.st_mtime > _LEFT_SECONDS:
                _remove(folder, _lock(folder))


def delete(project: Path) -> None:
    """Delete the index of a project; the next run makes it again."""
    cache_database.remove(index_file(project))


def read_existing(project: Path) -> sqlite3.Connection | None:
    """Return a connection that sees the current index; None if it is not usable."""
    file = index_file(project)
    with suppress(OSError, sqlite3.Error, DamagedError):
        return _read(file, code_version(_ROOMS), _inode_of(file))
    return None


def unwritable(error: Exception) -> Unwritable:
    """Return the error that neither cache nor temporary folder can hold the index."""
    import tempfile

    folders = f"{visible_line(str(cache_folder()), 200)} or {visible_line(tempfile.gettempdir(), 200)}"
    return Unwritable(f"cannot write the index of the project in {folders}: {visible_line(str(error), 200)}")


def _inode_of(file: Path) -> tuple[int, int] | None:
    """Return what identifies the file at a path; None if there is no regular one."""
    with suppress(OSError):
        status = file.lstat()
        return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
    return None


def _read(file: Path, version: int, inode: tuple[int, int] | None) -> sqlite3.Connection:
    """Open a view; raises sqlite3.Error, or DamagedError for another inode."""
    if inode is None:  # opening a pipe would wait for ever
        raise DamagedError("the index is not a regular file")
    place = f"{file.as_uri()}?mode=ro"
    connection = sqlite3.connect(place, uri=True, timeout=_READ_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] != version:
            raise DamagedError("the index is of another version")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()  # the view begins with the first read
        # A database that another process deletes loses its write-ahead log after it was moved.
        if _inode_of(file) != inode:
            raise DamagedError("the index was deleted")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(file: Path, version: int, wait_seconds: float) -> sqlite3.Connection:
    """Open or create the file; one that is damaged or outdated is made again."""
    for is_last in (False, True):
        try:
            connection = cache_database.connect(file, version, _SETTINGS, list_tables())
            break
        except (DamagedError, sqlite3.DatabaseError) as error:
            if is_last or not cache_database.is_damage(error):
                raise
            cache_database.remove(file)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.close()
        raise OSError(f"{file.parent} does not allow a write-ahead log")
    connection.execute(f"PRAGMA busy_timeout = {int(wait_seconds * 1000)}")
    _empty_log(connection, file)
    return connection


def _has_long_log(file: Path) -> bool:
    with suppress(OSError):
        return file.with_name(f"{file.name}-wal").stat().st_size > _LONG_LOG
    return False


def _empty_log(connection: sqlite3.Connection, file: Path) -> None:
    """Copy a long write-ahead log into the file without waiting; empty it if unused."""
    if not _has_long_log(file):
        return
    wait_ms = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {wait_ms}")


def _has_locks(folder: Path) -> bool:
    """Return whether a folder is local, so that locks and shared memory work."""
    with suppress(OSError, ValueError, IndexError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        device = folder.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split()[2] == wanted:
                return not line.partition(" - ")[2].startswith(_NETWORK_SYSTEMS)
    return True


def get_meta(connection: sqlite3.Connection, name: str) -> bytes | None:
    """Return a value of the whole project; None if it was never set."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return bytes(unpack(row[0])) if row is not None else None


def set_meta(connection: sqlite3.Connection, name: str, value: bytes) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, pack(value)))


def count_change(connection: sqlite3.Connection, name: str) -> None:
    """Increase a number; it does not repeat after the index is made again."""
    before = get_meta(connection, name) or b"%d" % time.time_ns()
    set_meta(connection, name, b"%d" % (int(before) + 1))
