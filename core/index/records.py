"""Records of the index as they are read: lazy mappings, and a snapshot of a project that has them."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from enum import IntEnum
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from core.base.errors import DamagedError
from core.files.cache_database import is_damage, remove
from core.index.database import get_meta, pack, unpack
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import CurationState
from core.records.episodes import Attempt, Task
from core.records.findings import Finding
from core.records.instructions import InstructionFile
from core.records.loops import AgentSession, Loop
from core.records.patterns import Pattern
from core.records.reflections import Lesson, MemoryTask, Reflection
from core.records.snapshot import NOTHING_FOREIGN, Delta, ForeignRecords, Snapshot
from core.records.team import NO_TEAM, TeamEvidence, TeamSums

if TYPE_CHECKING:
    from core.base.paths import (
        ProjectPaths,
    )
    from core.index.logs import (
        LogContent,
        Logs,
    )
    from core.records.decisions import (
        Decision,
    )
    from core.records.event_log import (
        EventView,
    )
    from core.trust.origins import (
        Origins,
    )

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
    """Decodes stored records of one type; prepared on first use, because most commands decode few types."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _decode(self) -> Callable[[memoryview], _Record]:
        return msgspec.msgpack.Decoder(self._kind).decode

    def __call__(self, stored: object) -> _Record:
        """Return the record; raises DamagedError, MsgspecError or ValueError if it is not one that was stored."""
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
        """Return whether another view is of the same index, so that equal numbers mean equal records."""
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
        """Delete the index if something that was read from it turns out to be damaged; raises DamagedError."""
        try:
            yield
        except (DamagedError, msgspec.MsgspecError, *_UNREADABLE) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> Exception:
        """Delete a damaged index, so that the next run makes a new one; returns the error to raise."""
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
    """Values of a table by key: the first ones are looked up one by one, then all are read.

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
        """Return the value of a key without an exception, which would take most of the time of many look-ups."""
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
    """The records of one kind by ID, decoded when they are used; newest first, or in the order of their numbers."""

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
        """Numbers of the records by ID: most of them are decoded, or asked for although they do not exist."""
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
        """Return the records that time alone may change, among them all loops at work, with one query."""
        rows = self._reader.rows("SELECT number, data FROM record WHERE kind = ? AND is_open ORDER BY id", self._kind)
        return [self._reader.decode(self._kind, *row) for row in rows]

    def newest(self, limit: int) -> list[_Record]:
        """Return at most `limit` records in the order of the mapping, with one query."""
        rows = self._reader.rows(f"SELECT number, data FROM record {self._order} LIMIT ?", self._kind, limit)
        return [self._reader.decode(self._kind, *row) for row in rows]

    def placed_since(self, since: datetime, most: int) -> list[_Record]:
        """Return the records with a time from a moment on, newest first, at most `most` of them, with one query."""
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

CURATION_DECODER: Final[Decoder[CurationState]] = Decoder(CurationState)
_FIELDS: Final = frozenset(one.name for one in fields(Snapshot))
_FINDING: Final[Decoder[Finding]] = Decoder(Finding)
_TEAM_DECODER: Final = msgspec.msgpack.Decoder(TeamEvidence)
_FOREIGN_DECODER: Final = msgspec.msgpack.Decoder(tuple[frozenset[str], frozenset[str]])


class ProjectFiles:
    """Reads what a snapshot shows and the index does not contain: the logs, and what they say about each other.

    `findings` are of the settings. `open_logs` returns the reader of the logs, by default a new one.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        origins: Origins,
        open_logs: Callable[[], Logs] | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        self._paths = paths
        self._open_logs = open_logs or self._make_logs
        self._of_settings = findings
        self._lock = threading.RLock()
        self.origins = origins

    @property
    def project(self) -> Path:
        return self._paths.project

    def decisions(self, reader: Reader) -> tuple[Decision, ...]:
        """Return the decisions of a view; the log may have grown since then."""
        found = self._log(self._paths.relative(self._paths.ledger))
        return found.decisions[: int(reader.meta(DECIDED) or b"0")] if found is not None else ()

    def events(self, reader: Reader, undone: frozenset[str]) -> EventView:
        """Return the events without those of undone decisions."""
        from core.index.logs import open_events

        return open_events(reader, self._paths, undone)

    def findings(self, reader: Reader) -> tuple[Finding, ...]:
        """Return all findings, sorted by file; similar ones of many files are one."""
        from core.files.file_reader import Problem
        from core.sources.parsed_file import condense_files

        of_files: list[Finding] = []
        found = [*self._of_settings]
        for about, data in reader.rows("SELECT about, data FROM finding ORDER BY about, number"):
            (of_files if about.startswith(".aiwg") else found).append(_FINDING(data))
        found += condense_files(of_files)
        decode: Decoder[Problem] = Decoder(Problem)
        rows = reader.rows("SELECT path, problem FROM torn WHERE is_reported ORDER BY path")
        found += (decode(data).finding(path) for path, data in rows)
        return tuple(sorted(found, key=attrgetter("file", "pointer", "code", "message")))

    def _make_logs(self) -> Logs:
        from core.index.logs import Logs  # imported on use: few commands read the decisions of a view
        from core.sources.ledger import DecisionLog

        return Logs(self._paths, DecisionLog())

    def _log(self, path: str) -> LogContent | None:
        with self._lock:
            found = self._open_logs().read(path)
        return found[1] if isinstance(found, tuple) else None


