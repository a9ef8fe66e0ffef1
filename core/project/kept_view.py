"""The state of the last run, drawn until the files are checked; see docs/performance.md#kept-view.

One file per project in the user's cache folder. It is optional: if it is missing, damaged, or belongs to another
version, project, user or other settings, it behaves as if there was none. Its parts are decoded on first use.
"""

from __future__ import annotations

import contextlib
import os
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec
from msgspec import Struct

from core.ledger.fold import fold
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import Decision
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.findings import Finding
from core.records.lessons import Lesson
from core.records.loops import Loop
from core.records.origins import ForeignRecords
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask, Reflection
from core.records.snapshot import Snapshot
from core.records.team import TeamEvidence, TeamSums
from core.storage.drafts import make_draft_path, remove_drafts
from core.storage.locks import open_regular
from core.storage.user_cache import cache_path, code_digest

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.learning.inversion_rules import Inversion
    from core.learning.scoreboard import SavedScores
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

_BY_ID: Final[Mapping[str, Any]] = {
    "loops": tuple[Loop, ...],
    "patterns": tuple[Pattern, ...],
    "reflections": tuple[Reflection, ...],
    "memory_tasks": tuple[MemoryTask, ...],
    "tasks": tuple[Task, ...],
    "attempts": tuple[Attempt, ...],
    "debug_sessions": tuple[DebugSession, ...],
    "escalations": tuple[Escalation, ...],
    "lessons": tuple[Lesson, ...],
}
_LISTS: Final[Mapping[str, Any]] = {
    "events": tuple[Event, ...],
    "withdrawn": tuple[Event, ...],
    "decisions": tuple[Decision, ...],
    "findings": tuple[Finding, ...],
    "team": tuple[TeamSums, ...],
}
_RECORDS: Final[Mapping[str, Any]] = {**_BY_ID, **_LISTS}
_SCORES: Final = "scores"
_QUEUE: Final = "queue"
_PARTS: Final = (*_RECORDS, _SCORES, _QUEUE)
_CHUNK: Final = 1000  # records that are encoded at once: a long call would stop the screen
_PROJECT: Final = 2  # place of the project in the header, in every version
_PREFIX_BYTES: Final = 12  # before each block: its length (8) and CRC-32 (4)
_UNUSABLE: Final = (OSError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, KeyError)


class _Header(Struct, frozen=True, array_like=True):
    code: bytes  # digest of the program
    settings: bytes
    project: str
    as_of: datetime
    questions: int  # number of review questions
    is_searched: bool  # whether the searches for questions had ended
    team: TeamEvidence  # without its sums
    claims: frozenset[str]  # IDs of the decisions that were made elsewhere
    do_claims_count: bool
    foreign: frozenset[str]  # IDs of the patterns whose numbers do not count
    arrived: frozenset[str]  # those of them that came from elsewhere
    counts: dict[str, int]  # blocks by part, in order


class _Block(NamedTuple):
    start: int
    length: int
    checksum: int


