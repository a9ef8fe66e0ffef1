"""Dated facts about patterns: the event log, and the evidence made of it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of `shared/curation/events.jsonl` (semantics 1, source 1).

    Attributes:
        id: Unique.
        at: When, UTC.
        kind: injected, applied, extracted, outcome or feedback.
        pattern_id, loop_id: "" where the event has none.
        success: For applied / outcome / feedback; None = unknown.
        weight: 0..1.
        by: Who recorded it.
    """

    id: str
    at: datetime
    kind: str
    pattern_id: str = ""
    loop_id: str = ""
    success: bool | None = None
    weight: float = 1.0
    iteration: int | None = None
    by: str = ""


class Observation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Evidence: one use of one pattern by one loop, or `count` uses that only a sum tells of (semantics 1).

    Attributes:
        kind: discovered, applied, injected, feedback, trend or aggregate.
        at: When, UTC; None only where no file gives any time at all (then it does not decay).
        success: True, False, or None for exposure without result.
        weight: 0..1.
        source: event-log, loop, discovery, trend or aggregate: the sources 1 to 5 of semantics.md.
        count: How many uses this stands for; > 1 only for trend and aggregate.
        derived: The count was computed from a rate, not counted.
        note: A short word on where it comes from, e.g. the iteration.
    """

    pattern_id: str
    kind: str
    source: str
    loop_id: str = ""
    at: datetime | None = None
    success: bool | None = None
    weight: float = 1.0
    count: int = 1
    iteration: int | None = None
    derived: bool = False
