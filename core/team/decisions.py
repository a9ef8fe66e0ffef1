"""Decisions of a project: those sent, and those the space has made meanwhile.

Below, the hash chain of a space's decisions: the server writes it in commit order, every client can verify it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.decisions.case import about_text, verb_text
from core.decisions.conflicts import conflict_keys
from core.decisions.merge import as_read
from core.decisions.pattern_registry import Registry
from core.files.file_reader import is_nested_deeper
from core.files.json_editor import BadJson, parse_value
from core.records.decisions import SYNC, TURNS, Decision, Effect, Verb, name_of, sign_as_member
from core.records.patterns import PatternType
from core.records.team import MAX_DECISION_BYTES, ChainHead, Level, PatternText, SpaceDecision
from core.records.times import parse_time
from core.sources.pattern_text import LIST_OF
from core.team.connection import ChainBroken, InvalidCall, LevelTooLow, LimitReached, TooLarge, find_joined
from core.team.local_state import DECISIONS_HASH, DECISIONS_SEQ, JOINED, LAST_SYNC, LocalState, TextBase
from core.team.receive import Receiver
from core.team.refusals import Seen, decisions_to_send, describe_late, seen_before, undo_refused
from core.team.server import Space
from core.team.sharing import is_shared
from core.team.texts import make_text

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.records.team import DecisionReceipt, SpaceDecision
    from core.team.sharing import Sharing
    from core.team.texts import OpenProject

_TURNED: Final = {Verb.UNDO: "undone", Verb.REDO: "redone"}
_PAGE: Final = 1_000  # decisions read at once
_MAX_BYTES: Final = 64 << 20  # decisions received by one sync, so that it ends
_SERVER: Final = "decisions_server"
_WITHOUT_TEXT: Final = frozenset({Verb.NOTE, Verb.SNOOZE, Verb.DISMISS})
"""Verbs of decisions that are not bound to a text."""
_SEND_TEXT: Final = frozenset({Verb.PROMOTE, Verb.RELEASE})
"""Verbs of decisions with which a text goes to the space, even if it was in quarantine until then."""

_REMOVED: Final = "removed"
"""Content hash of a pattern in the space that was removed from the registry."""


class DecisionCall(NamedTuple):
    """Arguments of `Space.decide`, and the local texts that the space then has."""

    payload: str
    subjects: tuple[str, ...]
    seen: Seen
    texts: dict[str, str]
    records: tuple[PatternText, ...]
    bases: dict[str, TextBase]

    def send(self, space: Space, project: UUID) -> DecisionReceipt:
        """Send the decision; raises TooLarge, and what `Space.decide` raises."""
        if (size := len(self.payload.encode())) > MAX_DECISION_BYTES:
            raise TooLarge(f"the decision has {size:,} bytes, more than the 1 MiB that a team takes")
        return space.decide(
            project,
            self.payload,
            self.subjects,
            seen=self.seen.seq,
            known=self.seen.known,
            texts=self.texts,
            records=self.records,
        )


class Decisions:
    """Exchanges a project's decisions with its space; `sharing()` masks the texts.

    `sent_texts` counts the texts that went with decisions. `notes` say what was left out, and why.
    """

    def __init__(
        self, project: OpenProject, state: LocalState, project_id: UUID, sharing: Callable[[], Sharing]
    ) -> None:
        self._project = project
        self._state = state
        self._project_id = project_id
        self._sharing = sharing
        self.sent_texts = 0
        self.notes: list[str] = []
        self._early: tuple[int, tuple[str, ...]] = 0, ()  # received before decisions were sent

    # To the space

    def send(self, space: Space) -> tuple[int, tuple[str, ...]]:
        """Send local decisions; return their number, and why refused ones were undone.

        What was decided before the project joined stays, even if the member may not decide.
        """
        if not self.cursor:  # what the project had seen when it decided is not known, as after a loss of the state
            self._early = self._pull(space)
        is_first = not self._state.fact(LAST_SYNC)
        count = 0
        refused: list[str] = []
        for decision in self.unsent():
            if decision.id in self._project.ledger.state().undone and decision.verb not in TURNS:
                continue  # it depended on one that was refused
            call = self.call(decision, space.info.member)
            try:
                receipt = call.send(space, self._project_id)
            except LimitReached as error:
                self.notes.append(str(error))
                break  # the decisions after it are sent after it
            except (LevelTooLow, InvalidCall) as error:
                stays = is_first or isinstance(error, InvalidCall) or decision.verb is Verb.EXTRACT
                why = str(error)
                if stays and not is_first:
                    about = about_text(decision, self._project.ledger.by_id())
                    self.notes.append(f"{verb_text(decision)} {about} stays in this project: {why}")
            else:
                if receipt.seq is not None:
                    self.accepted(decision, call, receipt.seq)
                    count += 1
                    continue
                known = self._project.ledger.by_id()
                stays, why = False, describe_late(receipt.conflicts[0], known, self.own_record)
            if stays or decision.is_unattended:
                self._state.add_decisions([(decision.id, None)])  # it stays a decision of this project alone
            else:
                refused += self._undo(decision, why)
        return count, tuple(refused)

    def unsent(self) -> list[Decision]:
        """Return the decisions that are to be sent, oldest first."""
        seqs = self._state.decision_seqs()
        found = decisions_to_send(self._project.ledger.counting_decisions(), seqs)
        return [one for one in found if is_shared(one) and (one.verb not in TURNS or seqs.get(one.subject) is not None)]

    def count_unsent(self) -> int:
        return len(self.unsent())

    def payloads(self) -> tuple[str, ...]:
        """Return the decisions that `send` would send, as JSON.

        Before the project joined, the name of the member is not known, and the name of the author is used.
        """
        member = self._state.fact(JOINED)
        return tuple(self.call(decision, member or name_of(decision.by)).payload for decision in self.unsent())

    def call(self, decision: Decision, member: str) -> DecisionCall:
        """Return the call that sends a decision; a person's gets the member as author."""
        sharing, patterns = self._sharing(), self._project.view.snapshot.patterns
        known = self._project.ledger.by_id()
        texts = _Texts(decision, sharing, patterns, self._records(decision, patterns), self._state.text_bases())
        shared = sharing.decision(decision) or decision
        shared = replace(shared, by=sign_as_member(decision.by, member))
        self._state.add_hashes(TextBase(*pair) for pair in sharing.pairs.items() if pair[0] != pair[1])
        seqs = {key: seq for key, seq in self._state.decision_seqs().items() if seq is not None}
        return DecisionCall(
            payload=msgspec.json.encode(shared).decode(),
            subjects=conflict_keys(decision, known),
            seen=seen_before(decision.id, self._project.ledger.decisions(), seqs, self.cursor),
            texts=texts.expected(),
            records=tuple(texts.records.values()),
            bases=texts.bases,
        )

    def accepted(self, decision: Decision, call: DecisionCall, seq: int) -> None:
        """Record that the space has a decision."""
        with self._state.transaction():
            self._state.add_decisions([(decision.id, seq)])
            self._state.set_texts(call.bases)
        self.sent_texts += len(call.records)

    def _records(self, decision: Decision, patterns: Mapping[str, Pattern]) -> Mapping[str, dict[str, Any]]:
        """Return the records of the patterns that a decision is about."""
        names = {decision.subject, *(effect.pattern_id for effect in decision.effects)}
        here = [patterns[name] for name in names if name in patterns]
        return Registry(self._project.project).records(here)

    def own_record(self, pattern_id: str) -> Mapping[str, Any]:
        """Return a record of this project as the space would get it; {} if there is none."""
        pattern = self._project.view.snapshot.patterns.get(pattern_id)
        found = Registry(self._project.project).records([pattern]) if pattern is not None else {}
        return self._sharing().pattern(pattern.type, found[pattern_id]).record if pattern and found else {}

    def _undo(self, decision: Decision, why: str) -> Iterator[str]:
        """Undo a decision that the space refused; yields what was undone, and why."""
        project = self._project
        made = undo_refused(
            project.project,
            project.settings,
            project.ledger,
            {decision.id: why},
            sent=self._state.known_decisions(),
            now=project.now(),
        )
        project.apply((project.project.ledger, project.project.patterns))
        return map(self._describe, made)

    def _describe(self, turn: Decision) -> str:
        """Describe an undo of the sync to the author of what it undid."""
        return f"{_TURNED[turn.verb]}: {about_text(turn, self._project.ledger.by_id())}; {turn.reason}"

    # From the space

    @property
    def cursor(self) -> int:
        """Number of the last decision up to which the project has received all."""
        return int(self._state.fact(DECISIONS_SEQ, "0"))

    def receive(self, space: Space) -> tuple[int, tuple[str, ...]]:
        """Write the space's decisions; return their number, and why own were undone.

        Raises ChainBroken if they do not continue those that were received before.
        """
        (early, reasons), self._early = self._early, (0, ())
        count, more = self._pull(space)
        return early + count, (*reasons, *more)

    def _pull(self, space: Space) -> tuple[int, tuple[str, ...]]:
        head = self._checked_head(space)
        received: list[Decision] = []
        size = 0
        while rows := space.decisions(head.seq, _PAGE):
            head, new = self.take(space, head, rows)
            received += new
            size += sum(len(row.payload) for row in rows)
            if size > _MAX_BYTES:
                self.notes.append("more than 64 MB of decisions are new in the space; the next sync receives more")
                break
        reasons = tuple(map(self._describe, (decision for decision in received if decision.by == SYNC)))
        return len(received) - len(reasons), reasons

    def take(
        self, space: Space, head: ChainHead, rows: Sequence[SpaceDecision]
    ) -> tuple[ChainHead, tuple[Decision, ...]]:
        """Write decisions that follow `head`; return the new head and those written."""
        head = verify(head, rows)
        large = [row for row in rows if len(row.payload.encode()) > MAX_DECISION_BYTES]
        self.notes += (
            f"decision {row.seq} of the space, by {visible_line(row.member, 80)}, is larger than 1 MiB; "
            "it was verified and not received"
            for row in large
        )
        decisions = [one for row in rows if row not in large and (one := _decode(row)) is not None]
        own = {key for key, one in self._project.ledger.by_id().items() if not is_shared(one)}
        decisions = [one for one in decisions if one.verb not in TURNS or one.subject not in own]
        new = self._receiver().receive(decisions, self._project.now(), proposed_by=_proposals(space, rows, decisions))
        with self._state.transaction():
            self._state.add_decisions((row.id, row.seq) for row in rows)
            self._state.set_texts(self._inserted_texts(new))
            self._state.set_facts(**{DECISIONS_SEQ: head.seq, DECISIONS_HASH: head.hash.hex(), _SERVER: space.server})
        if new:
            project = self._project.project
            self._project.apply((project.ledger, project.patterns, project.events))
        return head, new

    def _inserted_texts(self, received: Sequence[Decision]) -> dict[str, TextBase]:
        """Return texts that received decisions inserted; others in the space are newer."""
        known = self._state.text_bases()
        found = {}
        for effect in (effect for decision in received for effect in decision.effects):
            base = known.get(effect.pattern_id)
            if effect.insert is not None and not effect.beside and (base is None or not base.local):
                local = as_read(effect.insert, PatternType(effect.type)).content_hash
                found[effect.pattern_id] = TextBase(local, self._state.to_shared(local))
        return found

    def head(self, space_id: UUID) -> ChainHead:
        """Return the last decision of the space that the project has received."""
        return self._state.received_head() or first_head(space_id)

    def _checked_head(self, space: Space) -> ChainHead:
        """Return the last received decision; restart from the first if it is missing."""
        head = self.head(space.info.id)
        if not head.seq:
            return head
        rows = space.decisions(head.seq - 1, 1)
        if rows and (rows[0].seq, rows[0].hash) == (head.seq, head.hash):
            if self._state.fact(_SERVER) != space.server:
                with self._state.transaction():
                    self._state.forget_decisions(after=head.seq)  # it may have lost them
                    self._state.set_facts(**{_SERVER: space.server})
            return head
        if self._state.fact(_SERVER) == space.server:
            raise ChainBroken(
                f"decision {head.seq} of the space {space.info.name} is not the one that this project received: "
                "the decisions were replaced; ask an admin, and see: ralphdeck log --verify"
            )
        # The server was restored from a backup. Each project sends again what it had decided itself.
        by_id, own = self._project.ledger.by_id(), self._project.by
        received = [key for key in self._state.known_decisions() if key in by_id and by_id[key].by != own]
        with self._state.transaction():
            self._state.forget_decisions()
            self._state.add_decisions((key, None) for key in received)
            self._state.set_facts(**{DECISIONS_SEQ: 0, DECISIONS_HASH: ""})
        return first_head(space.info.id)

    def _receiver(self) -> Receiver:
        project = self._project

        def read() -> tuple[Snapshot, Scoreboard]:
            state, _ = project.apply((project.project.ledger, project.project.patterns, project.project.events))
            return state.snapshot, state.board

        sent = self._state.known_decisions()
        return Receiver(
            project.project, project.settings, project.ledger, read, sent=sent, to_local=self._state.to_local
        )


