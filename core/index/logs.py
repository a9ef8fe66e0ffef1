"""The logs of a project: places of events; decisions and team sums in memory.

The log stays the only copy of an event; the tables have the byte at which its line starts. Names are 8 bytes of a hash,
and each line that is read shows whether it is the right one.
"""

from __future__ import annotations

import os
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, overload
from zlib import crc32

import msgspec
from msgspec import Struct

from core.base.errors import DamagedError
from core.base.steps import group_pairs
from core.files.file_reader import RawFile, Stamp, open_file, read_file
from core.files.hash_chain import Place
from core.index.database import get_meta, set_meta
from core.learning.bursts import source_of
from core.learning.evidence_records import is_doubtful, pattern_names, work_names
from core.learning.outcomes import is_report
from core.records.decisions import Decision, ProposedDecision
from core.records.events import EventView
from core.records.findings import Finding, Severity
from core.records.team import TeamEvidence
from core.sources.events import decode_event
from core.sources.record_kinds import EVENTS, Format, kind_of
from core.sources.team_evidence import TeamEvidenceLog

if TYPE_CHECKING:
    import sqlite3

    from core.base.paths import ProjectPaths
    from core.files.file_reader import Problem
    from core.index.records import Reader
    from core.records.events import Event, Log
    from core.sources.ledger import DecisionLog

_NAMES: Final = (
    *("event_id", "event_pattern", "event_work", "event_report", "event_mark", "event_gap"),
    *("event_late", "event_error", "event_trial", "event_decision", "event_doubtful"),
)
_STATE: Final = "event log"
_MARK_EVERY: Final = 256
_TAIL: Final = 1 << 16  # bytes before the end that must be the same in a longer file
_LINE: Final = 1 << 12  # bytes that most lines fit in
_BLOCK: Final = 1 << 20
_PART: Final = 1 << 24  # bytes whose rows are written together


class LogState(Struct, frozen=True, array_like=True):
    """How far the event log is indexed."""

    series: int = 0  # another number after the log was indexed from its start
    end: int = 0  # bytes
    lines: int = 0
    count: int = 0  # events
    newest: datetime | None = None
    tail: int = 0  # checksum of up to `_TAIL` bytes before the end
    findings: tuple[Finding, ...] = ()

    @property
    def tail_start(self) -> int:
        return max(self.end - _TAIL, 0)


_state_decoder: Final = msgspec.msgpack.Decoder(LogState)


def read_state(connection: sqlite3.Connection) -> LogState:
    stored = get_meta(connection, _STATE)
    return _state_decoder.decode(stored) if stored is not None else LogState()


def name_key(name: str) -> int:
    """Return a hash of a name, 64 bits."""
    return int.from_bytes(blake2b(name.encode(errors="surrogateescape"), digest_size=8).digest(), signed=True)


def update_events(connection: sqlite3.Connection, paths: ProjectPaths) -> tuple[Stamp, LogState] | Problem | None:
    """Index new lines of the event log, or all if it did not only grow.

    Returns None without a log. Writes in the open transaction of the connection.
    """
    state = read_state(connection)
    raw = read_file(paths.events, paths.aiwg, EVENTS.limit, state.tail_start)
    known = state.end - state.tail_start
    if isinstance(raw, RawFile) and (len(raw.data) < known or crc32(raw.data[:known]) != state.tail):
        forget_events(connection)
        state, known = read_state(connection), 0
        raw = read_file(paths.events, paths.aiwg, EVENTS.limit)
    if not isinstance(raw, RawFile):
        if raw is None or not raw.torn:  # one that cannot be read now keeps its last content
            forget_events(connection)
        return raw
    end = raw.data.rfind(b"\n") + 1
    if end > known:
        lines = _Lines(connection, paths, state, raw)
        lines.add(known, end)
        state = lines.finish()
        set_meta(connection, _STATE, msgspec.msgpack.encode(state))
    return raw.stamp, state


def forget_events(connection: sqlite3.Connection) -> None:
    """Delete all rows about the event log."""
    series = read_state(connection).series
    for name in _NAMES:
        connection.execute(f"DELETE FROM {name}")
    set_meta(connection, _STATE, msgspec.msgpack.encode(LogState(series=series + 1)))