class IndexedSnapshot(Snapshot):
    """The records of one view, which are decoded when they are first used."""

    __slots__ = ("_files", "reader")
    _files: ProjectFiles
    reader: Reader

    def __init__(self, reader: Reader, files: ProjectFiles, as_of: datetime | None = None) -> None:
        values: dict[str, Any] = {
            "reader": reader,
            "_files": files,
            "number": int(reader.meta(NUMBER) or b"0"),
            "complete": as_of is None and reader.meta(COMPLETE) is not None,
            "as_of": as_of,
        }
        values |= {name: RecordMap(reader, kind) for name, kind in COLLECTIONS.items()}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self._files.project

    def follows(self, before: Snapshot) -> bool:
        """Return whether a delta leads from another view to this one: both are of the same index."""
        return isinstance(before, IndexedSnapshot) and self.reader.shares_records(before.reader)

    def take_unchanged(self, before: IndexedSnapshot, delta: Delta) -> None:
        """Take the fields of an older view that did not change, so that they stay the same objects."""
        for name in COLLECTIONS:
            if not getattr(delta, name):
                mapping = getattr(before, name)
                mapping.move_to(self.reader)
                object.__setattr__(self, name, mapping)
        same = {
            "events": not delta.events,
            "withdrawn": not delta.events,
            # The log may have grown after its stamp was taken, and before it was read.
            "decisions": all(before.reader.meta(one) == self.reader.meta(one) for one in (f"{LOG}ledger", DECIDED)),
            "curation": not delta.decisions,
            "foreign": before.reader.meta(FOREIGN) == self.reader.meta(FOREIGN),
            "findings": not delta.findings,
        }
        for name in (name for name, is_same in same.items() if is_same):
            if (known := before.made(name)) is not None:
                object.__setattr__(self, name, known)
        is_same_team = not delta.team and before.reader.meta(TEAM) == self.reader.meta(TEAM)
        if is_same_team and isinstance(team := before.made("team"), TeamEvidence):
            if isinstance(team.sums, RecordMap):
                team.sums.move_to(self.reader)
            object.__setattr__(self, "team", team)

    def with_changes(self, **changes: Any) -> Snapshot:
        return ChangedSnapshot(self, changes)

    def made(self, name: str) -> Any:
        """Return a field that was used before; None for another."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return None

    def __getattr__(self, name: str) -> Any:
        """Make a field that has no value yet."""
        if name not in _FIELDS:
            raise AttributeError(name)
        with self.reader.checking():
            value = self._make(name)
        object.__setattr__(self, name, value)
        return value

    def _make(self, name: str) -> Any:
        match name:
            case "curation":
                return read_curation(self.reader)
            case "foreign":
                return self._read_foreign()
            case "team":
                return self._read_team()
            case "trial_key":
                from core.trust.experiment_secret import trial_key  # most processes read no trial

                return trial_key(self._files.project)
            case "unreadable":
                rows = self.reader.rows("SELECT path, since FROM torn WHERE is_reported ORDER BY path")
                return MappingProxyType({path: datetime.fromtimestamp(since, UTC) for path, since in rows})
            case "events":
                return self._files.events(self.reader, self.curation.undone)
            case "withdrawn":
                return self._files.events(self.reader, self.curation.undone).hidden
            case "decisions":
                return self._files.decisions(self.reader)
            case "findings":
                return self._files.findings(self.reader)
        raise AttributeError(name)

    def _read_foreign(self) -> ForeignRecords:
        stored = self.reader.meta(FOREIGN)
        if not stored:
            require_partial(self.reader, FOREIGN)
            return NOTHING_FOREIGN
        patterns, arrived = _FOREIGN_DECODER.decode(stored)
        return ForeignRecords(patterns, arrived, self._files.origins.is_own_event)

    def _read_team(self) -> TeamEvidence:
        stored = self.reader.meta(TEAM)
        if not stored:
            require_partial(self.reader, TEAM)
            return NO_TEAM
        team = _TEAM_DECODER.decode(stored)
        return msgspec.structs.replace(team, sums=RecordMap(self.reader, Kind.TEAM_SUMS)) if team.space else NO_TEAM


class ChangedSnapshot(Snapshot):
    """The records of a view with other values of some fields, which are not in the index."""

    __slots__ = ("_base",)
    _base: Snapshot

    def __init__(self, base: Snapshot, changes: Mapping[str, Any]) -> None:
        for name, value in {"_base": base, **changes}.items():
            object.__setattr__(self, name, value)

    @property
    def base(self) -> Snapshot:
        """The records without the changes."""
        return self._base

    def with_changes(self, **changes: Any) -> Snapshot:
        return ChangedSnapshot(self, changes)

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(name)
        return getattr(self._base, name)


def read_curation(reader: Reader) -> CurationState:
    """Return the result of all decisions."""
    row = reader.row("SELECT value FROM meta WHERE name = ?", CURATION)
    if row is None:
        require_partial(reader, CURATION)
        return CurationState()
    return CURATION_DECODER(row[0])


def require_partial(reader: Reader, name: str) -> None:
    """Raise DamagedError if a value is missing that each index of a whole project has.

    The names of values have no checksum, and without decisions a withheld text would be given to agents.
    """
    if reader.meta(COMPLETE) is not None:
        raise DamagedError(f"the value {name!r} of the index is missing")


def find_delta(before: Snapshot, after: Snapshot) -> Delta:
    """Return what differs between two views of one index; `before` is the older one."""
    if not isinstance(before, IndexedSnapshot) or not isinstance(after, IndexedSnapshot) or before is after:
        return Delta()
    changed: dict[Kind, set[str]] = {kind: set() for kind in Kind}
    last, last_removed = (
        before.reader.row(f"SELECT coalesce(max(number), 0) FROM {one}") or (0,) for one in ("record", "removed")
    )
    for kind, id in after.reader.rows("SELECT kind, id FROM record WHERE number > ?", *last):
        changed[Kind(kind)].add(id)
    for kind, id in after.reader.rows("SELECT kind, id FROM removed WHERE number > ?", *last_removed):
        changed[Kind(kind)].add(id)
    has_other = {
        name: before.reader.meta(name) != after.reader.meta(name) for name in (CURATION, FOREIGN, TEAM, FINDINGS)
    }
    if has_other[FOREIGN]:
        changed[Kind.PATTERN] |= before.foreign.patterns ^ after.foreign.patterns
    if has_other[TEAM]:
        changed[Kind.TEAM_SUMS] |= before.team.changed_patterns(after.team)
    event_log = f"{LOG}events"
    has_undone = has_other[CURATION] and before.curation.undone != after.curation.undone
    return Delta(
        **{name: frozenset(changed[kind]) for name, kind in COLLECTIONS.items()},
        team=frozenset(changed[Kind.TEAM_SUMS]),
        events=has_undone or before.reader.meta(event_log) != after.reader.meta(event_log),
        decisions=has_other[CURATION],
        findings=has_other[FINDINGS],
    )
