"""Incremental reading of growing files of lines; docs/adapters.md#transcripts.

A file is read at an offset, a limited number of bytes at a time. It is read from the start again if it was replaced,
became shorter, or has other bytes at its start or before the offset (after a compaction or another rewrite).

The states, and values that are remembered, are kept in a file in the user's cache folder. It is optional: if it is
missing, damaged or of another program, it behaves like an empty one. Its texts are masked. Use one `KeptFile` per
thread; several processes may use the same file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.files import cache_database
from core.files.file_reader import Stamp
from core.files.user_files import cache_path

MAX_LINE_BYTES: Final = 4 << 20  # longest line of a transcript that is decoded
MAX_BYTES_AT_ONCE: Final = 2 << 20  # of one transcript, at each look
HEAD_BYTES: Final = 1024  # hashed, to notice that another file has taken the place of a transcript
_MARK_BYTES: Final = 256  # before the offset, hashed for the same reason
DAMAGE: Final = (
    *(msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(ArithmeticError, AssertionError),
)  # what untrusted content can raise
_SURROGATE: Final = lazy_regex(
    rb"(\\\\|\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)  # half a pair of escapes, which is not JSON: a text that an agent cut inside an emoji
_State = TypeVar("_State", bound=Struct)
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


class Fold(Protocol[_State]):
    """Reads a growing file by lines into a small state that is kept between runs.

    `name` and `version` identify the code: after a change, increase the version, and files are read from the start.
    `state` is a mutable msgspec Struct that MessagePack can encode; a new one is the state of an empty file.
    """

    name: str
    version: int
    state: type[_State]

    def add(self, state: _State, line: bytes) -> None:
        """Add a complete, untrusted line; ValueError, TypeError, msgspec's if unreadable."""