class KeptView:
    """Saves and loads the state of one project with these settings."""

    def __init__(self, project: Path, settings: Settings) -> None:
        self._file = cache_path(project, "view")
        self._project = str(project.resolve())
        self._settings = settings

    def load(self) -> KeptState | None:
        """Return the state that was saved last; None if there is none that is usable."""
        try:
            return self._read()
        except _UNUSABLE:
            return None

    def save(self, state: ProjectState, now: datetime, *, is_searched: bool = False) -> None:
        """Save a state, and whether the searches for questions have ended.

        Without effect if the cache folder cannot be written or a value cannot be encoded.
        """
        draft = make_draft_path(self._file)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            remove_drafts(self._file.parent)
            descriptor = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor)
                for block in self._blocks(state, now, is_searched):
                    file.write(len(block).to_bytes(8) + zlib.crc32(block).to_bytes(4) + block)
                file.flush()
                os.fsync(descriptor)
            draft.replace(self._file)
        except _UNUSABLE:
            with contextlib.suppress(OSError):
                draft.unlink()

    def _owner(self) -> tuple[bytes, bytes, str]:
        """Return the first fields of the header: only the same program shows the view, with the same settings."""
        return code_digest(("",)), msgspec.msgpack.encode(self._settings), self._project

    def _blocks(self, state: ProjectState, now: datetime, is_searched: bool) -> Iterator[bytes]:
        from core.project.kept_queue import encode_queue

        encode = msgspec.msgpack.Encoder().encode
        parts = {name: tuple(getattr(state.snapshot, name).values()) for name in _BY_ID}
        team = state.snapshot.team
        parts |= {name: getattr(state.snapshot, name) for name in _LISTS} | {"team": tuple(team.sums.values())}
        counts = {name: -(-len(records) // _CHUNK) for name, records in parts.items()} | {_SCORES: 1, _QUEUE: 1}
        header = msgspec.structs.replace(team, sums={})
        foreign, curation = state.snapshot.foreign, state.snapshot.curation
        claims = curation.claims, curation.do_claims_count
        numbers = foreign.patterns, foreign.arrived
        yield encode(_Header(*self._owner(), now, state.pending_count, is_searched, header, *claims, *numbers, counts))
        for records in parts.values():
            remaining = iter(records)
            while chunk := tuple(islice(remaining, _CHUNK)):
                yield encode(chunk)
        yield encode(state.board.saved())
        yield encode_queue(state.queue)

    def _read(self) -> KeptState | None:
        kept = KeptState(open_regular(self._file, os.O_RDONLY))
        blocks = _find_blocks(kept.descriptor)
        [first] = islice(blocks, 1)
        header = msgspec.msgpack.decode(_read_block(kept.descriptor, first), type=_Header)
        known = header.code, header.settings, header.project, tuple(header.counts)
        is_own = os.fstat(kept.descriptor).st_uid == os.geteuid()
        if not is_own or known != (*self._owner(), _PARTS):
            return None
        kept.parts = {name: tuple(islice(blocks, count)) for name, count in header.counts.items()}
        if any(len(kept.parts[name]) != count for name, count in header.counts.items()) or any(True for _ in blocks):
            return None
        kept.as_of, kept.questions, kept.is_searched = header.as_of, header.questions, header.is_searched
        kept.team, kept.claims, kept.do_claims_count = header.team, header.claims, header.do_claims_count
        kept.foreign = ForeignRecords(header.foreign, header.arrived)
        return kept


def read_kept_decisions(project: Path) -> tuple[Decision, ...]:
    """Return the decisions in the view that any version saved last; empty if there is none that is usable."""
    decisions: list[Decision] = []
    with contextlib.suppress(*_UNUSABLE), contextlib.ExitStack() as stack:
        descriptor = open_regular(cache_path(project, "view"), os.O_RDONLY)
        stack.callback(os.close, descriptor)
        if os.fstat(descriptor).st_uid != os.geteuid():
            return ()
        blocks = _find_blocks(descriptor)
        header: list[Any] = msgspec.msgpack.decode(_read_block(descriptor, next(blocks)))
        if header[_PROJECT] != str(project.resolve()):
            return ()
        for name, count in header[-1].items():
            for block in islice(blocks, count):
                if name == "decisions":
                    decisions += msgspec.msgpack.decode(_read_block(descriptor, block), type=tuple[Decision, ...])
    return tuple(decisions)


class KeptState:
    """A saved state in an open file. Damaged parts are like empty ones."""

    as_of: datetime
    questions: int  # number of review questions
    is_searched: bool  # whether the searches for questions had ended
    team: TeamEvidence  # without its sums
    claims: frozenset[str]  # IDs of the decisions that were made elsewhere
    do_claims_count: bool
    foreign: ForeignRecords

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.parts: Mapping[str, Sequence[_Block]] = {}
        weakref.finalize(self, os.close, descriptor)

    def records(self, name: str) -> Any:
        """Return a field of the snapshot."""
        decoder = msgspec.msgpack.Decoder(_RECORDS[name])
        records: tuple[Any, ...] = ()
        with contextlib.suppress(*_UNUSABLE):
            records = tuple(record for block in self.parts[name] for record in decoder.decode(self._data(block)))
        if name == "team":
            return msgspec.structs.replace(self.team, sums={one.pattern_id: one for one in records})
        return MappingProxyType({record.id: record for record in records}) if name in _BY_ID else records

    def scores(self) -> SavedScores | None:
        """Return the scores of the patterns; None if they are damaged."""
        from core.learning.scoreboard import SavedScores

        with contextlib.suppress(*_UNUSABLE):
            return msgspec.msgpack.decode(self._data(self.parts[_SCORES][0]), type=SavedScores)
        return None

    def queue(self, propose: Callable[[str], Inversion]) -> tuple[ReviewItem, ...]:
        """Return the review questions; `propose` makes the proposal to invert a pattern."""
        from core.project.kept_queue import decode_queue

        with contextlib.suppress(*_UNUSABLE):
            return decode_queue(self._data(self.parts[_QUEUE][0]), propose)
        return ()

    def _data(self, block: _Block) -> bytes:
        return _read_block(self.descriptor, block)


class KeptSnapshot(Snapshot):
    """Records of the last run, which are decoded when they are first used."""

    __slots__ = ("_kept",)
    _kept: KeptState

    @classmethod
    def of(cls, kept: KeptState) -> Self:
        made = cls.__new__(cls)
        unreadable = MappingProxyType[str, datetime]({})
        values = {"number": 0, "unreadable": unreadable, "complete": False, "as_of": kept.as_of, "_kept": kept}
        values["foreign"] = kept.foreign
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        """Decode a field that has no value yet."""
        if name not in _RECORDS and name != "curation":
            raise AttributeError(name)
        if name == "curation":
            value: Any = fold(self.decisions, self._kept.claims, do_claims_count=self._kept.do_claims_count)
        else:
            value = self._kept.records(name)
        object.__setattr__(self, name, value)
        return value


def _find_blocks(descriptor: int) -> Iterator[_Block]:
    """Yield the places of the blocks without reading them; ValueError at the first that is empty or cut off."""
    start, size = 0, os.fstat(descriptor).st_size
    while start < size:
        prefix = os.pread(descriptor, _PREFIX_BYTES, start)
        block = _Block(start + _PREFIX_BYTES, int.from_bytes(prefix[:8]), int.from_bytes(prefix[8:]))
        start = block.start + block.length
        if not block.length or start > size:
            raise ValueError("the block is empty or cut off")
        yield block


def _read_block(descriptor: int, block: _Block) -> bytes:
    """Return the content of a block; ValueError if it is damaged."""
    data = os.pread(descriptor, block.length, block.start)
    if len(data) != block.length or zlib.crc32(data) != block.checksum:
        raise ValueError("the block is damaged")
    return data
