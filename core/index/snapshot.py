"""Snapshots with the records of one view of the index, and their differences."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.base.errors import DamagedError
from core.index.records import (
    COLLECTIONS,
    COMPLETE,
    CURATION,
    DECIDED,
    FINDINGS,
    FOREIGN,
    LOG,
    NUMBER,
    TEAM,
    Decoder,
    Kind,
    Reader,
    RecordMap,
)
from core.records.decisions import CurationState
from core.records.findings import Finding
from core.records.snapshot import NOTHING_FOREIGN, Delta, ForeignRecords, Snapshot
from core.records.team import NO_TEAM, TeamEvidence

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.index.logs import LogContent, Logs
    from core.records.decisions import Decision
    from core.records.events import EventView
    from core.trust.origins import Origins

CURATION_DECODER: Final[Decoder[CurationState]] = Decoder(CurationState)
_FIELDS: Final = frozenset(one.name for one in fields(Snapshot))
_FINDING: Final[Decoder[Finding]] = Decoder(Finding)
_TEAM_DECODER: Final = msgspec.msgpack.Decoder(TeamEvidence)
_FOREIGN_DECODER: Final = msgspec.msgpack.Decoder(tuple[frozenset[str], frozenset[str]])


class ProjectFiles:
    """Reads what a snapshot shows and the index does not contain, mainly the logs.

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
        """Return whether a delta leads from another view to this one, of the same index."""
        return isinstance(before, IndexedSnapshot) and self.reader.shares_records(before.reader)

    def take_unchanged(self, before: IndexedSnapshot, delta: Delta) -> None:
        """Take unchanged fields of an older view, so that they stay the same objects."""
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
    """A view with other values of some fields, which are not in the index."""

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
    """Raise DamagedError if a value is missing that every complete index has.

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