class Folded(Struct, frozen=True, array_like=True, gc=False):
    """The state of a transcript, and how far it was read."""

    stamp: Stamp
    head: bytes = b""  # hash of the first `head_size` bytes, and of some before the offset
    head_size: Annotated[int, Meta(ge=0, le=HEAD_BYTES)] = 0
    offset: _Count = 0  # of the first byte that was not read
    seen: _Count = 0  # end of the bytes that were looked at: more than the offset if the last line is not complete
    skipped: _Count = 0  # lines that could not be read
    is_in_long_line: bool = False  # whether the offset is inside a line that is skipped
    state: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether all bytes of the file were read, except an incomplete last line."""
        return self.seen >= self.stamp.size


def read_added(descriptor: int, fold: Fold[Any], known: Folded | None, most: int = MAX_BYTES_AT_ONCE) -> Folded:
    """Read about `most` added bytes; the state is a new object if lines were added."""
    stamp = Stamp.of(os.fstat(descriptor))
    if (
        known is None
        or known.stamp.inode != stamp.inode
        or stamp.size < known.offset
        or _hash(descriptor, known.head_size, known.offset) != known.head
    ):  # another file, or a rewritten one
        known = Folded(stamp, state=fold.state())
    position = _Position(descriptor, fold, known, stamp.size)
    while position.read < most and position.offset + position.tail < stamp.size and position.advance():
        pass
    head_size = min(stamp.size, HEAD_BYTES)
    return Folded(
        stamp,
        _hash(descriptor, head_size, position.offset),
        head_size,
        position.offset,
        position.offset + position.tail,
        position.skipped,
        position.is_in_long_line,
        position.state,
    )


class _Position:
    """A place in an open file, and the state of all lines before it."""

    def __init__(self, descriptor: int, fold: Fold[Any], known: Folded, size: int) -> None:
        self._descriptor, self._fold, self._size = descriptor, fold, size
        self._is_new = known.offset == 0
        self.state, self.offset, self.skipped = known.state, known.offset, known.skipped
        self.is_in_long_line = known.is_in_long_line
        self.read = 0
        self.tail = known.seen - known.offset  # bytes after the offset that are not a complete line

    def advance(self) -> bool:
        """Read the next lines; returns False at the end of the file."""
        wanted = min(max(2 * self.tail, MAX_BYTES_AT_ONCE), MAX_LINE_BYTES)
        data = os.pread(self._descriptor, min(wanted, self._size - self.offset), self.offset)
        self.read += len(data)
        if not data:
            return False
        if self.is_in_long_line:
            start = data.find(b"\n") + 1
            self.is_in_long_line = not start
            self.offset += start or len(data)
            return True
        end = data.rfind(b"\n") + 1
        if end:
            self._add(data[:end])
            self.offset += end
            self.tail = 0
        elif len(data) >= MAX_LINE_BYTES:
            self.is_in_long_line, self.tail = True, 0
            self.offset += len(data)
            self.skipped += 1
        else:
            is_same, self.tail = self.tail == len(data), len(data)
            return not is_same
        return True

    def _add(self, data: bytes) -> None:
        if not self._is_new:
            self.state, self._is_new = replace(self.state), True
        if b"\\ud" in data or b"\\uD" in data:
            data = _SURROGATE.sub(lambda found: found[1] or b"\\ufffd", data)
        for line in data.split(b"\n"):
            if line and not line.isspace():
                try:
                    self._fold.add(self.state, line)
                except DAMAGE:
                    self.skipped += 1


def _hash(descriptor: int, head_size: int, offset: int) -> bytes:
    start = max(offset - _MARK_BYTES, 0)
    return sha256(os.pread(descriptor, head_size, 0) + os.pread(descriptor, offset - start, start)).digest()[:16]


class _Kept(Folded, frozen=True):
    """The same with a state that is not decoded."""

    state: msgspec.Raw = msgspec.Raw()


class _Value(Struct, frozen=True, array_like=True):
    seen_at: datetime
    value: Any


_kept_decoder: Final = msgspec.msgpack.Decoder(_Kept)
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
    """States and values of one adapter, written by `save`; in memory without a file."""

    def __init__(self, file: KeptFile | None, adapter: str) -> None:
        self._file, self._adapter = file, adapter
        self._noted: dict[tuple[str, Path], tuple[int, Folded]] = {}
        self._values: dict[str, Any] = {}  # those that were kept or looked up; None if there is none
        self._unsaved: dict[str, datetime] = {}  # when each of them was kept

    def load(self, fold: Fold[Any], path: Path) -> Folded | None:
        """Return the kept state of a transcript, None if there is none."""
        query = "SELECT data FROM states WHERE adapter = ? AND fold = ? AND path = ? AND version = ?"
        values = self._adapter, fold.name, os.fsencode(path), fold.version
        row = self._use(lambda database: database.execute(query, values).fetchone())
        with suppress(*_UNUSABLE):
            if row is not None and isinstance(row[0], bytes):
                kept = _kept_decoder.decode(row[0])
                return replace(kept, state=msgspec.msgpack.decode(kept.state, type=fold.state))
        return None

    def note(self, fold: Fold[Any], path: Path, folded: Folded) -> None:
        """Keep the state of a transcript at the next `save`."""
        if self._file is not None:
            self._noted[fold.name, path] = fold.version, folded

    def remember(self, key: str, value: object) -> None:
        """Keep a value beyond the program's end, such as the content of a vanishing file."""
        self._values[key], self._unsaved[key] = value, datetime.now(UTC)

    def remembered(self, key: str) -> Any:
        """Return a kept value, of built-in types; None if there is none."""
        if key not in self._values:
            self._values[key] = self._load_value(key)
        return self._values[key]

    def _load_value(self, key: str) -> Any:
        query, values = "SELECT data FROM remembered WHERE adapter = ? AND key = ?", (self._adapter, key)
        row = self._use(lambda database: database.execute(query, values).fetchone())
        with suppress(*_UNUSABLE):
            if row is not None and isinstance(row[0], bytes):
                return _value_decoder.decode(row[0]).value
        return None

    @property
    def has_values(self) -> bool:
        """Whether a value was kept, by this or an earlier run of the program."""
        query = "SELECT 1 FROM remembered WHERE adapter = ? LIMIT 1"
        row = self._use(lambda database: database.execute(query, [self._adapter]).fetchone())
        return bool(self._unsaved) or row is not None

    def save(self) -> None:
        """Write what was noted; without effect if the cache folder cannot be written."""
        if self._file is None:
            return
        noted, self._noted = self._noted, {}
        unsaved, self._unsaved = self._unsaved, {}
        if not (noted or unsaved):
            return
        states = []
        for (fold, path), (version, one) in noted.items():
            with suppress(*_UNUSABLE):
                state = msgspec.msgpack.encode(_masked(msgspec.to_builtins(one.state, builtin_types=_NATIVE)))
                data = msgspec.msgpack.encode(replace(one, state=msgspec.Raw(state)))
                if len(data) <= MAX_STATE_BYTES:
                    states.append((self._adapter, fold, version, os.fsencode(path), data))
        remembered = []
        for key, seen_at in unsaved.items():
            with suppress(*_UNUSABLE):
                value = _masked(msgspec.to_builtins(self._values[key], builtin_types=_NATIVE))
                remembered.append((self._adapter, key, msgspec.msgpack.encode(_Value(seen_at, value))))

        def write(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)", states)
            database.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?)", remembered)
            database.execute("COMMIT")

        self._use(write)

    def prune(self) -> None:
        """Remove the states of files that no longer exist."""
        query = "SELECT path FROM states WHERE adapter = ?"
        rows = self._use(lambda database: database.execute(query, [self._adapter]).fetchall()) or ()
        missing = [(self._adapter, path) for (path,) in rows if isinstance(path, bytes) and not os.path.lexists(path)]
        if missing:
            delete = "DELETE FROM states WHERE adapter = ? AND path = ?"
            self._use(lambda database: database.executemany(delete, missing))

    def _use(self, act: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        return self._file.use(act) if self._file is not None else None


def _masked(value: Any) -> Any:
    """Return a value of built-in types with secrets masked in all its texts."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {_masked(key): _masked(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(one) for one in value]
    return value
