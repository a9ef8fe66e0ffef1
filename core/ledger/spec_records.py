"""Records of the learning library in the decision log: one line each, the newest line of an ID counts."""

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
    """Encode a record as a line of the decision log."""
    kind = _PATTERN if isinstance(record, ObservedPattern) else _MATURITY
    return {"kind": kind, "record": msgspec.to_builtins(record)}


def record_of(line: Mapping[str, Any]) -> Record | None:
    """Decode a line of the decision log; None for a line of another kind.

    Raises:
        ValueError: The line is not a valid record.
    """
    if line.get("kind") == _PATTERN:
        return ObservedPattern(**asdict(msgspec.convert(line.get("record"), _PatternLine)))
    if line.get("kind") == _MATURITY:
        return msgspec.convert(line.get("record"), PatternMaturity)
    return None


def key_of(record: Record) -> tuple[type[Record], str]:
    """Key of a record; a second record with the same key replaces the first."""
    return type(record), record.id if isinstance(record, ObservedPattern) else record.pattern_id
