"""Errors of a work item, and storages (docs/learning-api.md#storage).

Errors are classified, stored and formatted for retry prompts (docs/learning-api.md#errors, docs/scoring.md#error-log).

Feedback consists of events: an event whose ID is already stored is ignored. Patterns and maturities are records:
storing one replaces the one with the same ID. Lists are in the order in which IDs were first stored. An implementation
must provide the methods without a body and may override the others for speed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.errors import BadInput, UnknownRecord
from core.base.prompt_text import escape_inline
from core.base.settings import InjectionSettings
from core.base.steps import group_pairs
from core.base.text import MAX_SUBJECT, plural, visible_line
from core.base.validation import check_flag, check_text, format_value
from core.learning.inversion import ObservedPattern
from core.learning.maturity import MaturityFeedback, PatternMaturity, normalize_time, parse_moment
from core.learning.outcomes import FeedbackEvent
from core.records.events import ErrorNote, ErrorType, event_id

if TYPE_CHECKING:
    from core.records.patterns import Maturity

_MAX_CHARS: Final = InjectionSettings().max_field_chars
_MAX_LISTED: Final = 20  # maximum number of errors per type in a prompt, newest first; others are only counted
_HEADING: Final = "## Previous Errors\n\nThe following errors were encountered during execution:"
_ACTION: Final = """\
**Action Required**: Address these errors before proceeding. Consider:

- What caused each error?
- How can you prevent similar errors?
- Are there patterns across error types?"""
# The order matters: a message about a timeout or a conflict often names a tool as well.
_WORDS: Final = {
    ErrorType.TIMEOUT: r"time[ds]?[ -]?out|time limit|deadline exceeded|took too long|ETIMEDOUT",
    ErrorType.CONFLICT: r"conflict|reserv(?:ed|ation)|locked by|already (?:claimed|held|locked)",
    ErrorType.VALIDATION: r"validation|schema|invalid|type ?error|missing (?:import|field|key|property|argument)"
    r"|not assignable|syntax ?error|expected .{1,80}(?:found|got|received)",
    ErrorType.TOOL_FAILURE: r"\btool\b|command (?:failed|not found)|exit(?:ed)?(?: with)?(?: code| status)"
    r"|non-zero|ENOENT|spawn",
}
_CLASSES: Final = {error_type: re.compile(words, re.IGNORECASE) for error_type, words in _WORDS.items()}


class ErrorEntry(ErrorNote, frozen=True, kw_only=True):
    """One error of the work item `bead_id`; `resolved` once it has been fixed.

    `timestamp` (ISO-8601 or `datetime`) is converted to UTC. Raises BadInput for a value of another type, a time that
    can't be parsed, or an unknown error type.
    """

    id: str
    bead_id: str
    timestamp: str | datetime
    resolved: bool = False

    def __post_init__(self) -> None:
        for field_ in ("id", "bead_id", "message", "stack_trace", "tool_name", "context"):
            check_text(getattr(self, field_), field_)
        check_flag(self.resolved, "resolved")
        normalize_time(self, "timestamp")
        force_setattr(self, "error_type", _parse_error_type(self.error_type))


class ErrorStats(Struct, frozen=True, kw_only=True):
    """Error counts of a work item.

    `total` includes resolved errors: it is the `error_count` of an outcome.
    """

    total: int
    unresolved: int
    by_type: dict[str, int]


def _parse_error_type(value: str) -> ErrorType:
    try:
        return ErrorType(value)
    except ValueError:
        known = ", ".join(ErrorType)
        raise BadInput(f"error_type must be one of {known}, not {format_value(value)}") from None


def classify_error(message: str) -> ErrorType:
    """Return the error type that the wording of a message suggests."""
    found = (error_type for error_type, words in _CLASSES.items() if words.search(message[:MAX_SUBJECT]))
    return next(found, ErrorType.UNKNOWN)


class ErrorStorage(Protocol):
    """Stores errors of work items; rules in `core.learning.storage`."""

    def store(self, entry: ErrorEntry) -> None:
        """Add an error."""

    def mark_resolved(self, id: str) -> None:
        """Mark an error as fixed; may be repeated. Raises UnknownRecord."""

    def get_all(self) -> list[ErrorEntry]:
        """Return all errors."""

    def get_by_bead(self, bead_id: str) -> list[ErrorEntry]:
        return [entry for entry in self.get_all() if entry.bead_id == bead_id]

    def get_unresolved_by_bead(self, bead_id: str) -> list[ErrorEntry]:
        return [entry for entry in self.get_by_bead(bead_id) if not entry.resolved]


def unknown_error(id: str) -> UnknownRecord:
    return UnknownRecord(f"there is no error {visible_line(id, 80)}")


class MemoryErrors(ErrorStorage):
    def __init__(self) -> None:
        self._entries: dict[str, ErrorEntry] = {}

    def store(self, entry: ErrorEntry) -> None:
        self._entries.setdefault(entry.id, entry)

    def mark_resolved(self, id: str) -> None:
        if id not in self._entries:
            raise unknown_error(id)
        self._entries[id] = replace(self._entries[id], resolved=True)

    def get_all(self) -> list[ErrorEntry]:
        return list(self._entries.values())


class ErrorAccumulator:
    """Records errors of work items and formats them for the next attempt."""

    def __init__(self, storage: ErrorStorage | None = None) -> None:
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
        """Store one error under a new ID.

        Raises BadInput for an unknown error type, a time that can't be parsed, or a value that is not a text.
        """
        at = parse_moment(now, "now")
        entry = ErrorEntry(
            id=event_id(at),
            bead_id=bead_id,
            timestamp=at,
            error_type=_parse_error_type(error_type),
            message=message,
            stack_trace=stack_trace,
            tool_name=tool_name,
            context=context,
        )
        self._storage.store(entry)
        return entry

    def resolve_error(self, error_id: str) -> None:
        """Mark an error as fixed; may be repeated. Raises UnknownRecord."""
        self._storage.mark_resolved(error_id)

    def get_errors(self, bead_id: str) -> list[ErrorEntry]:
        """Return all errors of a work item, resolved ones included, oldest first."""
        return self._storage.get_by_bead(bead_id)

    def get_error_context(self, bead_id: str, include_resolved: bool = False) -> str:
        """Return the prompt section about earlier errors; "" if there are none."""
        entries = [entry for entry in self.get_errors(bead_id) if include_resolved or not entry.resolved]
        if not entries:
            return ""
        by_type = group_pairs((entry.error_type, entry) for entry in entries)
        return "\n\n".join([_HEADING, *(part for item in by_type.items() for part in _parts(*item)), _ACTION])

    def get_error_stats(self, bead_id: str) -> ErrorStats:
        """Count the errors of a work item, resolved ones included."""
        entries = self.get_errors(bead_id)
        return ErrorStats(
            total=len(entries),
            unresolved=sum(not entry.resolved for entry in entries),
            by_type=dict(Counter(entry.error_type.value for entry in entries)),
        )


def _parts(error_type: ErrorType, entries: list[ErrorEntry]) -> Iterator[str]:
    yield f"### {error_type} ({plural(len(entries), 'error')})"
    if len(entries) > _MAX_LISTED:
        yield f"- {plural(len(entries) - _MAX_LISTED, 'earlier error')} not shown"
    for entry in entries[-_MAX_LISTED:]:
        lines = [f"- **{_render(entry.message) or '(no message)'}**"]
        details = (("Context", entry.context), ("Tool", entry.tool_name))
        lines += (f"  - {label}: {_render(text)}" for label, text in details if text.strip())
        at = parse_moment(entry.timestamp, "timestamp")  # month first, in every locale: 12/12/2024, 10:30 AM UTC
        half = "AM" if at.hour < 12 else "PM"
        lines.append(f"  - Time: {at.month}/{at.day}/{at.year}, {at.hour % 12 or 12}:{at.minute:02} {half} UTC")
        if entry.resolved:
            lines.append("  - Resolved: yes")
        yield "\n".join(lines)


def _render(text: str) -> str:
    """Escape an untrusted text for a prompt; docs/safety.md#tiers-of-the-scan."""
    from core.base.scanning.verdict import render_if_safe  # slow to import; recording an error does not need it

    return render_if_safe(text, lambda shown: escape_inline(shown, _MAX_CHARS), orders=False, happened=True)


