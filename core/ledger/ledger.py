"""The ledger of decisions, and of a few records beside them: a TinyDB table whose storage is an append-only journal.

TinyDB's own storages write the whole database again for every document, which at 10,000 documents costs
50 ms and loses all of it to a kill in the middle. Here a document is one line, written once, and queries
run in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import replace
from tinydb import Query, TinyDB
from tinydb.storages import Storage
from tinydb.table import Table

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.ledger.fold import fold
from core.ledger.spec_records import Record, key_of, line_of, record_of
from core.records.decisions import CurationState, Decision
from core.records.findings import Finding, Severity
from core.records.times import parse_time
from core.storage.append_log import AppendLog
from core.storage.chain_check import CODE, ChainBreak, ChainCheck
from core.storage.decoded import MAX_DEPTH
from core.storage.file_reader import MAX_PATTERN_BYTES
from core.storage.hash_chain import UNANCHORED, Place, end_of, linked, read_anchor, write_anchor
from core.storage.json_reader import is_nested_deeper

FILE: Final = ".aiwg/ralph/shared/curation/ledger.jsonl"
TABLE: Final = "ledger"
_Kept = TypeVar("_Kept", bound=Record)


def read_decisions(data: bytes) -> tuple[tuple[Decision, ...], tuple[Finding, ...]]:
    """The decisions in the bytes of a ledger, oldest first, and what is wrong with its lines.

    An unfinished last line is no news yet. Lines of a kind that is not known here are left alone.
    """
    log = DecisionLog()
    log.read(data)
    return log.decisions, log.findings


class DecisionLog:
    """The decisions of a ledger as read so far; reads on where it stopped while the file only grows.

    Attributes:
        decisions: Oldest first.
        findings: What is wrong with its lines, also where one is not as it was written.
        places: The end of the ledger before its first line, and after each.
        is_chained: Whether a line bears a hash.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.decisions: tuple[Decision, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.places: tuple[Place, ...] = ()
        self.is_chained = False
        self._lines = _Lines()
        self._end = 0
        self._read_so_far = 0

    def read(self, data: bytes) -> None:
        """Take in the complete lines of the file, which holds `data` now."""
        if crc32(memoryview(data)[: self._end]) != self._read_so_far:
            self._forget()  # not only appended to: everything is new
        end = data.rfind(b"\n") + 1
        if end <= self._end:
            return
        self._lines.feed(data[self._end : end])
        self._lines.documents.clear()  # whoever asks for decisions needs no others
        self._read_so_far = crc32(memoryview(data)[self._end : end], self._read_so_far)
        self._end = end
        self.decisions = tuple(self._lines.decisions.values())
        self.findings = (*self._lines.findings, *self._breaks())
        self.places = tuple(self._lines.seams.places)
        self.is_chained = self._lines.seams.chain.is_begun

    def _breaks(self) -> Iterator[Finding]:
        """Where lines are not as written, but for those that cannot be used anyway."""
        told = {finding.pointer for finding in self._lines.findings}
        found = (break_finding(one) for one in self._lines.seams.breaks)
        return (finding for finding in found if finding.pointer not in told)


def break_finding(found: ChainBreak) -> Finding:
    """A break in the hash chain as a finding."""
    return Finding(FILE, f"line {found.line}", Severity.ERROR, CODE, found.what)


class _Lines:
    """What the lines fed so far say.

    Attributes:
        documents: Every line that is a JSON object, by line number as TinyDB writes its ids.
        decisions: By decision id, in order.
        records: By what tells them apart, in the order in which they were first kept.
        pending: By decision id and file, the decisions whose effects are not known to be in that file yet.
        seams: Whether they fit together.
    """

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.decisions: dict[str, Decision] = {}
        self.records: dict[tuple[type[Record], str], Record] = {}
        self.pending: dict[tuple[str, str], Decision] = {}
        self.findings: list[Finding] = []
        self.seams = ChainCheck()

    @property
    def count(self) -> int:
        """How many lines there are."""
        return self.seams.chain.lines

    def feed(self, data: bytes) -> None:
        """Take in whole lines that follow the ones fed before."""
        for line in data.split(b"\n")[:-1]:
            self.seams.feed(line)
            if line.strip():
                self._feed_line(line)

    def _feed_line(self, line: bytes) -> None:
        if is_nested_deeper(line):
            # Written into a pattern file, it would keep that from being read.
            self._wrong("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read")
            return
        try:
            document = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._wrong("bad-json", f"not a JSON object: {error}")
            return
        self.documents[str(self.count)] = document
        if document.get("kind") == "decision":
            self._feed_decision(document)
        elif document.get("kind") == "settled":
            try:
                mark = msgspec.convert(document, _Settled)
            except msgspec.ValidationError as error:
                self._wrong("wrong-type", f"not a mark that can be used: {error}")
            else:
                for file in mark.files:
                    self.pending.pop((mark.decision, file), None)
        else:
            self._feed_record(document)

    def _feed_decision(self, document: dict[str, Any]) -> None:
        try:
            decision = msgspec.convert(document, Decision)
        except (msgspec.ValidationError, RecursionError) as error:
            self._wrong("wrong-type", f"not a decision that can be used: {error}")
            return
        if decision.id in self.decisions:
            self._wrong("duplicate-id", f"a second decision {decision.id}; the first one counts")
            return
        at = parse_time(decision.at)
        if at is None:
            self._wrong("bad-time", "`at` is no time that exists in UTC: the decision is not used")
            return
        decision = replace(decision, at=at)
        self.decisions[decision.id] = decision
        for effect in decision.effects:
            self.pending[decision.id, effect.file] = decision

    def _feed_record(self, document: dict[str, Any]) -> None:
        try:
            record = record_of(document)
        except (ValueError, RecursionError) as error:
            self._wrong("wrong-type", f"not a record that can be used: {error}")
        else:
            if record is not None:
                self.records[key_of(record)] = record

    def _wrong(self, code: str, message: str) -> None:
        text = visible_line(message, 200)
        self.findings.append(Finding(FILE, f"line {self.count}", Severity.ERROR, code, text))


class _Settled(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="settled"):
    """A journal line: the effects of `decision` on `files` are in those files."""

    decision: str
    files: tuple[str, ...]


class JournalStorage(Storage):
    """TinyDB storage over a journal: reading follows what any process appended, writing only ever appends."""

    def __init__(self, journal: AppendLog) -> None:
        self.journal = journal
        self.lines = _Lines()
        self._offset = 0
        self._file: tuple[int, int] | None = None
        self._mutex = threading.Lock()

    def read(self) -> dict[str, dict[str, dict[str, Any]]]:
        """All documents, after taking in what was appended since the last read."""
        self.refresh()
        return {TABLE: self.lines.documents}

    def write(self, data: Mapping[str, Any]) -> NoReturn:
        """Refused: a ledger is never rewritten.

        Raises:
            BadInput: Always.
        """
        raise BadInput("the ledger is append-only: entries are never changed or removed")

    def append(self, documents: Iterable[Mapping[str, Any]]) -> list[int]:
        """Add documents at the end; durable on return. Returns their ids: the numbers of their lines.

        Raises:
            BadInput: A text of one cannot be stored: it holds half a character (a lone surrogate).
        """
        try:
            lines = [msgspec.json.encode(document) for document in documents]
        except UnicodeEncodeError:
            raise BadInput("a text is no valid Unicode: the ledger cannot hold it") from None
        path, count = self.journal.path, len(lines)
        with self.journal.locked():
            self.refresh()  # what cannot be read is not added to
            self.journal.tidy()
            self.refresh()
            told, chain = read_anchor(path), self.lines.seams.chain
            if told is None and chain.is_begun:
                lines.insert(0, UNANCHORED)  # lest a new anchor hide that lines at the end are gone
            lines, place = linked(lines, end_of(told, chain.place))
            if self._offset + sum(map(len, lines)) + len(lines) > MAX_PATTERN_BYTES:
                raise Unwritable(f"{path} would have more than {MAX_PATTERN_BYTES:,} bytes; not written")
            if told is None and not chain.is_begun:
                write_anchor(path, chain.place)  # lest a crash leave lines that bear a hash without one
            self.journal.append(lines)
            write_anchor(path, place)
            self.refresh()
            return list(range(self.lines.count - count + 1, self.lines.count + 1))

    def refresh(self) -> None:
        """Take in what was appended by anybody; all of it again if the file is not the one read before."""
        with self._mutex:
            try:
                status = self.journal.path.stat()
            except FileNotFoundError:
                self.lines, self._offset, self._file = _Lines(), 0, None
                return
            except OSError as error:
                raise Unwritable(f"cannot read {self.journal.path}: {error.strerror}") from None
            if status.st_size > MAX_PATTERN_BYTES:
                size = f"{status.st_size:,} bytes; at most {MAX_PATTERN_BYTES:,} are read"
                raise Unwritable(f"cannot read {self.journal.path}: it has {size}")
            file = (status.st_dev, status.st_ino)
            if file != self._file or status.st_size < self._offset:
                self.lines, self._offset, self._file = _Lines(), 0, file
            data, self._offset = self.journal.read(self._offset)
            self.lines.feed(data)


class LedgerTable(Table):
    """A TinyDB table that only grows: `insert` costs one line, everything that would rewrite is refused."""

    _storage: JournalStorage

    def insert(self, document: Mapping[str, Any]) -> int:
        """Append one document and return its id."""
        return self.insert_multiple([document])[0]

    def insert_multiple(self, documents: Iterable[Mapping[str, Any]]) -> list[int]:
        """Append documents as one write and return their ids."""
        return self._storage.append(documents)

    def _update_table(self, updater: Callable[[dict[int, Mapping[str, Any]]], None]) -> None:
        self._storage.write({})


class _Database(TinyDB):
    table_class = LedgerTable


class Ledger:
    """Every decision ever made in a project, shared by all processes that work on it.

    Attributes:
        table: The TinyDB table of all journal lines, for queries such as
            `table.search(where("verb") == "promote")`; they see what other processes appended as well.
    """

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._journal = AppendLog(paths.ledger)
        self._storage = JournalStorage(self._journal)
        # No query cache: it would hide what other processes append.
        table = _Database(storage=lambda: self._storage).table(TABLE, cache_size=0)
        assert isinstance(table, LedgerTable)
        self.table = table
        self._folded = (-1, CurationState())

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other writers out while a decision is checked against the ledger and appended.

        Raises:
            Unwritable: The lock is not to be had, or the ledger lies outside the project.
        """
        try:
            self._paths.inside(FILE)
        except BadInput as error:
            raise Unwritable(str(error)) from None
        with self._journal.locked():
            yield

    def append(self, *decisions: Decision) -> None:
        """Write decisions down, all of them or none; they are durable, and so acknowledged, on return.

        Raises:
            Unwritable: It could not be written; the ledger is as it was.
        """
        with self.exclusive():
            self.table.insert_multiple({"kind": "decision", **msgspec.to_builtins(one)} for one in decisions)

    def settle(self, marks: Mapping[str, Iterable[str]]) -> None:
        """Write down that the effects of decisions (by id) on files (project-relative) are in those files."""
        lines = [_Settled(decision=key, files=tuple(files)) for key, files in marks.items()]
        with self.exclusive():
            self.table.insert_multiple(msgspec.to_builtins(line) for line in lines)

    def keep(self, record: Record) -> None:
        """Write a record down, in place of the one of the same id; durable on return.

        Raises:
            BadInput: A text of it is no valid Unicode.
            Unwritable: It could not be written; the ledger is as it was.
        """
        with self.exclusive():
            self.table.insert(line_of(record))

    def kept(self, kind: type[_Kept]) -> list[_Kept]:
        """The records of one type as they are now, in the order in which their ids were first kept."""
        return [record for record in list(self._lines().records.values()) if isinstance(record, kind)]

    def decisions(self) -> tuple[Decision, ...]:
        """All of them as they are now, oldest first."""
        return tuple(self._lines().decisions.values())

    def by_id(self) -> Mapping[str, Decision]:
        """All of them by id; grows with the ledger."""
        return MappingProxyType(self._lines().decisions)

    def __contains__(self, decision_id: object) -> bool:
        return isinstance(decision_id, str) and decision_id in self._lines().decisions

    def decision(self, decision_id: str) -> Decision:
        """One of them by id.

        Raises:
            UnknownRecord: There is none of this id.
        """
        try:
            return self._lines().decisions[decision_id]
        except KeyError:
            raise UnknownRecord(f"the ledger has no decision {visible_line(decision_id, 80)}") from None

    def find(self, *, verb: str = "", subject: str = "", by: str = "") -> tuple[Decision, ...]:
        """The decisions that match what is given, oldest first."""
        wanted = {key: value for key, value in (("verb", verb), ("subject", subject), ("by", by)) if value}
        found = self.table.search(Query().fragment({"kind": "decision", **wanted}))
        decisions = self._lines().decisions
        return tuple(decisions[document["id"]] for document in found if document.get("id") in decisions)

    def state(self) -> CurationState:
        """What all decisions amount to now."""
        lines = self._lines()
        if self._folded[0] != len(lines.decisions):
            self._folded = (len(lines.decisions), fold(lines.decisions.values()))
        return self._folded[1]

    def pending(self) -> tuple[tuple[Decision, str], ...]:
        """Decisions and the files that their effects have not reached yet, oldest decision first."""
        return tuple((decision, file) for (_, file), decision in self._lines().pending.items())

    def standing(self) -> tuple[int, bool]:
        """How many decisions there are, and whether all that they change is in the pattern files; of one moment."""
        lines = self._lines()
        return len(lines.decisions), not lines.pending

    def _lines(self) -> _Lines:
        self._storage.refresh()
        return self._storage.lines