class _Lines:
    """Collects the rows of new lines; `data` is the file from byte `offset` on."""

    def __init__(self, connection: sqlite3.Connection, paths: ProjectPaths, state: LogState, raw: RawFile) -> None:
        self._connection = connection
        self._log = paths.events
        self._file = paths.relative(paths.events)
        self._state = state
        self._data, self._offset = raw.data, state.tail_start
        self._lines, self._count, self._newest = state.lines, state.count, state.newest
        self._findings = [*state.findings]
        self._keys: dict[str, int] = {}
        self._ids: dict[int, int] = {}  # where the lines of new events start, by the key of their ID
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _NAMES}
        self._doubtful: Counter[str] = Counter()

    def add(self, begin: int, end: int) -> None:
        """Add the lines between two places in the data, each the end of a line."""
        while begin < end:
            until = min(begin + _PART, end)
            until = self._data.find(b"\n", until - 1) + 1
            self._add_part(begin, until)
            self._flush()
            begin = until

    def _add_part(self, begin: int, end: int) -> None:
        start = self._offset + begin
        for line in self._data[begin:end].split(b"\n")[:-1]:
            self._lines += 1
            if line.strip():
                event = decode_event(self._file, f"line {self._lines}", line, self._findings)
                if event is not None and self._is_new(event, start):
                    self._add(event, start)
                else:
                    self._rows["event_gap"].append((start,))
            start += len(line) + 1

    def _is_new(self, event: Event, start: int) -> bool:
        """Note the ID of an event; return False and report it if an earlier line has it."""
        key = name_key(event.id)
        while (known := self._start_of(key)) is not None:
            other = decode_event("", "", self._line_at(known), [])
            if other is None or other.id == event.id:
                message = "an earlier line has an event with this ID; skipped"
                finding = Finding(self._file, f"line {self._lines}", Severity.WARNING, "duplicate-id", message)
                self._findings.append(finding)
                return False
            key += 1  # another ID with the same hash
        self._ids[key] = start
        self._rows["event_id"].append((key, start))
        return True

    def _start_of(self, key: int) -> int | None:
        if key in self._ids or not self._state.count:
            return self._ids.get(key)
        row = self._connection.execute("SELECT start FROM event_id WHERE key = ?", (key,)).fetchone()
        return row[0] if row is not None else None

    def _line_at(self, start: int) -> bytes:
        if start >= self._offset:
            place = start - self._offset
            return self._data[place : self._data.find(b"\n", place)]
        with self._log.open("rb") as file:
            file.seek(start)
            return file.readline()

    def _key(self, name: str) -> int:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = name_key(name)
        return key

    def _add(self, event: Event, start: int) -> None:
        rows, place = self._rows, self._count
        if place % _MARK_EVERY == 0:
            rows["event_mark"].append((place, start))
        if self._newest is not None and event.at < self._newest:
            rows["event_late"].append((place,))
        else:
            self._newest = event.at
        for name in pattern_names(event):
            rows["event_pattern"].append((self._key(name), start))
        for name in work_names(event):
            rows["event_work"].append((self._key(name), start))
        if is_report(event):
            rows["event_report"].append((event.loop_id, start))
        if event.error is not None:
            rows["event_error"].append((place,))
        if event.trial is not None:
            rows["event_trial"].append((place,))
        if event.decision:
            rows["event_decision"].append((event.decision, place))
        if is_doubtful(event):
            self._doubtful[source_of(event)] += 1
        self._count += 1

    def _flush(self) -> None:
        """Write the rows so far, in order, which is faster."""
        for name, rows in self._rows.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", sorted(rows))
                rows.clear()

    def finish(self) -> LogState:
        """Write the rest; returns the state of the log after the new lines."""
        self._connection.executemany(
            "INSERT INTO event_doubtful VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
            self._doubtful.items(),
        )
        end = self._offset + self._data.rfind(b"\n") + 1
        tail = self._data[max(end - _TAIL, 0) - self._offset : end - self._offset]
        return LogState(
            self._state.series, end, self._lines, self._count, self._newest, crc32(tail), tuple(self._findings)
        )