class _Texts:
    """Texts that the space must have, and gets, with one decision."""

    def __init__(
        self,
        decision: Decision,
        sharing: Sharing,
        patterns: Mapping[str, Pattern],
        records: Mapping[str, Mapping[str, Any]],
        known: Mapping[str, TextBase],
    ) -> None:
        self._decision = decision
        self._sharing = sharing
        self._patterns = patterns
        self._known = known
        self._hashes: dict[str, str] = {}  # of own texts, as the space would get them
        self.records: dict[str, PatternText] = {}
        self.bases: dict[str, TextBase] = {}
        for pattern_id, record in records.items():
            shared = sharing.pattern(patterns[pattern_id].type, record)
            self._hashes[pattern_id] = shared.shared_hash
        for effect in decision.effects:
            self._add(effect, records)
        if decision.verb in _SEND_TEXT and decision.subject in records and decision.subject not in self.records:
            self._put(patterns[decision.subject].type, decision.subject, records[decision.subject])

    def _add(self, effect: Effect, records: Mapping[str, Mapping[str, Any]]) -> None:
        pattern_id = effect.pattern_id
        if effect.beside or effect.type not in LIST_OF or "/archive/" in effect.file:
            return
        kind = PatternType(effect.type)
        if effect.insert is not None:
            if self._decision.verb is not Verb.IMPORT:  # its text is sent when a person has released it
                self._put(kind, pattern_id, effect.insert)
        elif effect.remove:
            if pattern_id in self._known:
                self.records[pattern_id] = PatternText(
                    pattern_id=pattern_id,
                    type=effect.type,
                    content_hash=_REMOVED,
                    expected=self._known[pattern_id].shared,
                )
                self.bases[pattern_id] = TextBase("", _REMOVED)
        elif pattern_id in records:
            after = _changed(records[pattern_id], effect)
            if self._sharing.pattern(kind, after).shared_hash != self._hashes[pattern_id]:
                self._put(kind, pattern_id, after)

    def _put(self, kind: PatternType, pattern_id: str, record: Mapping[str, Any]) -> None:
        shared = self._sharing.pattern(kind, record)
        base = self._known.get(pattern_id)
        if base is not None and base.shared == shared.shared_hash:
            return
        expected = base.shared if base is not None else ""
        pattern = as_read({**record, "pattern_id": pattern_id}, kind)
        self.records[pattern_id] = make_text(pattern, shared.record, shared.shared_hash, expected)
        self.bases[pattern_id] = TextBase(shared.local_hash, shared.shared_hash)

    def expected(self) -> dict[str, str]:
        """Return the hash that each pattern's text must have in the space, if present."""
        if self._decision.verb in _WITHOUT_TEXT or self._decision.verb in TURNS:
            return {}
        found = {}
        for pattern_id in {*self._hashes, *self.records}:
            base, own = self._known.get(pattern_id), self._hashes.get(pattern_id)
            new = self.records[pattern_id].content_hash if pattern_id in self.records else own
            found[pattern_id] = base.shared if base is not None else new or ""
        return found


