"""Records that the ledger keeps beside its decisions: one line each, of which the newest of an id counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from core.learning.reference.maturity import PatternMaturity
from core.learning.reference.patterns import ObservedPattern

Record = ObservedPattern | PatternMaturity
_PATTERN: Final = "observed-pattern"
_MATURITY: Final = "maturity"


class _PatternLine(Struct, frozen=True, kw_only=True):
    """An `ObservedPattern` in a file, where a time has one form."""

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
    """The line of the ledger that says `record`."""
    kind = _PATTERN if isinstance(record, ObservedPattern) else _MATURITY
    return {"kind": kind, "record": msgspec.to_builtins(record)}


def record_of(line: Mapping[str, Any]) -> Record | None:
    """The record that a line of the ledger says; None for a line of another kind.

    Raises:
        ValueError: The line is not a record that can be used.
    """
    if line.get("kind") == _PATTERN:
        return ObservedPattern(**asdict(msgspec.convert(line.get("record"), _PatternLine)))
    if line.get("kind") == _MATURITY:
        return msgspec.convert(line.get("record"), PatternMaturity)
    return None


def key_of(record: Record) -> tuple[type[Record], str]:
    """What tells records apart: a second one of the same key replaces the first."""
    return type(record), record.id if isinstance(record, ObservedPattern) else record.pattern_id
