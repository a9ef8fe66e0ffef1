"""Errors of a subtask, for its next attempt to know of and for its outcome to count (2) Error Accumulator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from core.base.errors import BadInput
from core.base.prompt_text import escape_inline
from core.base.text import MAX_SUBJECT, plural
from core.base.validation import check_flag, check_text, format_value
from core.config.settings import InjectionSettings
from core.learning.decay import moment, set_moment
from core.learning.storage import ErrorStorage, MemoryErrors
from core.records.events import ErrorNote, ErrorType, event_id

_MAX_CHARS: Final = InjectionSettings().max_field_chars
_MAX_SHOWN: Final = 20
"""Newest errors of one type that a prompt tells of; of the others it gives the number."""
_HEADING: Final = "## Previous Errors\n\nThe following errors were encountered during execution:"
_ACTION: Final = """\
**Action Required**: Address these errors before proceeding. Consider:

- What caused each error?
- How can you prevent similar errors?
- Are there patterns across error types?"""
# In the order in which they are tried: what timed out or collided was mostly a tool as well.
_WORDS: Final = (
    (ErrorType.TIMEOUT, r"time[ds]?[ -]?out|time limit|deadline exceeded|took too long|ETIMEDOUT"),
    (ErrorType.CONFLICT, r"conflict|reserv(?:ed|ation)|locked by|already (?:claimed|held|locked)"),
    (
        ErrorType.VALIDATION,
        r"validation|schema|invalid|type ?error|missing (?:import|field|key|property|argument)"
        r"|not assignable|syntax ?error|expected .{1,80}(?:found|got|received)",
    ),
    (
        ErrorType.TOOL_FAILURE,
        r"\btool\b|command (?:failed|not found)|exit(?:ed)?(?: with)?(?: code| status)|non-zero|ENOENT|spawn",
    ),
)
_CLASSES: Final = tuple((type_, re.compile(words, re.IGNORECASE)) for type_, words in _WORDS)


class ErrorEntry(ErrorNote, frozen=True, kw_only=True):
    """One error of one subtask (2) Recording Errors.

    Attributes:
        id: Unique.
        bead_id: The subtask.
        timestamp: ISO-8601 or `datetime`; kept in UTC.
        resolved: It was fixed since.

    Raises:
        BadInput: A value of another type, a time that can't be parsed, or an error type that is none of the five.
    """

    id: str
    bead_id: str
    timestamp: str | datetime
    resolved: bool = False

    def __post_init__(self) -> None:
        for field_ in ("id", "bead_id", "message", "stack_trace", "tool_name", "context"):
            check_text(getattr(self, field_), field_)
        check_flag(self.resolved, "resolved")
        set_moment(self, "timestamp")
        force_setattr(self, "error_type", _error_type(self.error_type))


class ErrorStats(Struct, frozen=True, kw_only=True):
    """How many errors a subtask had (2) Error Statistics.

    Attributes:
        total: All of them, resolved ones included: the `error_count` of an outcome.
        by_type: How many of each type that occurred.
    """

    total: int
    unresolved: int
    by_type: dict[str, int]


def _error_type(value: str) -> ErrorType:
    try:
        return ErrorType(value)
    except ValueError:
        known = ", ".join(ErrorType)
        raise BadInput(f"error_type must be one of {known}, not {format_value(value)}") from None


def classify_error(message: str) -> ErrorType:
    """The type that the words of a message speak for; unknown where none does."""
    for error_type, words in _CLASSES:
        if words.search(message[:MAX_SUBJECT]):
            return error_type
    return ErrorType.UNKNOWN


class ErrorAccumulator:
    """The errors of all subtasks of a project, or of one run."""

    def __init__(self, storage: ErrorStorage | None = None) -> None:
        """`storage`: where they are kept; in memory by default."""
        self._storage = storage or MemoryErrors()

    def record_error(
        self,
        bead_id: str,
        error_type: str,
        message: str,
        *,
        now: str | datetime,
        stack_trace: str = "",
        tool_name: str = "",
        context: str = "",
    ) -> ErrorEntry:
        """Keep one error, under a new id.

        Raises:
            BadInput: `error_type` is none of the five, `now` can't be parsed, or something else is no text.
        """
        at = moment(now, "now")
        entry = ErrorEntry(
            id=event_id(at),
            bead_id=bead_id,
            timestamp=at,
            error_type=_error_type(error_type),
            message=message,
            stack_trace=stack_trace,
            tool_name=tool_name,
            context=context,
        )
        self._storage.store(entry)
        return entry

    def resolve_error(self, error_id: str) -> None:
        """Note that an error was fixed; once more changes nothing.

        Raises:
            UnknownRecord: There is no error of this id.
        """
        self._storage.mark_resolved(error_id)

    def get_errors(self, bead_id: str) -> list[ErrorEntry]:
        """All errors of a subtask, resolved ones included, in the order in which they were recorded."""
        return self._storage.get_by_bead(bead_id)

    def get_error_context(self, bead_id: str, include_resolved: bool = False) -> str:
        """What the prompt of a retry tells of earlier errors (2) Generating Error Context; "" without any.

        Messages are untrusted and stand there as data, one line each.
        """
        entries = [entry for entry in self.get_errors(bead_id) if include_resolved or not entry.resolved]
        if not entries:
            return ""
        by_type: dict[ErrorType, list[ErrorEntry]] = {}
        for entry in entries:
            by_type.setdefault(entry.error_type, []).append(entry)
        return "\n\n".join([_HEADING, *(part for item in by_type.items() for part in _parts(*item)), _ACTION])

    def get_error_stats(self, bead_id: str) -> ErrorStats:
        """How many errors a subtask had, resolved ones included."""
        entries = self.get_errors(bead_id)
        return ErrorStats(
            total=len(entries),
            unresolved=sum(not entry.resolved for entry in entries),
            by_type=dict(Counter(entry.error_type.value for entry in entries)),
        )


def _parts(error_type: ErrorType, entries: list[ErrorEntry]) -> Iterator[str]:
    yield f"### {error_type} ({plural(len(entries), 'error')})"
    if len(entries) > _MAX_SHOWN:
        yield f"- {plural(len(entries) - _MAX_SHOWN, 'earlier error')} not shown"
    for entry in entries[-_MAX_SHOWN:]:
        lines = [f"- **{_told(entry.message) or '(no message)'}**"]
        if entry.context.strip():
            lines.append(f"  - Context: {_told(entry.context)}")
        if entry.tool_name.strip():
            lines.append(f"  - Tool: {_told(entry.tool_name)}")
        lines.append(f"  - Time: {_time(moment(entry.timestamp, 'timestamp'))}")
        if entry.resolved:
            lines.append("  - Resolved: yes")
        yield "\n".join(lines)


def _told(text: str) -> str:
    """A recorded text as it may be put into a prompt; see docs/safety.md#tiers-of-the-scan."""
    from core.scanning.messages import render_if_safe  # recording an error does not need the scan

    return render_if_safe(text, lambda said: escape_inline(said, _MAX_CHARS), orders=False, happened=True)


def _time(at: datetime) -> str:
    """`12/12/2024, 10:30 AM UTC`: month, day, year; the same in every locale and zone."""
    half = "AM" if at.hour < 12 else "PM"
    return f"{at.month}/{at.day}/{at.year}, {at.hour % 12 or 12}:{at.minute:02} {half} UTC"
