"""Views of the index, and lazy mappings of the records of one kind."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from contextlib import contextmanager
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from core.base.errors import DamagedError
from core.files.cache_database import is_damage, remove
from core.index.database import get_meta, pack, unpack
from core.records.debug_sessions import DebugSession, Escalation
from core.records.episodes import Attempt, Task
from core.records.instructions import InstructionFile
from core.records.loops import AgentSession, Loop
from core.records.patterns import Pattern
from core.records.reflections import Lesson, MemoryTask, Reflection
from core.records.team import TeamSums

_MOST_DECODED: Final = 60_000  # records that stay decoded, so that an unchanged one stays the same object
FEW: Final = 200  # values that are looked up before all are read
_UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)  # what damaged pages raise
_MESSAGE_PACK, _JSON = b"\0", b"\1"

_encoder: Final = msgspec.msgpack.Encoder()

_Record = TypeVar("_Record")


class Kind(IntEnum):
    """Kinds of records, as they are stored."""

    LOOP = 0  # loops of all origins, as they are shown
    PATTERN = 1
    REFLECTION = 2
    MEMORY_TASK = 3
    TASK = 4
    ATTEMPT = 5
    DEBUG_SESSION = 6
    ESCALATION = 7
    AGENT_SESSION = 8
    LESSON = 9
    ADAPTED_LOOP = 10  # loops of other runners, without what hooks recorded
    SESSION_ROW = 11  # sessions that hooks recorded, as loops
    TEAM_SUMS = 12  # sums of the team's other projects by pattern
    INSTRUCTIONS = 13  # files of instructions that agents load


TYPES: Final[Mapping[Kind, type[msgspec.Struct]]] = {
    Kind.LOOP: Loop,
    Kind.PATTERN: Pattern,
    Kind.REFLECTION: Reflection,
    Kind.MEMORY_TASK: MemoryTask,
    Kind.TASK: Task,
    Kind.ATTEMPT: Attempt,
    Kind.DEBUG_SESSION: DebugSession,
    Kind.ESCALATION: Escalation,
    Kind.AGENT_SESSION: AgentSession,
    Kind.LESSON: Lesson,
    Kind.ADAPTED_LOOP: Loop,
    Kind.SESSION_ROW: Loop,
    Kind.TEAM_SUMS: TeamSums,
    Kind.INSTRUCTIONS: InstructionFile,
}
COLLECTIONS: Final[Mapping[str, Kind]] = {
    "patterns": Kind.PATTERN,
    "loops": Kind.LOOP,
    "reflections": Kind.REFLECTION,
    "memory_tasks": Kind.MEMORY_TASK,
    "tasks": Kind.TASK,
    "attempts": Kind.ATTEMPT,
    "debug_sessions": Kind.DEBUG_SESSION,
    "escalations": Kind.ESCALATION,
    "lessons": Kind.LESSON,
    "instructions": Kind.INSTRUCTIONS,
}
"""Collections of a snapshot."""


class Decoder(Generic[_Record]):
    """Decodes records of one type; prepared on use, as most commands need few types."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _decode(self) -> Callable[[memoryview], _Record]:
        return msgspec.msgpack.Decoder(self._kind).decode

    def __call__(self, stored: object) -> _Record:
        """Return the record; raises DamagedError, MsgspecError or ValueError if damaged."""
        data = unpack(stored)
        if data[:1] == _MESSAGE_PACK:
            return self._decode(data[1:])
        converted: _Record = msgspec.convert(json.loads(bytes(data[1:])), self._kind)
        return converted


def encode(record: object) -> bytes:
    """Return a record as it is stored."""
    try:
        return pack(_MESSAGE_PACK + _encoder.encode(record))
    except (OverflowError, ValueError):  # MessagePack has no integers of more than 64 bits
        return pack(_JSON + json.dumps(msgspec.to_builtins(record)).encode())


DECODERS: Final[Mapping[Kind, Decoder[Any]]] = {kind: Decoder(struct) for kind, struct in TYPES.items()}


