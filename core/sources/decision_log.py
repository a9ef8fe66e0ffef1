"""The lines of the decision log: parse them incrementally, and verify their hash chain and its ends.

See docs/safety.md#log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Unwritable
from core.base.text import plural, visible_line
from core.files.append_log import IncrementalLines
from core.files.decoded import MAX_DEPTH, Problem
from core.files.file_reader import MAX_PATTERN_BYTES, Stamp, is_nested_deeper, read_file
from core.files.hash_chain import NOT_AS_WRITTEN, Chain, ChainBreak, Place, last_lines, read_anchor
from core.records.decisions import Decision
from core.records.findings import Finding, Severity
from core.records.proposed_decisions import ProposedDecision
from core.records.times import iso, parse_time

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


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
        self._proposed: list[ProposedDecision] = []
        self._proposals: tuple[ProposedDecision, ...] = ()
        self.pending: dict[tuple[str, str], Decision] = {}
        self.chain = Chain()
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
        return self.chain.linked > 0

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


MAX_HEADS_BYTES: Final = 1 << 20  # Maximum size of a file of heads, in bytes.


class Verification(Struct, frozen=True, kw_only=True):
    """The result of verifying a decision log against `heads`, its saved ends.

    `linked` is the number of lines with a hash, `decisions` that of valid decisions. `problems` are in line order;
    empty if the chain is intact and contains every head.
    """

    lines: int
    linked: int
    decisions: int
    problems: tuple[ChainBreak, ...]
    heads: int = 0
    end: Place

    @property
    def summary(self) -> str:
        what = f"{plural(self.lines, 'line')}, {plural(self.decisions, 'decision')}"
        if self.problems:
            return f"{what}: {plural(len(self.problems), 'break')} in the hash chain"
        first = self.lines - self.linked + 1
        older = f"; lines before {first:,} are older and have no hash" if 0 < self.linked < self.lines else ""
        heads = f"; contains {plural(self.heads, 'head')} saved elsewhere" if self.heads else ""
        if self.lines and not self.linked:
            return f"{what}: no hash chain yet, the next decision begins it{heads}"
        return f"{what}: hash chain intact{older}{heads}"


def verify_ledger(paths: ProjectPaths, heads: Sequence[Head] = ()) -> Verification:
    """Verify the decision log of a project; `Unwritable` if it cannot be read."""
    anchor = read_anchor(paths.ledger)
    raw = read_file(paths.ledger, paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {paths.ledger}: it {raw.message}")
    return verify(raw.data if raw else b"", anchor, heads)


def verify(data: bytes, anchor: Place | None, heads: Sequence[Head] = ()) -> Verification:
    """Verify every line of a decision log, and that it contains the saved `heads`.

    An incomplete last line, left by a crash, is ignored. `anchor` was read before `data`; None if there is none.
    """
    log = DecisionLog()
    log.read(data)
    chain, lines, rest = log.chain, log.lines, data[log.end :]
    problems = [*chain.breaks, *last_lines(chain.places, anchor, is_begun=log.is_chained)]
    problems += missing_heads(heads, chain.places)
    if rest.strip() and not rest.startswith(b"{"):
        problems.append(ChainBreak(lines + 1, "is incomplete, and not the beginning of a decision"))
    return Verification(
        lines=lines,
        linked=chain.linked,
        decisions=len(log.by_id),
        problems=tuple(sorted(problems)),
        heads=len(heads),
        end=chain.places[-1],
    )


def end_findings(
    paths: ProjectPaths, stamp: Stamp | None, places: Sequence[Place], *, is_chained: bool
) -> Iterator[Finding]:
    """Yield findings if the end of the decision log differs from its anchor.

    `stamp` is that of the log when it was read, None without a file. `places`, `is_chained`: see `DecisionLog`.
    """
    anchor = read_anchor(paths.ledger)
    if _is_unchanged(stamp, paths):  # else the anchor may be ahead of the lines that were read
        found = last_lines(places or (Chain().place,), anchor, is_begun=is_chained)
        yield from map(break_finding, found)


def _is_unchanged(stamp: Stamp | None, paths: ProjectPaths) -> bool:
    """Whether the log still has this stamp; None means that it did not exist."""
    try:
        return Stamp.of(paths.ledger.lstat()) == stamp
    except FileNotFoundError:
        return stamp is None
    except OSError:
        return False


class Head(Struct, frozen=True, kw_only=True):
    """The end of a decision log at one moment, stored as a line of JSON.

    `project` is the random ID of the project, 16 hex digits, "" if it could not be created. `lines` is the number of
    the last line, 0 for an empty log. `hash` depends on every line before; the next line must contain it.
    """

    kind: Literal["ralphdeck-log-head"]
    project: Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{16})?\Z")] = ""
    lines: Annotated[int, Meta(ge=0, lt=10**11)]
    hash: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    at: Annotated[datetime, Meta(tz=True)]

    @property
    def place(self) -> Place:
        return Place(self.lines, self.hash)

    def encoded(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def read_heads(data: bytes, name: str) -> tuple[Head, ...]:
    """Read the heads in a file: one JSON object, or one per line.

    Raises `BadInput`, with the displayable `name` of the file, if it is empty or contains anything else.
    """
    try:
        return (msgspec.json.decode(data, type=Head),)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not lines:
        raise BadInput(f"{name} is empty; write a head with: ralphdeck log --head --output FILE")
    heads = []
    for number, line in lines:
        try:
            heads.append(msgspec.json.decode(line, type=Head))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadInput(f"{name} line {number} is not a head; write one with: ralphdeck log --head") from None
    return tuple(heads)


def check_project(heads: Sequence[Head], project: str, name: str) -> None:
    """Raise `BadInput` if a head is of another project; an empty `project` fits all."""
    for head in heads:
        if project and head.project and head.project != project:
            raise BadInput(f"{name} is the head of project {head.project}, and this is project {project}")


def missing_heads(heads: Sequence[Head], places: Sequence[Place]) -> Iterator[ChainBreak]:
    """Yield a break for each head that the decision log does not contain."""
    known, end = set(places), places[-1].line
    for head in heads:
        if head.place in known:
            continue
        taken = f"the head of {iso(head.at)}"
        if head.lines > end:
            missing = plural(head.lines - end, "line")
            what = f"{taken} was taken at line {head.lines}: {missing} after this one are missing"
            yield ChainBreak(max(end, 1), what)
        else:
            yield ChainBreak(max(head.lines, 1), f"{taken} does not fit: lines up to this one were rewritten")
