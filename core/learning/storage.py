"""Interfaces of storages, and in-memory storages; docs/learning-api.md#storage.

Feedback consists of events: an event whose ID is already stored is ignored. Patterns and maturities are records:
storing one replaces the one with the same ID. Lists are in the order in which IDs were first stored. An implementation
must provide the methods without a body and may override the others for speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec.structs import replace

from core.learning.errors import ErrorStorage, MemoryErrors  # noqa: F401 - storages of the same API
from core.learning.inversion import ObservedPattern
from core.learning.maturity import MaturityFeedback, PatternMaturity, parse_moment
from core.learning.outcomes import FeedbackEvent
from core.records.events import event_id

if TYPE_CHECKING:
    from core.records.patterns import Maturity

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
