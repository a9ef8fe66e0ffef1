"""Bursts: one source that blames many different patterns at once is not believed without a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from core.records.decisions import BurstVerdict
from core.records.events import Event
from core.records.loops import InjectedUse, Loop
from core.settings import LearningSettings

_UNDATED: Final = datetime.min.replace(tzinfo=UTC)
_MARKING: Final = frozenset({"applied", "outcome", "feedback"})


class Mark(NamedTuple):
    """One source says of one pattern that it did harm; `at` is the earliest time there is where none is told."""

    at: datetime
    pattern_id: str


class Burst(Struct, frozen=True, kw_only=True):
    """Harmful marks of one source on many patterns within a short time; they wait for a verdict.

    Attributes:
        source: Id of the loop or attempt, or for marks that name none `by <who recorded them>`.
        first, last: When; the earliest time there is where none is told.
        patterns: Ids of the blamed patterns.
        never_applied: How many of them this source neither applied nor got injected, as far as anything but the
            marks tells.
    """

    source: str
    first: datetime
    last: datetime
    patterns: tuple[str, ...]
    never_applied: int


class Stretch(NamedTuple):
    """A time in which the harmful marks of a source do not count, ends included."""

    first: datetime
    last: datetime

    def holds(self, at: datetime) -> bool:
        """Whether a mark of this time is among them."""
        return self.first <= at <= self.last


def dated(at: datetime) -> datetime | None:
    """The time of a mark; None where nothing tells one."""
    return None if at == _UNDATED else at


def source_of(event: Event) -> str:
    """Who gives the mark: the loop or attempt, else who recorded it."""
    return event.loop_id or f"by {event.by}"


def mark_of_event(event: Event) -> Mark | None:
    """The harmful mark that an event gives to a pattern, if it does."""
    if event.success is not False or not event.pattern_id or not event.weight > 0 or event.kind not in _MARKING:
        return None
    return Mark(event.at, event.pattern_id)


def mark_of_use(loop: Loop, use: InjectedUse) -> Mark | None:
    """The harmful mark that a loop gives to a pattern in so many words, if it does."""
    if use.successful is not False or not use.applied:
        return None
    return Mark(use.at or loop.ended_at or loop.last_sign or loop.started_at or _UNDATED, use.pattern_id)


def held_and_set_aside(
    marks: Iterable[Mark], verdicts: Sequence[BurstVerdict], settings: LearningSettings
) -> tuple[tuple[Stretch, ...], tuple[Stretch, ...]]:
    """The bursts among the marks of one source: those that wait for a verdict, and those that were revoked.

    A verdict is on all marks from `burst_minutes` before the first one it saw to as long after the last one.
    """
    reach = timedelta(minutes=settings.burst_minutes)
    judged = [(_widened(verdict, reach), verdict.verdict == "revoked") for verdict in verdicts]
    left = [mark for mark in marks if not any(stretch.holds(mark.at) for stretch, _ in judged)]
    held = tuple(_stretches(sorted(left), reach, settings.max_marks))
    return held, tuple(stretch for stretch, revoked in judged if revoked)


def _widened(verdict: BurstVerdict, reach: timedelta) -> Stretch:
    try:
        first = verdict.first - reach
    except OverflowError:
        first = _UNDATED
    try:
        return Stretch(first, verdict.last + reach)
    except OverflowError:
        return Stretch(first, datetime.max.replace(tzinfo=UTC))


def _stretches(marks: Sequence[Mark], reach: timedelta, most: int) -> Iterator[Stretch]:
    """Windows of `reach` with marks on more than `most` different patterns, those that touch as one."""
    begin = 0
    inside: dict[str, int] = {}
    found: Stretch | None = None
    for mark in marks:
        inside[mark.pattern_id] = inside.get(mark.pattern_id, 0) + 1
        while mark.at - marks[begin].at > reach:
            gone = marks[begin].pattern_id
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            begin += 1
        if len(inside) > most:
            if found is not None and marks[begin].at > found.last:
                yield found
                found = None
            found = Stretch(found.first if found is not None else marks[begin].at, mark.at)
    if found is not None:
        yield found
