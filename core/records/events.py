"""Events, the evidence derived from them, and the growing log of all snapshots."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from heapq import merge
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Annotated, Final, NamedTuple, Protocol, overload

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

_Count = Annotated[int, Meta(ge=0, le=10**15)]
_Weight = Annotated[float, Meta(ge=0, le=1)]
EVENT_LOG: Final = "event-log"
"""Source of the observations that come from the event log."""
INJECTED_REFLECTION: Final = "injected-reflection"
"""Kind of the event that is recorded when a reflection is injected into a loop's context."""
ASSIGNED: Final = "assigned"
"""Kind of the event that is recorded before a pattern of the experiment is given or held out."""
TRIAL_OUTCOME: Final = "trial-outcome"
"""Kind of the event that records what happened in a task after an assignment."""
VERDICT: Final = "verdict"
"""Kind of the event that records whether work that ended had followed a pattern that it was given."""
_CODE_CHARS: Final = 32  # hexadecimal digits of the code of a trial: 128 bits


def event_id(at: datetime) -> str:
    """Return a new unique ID that sorts by time."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(8).hex()}"


class Signals(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Details of an outcome besides its success; None and "" mean unknown.

    `error_count` includes resolved errors; `retry_count` is the number of attempts before the last one.
    """

    duration_ms: Annotated[float, Meta(ge=0, le=10**15)] | None = None
    error_count: _Count | None = None
    retry_count: _Count | None = None
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


