"""Tables of the evidence on patterns: events by name, links, ignored reports.

It imports no scores: the first rows of the dashboard need evidence, but no numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from core.base.steps import group_pairs
from core.index.database import set_meta
from core.index.logs import StoredLog, name_key
from core.index.records import FEW, LookUp
from core.index.snapshot import IndexedSnapshot
from core.learning.bursts import IgnoredPeriods
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import (
    EventIndex,
    Link,
    Links,
    WorkNames,
    find_link_changes,
    pattern_names,
    work_names,
)
from core.learning.outcomes import is_report
from core.records.events import EventView

if TYPE_CHECKING:
    import sqlite3

    from core.base.settings import LearningSettings
    from core.index.records import Reader
    from core.records.events import Event
    from core.records.snapshot import Delta, Snapshot

_IGNORED: Final = "ignored reports"
_AT: Final = attrgetter("at")
_ignored_decoder: Final = msgspec.msgpack.Decoder(dict[str, IgnoredPeriods])
_Names = Callable[["Event"], tuple[str, ...]]


class _EventsBy(Mapping[str, "Sequence[Event]"]):
    """Events by name, oldest first, not those of undone decisions; read when used."""

    def __init__(self, log: StoredLog, reader: Reader, view: EventView, table: str, names: _Names) -> None:
        self._log = log
        self._reader = reader
        self._view = view
        self._names = names
        self._table = table
        self._key = str if table == "event_report" else name_key
        self._lookups = 0

    @cached_property
    def _keys(self) -> frozenset[object]:
        return frozenset(key for (key,) in self._reader.rows(f"SELECT DISTINCT key FROM {self._table}"))

    def __getitem__(self, name: str) -> list[Event]:
        key = self._key(name)
        self._lookups += 1
        if self._lookups > FEW and key not in self._keys:  # most patterns of a large project have no event
            raise KeyError(name)
        starts = self._reader.rows(f"SELECT start FROM {self._table} WHERE key = ? ORDER BY start", key)
        events = [self._log.event_at(start) for (start,) in starts]
        found = [one for one in events if one.decision not in self._view.undone and name in self._names(one)]
        if not found:
            raise KeyError(name)
        return sorted(found, key=_AT)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for event in self._view for name in self._names(event)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Reports(_EventsBy):
    def __iter__(self) -> Iterator[str]:
        rows = self._reader.rows("SELECT DISTINCT key FROM event_report ORDER BY key")
        return (name for (name,) in rows if name in self)


def _report_names(event: Event) -> tuple[str, ...]:
    return (event.loop_id,) if is_report(event) else ()


class _StoredLinks(Mapping[str, Sequence[str]]):
    """The links of one kind: the first ones are found one by one, then all are read."""

    def __init__(self, reader: Reader, link: Link) -> None:
        self._reader = reader
        self._link = link
        self._lookups = 0

    @cached_property
    def _all(self) -> dict[str, list[str]]:
        sql = "SELECT name, id FROM link WHERE kind = ? ORDER BY name, id"
        return group_pairs(iter(self._reader.rows(sql, self._link)))

    def __getitem__(self, name: str) -> list[str]:
        self._lookups += 1
        if self._lookups > FEW:
            return self._all[name]
        sql = "SELECT id FROM link WHERE kind = ? AND name = ? ORDER BY id"
        ids = [id for (id,) in self._reader.rows(sql, self._link, name)]
        if not ids:
            raise KeyError(name)
        return ids

    def __bool__(self) -> bool:
        return self._reader.row("SELECT 1 FROM link WHERE kind = ? LIMIT 1", self._link) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for (name,) in self._reader.rows("SELECT DISTINCT name FROM link WHERE kind = ?", self._link))

    def __len__(self) -> int:
        row = self._reader.row("SELECT count(DISTINCT name) FROM link WHERE kind = ?", self._link)
        return int(row[0]) if row is not None else 0


def find_inputs(snapshot: Snapshot, settings: LearningSettings) -> EvidenceInputs:
    """Return the inputs of the evidence: read from the index, or else collected.

    A view of the index has them in its tables, with the ignored reports that were last written.
    """
    if not isinstance(snapshot, IndexedSnapshot):
        return EvidenceInputs.of(snapshot, settings)
    reader = snapshot.reader
    stored = reader.meta(_IGNORED)
    ignored = _ignored_decoder.decode(stored) if stored is not None else {}
    links: Links = {link: _StoredLinks(reader, link) for link in Link}
    return EvidenceInputs(snapshot, settings, links, find_events(reader, snapshot), WorkNames(snapshot, links), ignored)


def find_events(reader: Reader, snapshot: Snapshot) -> EventIndex:
    """Return events by subject: from the tables if the log is that of the view."""
    view = snapshot.events
    if not isinstance(view, EventView) or not isinstance(view.log, StoredLog):
        return EventIndex.of(view)
    return EventIndex(
        by_pattern=_EventsBy(view.log, reader, view, "event_pattern", pattern_names),
        by_work=_EventsBy(view.log, reader, view, "event_work", work_names),
        reports=_Reports(view.log, reader, view, "event_report", _report_names),
        doubtful=LookUp(reader, "SELECT source, count FROM event_doubtful WHERE 1", "source"),
    )


def write_ignored(connection: sqlite3.Connection, ignored: Mapping[str, IgnoredPeriods]) -> None:
    set_meta(connection, _IGNORED, msgspec.msgpack.encode(ignored))


def fill_links(connection: sqlite3.Connection, links: Links) -> None:
    """Write all links anew."""
    connection.execute("DELETE FROM link")
    rows = ((link, name, id) for link in sorted(links) for name, ids in sorted(links[link].items()) for id in ids)
    connection.executemany("INSERT INTO link VALUES (?, ?, ?)", rows)


def update_links(connection: sqlite3.Connection, before: Snapshot, after: Snapshot, delta: Delta) -> None:
    """Write the links of changed records."""
    for id, lost, gained in find_link_changes(before, after, delta):
        sql = "DELETE FROM link WHERE kind = ? AND name = ? AND id = ?"
        connection.executemany(sql, ((link, name, id) for link, name in lost))
        connection.executemany("INSERT INTO link VALUES (?, ?, ?)", ((link, name, id) for link, name in gained))