def _changed(record: Mapping[str, Any], effect: Effect) -> dict[str, Any]:
    """Return a record after an effect."""
    changed = {**record, **effect.set}
    for key, text in effect.text.items():
        try:
            changed[key] = parse_value(text)
        except BadJson:
            continue
    return {key: value for key, value in changed.items() if key not in effect.unset}


def _decode(row: SpaceDecision) -> Decision | None:
    """Decode a decision; None if this version cannot read, store or share it.

    Its author is the member who sent it, whatever it contains.
    """
    if is_nested_deeper(row.payload.encode("utf-8", "replace")):
        return None
    try:
        decision = msgspec.json.decode(row.payload, type=Decision)
    except (msgspec.MsgspecError, RecursionError):
        return None
    at = parse_time(decision.at)
    if at is None or decision.id != row.id or not is_shared(decision):
        return None
    return replace(decision, at=at, by=sign_as_member(decision.by, row.member))


def _proposals(space: Space, rows: Sequence[SpaceDecision], decisions: Sequence[Decision]) -> dict[str, str]:
    """Return the members who may only propose, by the IDs of their extractions."""
    extractions = {decision.id for decision in decisions if decision.verb is Verb.EXTRACT}
    if not extractions:
        return {}
    deciding = {one.name for one in space.members() if one.level is not None and one.level.allows(Level.REVIEWER)}
    return {row.id: row.member for row in rows if row.id in extractions and row.member not in deciding}