class Trial(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One task and one pattern in the experiment (docs/experiments.md).

    `task` is the key of the task. `share` is the probability, 0..1, with which the pattern was held out, and
    `is_held_out` whether it was. The others belong to the outcome: `returned` is whether the error of the pattern
    occurred after the assignment, `steps` and `minutes` are those from there to the first check that passed, and
    `crossed` is whether the task had the pattern although it was held out, or did not get it although it was not.
    None means unknown. `code` proves who recorded it, see `TrialKey`.
    """

    task: str
    share: _Weight
    is_held_out: bool = False
    returned: bool | None = None
    steps: _Count | None = None
    minutes: Annotated[float, Meta(ge=0, le=10**9)] | None = None
    crossed: bool = False
    code: str = ""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of `shared/curation/events.jsonl` (docs/file-formats.md#event-log).

    `kind` is injected, applied, extracted, outcome, feedback, counted, error, resolved, injected-reflection, assigned,
    trial-outcome or verdict.
    `loop_id` is the ID of a work item (loop or attempt). An outcome without `pattern_id` applies to the whole work
    item. `success` (of applied, outcome and feedback) is None if unknown; for feedback on a criterion, None means
    neutral. `weight` is 0..1. `by` recorded the event; `agent` reported it. `criterion` is the subject of feedback that
    is not about a pattern, and `text` the comment. `resolves`, of kind resolved, is the ID of the error event.

    A verdict has `is_followed`, which is None if that is unclear, and the number of the `action` (of an attempt) or
    the `iteration` (of a loop) that shows it, with its description as `text`. It is not a use.
    `tokens`, of kind injected, is the estimated size of the pattern in the context.

    `decision` is the ID of the decision that caused the event; if it is undone, the event does not count. `unrecorded`,
    of kind counted, is the evidence found only in the pattern's record when ralphdeck started to update its counts.
    `trial` belongs to the kinds assigned and trial-outcome; their `success` is that of the whole task.
    """

    id: str
    at: datetime
    kind: str
    pattern_id: str = ""
    loop_id: str = ""
    success: bool | None = None
    weight: _Weight = 1.0
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
    trial: Trial | None = None
    is_followed: bool | None = None
    action: _Count | None = None
    tokens: _Count | None = None


class TrialKey(Struct, frozen=True):
    """Key that signs the user's trials of a project; none are own without a secret.

    A code is valid for one event as a whole: it can be neither changed nor copied to another task, pattern or time.
    """

    secret: bytes = b""

    def sign(self, event: Event) -> Event:
        """Return the event of a trial with its code."""
        if event.trial is None or not self.secret:
            return event
        # As a reader of the log decodes it: a whole number for a float has other bytes.
        event = msgspec.json.decode(msgspec.json.encode(event), type=Event)
        assert event.trial is not None
        return replace(event, trial=replace(event.trial, code=self._make_code(event, event.trial)))

    def is_own(self, event: Event) -> bool:
        """Return whether this key has signed the event."""
        from hmac import compare_digest  # most processes read no trial

        trial = event.trial
        if trial is None or not trial.code or not self.secret:
            return False
        return compare_digest(trial.code.encode(errors="replace"), self._make_code(event, trial).encode())

    def seal(self, session: str, task: str, trial: str) -> str:
        """Return a code that a session's task is this trial task; "" without a secret."""
        return self._digest(msgspec.json.encode((session, task, trial))) if self.secret else ""

    def is_sealed(self, session: str, task: str, trial: str, code: str) -> bool:
        """Return whether `code` is the one of `seal`."""
        from hmac import compare_digest  # most processes read no trial

        wanted = self.seal(session, task, trial)
        return bool(wanted) and compare_digest(wanted.encode(), code.encode(errors="replace"))

    def _make_code(self, event: Event, trial: Trial) -> str:
        return self._digest(msgspec.json.encode(replace(event, trial=replace(trial, code=""))))

    def _digest(self, message: bytes) -> str:
        from hmac import digest

        return digest(self.secret, message, "sha256").hex()[:_CODE_CHARS]


NO_TRIAL_KEY: Final = TrialKey()


class Observation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Evidence: one use of a pattern in a work item, or the sum of `count` uses.

    `kind` is discovered, applied, injected, feedback, trend or aggregate; `source` is event-log, loop, discovery,
    trend, aggregate or inversion. `at` is None if no file contains a time; such evidence does not decay. `success` is
    None for an injection without result. `weight` is 0..1. `count` exceeds 1 only for trend and aggregate. `derived`
    means that `count` was computed from a rate. `inferred` means that the result of the whole loop is used. `given` is
    how often the work item was given the pattern; `seen` is 1 if it found the pattern itself.
    """

    pattern_id: str
    kind: str
    source: str
    loop_id: str = ""
    at: datetime | None = None
    success: bool | None = None
    weight: _Weight = 1.0
    count: _Count = 1
    iteration: int | None = None
    derived: bool = False
    inferred: bool = False
    given: _Count = 0
    seen: _Count = 0

    @property
    def is_claim(self) -> bool:
        """Whether only the file of the pattern reports it; docs/scoring.md#claims."""
        return self.source in ("aggregate", "trend")

    @property
    def is_sighting(self) -> bool:
        """Whether work found the pattern without applying it; docs/scoring.md#sightings."""
        return self.kind == "discovered" and self.source == EVENT_LOG

    @property
    def is_use(self) -> bool:
        return self.kind != "injected" and not self.is_sighting


def injected_events(
    work_id: str,
    patterns: Iterable[str],
    reflections: Iterable[str],
    *,
    at: datetime,
    by: str,
    comment: str = "",
    tokens: Mapping[str, int] | None = None,
) -> list[Event]:
    """Make events for what work was given, by IDs; `tokens` are sizes of patterns."""
    sizes = tokens or {}
    make = partial(Event, at=at, loop_id=work_id, by=by, text=comment)
    return [
        *(make(id=event_id(at), kind="injected", pattern_id=id, tokens=sizes.get(id)) for id in patterns),
        *(make(id=event_id(at), kind=INJECTED_REFLECTION, reflection_id=id) for id in reflections),
    ]


_AT: Final = attrgetter("at")
_NEWEST: Final = 64  # events of the experiment that are read together, from the end
_GAP: Final = 16  # largest distance of two events that are read together
_PART: Final = 1_000  # positions that are read together


class Log(Protocol):
    """All events of one log in the order of its lines; only added at the end."""

    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def late(self) -> Sequence[int]: ...  # positions of the events that are older than one before them
    @property
    def by_decision(self) -> Mapping[str, Sequence[int]]: ...  # positions of the events of a decision
    @property
    def errors(self) -> Sequence[int]: ...  # positions of the events with an error
    @property
    def trials(self) -> Sequence[int]: ...  # positions of the events with a trial
    @property
    def newest(self) -> datetime | None: ...  # the newest time
    def is_same(self, other: Log) -> bool:
        """Return whether both are the same log, at any two moments."""


class GrowingLog:
    """A log in memory."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.late: list[int] = []
        self.by_decision: dict[str, list[int]] = {}
        self.errors: list[int] = []
        self.trials: list[int] = []
        self.newest: datetime | None = None
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        count = len(self.events)
        if self.newest is not None and event.at < self.newest:
            self.late.append(count)
        else:
            self.newest = event.at
        if event.decision:
            self.by_decision.setdefault(event.decision, []).append(count)
        if event.error is not None:
            self.errors.append(count)
        if event.trial is not None:
            self.trials.append(count)
        self.events.append(event)

    def is_same(self, other: Log) -> bool:
        return self is other


class ExtendedLog:
    """The first events of another log, and some that follow them only in memory."""

    def __init__(self, log: Log, count: int, added: Sequence[Event]) -> None:
        own = GrowingLog()
        own.newest = log.newest
        for event in added:
            own.add(event)
        self._log = log
        self.newest = own.newest
        self.events = _Chain(log.events, count, own.events)
        self.late = [*(place for place in log.late if place < count), *(count + place for place in own.late)]
        self.errors = [*(place for place in log.errors if place < count), *(count + place for place in own.errors)]
        self.trials = [*(place for place in log.trials if place < count), *(count + place for place in own.trials)]
        self.by_decision = {
            id: [
                *(place for place in log.by_decision.get(id, ()) if place < count),
                *(count + place for place in own.by_decision.get(id, ())),
            ]
            for id in {**log.by_decision, **own.by_decision}
        }

    def is_same(self, other: Log) -> bool:
        return self is other or self._log.is_same(other)


class _Chain(Sequence["Event"]):
    """The first events of a sequence, and some more."""

    def __init__(self, first: Sequence[Event], count: int, added: Sequence[Event]) -> None:
        self._first = first
        self._count = count
        self._added = added

    def __len__(self) -> int:
        return self._count + len(self._added)

    def __iter__(self) -> Iterator[Event]:
        return chain(islice(self._first, self._count), self._added)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        places = range(len(self))[place]
        if not isinstance(places, int):
            return [self[one] for one in places]
        return self._first[places] if places < self._count else self._added[places - self._count]


class EventView(Sequence["Event"]):
    """Events of a log at one moment, oldest first; equal times in log order.

    Events of the decisions in `undone` are left out. Views share their log, which may read its events from a file.
    """

    __slots__ = ("_count", "_hidden", "_late", "_ordered", "log", "undone")

    def __init__(self, log: Log, undone: frozenset[str] = frozenset(), count: int | None = None) -> None:
        self.log = log
        self._count = len(log.events) if count is None else count
        self.undone = frozenset(one for one in undone if one in log.by_decision) if undone else undone
        self._hidden = self._places_of(self.undone, self._count)
        self._late = log.late[: bisect_left(log.late, self._count)]
        self._ordered: Sequence[Event] | None = None

    @classmethod
    def of(cls, events: Sequence[Event]) -> EventView:
        """Return a view of all `events`, which may be a view."""
        return events if isinstance(events, cls) else cls(GrowingLog(events))

    def without(self, undone: frozenset[str]) -> EventView:
        """Return a view of the same events without those of some decisions."""
        return EventView(self.log, undone, self._count)

    def extended(self, events: Sequence[Event]) -> EventView:
        """Return a view with more events, which are not in the log."""
        return EventView(ExtendedLog(self.log, self._count, events), self.undone)

    @property
    def hidden(self) -> tuple[Event, ...]:
        """The events that are left out, oldest first."""
        return tuple(sorted(self._events_at(self._hidden), key=_AT))

    @property
    def errors(self) -> list[Event]:
        """The events with an error, in the order of the lines."""
        found = self._events_at(place for place in self.log.errors if place < self._count)
        return [event for event in found if event.decision not in self.undone]

    @property
    def trials(self) -> list[Event]:
        """The events of the experiment, in the order of the lines."""
        return self._events_at(place for place in self.log.trials if place < self._count)

    def newest_trials(self) -> Iterator[Event]:
        """Yield the events of the experiment, the last line first."""
        places = self.log.trials[: bisect_left(self.log.trials, self._count)]
        for end in range(len(places), 0, -_NEWEST):
            yield from reversed(self._events_at(places[max(end - _NEWEST, 0) : end]))

    def _places_of(self, decisions: Iterable[str], count: int) -> list[int]:
        """Return the positions of decisions' events among the first `count` of the log."""
        return sorted(place for one in decisions for place in self.log.by_decision[one] if place < count)

    def _events_at(self, places: Iterable[int]) -> list[Event]:
        """Return the events at ascending positions.

        A log in a file reads those near each other at once: the first event of a part costs as much as 30 others.
        """
        events: list[Event] = []
        part: list[int] = []
        for place in places:
            if part and (place - part[-1] > _GAP or place - part[0] >= _PART):
                events += self._read_part(part)
                part = []
            part.append(place)
        return events + self._read_part(part)

    def _read_part(self, places: Sequence[int]) -> list[Event]:
        if len(places) < 2:
            return [self.log.events[place] for place in places]
        first = places[0]
        events = self.log.events[first : places[-1] + 1]
        return [events[place - first] for place in places]

    def __len__(self) -> int:
        return self._count - len(self._hidden)

    def __iter__(self) -> Iterator[Event]:
        events = islice(self.log.events, self._count)
        if not self._late:
            return events if not self._hidden else (one for one in events if one.decision not in self.undone)
        # All other events are in order of time, so that the late ones can be merged into them.
        late = set(self._late)
        placed = ((event.at, place, event) for place, event in enumerate(events) if place not in late)
        found = merge(placed, sorted((event.at, place, event) for place, event in self._late_events()))
        return (event for event in map(itemgetter(2), found) if event.decision not in self.undone)

    def _late_events(self) -> Iterator[tuple[int, Event]]:
        return zip(self._late, self._events_at(self._late), strict=True)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._at(places)
        if self._late or places.step != 1 or self._hidden:
            return tuple(map(self._at, places))
        return tuple(self.log.events[places.start : places.stop])

    def _at(self, place: int) -> Event:
        if self._late:
            self._ordered = self._ordered or tuple(self)
            return self._ordered[place]
        hidden = 0
        while (more := bisect_right(self._hidden, place + hidden)) != hidden:
            hidden = more
        return self.log.events[place + hidden]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventView | tuple):
            return NotImplemented
        if isinstance(other, EventView):
            is_same = self.log.is_same(other.log) and self._count == other._count
            if is_same and self.undone == other.undone:
                return True
        return len(self) == len(other) and all(map(_is_equal, self, other))

    __hash__ = None  # type: ignore[assignment]

    def since(self, before: EventView) -> EventChanges | None:
        """Return what changed since an earlier view; None if unknown.

        That is the case for another log, and if events of a decision count again.
        """
        is_longer = self.log.is_same(before.log) and self._count >= before._count
        if not is_longer or self._places_of(before.undone - self.undone, before._count):
            return None
        new = self.log.events[before._count : self._count]
        added = [event for event in new if event.decision not in self.undone]
        return EventChanges(added, self._events_at(self._places_of(self.undone - before.undone, before._count)))


class EventChanges(NamedTuple):
    """Events that a log gained and lost."""

    added: Sequence[Event]
    removed: Sequence[Event]


def _is_equal(one: Event, other: Event) -> bool:
    return one is other or one == other


def find_event_changes(before: Sequence[Event], after: Sequence[Event]) -> EventChanges | None:
    """Return the difference of two event logs; None if it needs a full comparison."""
    if isinstance(before, EventView) and isinstance(after, EventView) and before:
        return after.since(before)
    known = len(before)
    if known and (len(after) < known or after[0] is not before[0] or after[known - 1] is not before[-1]):
        return None
    return EventChanges(after[known:], ())
