"""Optional SQLite files of the user's cache; an unusable one is deleted, remade."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from core.base.errors import DamagedError

_APPLICATION: Final = 0x72616C70
_BUSY_SECONDS: Final = 0.2
_LOCK_SECONDS: Final = 1.0  # time to wait for a process that creates or deletes a database; it may be stopped
_POLL_SECONDS: Final = 0.002
_JOURNALS: Final = ("-wal", "-shm", "-journal")
_PASSING: Final = frozenset(
    getattr(sqlite3, f"SQLITE_{name}") for name in ("BUSY", "LOCKED", "FULL", "IOERR", "CANTOPEN", "READONLY", "NOMEM")
)  # primary error codes that do not mean that the file is damaged

_Result = TypeVar("_Result")


def use(file: Path, act: Callable[[], _Result]) -> _Result | None:
    """Call `act`, which opens the database; once more after removing a damaged file.

    None if the database cannot be used.
    """
    for _ in range(2):
        try:
            return act()
        except (OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, TypeError, ValueError) as error:
            if not is_damage(error):
                return None
            remove(file)
    return None


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file must be written again."""
    code = getattr(error, "sqlite_errorcode", None)
    return not isinstance(error, OSError) and (code is None or code & 0xFF not in _PASSING)


def remove(file: Path) -> None:
    """Delete a database and its journal files."""
    with suppress(OSError), _lock_folder(file.parent):
        # First the database: who opens it without its journals then sees that it was moved.
        _unlink(file, "", *_JOURNALS)


def _unlink(file: Path, *endings: str) -> None:
    for ending in endings:
        with suppress(OSError):
            file.with_name(file.name + ending).unlink()


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against threads and processes that create or delete databases.

    Otherwise a process could delete the new journals of another one, or open a new database with old journals.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def connect(file: Path, version: int, settings: Iterable[str], tables: Iterable[str]) -> sqlite3.Connection:
    """Open a database; create a missing or empty one with the statements `tables`.

    Raises OSError, sqlite3.Error, or DamagedError for one of another program or version.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock_folder(file.parent):
        return _connect(file, version, settings, tables)


def _connect(file: Path, version: int, settings: Iterable[str], tables: Iterable[str]) -> sqlite3.Connection:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        _unlink(file, *_JOURNALS)  # of a process that was killed while it deleted the database
    except FileExistsError:
        # Not opened: closing it would release the locks of other connections in this process.
        if not stat.S_ISREG(file.lstat().st_mode):
            raise OSError(f"{file} is not a regular file") from None
        file.chmod(0o600)
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        is_made = _is_of(connection, version)
        if not is_made and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise DamagedError("the database is of another program or version")
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        # Do not wait for the disk: a cache damaged by a power cut is made again.
        connection.execute("PRAGMA synchronous = OFF")
        if is_made:
            return connection
        connection.execute("BEGIN IMMEDIATE")
        if not _is_of(connection, version):  # otherwise another process has just created the tables
            for table in tables:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except (sqlite3.Error, DamagedError):
        connection.close()
        raise
    return connection


def _is_of(connection: sqlite3.Connection, version: int) -> bool:
    ids = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    return ids == [_APPLICATION, version]
