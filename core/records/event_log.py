"""Events of a growing log, shared by all snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, overload

if TYPE_CHECKING:
    from core.records.events import Event

_AT: Final = attrgetter("at")


class GrowingLog:
    """All events of one log in the order of its lines; they are only added at the end."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.in_order = 0  # number of first events that are in order of time
        self.by_decision: dict[str, list[int]] = {}  # positions
        self.errors: list[int] = []  # positions of the events with an error
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        count = len(self.events)
        if self.in_order == count and (not count or self.events[-1].at <= event.at):
            self.in_order += 1
        if event.decision:
            self.by_decision.setdefault(event.decision, []).append(count)
        if event.error is not None:
            self.errors.append(count)
        self.events.append(event)


class EventView(Sequence["Event"]):
    """The events of a log at one moment, oldest first; at equal times in the order of the log.

    Events of the decisions in `undone` are left out. Views of one log share its list; only if times are not in the
    order of the log, or events are left out, the first use sorts a copy.
    """

    __slots__ = ("_count", "_hidden", "_log", "_ordered", "undone")

    def __init__(self, log: GrowingLog, undone: frozenset[str] = frozenset(), count: int | None = None) -> None:
        self._log = log
        self._count = len(log.events) if count is None else count
        self.undone = undone & log.by_decision.keys() if undone else undone
        self._hidden = self._of_decisions(self.undone, self._count)
        self._ordered: Sequence[Event] | None = None

    @classmethod
    def of(cls, events: Sequence[Event]) -> EventView:
        """Return a view of all `events`, which may be a view."""
        return events if isinstance(events, cls) else cls(GrowingLog(events))

    def without(self, undone: frozenset[str]) -> EventView:
        """Return a view of the same events without those of some decisions."""
        return EventView(self._log, undone, self._count)

    @property
    def hidden(self) -> tuple[Event, ...]:
        """The events that are left out, oldest first."""
        return tuple(sorted(self._hidden, key=_AT))

    @property
    def in_log_order(self) -> list[Event]:
        """The events in the order of the lines."""
        return [event for event in islice(self._log.events, self._count) if event.decision not in self.undone]

    @property
    def errors(self) -> list[Event]:
        """The events with an error, in the order of the lines."""
        found = (self._log.events[place] for place in self._log.errors if place < self._count)
        return [event for event in found if event.decision not in self.undone]

    def _of_decisions(self, decisions: Iterable[str], count: int) -> list[Event]:
        """Return the events of decisions among the first `count` of the log."""
        places = sorted(place for one in decisions for place in self._log.by_decision[one] if place < count)
        return [self._log.events[place] for place in places]

    def _in_order(self) -> Sequence[Event]:
        if self._ordered is None:
            events: Sequence[Event] = self._log.events
            if self._hidden or self._count > self._log.in_order:
                events = sorted(
                    (one for one in islice(events, self._count) if one.decision not in self.undone), key=_AT
                )
            self._ordered = events
        return self._ordered

    def __len__(self) -> int:
        return self._count - len(self._hidden)

    def __iter__(self) -> Iterator[Event]:
        return islice(self._in_order(), len(self))

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        places = range(len(self))[place]
        events = self._in_order()
        return events[places] if isinstance(places, int) else tuple(events[one] for one in places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventView | tuple):
            return NotImplemented
        if isinstance(other, EventView) and (self._log, self._count, self.undone) == (
            other._log,
            other._count,
            other.undone,
        ):
            return True
        return len(self) == len(other) and all(map(_is_equal, self, other))

    __hash__ = None  # type: ignore[assignment]

    def since(self, before: EventView) -> EventChanges | None:
        """Return what changed since an earlier view; None if unknown.

        That is the case for another log, and if events of a decision count again.
        """
        is_longer = self._log is before._log and self._count >= before._count
        if not is_longer or self._of_decisions(before.undone - self.undone, before._count):
            return None
        new = self._log.events[before._count : self._count]
        added = [event for event in new if event.decision not in self.undone]
        return EventChanges(added, self._of_decisions(self.undone - before.undone, before._count))


class EventChanges(NamedTuple):
    """Events that a log gained and lost."""

    added: Sequence[Event]
    removed: Sequence[Event]


def _is_equal(one: Event, other: Event) -> bool:
    return one is other or one == other


def find_event_changes(before: Sequence[Event], after: Sequence[Event]) -> EventChanges | None:
    """Return the difference of two event logs; None if it is not known without a comparison of all events."""
    if isinstance(before, EventView) and isinstance(after, EventView) and before:
        return after.since(before)
    known = len(before)
    if known and (len(after) < known or after[0] is not before[0] or after[known - 1] is not before[-1]):
        return None
    return EventChanges(after[known:], ())
