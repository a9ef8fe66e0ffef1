"""Parse the lines of the decision log incrementally."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from core.base.text import visible_line
from core.learning.reference.maturity import PatternMaturity
from core.learning.reference.patterns import ObservedPattern
from core.records.decisions import Decision
from core.records.findings import Finding, Severity
from core.records.proposed_decisions import ProposedDecision
from core.records.times import parse_time
from core.storage.append_log import IncrementalLines
from core.storage.file_reader import MAX_DEPTH, is_nested_deeper
from core.storage.hash_chain import NOT_AS_WRITTEN, ChainBreak, ChainCheck, Place

Record = ObservedPattern | PatternMaturity
_PATTERN: Final = "observed-pattern"
_MATURITY: Final = "maturity"

FILE: Final = ".aiwg/ralph/shared/curation/ledger.jsonl"


class AppliedLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="settled"):
    """A line recording that the effects of `decision` are in `files`."""

    decision: str
    files: tuple[str, ...]


class DecisionLog(IncrementalLines):
    """The lines of a decision log that were parsed so far.

    `by_id` has the decisions, oldest first, `records` the other records in the order of their first saving, and
    `pending` the decisions by (decision ID, file) whose effects may be missing from that file.
    """

    def reset(self) -> None:
        super().reset()
        self.by_id: dict[str, Decision] = {}
        self.records: dict[tuple[type[Record], str], Record] = {}
        self._proposed: list[ProposedDecision] = []
        self._proposals: tuple[ProposedDecision, ...] = ()
        self.pending: dict[tuple[str, str], Decision] = {}
        self.chain = ChainCheck()
        self._line_findings: list[Finding] = []
        self._decisions: tuple[Decision, ...] = ()
        self._places: tuple[Place, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All decisions, oldest first; the same tuple until one is added."""
        if len(self._decisions) != len(self.by_id):
            self._decisions = tuple(self.by_id.values())
        return self._decisions

    @property
    def proposed(self) -> tuple[ProposedDecision, ...]:
        """All decisions that agents proposed, oldest first; the same tuple until one is added."""
        if len(self._proposals) != len(self._proposed):
            self._proposals = tuple(self._proposed)
        return self._proposals

    @property
    def places(self) -> tuple[Place, ...]:
        """The end of the hash chain before the first line, and after each line."""
        if len(self._places) != len(self.chain.places):
            self._places = tuple(self.chain.places)
        return self._places

    @property
    def is_chained(self) -> bool:
        """Whether any line has a hash."""
        return self.chain.chain.is_begun

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Defects of lines, and chain breaks at lines without another defect."""
        reported = {finding.pointer for finding in self._line_findings}
        breaks = (break_finding(found) for found in self.chain.breaks)
        return (*self._line_findings, *(finding for finding in breaks if finding.pointer not in reported))

    def _parse_line(self, line: bytes) -> None:
        self.chain.feed(line)
        if not line.strip():
            return
        if is_nested_deeper(line):
            # In a pattern file, it would make that file unreadable.
            self._report("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read")
            return
        try:
            document = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._report("bad-json", f"not a JSON object: {error}")
            return
        try:
            match document.get("kind"):
                case "decision":
                    self._add_decision(msgspec.convert(document, Decision))
                case "settled":
                    applied = msgspec.convert(document, AppliedLine)
                    for file in applied.files:
                        self.pending.pop((applied.decision, file), None)
                case "proposal":
                    self._proposed.append(msgspec.convert(document, ProposedDecision))
                case _ if record := record_of(document):
                    self.records[key_of(record)] = record
        except (ValueError, RecursionError) as error:
            kind = "decision" if document.get("kind") == "decision" else "record"
            self._report("wrong-type", f"not a valid {kind}: {error}")

    def _add_decision(self, decision: Decision) -> None:
        if decision.id in self.by_id:
            self._report("duplicate-id", f"a second decision {decision.id}; the first one counts")
            return
        at = parse_time(decision.at)
        if at is None:
            self._report("bad-time", "`at` is not a valid UTC time; the decision is not used")
            return
        decision = replace(decision, at=at)
        self.by_id[decision.id] = decision
        for effect in decision.effects:
            self.pending[decision.id, effect.file] = decision

    def _report(self, code: str, message: str) -> None:
        message = visible_line(message, 200)
        self._line_findings.append(Finding(FILE, f"line {self.lines}", Severity.ERROR, code, message))


def break_finding(found: ChainBreak) -> Finding:
    return Finding(FILE, f"line {found.line}", Severity.ERROR, NOT_AS_WRITTEN, found.what)


class _PatternLine(Struct, frozen=True, kw_only=True):
    """An `ObservedPattern` as stored: its times are ISO-8601 only."""

    id: str
    content: str
    kind: Literal["pattern", "anti_pattern"] = "pattern"
    is_negative: bool = False
    success_count: int = 0
    failure_count: int = 0
    reason: str = ""
    tags: tuple[str, ...] = ()
    example_beads: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None


def line_of(record: Record) -> dict[str, Any]:
    kind = _PATTERN if isinstance(record, ObservedPattern) else _MATURITY
    return {"kind": kind, "record": msgspec.to_builtins(record)}


def record_of(line: Mapping[str, Any]) -> Record | None:
    """Decode a line; None if it is of another kind, `ValueError` if it is invalid."""
    if line.get("kind") == _PATTERN:
        return ObservedPattern(**asdict(msgspec.convert(line.get("record"), _PatternLine)))
    if line.get("kind") == _MATURITY:
        return msgspec.convert(line.get("record"), PatternMaturity)
    return None


def key_of(record: Record) -> tuple[type[Record], str]:
    """Return the key of a record; a later record with the same key replaces it."""
    return type(record), record.id if isinstance(record, ObservedPattern) else record.pattern_id
