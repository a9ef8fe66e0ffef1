"""States of transcripts and remembered values of the last run, in a file in the user's cache folder.

The file is optional: if it is missing, damaged or of another program, it behaves like an empty one. Its texts are
masked. Use one `KeptFile` per thread; several processes may use the same file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from core.adapters.transcripts import HEAD_BYTES, Folded
from core.redaction.masking import mask_secrets
from core.storage import cache_database
from core.storage.file_reader import Stamp
from core.storage.user_files import cache_path

if TYPE_CHECKING:
    from core.adapters.transcripts import Fold

VERSION: Final = 1  # of the tables; folds have versions of their own
MAX_STATE_BYTES: Final = 4 << 20  # a larger state is not kept
_SETTINGS: Final = ("journal_mode = WAL",)
_TABLES: Final = (
    "CREATE TABLE states (adapter TEXT, fold TEXT, version INT, path BLOB, data BLOB,"
    " PRIMARY KEY (adapter, fold, path)) WITHOUT ROWID",
    "CREATE TABLE remembered (adapter TEXT, key TEXT, data BLOB, PRIMARY KEY (adapter, key)) WITHOUT ROWID",
)
_NATIVE: Final = (bytes, bytearray, datetime)
_UNUSABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)

_Result = TypeVar("_Result")
_Count = Annotated[int, Meta(ge=0)]


class _Place(Struct, frozen=True, array_like=True):
    stamp: Stamp
    head: bytes
    head_size: Annotated[int, Meta(ge=0, le=HEAD_BYTES)]
    offset: _Count
    seen: _Count
    skipped: _Count
    is_in_long_line: bool
    state: msgspec.Raw


class _Value(Struct, frozen=True, array_like=True):
    seen_at: datetime
    value: Any


_place_decoder: Final = msgspec.msgpack.Decoder(_Place)
_value_decoder: Final = msgspec.msgpack.Decoder(_Value)


class KeptFile:
    """The kept states of one project."""

    def __init__(self, project: Path) -> None:
        self._file = cache_path(project, "adapters")
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def use(self, act: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Call `act` with the open database; None if it cannot be used."""

        def run() -> _Result:
            if self._connection is None:
                self._connection = cache_database.connect(self._file, VERSION, _SETTINGS, _TABLES)
            try:
                return act(self._connection)
            except Exception:
                self.close()
                raise

        return cache_database.use(self._file, run)


class KeptStates:
    """The kept states of one adapter; what is noted is written by `save`."""

    def __init__(self, file: KeptFile, adapter: str) -> None:
        self._file, self._adapter = file, adapter
        self._noted: dict[tuple[str, Path], tuple[int, Folded]] = {}
        self._values: dict[str, _Value] = {}

    def load(self, fold: Fold[Any], path: Path) -> Folded | None:
        """Return the kept state of a transcript, None if there is none."""
        query = "SELECT data FROM states WHERE adapter = ? AND fold = ? AND path = ? AND version = ?"
        values = self._adapter, fold.name, os.fsencode(path), fold.version
        row = self._file.use(lambda database: database.execute(query, values).fetchone())
        with suppress(*_UNUSABLE):
            if row is not None and isinstance(row[0], bytes):
                one = _place_decoder.decode(row[0])
                state = msgspec.msgpack.decode(one.state, type=fold.state)
                place = one.head_size, one.offset, one.seen, one.skipped, one.is_in_long_line
                return Folded(state, one.stamp, one.head, *place)
        return None

    def note(self, fold: Fold[Any], path: Path, folded: Folded) -> None:
        """Keep the state of a transcript at the next `save`."""
        self._noted[fold.name, path] = fold.version, folded

    def remember(self, key: str, value: object, now: datetime | None = None) -> None:
        """Keep a value at the next `save`."""
        self._values[key] = _Value(now or datetime.now(UTC), value)

    def remembered(self, key: str) -> Any:
        """Return a kept value, of built-in types, or None."""
        found = self._find(key)
        return found.value if found is not None else None

    def seen_at(self, key: str) -> datetime | None:
        """Return when a value was kept."""
        found = self._find(key)
        return found.seen_at if found is not None else None

    @property
    def has_values(self) -> bool:
        """Whether a value was kept."""
        query = "SELECT 1 FROM remembered WHERE adapter = ? LIMIT 1"
        row = self._file.use(lambda database: database.execute(query, [self._adapter]).fetchone())
        return bool(self._values) or row is not None

    def save(self) -> None:
        """Write what was noted; without effect if the cache folder cannot be written."""
        noted, self._noted = self._noted, {}
        values, self._values = self._values, {}
        if not (noted or values):
            return
        states = []
        for (fold, path), (version, one) in noted.items():
            with suppress(*_UNUSABLE):
                state = msgspec.msgpack.encode(_masked(msgspec.to_builtins(one.state, builtin_types=_NATIVE)))
                place = one.head_size, one.offset, one.seen, one.skipped, one.is_in_long_line
                data = msgspec.msgpack.encode(_Place(one.stamp, one.head, *place, msgspec.Raw(state)))
                if len(data) <= MAX_STATE_BYTES:
                    states.append((self._adapter, fold, version, os.fsencode(path), data))
        remembered = []
        for key, value in values.items():
            with suppress(*_UNUSABLE):
                made = _masked(msgspec.to_builtins(value.value, builtin_types=_NATIVE))
                remembered.append((self._adapter, key, msgspec.msgpack.encode(_Value(value.seen_at, made))))

        def write(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)", states)
            database.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?)", remembered)
            database.execute("COMMIT")

        self._file.use(write)

    def prune(self) -> None:
        """Remove the states of files that no longer exist."""
        query = "SELECT path FROM states WHERE adapter = ?"
        rows = self._file.use(lambda database: database.execute(query, [self._adapter]).fetchall()) or ()
        missing = [(self._adapter, path) for (path,) in rows if isinstance(path, bytes) and not os.path.lexists(path)]
        if missing:
            delete = "DELETE FROM states WHERE adapter = ? AND path = ?"
            self._file.use(lambda database: database.executemany(delete, missing))

    def _find(self, key: str) -> _Value | None:
        if key in self._values:
            return self._values[key]
        query, values = "SELECT data FROM remembered WHERE adapter = ? AND key = ?", (self._adapter, key)
        row = self._file.use(lambda database: database.execute(query, values).fetchone())
        with suppress(*_UNUSABLE):
            if row is not None and isinstance(row[0], bytes):
                return _value_decoder.decode(row[0])
        return None


def _masked(value: Any) -> Any:
    """Return a value of built-in types with secrets masked in all its texts."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {_masked(key): _masked(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(one) for one in value]
    return value
