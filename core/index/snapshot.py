"""A snapshot of a project whose records are read from the index when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from core.index.database import get_meta
from core.index.records import COLLECTIONS, Decoder, Kind, Reader, RecordMap
from core.records.decisions import CurationState
from core.records.origins import NOTHING_FOREIGN, ForeignRecords
from core.records.snapshot import Delta, Snapshot
from core.records.team import NO_TEAM, TeamEvidence

if TYPE_CHECKING:
    Maker = Callable[[], Any]

CURATION: Final = "curation"  # names of values in the table `meta`
FOREIGN: Final = "foreign"
TEAM: Final = "team"
NUMBER: Final = "number"
FINDINGS: Final = "findings"  # counts changes of findings
LOG: Final = "log:"  # prefix of the stamp of a log
COMPLETE: Final = "complete"

_FIELDS: Final = frozenset(one.name for one in fields(Snapshot))
CURATION_DECODER: Final[Decoder[CurationState]] = Decoder(CurationState)
_TEAM_DECODER: Final = msgspec.msgpack.Decoder(TeamEvidence)
_FOREIGN_DECODER: Final = msgspec.msgpack.Decoder(tuple[frozenset[str], frozenset[str]])


class IndexedSnapshot(Snapshot):
    """Records that are decoded when they are first used; `makers` give what is not in the index."""

    __slots__ = ("_makers", "reader")
    _makers: Mapping[str, Maker]
    reader: Reader

    @classmethod
    def of(cls, reader: Reader, makers: Mapping[str, Maker]) -> Self:
        """Return the snapshot of a view; `makers` make the fields that are not in the index."""
        made = cls.__new__(cls)
        values: dict[str, Any] = {
            "reader": reader,
            "_makers": makers,
            "number": int(get_meta(reader.connection, NUMBER) or b"0"),
            "complete": get_meta(reader.connection, COMPLETE) is not None,
            "as_of": None,
        }
        values |= {name: RecordMap(reader, kind) for name, kind in COLLECTIONS.items()}
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

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
            "decisions": before.meta(f"{LOG}ledger") == self.meta(f"{LOG}ledger"),
            "curation": not delta.decisions,
            "foreign": before.meta(FOREIGN) == self.meta(FOREIGN),
            "findings": not delta.findings,
        }
        for name in (name for name, is_same in same.items() if is_same):
            if (known := before.known(name)) is not None:
                object.__setattr__(self, name, known)
        if not delta.team and isinstance(team := before.known("team"), TeamEvidence):
            if isinstance(team.sums, RecordMap):
                team.sums.move_to(self.reader)
            object.__setattr__(self, "team", team)

    def meta(self, name: str) -> bytes | None:
        """Return a value of the whole project as it is stored; None if it was never set."""
        row = self.reader.row("SELECT value FROM meta WHERE name = ?", name)
        return row[0] if row is not None else None

    def known(self, name: str) -> Any:
        """Return a field that has been made; None for another."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return None

    def __getattr__(self, name: str) -> Any:
        """Make a field that has no value yet."""
        if name not in _FIELDS:
            raise AttributeError(name)
        value = self._makers[name]() if name in self._makers else getattr(self, f"_read_{name}")()
        object.__setattr__(self, name, value)
        return value

    def _read_curation(self) -> CurationState:
        return read_curation(self.reader)

    def _read_foreign(self) -> ForeignRecords:
        with self.reader.lock:
            stored = get_meta(self.reader.connection, FOREIGN)
        patterns, arrived = _FOREIGN_DECODER.decode(stored) if stored else (frozenset[str](), frozenset[str]())
        return ForeignRecords(patterns, arrived, self._makers["is_own_event"]()) if patterns else NOTHING_FOREIGN

    def _read_team(self) -> TeamEvidence:
        with self.reader.lock:
            stored = get_meta(self.reader.connection, TEAM)
        if not stored:
            return NO_TEAM
        return msgspec.structs.replace(_TEAM_DECODER.decode(stored), sums=RecordMap(self.reader, Kind.TEAM_SUMS))

    def _read_unreadable(self) -> Mapping[str, datetime]:
        rows = self.reader.rows("SELECT path, since FROM torn WHERE is_reported ORDER BY path")
        return MappingProxyType({path: datetime.fromtimestamp(since, UTC) for path, since in rows})


def read_curation(reader: Reader) -> CurationState:
    """Return the result of all decisions."""
    row = reader.row("SELECT value FROM meta WHERE name = ?", CURATION)
    return CURATION_DECODER(row[0]) if row is not None else CurationState()