class _Identified(msgspec.Struct):
    id: str


def first_head(space_id: UUID) -> ChainHead:
    """Return the head of a space without decisions."""
    return ChainHead(seq=0, hash=sha256(str(space_id).encode()).digest())


def link_hash(previous: bytes, seq: int, recorded_at: datetime, member: str, payload: str) -> bytes:
    """Return a decision's hash; equal to the SQL function `ralphdeck.link_hash`."""
    name = member.encode()
    moment = recorded_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    parts = (previous, seq.to_bytes(8), moment.encode(), len(name).to_bytes(4), name, payload.encode())
    return sha256(b"".join(parts)).digest()


def verify(head: ChainHead, decisions: Iterable[SpaceDecision]) -> ChainHead:
    """Verify decisions that follow `head`; return the new head or raise ChainBroken."""
    for decision in decisions:
        if decision.seq != head.seq + 1:
            raise ChainBroken(f"decision {head.seq + 1} is missing in the space; the next one is {decision.seq}")
        expected = link_hash(head.hash, decision.seq, decision.recorded_at, decision.member, decision.payload)
        if expected != decision.hash or _id_of(decision.payload) not in (None, decision.id):
            raise ChainBroken(
                f"decision {decision.seq} of the space, or one before it, was changed after it was recorded"
            )
        head = ChainHead(seq=decision.seq, hash=expected)
    return head


