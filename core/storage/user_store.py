"""Queries and transactions on the user's own state, with TinyDB over a storage that is atomic and locked.

TinyDB's own storages rewrite the file in place: a kill loses all of it, and two processes lose each other's changes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinydb import TinyDB
from tinydb.storages import Storage

from core.base.errors import Unwritable
from core.storage.file_access import file_lock
from core.storage.user_files import Documents, read_tables, replace_tables

if TYPE_CHECKING:
    from tinydb.table import Table


class UserStore:
    """The tables in one file of the user; objects, threads and processes may share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def table(self, name: str) -> Table:
        """Return a table as it is now, for queries; it is empty if it does not exist.

        Raises Unwritable if the file cannot be read, and RuntimeError if the table is changed: that needs a
        transaction.
        """
        return _open(_Snapshot(read_tables(self.path).tables, is_writable=False)).table(name)

    @contextmanager
    def transaction(self) -> Iterator[TinyDB]:
        """Lock and read the file, and write all changes at once at the end, or none after an error.

        Cannot be nested. Raises Unwritable if the file cannot be locked, read or written, and BadInput if a text is not
        valid Unicode or the file would be too large.
        """
        _make_private(self.path.parent)
        with file_lock(self.path.with_name(f"{self.path.name}.lock")):
            before = read_tables(self.path)
            snapshot = _Snapshot(before.tables, is_writable=True)
            yield _open(snapshot)
            if snapshot.is_changed:
                replace_tables(self.path, before, snapshot.tables)


class _Snapshot(Storage):
    """The tables of one moment, in memory."""

    def __init__(self, tables: dict[str, Documents], *, is_writable: bool) -> None:
        self.tables = tables
        self.is_changed = False
        self._is_writable = is_writable

    def read(self) -> dict[str, Documents]:
        return self.tables

    def write(self, data: dict[str, dict[str, Any]]) -> None:
        if not self._is_writable:
            raise RuntimeError("change tables in UserStore.transaction")
        self.tables = data
        self.is_changed = True


def _open(snapshot: _Snapshot) -> TinyDB:
    return TinyDB(storage=lambda: snapshot)


def _make_private(folder: Path) -> None:
    """Make a folder that only the user can enter."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise Unwritable(f"cannot make {folder} private: {error.strerror}") from None
