"""What the evidence on patterns is found by, in tables: links between records, and reports that do not count."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from core.base.grouping import group_pairs
from core.index.database import get_meta, set_meta
from core.index.events import StoredLog, stored_events
from core.index.snapshot import IndexedSnapshot
from core.learning.bursts import IgnoredPeriods
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import EventIndex, Link, Links, WorkNames, find_link_changes
from core.records.event_log import EventView

if TYPE_CHECKING:
    from core.base.settings import LearningSettings
    from core.index.records import Reader
    from core.records.snapshot import Delta, Snapshot

TABLES: Final = (
    # IDs of records by what they name; `kind` is a `Link`.
    "CREATE TABLE link (kind INT, name TEXT, id TEXT, PRIMARY KEY (kind, name, id)) WITHOUT ROWID",
)
_FEW: Final = 200  # look-ups of one kind before all are read
_IGNORED: Final = "ignored reports"
_ignored_decoder: Final = msgspec.msgpack.Decoder(dict[str, IgnoredPeriods])


class _Links(Mapping[str, Sequence[str]]):
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
        if self._lookups > _FEW:
            return self._all[name]
        sql = "SELECT id FROM link WHERE kind = ? AND name = ? ORDER BY id"
        found = [id for (id,) in self._reader.rows(sql, self._link, name)]
        if not found:
            raise KeyError(name)
        return found

    def __bool__(self) -> bool:
        return self._reader.row("SELECT 1 FROM link WHERE kind = ? LIMIT 1", self._link) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for (name,) in self._reader.rows("SELECT DISTINCT name FROM link WHERE kind = ?", self._link))

    def __len__(self) -> int:
        row = self._reader.row("SELECT count(DISTINCT name) FROM link WHERE kind = ?", self._link)
        return int(row[0]) if row is not None else 0


def stored_links(reader: Reader) -> Links:
    return {link: _Links(reader, link) for link in Link}


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


def open_inputs(reader: Reader, snapshot: Snapshot, settings: LearningSettings) -> EvidenceInputs:
    """Return what the evidence comes from, with the ignored reports that were last written."""
    with reader.lock:
        stored = get_meta(reader.connection, _IGNORED)
    ignored = _ignored_decoder.decode(stored) if stored is not None else {}
    links, events = stored_links(reader), open_event_index(reader, snapshot)
    return EvidenceInputs(snapshot, settings, links, events, WorkNames(snapshot, links), ignored)


def find_inputs(snapshot: Snapshot, settings: LearningSettings) -> EvidenceInputs:
    """Return what the evidence comes from: read from the tables for a view of the index, else collected."""
    if isinstance(snapshot, IndexedSnapshot):
        return open_inputs(snapshot.reader, snapshot, settings)
    return EvidenceInputs.of(snapshot, settings)


def open_event_index(reader: Reader, snapshot: Snapshot) -> EventIndex:
    """Return the events of a snapshot by what they are about: from the tables if its log is that of the view."""
    view = snapshot.events
    if isinstance(view, EventView) and isinstance(view.log, StoredLog):
        return stored_events(view.log, reader, view)
    return EventIndex.of(view)


def write_ignored(connection: sqlite3.Connection, ignored: Mapping[str, IgnoredPeriods]) -> None:
    set_meta(connection, _IGNORED, msgspec.msgpack.encode(ignored))
