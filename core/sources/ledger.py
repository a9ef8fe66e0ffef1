"""The decision log of a project: append, read and query decisions."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.files.append_log import AppendLog
from core.files.file_access import as_unwritable
from core.files.file_reader import MAX_PATTERN_BYTES
from core.files.hash_chain import UNANCHORED, end_of, link_lines, read_anchor, write_anchor
from core.sources.decision_log import FILE, AppliedLine, DecisionLog
from core.sources.fold import fold_log, with_proposals
from core.trust.origins import Origins

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.decisions import CurationState, Decision
    from core.records.proposed_decisions import ProposedDecision


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
        """Return the IDs of the decisions that were made elsewhere and are not confirmed here."""
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
        """Return the decisions that were made or confirmed here; all of them in a trusted path."""
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
        """Return the state if these own decisions followed those of the log, without proposals."""
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
