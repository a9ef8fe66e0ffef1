"""Events of the event log, and the evidence derived from them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

INJECTED_REFLECTION: Final = "injected-reflection"
"""Kind of the event that a reflection was injected into a loop's context."""


def event_id(at: datetime) -> str:
    """A new unique ID that sorts by time."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(8).hex()}"


class Signals(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Signals of an outcome beside its success; None means unknown.

    Attributes:
        duration_ms: From start to end, ms.
        error_count: All errors, including resolved ones.
        retry_count: Attempts before the last one.
        files_touched: Paths as recorded.
        strategy, failure_mode, failure_details: As recorded; "" without one.
    """

    duration_ms: float | None = None
    error_count: int | None = None
    retry_count: int | None = None
    files_touched: tuple[str, ...] = ()
    strategy: str = ""
    failure_mode: str = ""
    failure_details: str = ""


class ErrorType(StrEnum):
    """Type of a recorded error."""

    VALIDATION = "validation"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    TOOL_FAILURE = "tool_failure"
    UNKNOWN = "unknown"


class ErrorNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded error; every text is untrusted."""

    error_type: ErrorType
    message: str
    stack_trace: str = ""
    tool_name: str = ""
    context: str = ""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of `shared/curation/events.jsonl` (docs/file-formats.md#event-log).

    Attributes:
        id: Unique.
        at: When, UTC.
        kind: injected, applied, extracted, outcome, feedback, counted, error, resolved or injected-reflection.
        pattern_id, loop_id: "" without one; `loop_id` is the ID of a work item (loop or attempt). An outcome without a
            pattern is that of the whole work item.
        success: For applied, outcome and feedback; None is unknown, or neutral for feedback on a criterion.
        weight: 0..1.
        by: The user or program that recorded it.
        agent: The agent that reported it; "" if unknown.
        criterion: The subject of feedback that is not about a pattern.
        text: Comment of feedback.
        signals: Of an outcome.
        error: Of an error.
        resolves: For kind resolved, the ID of the error event.
        reflection_id: For kind injected-reflection, the reflection.
        decision: The decision that caused it; if that is undone, the event does not count.
        unrecorded: For kind counted, the evidence that existed only in the pattern's record when ralphdeck started to
            update its counts.
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
    """Evidence: one use of one pattern by one loop, or `count` uses that are only known as a sum.

    Attributes:
        kind: discovered, applied, injected, feedback, trend or aggregate.
        at: When, UTC; None only if no file contains a time (then it does not decay).
        success: True, False, or None for an injection without result.
        weight: 0..1.
        source: event-log, loop, discovery, trend or aggregate.
        count: Number of uses; > 1 only for trend and aggregate.
        derived: Whether the count was computed from a rate.
        inferred: Whether the result is only that of the whole loop (docs/scoring.md).
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
