"""Decision log of a project: hash chain (docs/safety.md#log) and appending."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.text import plural, visible_line
from core.files.append_log import AppendLog, IncrementalLines
from core.files.file_access import as_unwritable
from core.files.file_reader import MAX_DEPTH, MAX_PATTERN_BYTES, Problem, Stamp, is_nested_deeper, read_file
from core.files.hash_chain import (
    NOT_AS_WRITTEN,
    UNANCHORED,
    Chain,
    ChainBreak,
    Place,
    end_of,
    last_lines,
    link_lines,
    read_anchor,
    write_anchor,
)
from core.records.decisions import Decision, ProposedDecision
from core.records.findings import Finding, Severity
from core.records.times import iso, parse_time
from core.sources.fold import fold_log, with_proposals
from core.trust.origins import Origins

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.decisions import CurationState

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
        """Agents' proposals, oldest first; the same tuple until one is added."""
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


class Ledger:
    """All decisions of a project; one object per open project, shared by threads.

    `log` has the lines parsed so far; `Library`, which parses the same file, shares it. `origins` has which lines this
    user's program wrote.
    """

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._file = AppendLog(paths.ledger)
        self.log = DecisionLog()
        self.origins = Origins(paths.project)
        self._identity: tuple[int, int] | None = None
        self._mutex = threading.Lock()
        self._folded: tuple[tuple[Decision, ...], tuple[ProposedDecision, ...], CurationState] | None = None
        self._claims: tuple[int, tuple[Decision, ...], frozenset[str]] = (0, (), frozenset())

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the write lock of the log; `Unwritable` if it cannot be locked."""
        with as_unwritable(self._file.path):
            self._paths.inside(FILE)
        with self._file.locked():
            yield

    def append(self, *decisions: Decision) -> None:
        """Append decisions durably, all or none, as own ones; `Unwritable` if that fails."""
        with self.exclusive():
            # First, so that a crash does not make them decisions from elsewhere.
            self.origins.add_decisions(decisions)
            self._append({"kind": "decision", **msgspec.to_builtins(one)} for one in decisions)
            # Last: to a reader in between, a word without its line is one whose line was removed.
            self.origins.add_words(decisions, self.by_id())
            if not self.claims():
                self.origins.add_head(self.log.places, len(self.log.by_id))

    def claims(self) -> frozenset[str]:
        """Return IDs of decisions that were made elsewhere and are not confirmed here."""
        decisions, version = self._log().decisions, self.origins.refresh()
        if self._claims[0] != version or self._claims[1] is not decisions:
            self._claims = version, decisions, self.origins.claims(decisions, self.log.places)
        return self._claims[2]

    def confirm(self, decision_ids: Iterable[str]) -> None:
        """Make decisions from elsewhere own ones; `Unwritable` if that fails."""
        known = self.by_id()
        chosen = set(decision_ids)
        confirmed = [decision for id, decision in known.items() if id in chosen]
        self.origins.add_decisions(confirmed)
        self.origins.add_words(confirmed, known)

    def propose(self, proposal: ProposedDecision) -> None:
        """Append a decision that an agent proposes; `Unwritable` if that fails."""
        self.origins.add_decisions([proposal])
        self._append([{"kind": "proposal", **msgspec.to_builtins(proposal)}])

    def mark_applied(self, files: Mapping[str, Iterable[str]]) -> None:
        """Record, by decision ID, the project-relative files that contain its effects."""
        lines = [AppliedLine(decision=key, files=tuple(names)) for key, names in files.items()]
        self._append(msgspec.to_builtins(line) for line in lines)

    def decisions(self) -> tuple[Decision, ...]:
        return self._log().decisions

    def counting_decisions(self) -> tuple[Decision, ...]:
        """Return decisions made or confirmed here; all of them in a trusted path."""
        decisions, claims = self.decisions(), self.claims()
        if not claims or self.origins.do_claims_count:
            return decisions
        return tuple(decision for decision in decisions if decision.id not in claims)

    def by_id(self) -> Mapping[str, Decision]:
        """Return all decisions by ID, as a view that grows with the log."""
        return MappingProxyType(self._log().by_id)

    def __contains__(self, decision_id: object) -> bool:
        return isinstance(decision_id, str) and decision_id in self._log().by_id

    def decision(self, decision_id: str) -> Decision:
        """Return the decision with an ID; raise `UnknownRecord` if there is none."""
        try:
            return self._log().by_id[decision_id]
        except KeyError:
            raise UnknownRecord(f"the decision log has no decision {visible_line(decision_id, 80)}") from None

    def state(self) -> CurationState:
        claims, decisions, proposed = self.claims(), self.log.decisions, self.log.proposed
        known = self._folded
        if known is None or known[0] is not decisions or known[1] is not proposed or known[2].claims != claims:
            state = fold_log(decisions, claims, self.origins)
            state = with_proposals(state, decisions, self.origins.own_proposals(proposed))
            self._folded = known = decisions, proposed, state
        return known[2]

    def state_with(self, more: Sequence[Decision]) -> CurationState:
        """Return the state if these own decisions followed the log, without proposals."""
        claims = self.claims()
        return fold_log((*self.log.decisions, *more), claims, self.origins)

    def pending(self) -> tuple[tuple[Decision, str], ...]:
        """Return own decisions and the files that may lack their effects, oldest first."""
        pending = self._log().pending
        claims = self.claims() if pending else frozenset()
        return tuple((decision, file) for (_, file), decision in pending.items() if decision.id not in claims)

    def status(self) -> tuple[int, bool]:
        """Return the number of decisions, and whether the files have all their effects."""
        return len(self._log().by_id), not self.pending()

    def _log(self) -> DecisionLog:
        self._refresh()
        return self.log

    def _append(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Append documents durably, one line each, all or none.

        Raises `BadInput` if a text is not valid Unicode (a lone surrogate), and `Unwritable` if the file cannot be
        written.
        """
        try:
            lines = [msgspec.json.encode(document) for document in documents]
        except UnicodeEncodeError:
            raise BadInput("a text is not valid Unicode, so the decision log cannot store it") from None
        path = self._file.path
        with self.exclusive():
            self._refresh()  # refuse to append to a file that cannot be read
            self._file.repair()
            self._refresh()
            anchor, chain = read_anchor(path), self.log.chain
            if anchor is None and chain.linked:
                lines.insert(0, UNANCHORED)  # a new anchor must not hide that lines at the end are missing
            lines, place = link_lines(lines, end_of(anchor, chain.place))
            if self.log.end + sum(map(len, lines)) + len(lines) > MAX_PATTERN_BYTES:
                raise Unwritable(f"{path} would have more than {MAX_PATTERN_BYTES:,} bytes; not written")
            if anchor is None and not chain.linked:
                write_anchor(path, chain.place)  # a crash must not leave hashed lines without an anchor
            self._file.append(lines)
            write_anchor(path, place)
            self._refresh()

    def _refresh(self) -> None:
        """Parse the appended lines; all lines if the file was replaced or truncated."""
        with self._mutex:
            try:
                status = self._file.path.stat()
            except FileNotFoundError:
                self.log.reset()
                self._identity = None
                return
            except OSError as error:
                raise Unwritable(f"cannot read {self._file.path}: {error.strerror}") from None
            if status.st_size > MAX_PATTERN_BYTES:
                size = f"{status.st_size:,} bytes; at most {MAX_PATTERN_BYTES:,} are read"
                raise Unwritable(f"cannot read {self._file.path}: it has {size}")
            identity = (status.st_dev, status.st_ino)
            if self._identity is None:
                self._identity = identity
                self.log.read(self._file.read()[0])  # it may have been parsed by a reader of the whole file
            elif identity != self._identity or status.st_size < self.log.end:
                self.log.reset()
                self._identity = identity
            data, _ = self._file.read(self.log.end)
            self.log.feed(data)
