"""Errors of a work item: classification, storage, and the prompt of a retry.

See docs/scoring.md#error-log and docs/learning-api.md#errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.errors import BadInput, UnknownRecord
from core.base.prompt_text import escape_inline
from core.base.settings import InjectionSettings
from core.base.steps import group_pairs
from core.base.text import MAX_SUBJECT, plural, visible_line
from core.base.validation import check_flag, check_text, format_value
from core.learning.maturity import normalize_time, parse_moment
from core.records.events import ErrorNote, ErrorType, event_id

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