class Reader:
    """One view of the index: an open read transaction, shared by threads.

    Reading raises DamagedError, after which the index does not exist any more.
    """

    def __init__(self, connection: sqlite3.Connection, decoded: dict[int, Any]) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        self._decoded = decoded

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        with self.lock:
            try:
                return self.connection.execute(sql, values).fetchall()
            except UnicodeEncodeError:  # no row has a text that is not valid Unicode
                return []
            except _UNREADABLE as error:
                raise self._unusable(error) from error

    def row(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row that a query finds."""
        with self.lock:
            try:
                found: tuple[Any, ...] | None = self.connection.execute(sql, values).fetchone()
            except UnicodeEncodeError:
                return None
            except _UNREADABLE as error:
                raise self._unusable(error) from error
            return found

    def meta(self, name: str) -> bytes | None:
        """Return a value of the whole project; None if it was never set."""
        with self.lock, self.checking():
            return get_meta(self.connection, name)

    def shares_records(self, other: Reader) -> bool:
        """Return whether a view is of the same index: equal numbers mean equal records."""
        return self._decoded is other._decoded

    def decode(self, kind: Kind, number: int, data: object) -> Any:
        """Return a record, the same object for the same number."""
        known = self._decoded.get(number)
        if known is None:
            with self.checking():
                known = DECODERS[kind](data)
            self.keep(number, known)
        return known

    def keep(self, number: int, record: Any) -> None:
        """Keep a record that was just written, as one that was read."""
        if len(self._decoded) < _MOST_DECODED:
            self._decoded[number] = record

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Delete the index if what is read from it is damaged; raises DamagedError."""
        try:
            yield
        except (DamagedError, msgspec.MsgspecError, *_UNREADABLE) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> Exception:
        """Delete a damaged index, which the next run rebuilds; return the error to raise."""
        if not is_damage(error):
            return error
        for _, name, file in self.connection.execute("PRAGMA database_list"):
            if name == "main" and file:
                remove(Path(file))
        return DamagedError("the index in the cache folder was damaged and has been deleted; try again")

    def find(self, kind: Kind, id: str) -> Any:
        """Return the record with an ID, or None."""
        row = self.row("SELECT number, data FROM record WHERE kind = ? AND id = ?", kind, id)
        return self.decode(kind, *row) if row is not None else None

    def find_number(self, kind: Kind, number: int) -> Any:
        """Return the record with a number, or None."""
        known = self._decoded.get(number)
        if known is None and (row := self.row("SELECT data FROM record WHERE number = ?", number)) is not None:
            known = self.decode(kind, number, row[0])
        return known

    def with_key(self, kind: Kind, key: str) -> list[Any]:
        """Return the records that were joined from parts with one key, by ID."""
        rows = self.rows("SELECT number, data FROM record WHERE kind = ? AND key = ? ORDER BY id", kind, key)
        return [self.decode(kind, *row) for row in rows]


class View(Reader):
    """A reader with a connection of its own, which it closes at its end."""

    def __del__(self) -> None:
        # It refers to itself, so it would stay open, and need the write-ahead log, until a garbage collection.
        self.connection.close()


class LookUp(Mapping[str, Any]):
    """Values of a table by key: first looked up one by one, then all are read.

    `sql` selects keys and values, and ends in a condition; `key` is the column of the keys. Of rows with one key, the
    first in the order counts. Rows that are written later have to be added.
    """

    def __init__(self, reader: Reader, sql: str, key: str, *values: object, order: str = "") -> None:
        self._reader = reader
        self._sql_of_all = f"{sql}{order}"
        self._sql_of_one = f"{sql} AND {key} = ?{order}"
        self._values = values
        self._known: dict[str, Any] = {}
        self._has_all = False

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, without an exception because raising one is slow."""
        if key not in self._known and not self._has_all:
            if len(self._known) < FEW:
                row = self._reader.row(self._sql_of_one, *self._values, key)
                self._known[key] = row[1] if row is not None else None
            else:
                self._read_all()
        value = self._known.get(key)
        return default if value is None else value

    def __getitem__(self, key: str) -> Any:
        if (value := self.get(key)) is None:
            raise KeyError(key)
        return value

    def add(self, key: str, value: Any) -> None:
        """Note a new value; None for one that was removed."""
        self._known[key] = value

    def forget(self) -> None:
        """Read the table again."""
        self._known.clear()
        self._has_all = False

    def __iter__(self) -> Iterator[str]:
        self._read_all()
        return (key for key in self._known if self.get(key) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read_all(self) -> None:
        rows = self._reader.rows(self._sql_of_all, *self._values)
        self._known = {**dict(reversed(rows)), **self._known}
        self._has_all = True


class RecordMap(Mapping[str, _Record]):
    """Records of one kind by ID, decoded when used; newest first, or by number."""

    def __init__(self, reader: Reader, kind: Kind) -> None:
        self._reader = reader
        self._kind = kind
        self._count: int | None = None
        self._lookups = 0

    def move_to(self, reader: Reader) -> None:
        """Read from a newer view, in which these records are the same."""
        self._reader = reader

    def __getitem__(self, id: str) -> _Record:
        found: _Record | None = None
        if isinstance(id, str):
            self._lookups += 1
            if self._lookups <= FEW:
                found = self._reader.find(self._kind, id)
            elif (number := self._numbers.get(id)) is not None:
                found = self._reader.find_number(self._kind, number)
        if found is None:
            raise KeyError(id)
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Numbers of the records by ID, read at once after the first look-ups."""
        return dict(self._reader.rows("SELECT id, number FROM record WHERE kind = ?", self._kind))

    def __contains__(self, id: object) -> bool:
        sql = "SELECT 1 FROM record WHERE kind = ? AND id = ?"
        return isinstance(id, str) and self._reader.row(sql, self._kind, id) is not None

    def __iter__(self) -> Iterator[str]:
        return (id for (id,) in self._reader.rows(f"SELECT id FROM record {self._order}", self._kind))

    def __len__(self) -> int:
        if self._count is None:
            row = self._reader.row("SELECT count(*) FROM record WHERE kind = ?", self._kind)
            self._count = int(row[0]) if row is not None else 0
        return self._count

    def open_values(self) -> list[_Record]:
        """Return records that time alone may change, with all loops at work; one query."""
        rows = self._reader.rows("SELECT number, data FROM record WHERE kind = ? AND is_open ORDER BY id", self._kind)
        return [self._reader.decode(self._kind, *row) for row in rows]

    def newest(self, limit: int) -> list[_Record]:
        """Return at most `limit` records in the order of the mapping, with one query."""
        rows = self._reader.rows(f"SELECT number, data FROM record {self._order} LIMIT ?", self._kind, limit)
        return [self._reader.decode(self._kind, *row) for row in rows]

    def placed_since(self, since: datetime, most: int) -> list[_Record]:
        """Return up to `most` records from `since` on, newest first, in one query."""
        sql = "SELECT number, data FROM record WHERE kind = ? AND place >= ? ORDER BY place DESC LIMIT ?"
        rows = self._reader.rows(sql, self._kind, since.timestamp(), most)
        return [self._reader.decode(self._kind, *row) for row in rows]

    def values(self) -> ValuesView[_Record]:
        return _Values(self)

    def items(self) -> ItemsView[str, _Record]:
        return _Items(self)

    def pairs(self) -> Iterator[tuple[str, _Record]]:
        """Yield all IDs and records with one query."""
        rows = self._reader.rows(f"SELECT id, number, data FROM record {self._order}", self._kind)
        return ((id, self._reader.decode(self._kind, number, data)) for id, number, data in rows)

    @property
    def _order(self) -> str:
        if self._kind is Kind.PATTERN:
            return "JOIN pattern USING (id) WHERE kind = ? ORDER BY pattern.place"
        if self._kind in (Kind.LOOP, Kind.REFLECTION):
            return "WHERE kind = ? ORDER BY place DESC NULLS LAST, id"
        return "WHERE kind = ? ORDER BY id"


class _Values(ValuesView[_Record]):
    _mapping: RecordMap[_Record]

    def __iter__(self) -> Iterator[_Record]:
        return (record for _, record in self._mapping.pairs())


class _Items(ItemsView[str, _Record]):
    _mapping: RecordMap[_Record]

    def __iter__(self) -> Iterator[tuple[str, _Record]]:
        return self._mapping.pairs()


# Names of values in the table `meta`.
CURATION: Final = "curation"
FOREIGN: Final = "foreign"
TEAM: Final = "team"
NUMBER: Final = "number"
COMPLETE: Final = "complete"
TEXTS: Final = "texts"  # set if texts are indexed, which the lists of a first load do not wait for
FINDINGS: Final = "findings"  # counts changes of findings
LOG: Final = "log:"  # prefix of the stamp of a log
DECIDED: Final = "decided"  # number of decisions in the log
ORIGINS: Final = "origins"  # what the user's state said when the decisions were folded
SWEPT: Final = "swept"  # when all files were last compared with the index
PAGES_CHECKED: Final = "pages checked"  # when the pages were last checked for contradictions
QUESTIONS: Final = "questions"  # number of review questions, and whether the searches for them had ended
