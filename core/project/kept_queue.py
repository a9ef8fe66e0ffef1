"""Review questions as bytes, for the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, get_type_hints

import msgspec

from core.debug_memory.escalations import EscalatedSession
from core.learning.bursts import Burst
from core.learning.inversion_rules import Inversion
from core.records.extractions import Extraction
from core.records.lessons import JoinedLesson
from core.records.proposed_decisions import ProposedDecision
from core.state import review_items
from core.state.review_items import INVERSION, ReviewItem

_NOT_KEPT = {"propose", "group"}  # a function, and what no question of the queue has


@cache
def _values_type() -> type[msgspec.Struct]:
    """Return a type with the fields of a question that are values."""
    types = {
        one.__name__: one for one in (Burst, EscalatedSession, Extraction, Inversion, JoinedLesson, ProposedDecision)
    }
    hints = get_type_hints(ReviewItem, vars(review_items) | types)
    return msgspec.defstruct("Values", [(name, hint) for name, hint in hints.items() if name not in _NOT_KEPT])


def encode_queue(queue: Sequence[ReviewItem]) -> bytes:
    names = _values_type().__struct_fields__
    return msgspec.msgpack.encode([{name: getattr(item, name) for name in names} for item in queue])


def decode_queue(data: bytes, propose: Callable[[str], Inversion]) -> tuple[ReviewItem, ...]:
    """Return the encoded questions; `propose` makes the proposal to invert a pattern. Raises MsgspecError."""
    found: list[Any] = msgspec.msgpack.decode(data, type=list[_values_type()])  # type: ignore[misc]
    return tuple(
        ReviewItem(
            **msgspec.structs.asdict(one),
            propose=partial(propose, one.subject) if one.kind == INVERSION else None,
        )
        for one in found
    )