def _id_of(payload: str) -> str | None:
    """Return the ID in a payload; None if unreadable, as members can send any JSON."""
    try:
        return msgspec.json.decode(payload, type=_Identified).id
    except (msgspec.DecodeError, RecursionError):
        return None


class SpaceVerification(Struct, frozen=True, kw_only=True):
    """Result for a joined project's space; with an `obstacle`, nothing was verified."""

    space: str
    decisions: int = 0
    problem: str = ""
    obstacle: str = ""

    @property
    def summary(self) -> str:
        name = f"team {visible_line(self.space, 80)}"
        if self.obstacle:
            return f"{name}: not verified: {visible_line(self.obstacle, 300)}"
        if self.problem:
            return f"{name}: {visible_line(self.problem, 300)}"
        return f"{name}: {plural(self.decisions, 'decision')}: hash chain intact"


def verify_space(space: Space, received: ChainHead) -> int:
    """Verify all decisions of a space; return their number, or raise ChainBroken.

    `received` is the last one that this project has received; the same must be in the space.
    """
    head = first_head(space.info.id)
    is_found = received == head
    while rows := space.decisions(head.seq):
        head = verify(head, rows)
        is_found |= any((row.seq, row.hash) == (received.seq, received.hash) for row in rows)
    if not is_found:
        raise ChainBroken(f"decision {received.seq} of the space is not the one that this project received")
    if (end := space.head()).seq < head.seq or (end.seq == head.seq and end.hash != head.hash):
        raise ChainBroken(f"the space has {end.seq} decisions by its own count, but {head.seq} were found")
    return head.seq


def verify_joined(project: Path) -> SpaceVerification | None:
    """Verify a project's space over the network; None if it has not joined one."""
    joined = find_joined(project)
    if joined is None:
        return None
    try:
        with closing(LocalState(project)) as state, closing(Space.connect(joined.conninfo, joined.space)) as space:
            received = state.received_head() or first_head(space.info.id)
            return SpaceVerification(space=joined.space, decisions=verify_space(space, received))
    except ChainBroken as error:
        return SpaceVerification(space=joined.space, problem=str(error))
    except RalphdeckError as error:
        return SpaceVerification(space=joined.space, obstacle=str(error))
