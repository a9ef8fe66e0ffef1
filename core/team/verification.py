"""Hash chain of a space's decisions: the server writes it in commit order, every client can verify it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import msgspec
from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.records.team import ChainHead, SpaceDecision
from core.team.consent import find_joined
from core.team.errors import ChainBroken
from core.team.local_state import LocalState
from core.team.server import Space


class _Identified(msgspec.Struct):
    id: str


def first_head(space_id: UUID) -> ChainHead:
    """Return the head of a space without decisions."""
    return ChainHead(seq=0, hash=sha256(str(space_id).encode()).digest())


def link_hash(previous: bytes, seq: int, recorded_at: datetime, member: str, payload: str) -> bytes:
    """Return the hash of a decision; the same as the SQL function `ralphdeck.link_hash`."""
    name = member.encode()
    moment = recorded_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    parts = (previous, seq.to_bytes(8), moment.encode(), len(name).to_bytes(4), name, payload.encode())
    return sha256(b"".join(parts)).digest()


def verify(head: ChainHead, decisions: Iterable[SpaceDecision]) -> ChainHead:
    """Verify decisions that follow `head`; returns the new head, or raises ChainBroken."""
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
    """Return the ID in a payload; None if it cannot be read, as a member can send any JSON."""
    try:
        return msgspec.json.decode(payload, type=_Identified).id
    except (msgspec.DecodeError, RecursionError):
        return None


class SpaceVerification(Struct, frozen=True, kw_only=True):
    """The result for the space of a joined project; with an `obstacle` nothing was verified."""

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
    """Verify the space of a project over the network; None if the project has not joined one."""
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
