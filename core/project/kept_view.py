"""The records of the last run, drawn until the files are checked; see docs/performance.md#kept-view.

One file per project in the user's cache folder. It is optional: if it is missing, damaged, or belongs to another
version, project or user, it behaves as if there was none.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.ledger.fold import fold
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import Decision
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.findings import Finding
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask, Reflection
from core.records.snapshot import Snapshot
from core.sources.parse_cache import cache_file, code_version

_BY_ID: Final[Mapping[str, Any]] = {
    "patterns": tuple[Pattern, ...],
    "loops": tuple[Loop, ...],
    "reflections": tuple[Reflection, ...],
    "memory_tasks": tuple[MemoryTask, ...],
    "tasks": tuple[Task, ...],
    "attempts": tuple[Attempt, ...],
    "debug_sessions": tuple[DebugSession, ...],
    "escalations": tuple[Escalation, ...],
}
_LISTS: Final[Mapping[str, Any]] = {
    "events": tuple[Event, ...],
    "withdrawn": tuple[Event, ...],
    "decisions": tuple[Decision, ...],
    "findings": tuple[Finding, ...],
}
_TYPES: Final[Mapping[str, Any]] = {**_BY_ID, **_LISTS}
_CHUNK: Final = 1000  # records that are encoded at once: a long call would stop the screen
_DRAFT_AGE: Final = timedelta(hours=1)  # drafts of processes that were killed are removed at this age
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Header(Struct, frozen=True, array_like=True):
    version: int
    project: str
    as_of: datetime
    counts: dict[str, int]  # chunks by field of the snapshot, in order


class KeptView:
    """Saves and loads the records of one project."""

    def __init__(self, project: Path) -> None:
        self._file = cache_file(project).with_suffix(".view")
        self._project = str(project.resolve())

    def load(self) -> Snapshot | None:
        """Return the snapshot that was saved last, with its time as `as_of`; None if there is none that is usable."""
        try:
            return self._read()
        except (OSError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, KeyError):
            return None

    def save(self, snapshot: Snapshot, now: datetime) -> None:
        """Save a snapshot; without effect if the cache folder cannot be written or a value cannot be encoded."""
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}.tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._remove_old_drafts(now)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600)
            with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor)
                for block in self._blocks(snapshot, now):
                    file.write(len(block).to_bytes(8) + zlib.crc32(block).to_bytes(4) + block)
            draft.replace(self._file)
        except (OSError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
            with contextlib.suppress(OSError):
                draft.unlink()

    def _blocks(self, snapshot: Snapshot, now: datetime) -> Iterator[bytes]:
        encode = msgspec.msgpack.Encoder().encode
        fields = {name: tuple(getattr(snapshot, name).values()) for name in _BY_ID}
        fields |= {name: getattr(snapshot, name) for name in _LISTS}
        counts = {name: -(-len(records) // _CHUNK) for name, records in fields.items()}
        yield encode(_Header(code_version(), self._project, now, counts))
        for name, count in counts.items():
            remaining = iter(fields[name])
            for _ in range(count):
                yield encode(tuple(islice(remaining, _CHUNK)))

    def _read(self) -> Snapshot | None:
        descriptor = os.open(self._file, os.O_RDONLY | _SAFE)
        with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor)
            if os.fstat(descriptor).st_uid != os.geteuid():
                return None
            content = memoryview(file.read())
        blocks = _blocks_of(content)
        header = msgspec.msgpack.decode(next(blocks, b""), type=_Header)
        if (header.version, header.project) != (code_version(), self._project) or header.counts.keys() != _TYPES.keys():
            return None
        fields: dict[str, Any] = {}
        for name, count in header.counts.items():
            decoder = msgspec.msgpack.Decoder(_TYPES[name])
            chunks = [decoder.decode(block) for block in islice(blocks, count)]
            if len(chunks) != count:
                return None
            fields[name] = tuple(record for chunk in chunks for record in chunk)
        if next(blocks, None) is not None:
            return None
        for name in _BY_ID:
            fields[name] = MappingProxyType({record.id: record for record in fields[name]})
        return Snapshot(**fields, number=-1, curation=fold(fields["decisions"]), as_of=header.as_of)

    def _remove_old_drafts(self, now: datetime) -> None:
        for draft in self._file.parent.glob(f"{self._file.name}.*.tmp"):
            with contextlib.suppress(OSError):
                if now - datetime.fromtimestamp(draft.stat().st_mtime, UTC) > _DRAFT_AGE:
                    draft.unlink()


def _blocks_of(content: memoryview) -> Iterator[memoryview]:
    """Yield the blocks of a file; ValueError at the first that is damaged."""
    while content:
        length, checksum = int.from_bytes(content[:8]), int.from_bytes(content[8:12])
        block, content = content[12 : 12 + length], content[12 + length :]
        if len(block) != length or zlib.crc32(block) != checksum:
            raise ValueError("the block is damaged")
        yield block