class StoredLog:
    """The event log of one view of the index; see `core.records.events.Log`.

    Reading raises DamagedError if the file is not the one that was indexed.
    """

    def __init__(self, reader: Reader, paths: ProjectPaths) -> None:
        self._reader = reader
        self._paths = paths
        with reader.lock:
            self.state = read_state(reader.connection)

    def is_same(self, other: Log) -> bool:
        return isinstance(other, StoredLog) and self.state.series == other.state.series

    @property
    def events(self) -> Sequence[Event]:
        return _Events(self)

    @property
    def newest(self) -> datetime | None:
        return self.state.newest

    @cached_property
    def late(self) -> Sequence[int]:
        return self._places("event_late")

    @cached_property
    def errors(self) -> Sequence[int]:
        return self._places("event_error")

    @cached_property
    def trials(self) -> Sequence[int]:
        return self._places("event_trial")

    def _places(self, table: str) -> list[int]:
        return [place for (place,) in self._reader.rows(f"SELECT place FROM {table} ORDER BY place")]

    @cached_property
    def by_decision(self) -> Mapping[str, Sequence[int]]:
        return group_pairs(iter(self._reader.rows("SELECT decision, place FROM event_decision")))

    @cached_property
    def gaps(self) -> frozenset[int]:
        """Where lines without an event start."""
        return frozenset(start for (start,) in self._reader.rows("SELECT start FROM event_gap"))

    @cached_property
    def _file(self) -> int:
        """The opened log, whose end is that of the last indexed line."""
        opened = open_file(self._paths.events, self._paths.aiwg)
        if not isinstance(opened, int):
            raise DamagedError("the event log cannot be read")
        weakref.finalize(self, os.close, opened)
        start = self.state.tail_start
        if crc32(os.pread(opened, self.state.end - start, start)) != self.state.tail:
            raise DamagedError("the event log was replaced")
        return opened

    def read_block(self, start: int, size: int = _BLOCK) -> bytes:
        """Read the whole lines of a part of the log, at least one."""
        data = os.pread(self._file, min(size, self.state.end - start), start)
        if not data.endswith(b"\n") and len(data) == size and b"\n" not in data:
            return self.read_block(start, 4 * size)
        return data[: data.rfind(b"\n") + 1]

    def event_at(self, start: int) -> Event:
        """Return the event whose line starts at a byte."""
        event = decode_event("", "", self.read_block(start, _LINE).partition(b"\n")[0], [])
        if event is None:
            raise DamagedError("the event log was changed")
        return event

    def lines_from(self, place: int) -> Iterator[bytes]:
        """Yield the lines with events from a position on."""
        row = self._reader.row("SELECT place, start FROM event_mark WHERE place <= ? ORDER BY place DESC", place)
        first, start = row or (0, 0)
        lines = self._lines(start, _LINE * _MARK_EVERY // 16)
        return islice(lines, place - first, None)

    def _lines(self, start: int, size: int) -> Iterator[bytes]:
        while block := self.read_block(start, size):
            for line in block.split(b"\n")[:-1]:
                if start not in self.gaps and line.strip():
                    yield line
                start += len(line) + 1
            size = _BLOCK
        if start < self.state.end:
            raise DamagedError("the event log was changed")


class _Events(Sequence["Event"]):
    """All events of a log in the order of its lines."""

    def __init__(self, log: StoredLog) -> None:
        self._log = log

    def __len__(self) -> int:
        return self._log.state.count

    def __iter__(self) -> Iterator[Event]:
        return self._from(0)

    def _from(self, place: int) -> Iterator[Event]:
        for line in self._log.lines_from(place):
            event = decode_event("", "", line, [])
            if event is None:
                raise DamagedError("the event log was changed")
            yield event

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        places = range(len(self))[place]
        if isinstance(places, int):
            for event in self._from(places):
                return event
            raise DamagedError("the event log was cut")
        if places.step != 1:
            return [self[one] for one in places]
        return list(islice(self._from(places.start), len(places))) if places else []


def open_events(reader: Reader, paths: ProjectPaths, undone: frozenset[str]) -> EventView:
    """Return the events of a view of the index, without those of undone decisions."""
    return EventView(StoredLog(reader, paths)).without(undone)


# Logs that are kept in memory


class LogContent(Struct, frozen=True, kw_only=True):
    """What a log says (`places`, `is_chained`: see `DecisionLog`)."""

    decisions: tuple[Decision, ...] = ()
    proposed: tuple[ProposedDecision, ...] = ()
    places: tuple[Place, ...] = ()
    is_chained: bool = False
    team: TeamEvidence | None = None
    findings: tuple[Finding, ...] = ()


class Logs:
    """Reads the logs, and parses only the new lines of those that grew."""

    def __init__(self, paths: ProjectPaths, decisions: DecisionLog) -> None:
        self._paths = paths
        self._decisions = decisions
        self._logs: dict[str, DecisionLog | TeamEvidenceLog] = {}
        self._read: dict[str, tuple[Stamp, LogContent]] = {}

    def read(self, path: str, stamp: Stamp | None = None) -> tuple[Stamp, LogContent] | Problem | None:
        """Return a log's stamp and content, cached for `stamp`; None without a file."""
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known
        kind = kind_of(path)
        if kind is None:
            return None
        raw = read_file(self._paths.project / path, self._paths.aiwg, kind.limit)
        if not isinstance(raw, RawFile):
            self.forget(path)
            return raw
        log = self._logs.get(path)
        if log is None:
            log = self._decisions if kind.format is Format.DECISION_LOG else TeamEvidenceLog(path)
            self._logs[path] = log
        log.read(raw.data)
        self._read[path] = raw.stamp, _content_of(log)
        return self._read[path]

    def forget(self, path: str) -> None:
        self._read.pop(path, None)
        self._logs.pop(path, None)


def _content_of(log: DecisionLog | TeamEvidenceLog) -> LogContent:
    """Return what was read; other users of the decision log may parse it further."""
    if isinstance(log, TeamEvidenceLog):
        return LogContent(team=log.evidence if log.evidence.space else None, findings=log.findings)
    return LogContent(
        decisions=log.decisions,
        proposed=log.proposed,
        places=log.places,
        is_chained=log.is_chained,
        findings=log.findings,
    )
