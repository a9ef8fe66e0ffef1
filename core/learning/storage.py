"""Where feedback, errors, patterns and their maturity are kept (2) Storage Interfaces, and the same in memory.

Feedback and errors are events: the first one of an id counts, a second one is the same event told again.
Patterns and maturity are records: what is stored last under an id replaces what was there. Lists come in the
order in which ids were first stored. An implementation brings what has no body here, and may answer the other
questions faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.learning.decay import moment
from core.records.events import event_id
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.learning.criteria import FeedbackEvent
    from core.learning.errors import ErrorEntry
    from core.learning.inversion import ObservedPattern
    from core.learning.maturity import MaturityFeedback, PatternMaturity


class FeedbackStorage(Protocol):
    """Feedback on criteria."""

    def store(self, event: FeedbackEvent) -> None:
        """Keep an event; one without an id is given one."""

    def get_all(self) -> list[FeedbackEvent]:
        """All feedback."""

    def get_by_criterion(self, criterion: str) -> list[FeedbackEvent]:
        """All feedback on one criterion."""
        return [event for event in self.get_all() if event.criterion == criterion]

    def get_by_bead(self, bead_id: str) -> list[FeedbackEvent]:
        """All feedback from one subtask."""
        return [event for event in self.get_all() if event.bead_id == bead_id]


class ErrorStorage(Protocol):
    """Errors of subtasks."""

    def store(self, entry: ErrorEntry) -> None:
        """Keep an error."""

    def mark_resolved(self, id: str) -> None:
        """Note that an error was fixed; once more changes nothing.

        Raises:
            UnknownRecord: There is no error of this id.
        """

    def get_all(self) -> list[ErrorEntry]:
        """All errors."""

    def get_by_bead(self, bead_id: str) -> list[ErrorEntry]:
        """All errors of one subtask."""
        return [entry for entry in self.get_all() if entry.bead_id == bead_id]

    def get_unresolved_by_bead(self, bead_id: str) -> list[ErrorEntry]:
        """The errors of one subtask that nobody fixed yet."""
        return [entry for entry in self.get_by_bead(bead_id) if not entry.resolved]


class PatternStorage(Protocol):
    """Observed strategies of decomposition, anti-patterns among them."""

    def store(self, pattern: ObservedPattern) -> None:
        """Keep a pattern, in place of one of the same id."""

    def get_all(self) -> list[ObservedPattern]:
        """All patterns."""

    def get(self, id: str) -> ObservedPattern | None:
        """The pattern of this id; None if there is none."""
        return next((pattern for pattern in self.get_all() if pattern.id == id), None)

    def get_anti_patterns(self) -> list[ObservedPattern]:
        """The anti-patterns."""
        return [pattern for pattern in self.get_all() if pattern.is_negative]

    def get_by_tag(self, tag: str) -> list[ObservedPattern]:
        """The patterns with exactly this tag."""
        return [pattern for pattern in self.get_all() if tag in pattern.tags]

    def find_by_content(self, content: str) -> list[ObservedPattern]:
        """The patterns whose content holds this text, in any case and spacing; none for a blank one."""
        wanted = _plain(content)
        return [pattern for pattern in self.get_all() if wanted and wanted in _plain(pattern.content)]


class MaturityStorage(Protocol):
    """Maturity of patterns, and the feedback that it comes from."""

    def store(self, maturity: PatternMaturity) -> None:
        """Keep a maturity, in place of one of the same pattern."""

    def get_all(self) -> list[PatternMaturity]:
        """All maturities."""

    def store_feedback(self, feedback: MaturityFeedback) -> None:
        """Keep one judgement; two that are alike are two judgements."""

    def get_feedback(self, pattern_id: str) -> list[MaturityFeedback]:
        """All judgements of one pattern."""

    def get(self, pattern_id: str) -> PatternMaturity | None:
        """The maturity of this pattern; None if none is kept."""
        return next((maturity for maturity in self.get_all() if maturity.pattern_id == pattern_id), None)

    def get_by_state(self, state: Maturity) -> list[PatternMaturity]:
        """Those in one state, as they were stored: nothing decays in a storage."""
        return [maturity for maturity in self.get_all() if maturity.state == state]


def identified(event: FeedbackEvent) -> FeedbackEvent:
    """`event` with an id."""
    return event if event.id else replace(event, id=event_id(moment(event.timestamp, "timestamp")))


def unknown_error(id: str) -> UnknownRecord:
    """What `mark_resolved` raises for an id of no error."""
    return UnknownRecord(f"there is no error {visible_line(id, 80)}")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


class MemoryFeedback(FeedbackStorage):
    """`FeedbackStorage` for as long as the process lives."""

    def __init__(self) -> None:
        self._events: dict[str, FeedbackEvent] = {}

    def store(self, event: FeedbackEvent) -> None:
        """See `FeedbackStorage`."""
        event = identified(event)
        self._events.setdefault(event.id, event)

    def get_all(self) -> list[FeedbackEvent]:
        """See `FeedbackStorage`."""
        return list(self._events.values())


class MemoryErrors(ErrorStorage):
    """`ErrorStorage` for as long as the process lives."""

    def __init__(self) -> None:
        self._entries: dict[str, ErrorEntry] = {}

    def store(self, entry: ErrorEntry) -> None:
        """See `ErrorStorage`."""
        self._entries.setdefault(entry.id, entry)

    def mark_resolved(self, id: str) -> None:
        """See `ErrorStorage`."""
        if id not in self._entries:
            raise unknown_error(id)
        self._entries[id] = replace(self._entries[id], resolved=True)

    def get_all(self) -> list[ErrorEntry]:
        """See `ErrorStorage`."""
        return list(self._entries.values())


class MemoryPatterns(PatternStorage):
    """`PatternStorage` for as long as the process lives."""

    def __init__(self) -> None:
        self._patterns: dict[str, ObservedPattern] = {}

    def store(self, pattern: ObservedPattern) -> None:
        """See `PatternStorage`."""
        self._patterns[pattern.id] = pattern

    def get_all(self) -> list[ObservedPattern]:
        """See `PatternStorage`."""
        return list(self._patterns.values())


class MemoryMaturity(MaturityStorage):
    """`MaturityStorage` for as long as the process lives."""

    def __init__(self) -> None:
        self._maturities: dict[str, PatternMaturity] = {}
        self._feedback: list[MaturityFeedback] = []

    def store(self, maturity: PatternMaturity) -> None:
        """See `MaturityStorage`."""
        self._maturities[maturity.pattern_id] = maturity

    def get_all(self) -> list[PatternMaturity]:
        """See `MaturityStorage`."""
        return list(self._maturities.values())

    def store_feedback(self, feedback: MaturityFeedback) -> None:
        """See `MaturityStorage`."""
        self._feedback.append(feedback)

    def get_feedback(self, pattern_id: str) -> list[MaturityFeedback]:
        """See `MaturityStorage`."""
        return [feedback for feedback in self._feedback if feedback.pattern_id == pattern_id]
