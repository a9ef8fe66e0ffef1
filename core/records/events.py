"""Dated facts about loops and patterns: the event log, and the evidence made of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

INJECTED_REFLECTION: Final = "injected-reflection"
"""Kind of the event that a loop got a reflection in its context."""


def event_id(at: datetime) -> str:
    """A new id for what happened at this time; ids sort by time and never meet, whoever makes them."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(8).hex()}"


class Signals(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a loop or attempt came to, beside its success (2) Recording Outcomes; None = not known.

    Attributes:
        duration_ms: From start to end, ms.
        error_count: All errors on the way, resolved ones included.
        retry_count: Attempts before the last one.
        files_touched: Paths as they were told.
        strategy, failure_mode, failure_details: As they were told, "" for none.
    """

    duration_ms: float | None = None
    error_count: int | None = None
    retry_count: int | None = None
    files_touched: tuple[str, ...] = ()
    strategy: str = ""
    failure_mode: str = ""
    failure_details: str = ""


class ErrorType(StrEnum):
    """(2) Error Types."""

    VALIDATION = "validation"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    TOOL_FAILURE = "tool_failure"
    UNKNOWN = "unknown"


class ErrorNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one error (2) Recording Errors; untrusted text throughout."""

    error_type: ErrorType
    message: str
    stack_trace: str = ""
    tool_name: str = ""
    context: str = ""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of `shared/curation/events.jsonl` (semantics 1, source 1).

    Attributes:
        id: Unique.
        at: When, UTC.
        kind: injected, applied, extracted, outcome, feedback, counted, error, resolved or injected-reflection.
        pattern_id, loop_id: "" where the event has none. A work item is a loop or an attempt: `loop_id` is
            the id of either. An outcome without a pattern is that of the whole loop.
        success: For applied / outcome / feedback; None = unknown, of feedback on a criterion neutral.
        weight: 0..1.
        by: Who recorded it.
        agent: The agent that reported it; "" if unknown.
        criterion: What feedback is about, where it is no pattern (2) Criterion Weight Calculation.
        text: What feedback says beside its result.
        signals: Of an outcome.
        error: Of an error.
        resolves: Of kind resolved: the id of the error event.
        reflection_id: Of kind injected-reflection: the reflection that the loop got.
        decision: The decision that it came of; if that is taken back, it does not count.
        unrecorded: Of kind counted: the evidence that the pattern's record alone told of when ralphdeck began, or
            went on, to keep its counts.
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
    agent: str = ""
    criterion: str = ""
    text: str = ""
    signals: Signals | None = None
    error: ErrorNote | None = None
    resolves: str = ""
    decision: str = ""
    reflection_id: str = ""
    unrecorded: tuple[Observation, ...] = ()


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
        inferred: The result is how the whole loop came out; nothing tells of this use (semantics 2).
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
    inferred: bool = False
