"""Storages of the learning API in the event log.

Each call sees what other processes have written. Stored data is durable on return. Storing raises `BadInput` for
invalid Unicode and `Unwritable` if the disk, a lock or a permission forbids it; reading raises `Unwritable` if a file
cannot be read. `by` is recorded as the author.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from core.base.errors import BadInput, Unwritable
from core.base.text import visible_line
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, read_file
from core.learning.maturity import parse_moment
from core.learning.outcomes import FeedbackEvent, Verdict
from core.learning.storage import ErrorEntry, ErrorStorage, FeedbackStorage, unknown_error, with_id
from core.records.events import ErrorNote, Event, event_id
from core.sources.events import append_events, read_events

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_SUCCESS: Final = {Verdict.HELPFUL: True, Verdict.HARMFUL: False, Verdict.NEUTRAL: None}
_TYPES: Final = {success: verdict.value for verdict, success in _SUCCESS.items()}


class _EventStore:
    """The event log of a project."""

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths

    def events(self, kind: str) -> list[Event]:
        """Return all events of one kind, oldest first; invalid lines are skipped."""
        return [event for event in self._read() if event.kind == kind]

    def add(self, event: Event, *more: Event) -> None:
        """Append events unless the first one exists; `BadInput` if its kind differs."""
        if not event.id:
            raise BadInput("id must name the event, it is empty")
        known = next((known for known in self._read() if known.id == event.id), None)
        if known is None:
            append_events(self._paths, event, *more)
        elif known.kind != event.kind:
            raise BadInput(f"id {visible_line(event.id, 80)} belongs to another event")

    def _read(self) -> list[Event]:
        file = self._paths.relative(self._paths.events)
        try:
            self._paths.inside(file)
        except BadInput as error:
            raise Unwritable(str(error)) from None
        raw = read_file(self._paths.events, self._paths.aiwg, MAX_PATTERN_BYTES)
        if isinstance(raw, Problem):
            raise Unwritable(f"cannot read {self._paths.events}: it {raw.message}")
        return read_events(file, raw.data)[0] if raw else []


class LoggedFeedback(FeedbackStorage):
    """`FeedbackStorage` in the event log: `feedback` events that name a criterion."""

    def __init__(self, paths: ProjectPaths, *, by: str = "") -> None:
        self._log = _EventStore(paths)
        self._by = by

    def store(self, event: FeedbackEvent) -> None:
        """See `FeedbackStorage`; `BadInput` if the criterion is empty."""
        if not event.criterion:
            raise BadInput("criterion must name what the feedback is about, it is empty")
        event = with_id(event)
        line = Event(
            id=event.id,
            at=parse_moment(event.timestamp, "timestamp"),
            kind="feedback",
            loop_id=event.bead_id,
            success=_SUCCESS[Verdict(event.type)],
            weight=event.raw_value,
            by=self._by,
            criterion=event.criterion,
            text=event.context,
        )
        self._log.add(line)

    def get_all(self) -> list[FeedbackEvent]:
        return [
            FeedbackEvent(
                id=event.id,
                criterion=event.criterion,
                type=_TYPES[event.success],
                timestamp=event.at,
                raw_value=event.weight,
                bead_id=event.loop_id,
                context=event.text,
            )
            for event in self._log.events("feedback")
            if event.criterion
        ]


class LoggedErrors(ErrorStorage):
    """`ErrorStorage` in the event log, as events of kind `error` and `resolved`."""

    def __init__(self, paths: ProjectPaths, *, clock: Callable[[], datetime], by: str = "", agent: str = "") -> None:
        """`clock` dates resolutions; `agent` had or resolved the errors, "" if unknown."""
        self._log = _EventStore(paths)
        self._clock = clock
        self._by = by
        self._agent = agent

    def store(self, entry: ErrorEntry) -> None:
        at = parse_moment(entry.timestamp, "timestamp")
        note = ErrorNote(**{name: getattr(entry, name) for name in ErrorNote.__struct_fields__})
        line = self._event(entry.id, at, entry.bead_id, kind="error", error=note)
        self._log.add(line, *([self._resolution(entry.id, entry.bead_id, at)] if entry.resolved else ()))

    def mark_resolved(self, id: str) -> None:
        entry = next((entry for entry in self.get_all() if entry.id == id), None)
        if entry is None:
            raise unknown_error(id)
        if not entry.resolved:
            self._log.add(self._resolution(id, entry.bead_id, self._clock()))

    def get_all(self) -> list[ErrorEntry]:
        resolved = {event.resolves for event in self._log.events("resolved")}
        return [
            ErrorEntry(
                id=event.id,
                bead_id=event.loop_id,
                timestamp=event.at,
                resolved=event.id in resolved,
                **asdict(event.error),
            )
            for event in self._log.events("error")
            if event.error is not None
        ]

    def _resolution(self, id: str, bead_id: str, at: datetime) -> Event:
        return self._event(event_id(at), at, bead_id, kind="resolved", resolves=id)

    def _event(self, id: str, at: datetime, bead_id: str, **more: Any) -> Event:
        return Event(id=id, at=at, loop_id=bead_id, by=self._by, agent=self._agent, **more)