_Record = TypeVar("_Record")


class FeedbackStorage(Protocol):
    """Stores feedback on criteria."""

    def store(self, event: FeedbackEvent) -> None:
        """Add an event; one without an ID gets a new one."""

    def get_all(self) -> list[FeedbackEvent]:
        """Return all feedback."""

    def get_by_criterion(self, criterion: str) -> list[FeedbackEvent]:
        return [event for event in self.get_all() if event.criterion == criterion]

    def get_by_bead(self, bead_id: str) -> list[FeedbackEvent]:
        return [event for event in self.get_all() if event.bead_id == bead_id]


class PatternStorage(Protocol):
    """Stores observed patterns, anti-patterns included."""

    def store(self, pattern: ObservedPattern) -> None:
        """Add or replace a pattern."""

    def get_all(self) -> list[ObservedPattern]:
        """Return all patterns."""

    def get(self, id: str) -> ObservedPattern | None:
        return next((pattern for pattern in self.get_all() if pattern.id == id), None)

    def get_anti_patterns(self) -> list[ObservedPattern]:
        return [pattern for pattern in self.get_all() if pattern.is_negative]

    def get_by_tag(self, tag: str) -> list[ObservedPattern]:
        """Return the patterns with exactly this tag."""
        return [pattern for pattern in self.get_all() if tag in pattern.tags]

    def find_by_content(self, content: str) -> list[ObservedPattern]:
        """Return the patterns that contain a text; case and spaces are ignored."""
        wanted = _normalize(content)
        return [pattern for pattern in self.get_all() if wanted and wanted in _normalize(pattern.content)]


class MaturityStorage(Protocol):
    """Stores the maturity of patterns, and the feedback behind it."""

    def store(self, maturity: PatternMaturity) -> None:
        """Add or replace the maturity of a pattern."""

    def get_all(self) -> list[PatternMaturity]:
        """Return all maturities."""

    def store_feedback(self, feedback: MaturityFeedback) -> None:
        """Add one report; equal reports count separately."""

    def get_feedback(self, pattern_id: str) -> list[MaturityFeedback]:
        """Return all reports on one pattern."""

    def get(self, pattern_id: str) -> PatternMaturity | None:
        return next((maturity for maturity in self.get_all() if maturity.pattern_id == pattern_id), None)

    def get_by_state(self, state: Maturity) -> list[PatternMaturity]:
        """Return the maturities stored with this state, which is not recomputed."""
        return [maturity for maturity in self.get_all() if maturity.state == state]


def with_id(event: FeedbackEvent) -> FeedbackEvent:
    """Return the event; if it has no ID, with a new one."""
    return event if event.id else replace(event, id=event_id(parse_moment(event.timestamp, "timestamp")))


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


class _MemoryRecords(Generic[_Record]):
    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def get_all(self) -> list[_Record]:
        return list(self._records.values())


class MemoryFeedback(_MemoryRecords[FeedbackEvent], FeedbackStorage):
    def store(self, event: FeedbackEvent) -> None:
        event = with_id(event)
        self._records.setdefault(event.id, event)


class MemoryPatterns(_MemoryRecords[ObservedPattern], PatternStorage):
    def store(self, pattern: ObservedPattern) -> None:
        self._records[pattern.id] = pattern


class MemoryMaturity(_MemoryRecords[PatternMaturity], MaturityStorage):
    def __init__(self) -> None:
        super().__init__()
        self._feedback: list[MaturityFeedback] = []

    def store(self, maturity: PatternMaturity) -> None:
        self._records[maturity.pattern_id] = maturity

    def store_feedback(self, feedback: MaturityFeedback) -> None:
        self._feedback.append(feedback)

    def get_feedback(self, pattern_id: str) -> list[MaturityFeedback]:
        return [feedback for feedback in self._feedback if feedback.pattern_id == pattern_id]
