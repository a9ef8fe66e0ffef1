"""Records that the ledger keeps beside its decisions: one line each, of which the newest of an id counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from core.learning.decay import moment
from core.learning.inversion import ObservedPattern
from core.learning.maturity import PatternMaturity

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
    """The record that a line of the ledger says; None for a line of another kind. Times come back in UTC.

    Raises:
        ValueError: The line is not a record that can be used.
    """
    if line.get("kind") == _PATTERN:
        pattern = ObservedPattern(**asdict(msgspec.convert(line.get("record"), _PatternLine)))
        return replace(pattern, **_times(pattern))
    if line.get("kind") == _MATURITY:
        maturity = msgspec.convert(line.get("record"), PatternMaturity)
        return replace(maturity, **_times(maturity))
    return None


def key_of(record: Record) -> tuple[type[Record], str]:
    """What tells records apart: a second one of the same key replaces the first."""
    return type(record), record.id if isinstance(record, ObservedPattern) else record.pattern_id


def _times(record: Record) -> dict[str, datetime]:
    return {name: moment(value, name) for name, value in asdict(record).items() if isinstance(value, datetime)}
