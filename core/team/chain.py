"""Hash chain of a space's decisions: the server writes it in commit order, every client can verify it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from core.records.team import ChainHead, SpaceDecision
from core.team.errors import ChainBroken


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
