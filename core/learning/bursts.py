"""Bursts: one source that blames many different patterns at once is not believed without a question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec import Struct

from core.base.formatting import short_id
from core.base.text import plural
from core.config.settings import LearningSettings
from core.records.decisions import BurstVerdict
from core.records.events import Event
from core.records.loops import InjectedUse, Loop

UNDATED: Final = datetime.min.replace(tzinfo=UTC)
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_BY: Final = "by "
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


def dated(at: datetime) -> datetime | None:
    """The time of a mark; None where nothing tells one."""
    return None if at == UNDATED else at


def source_of(event: Event) -> str:
    """Who gives the mark: the loop or attempt by the id that the event has, else who recorded it."""
    if event.loop_id:
        return f"bead {event.loop_id}" if event.loop_id.startswith(_BY) else event.loop_id
    return f"{_BY}{event.by}"


def report_of_event(event: Event) -> Mark | None:
    """The harmful mark that an event gives to a pattern, if it does."""
    if event.success is not False or not event.pattern_id or not event.weight > 0 or event.kind not in _MARKING:
        return None
    return Mark(event.at, event.pattern_id)


def report_of_use(loop: Loop, use: InjectedUse) -> Mark | None:
    """The harmful mark that a loop gives to a pattern in so many words, if it does."""
    if use.successful is not False or not use.applied:
        return None
    return Mark(use.at or loop.ended_at or loop.last_activity or loop.started_at or UNDATED, use.pattern_id)


def held_and_revoked(
    marks: Iterable[Mark], verdicts: Sequence[BurstVerdict], settings: LearningSettings
) -> tuple[tuple[Stretch, ...], tuple[Stretch, ...]]:
    """The stretches of one source whose marks wait for a verdict, and those whose marks were revoked; each in order.

    A revocation is on all its marks from `burst_minutes` before the first one that was seen to as long after the
    last one; a confirmation only on the marks that were seen.
    """
    reach = timedelta(minutes=settings.burst_minutes)
    revoked = _merged(_widened(verdict, reach) for verdict in verdicts if verdict.verdict == "revoked")
    confirmed: dict[str, list[Stretch]] = {}
    for verdict in verdicts:
        if verdict.verdict == "confirmed":
            for pattern_id in verdict.patterns:
                confirmed.setdefault(pattern_id, []).append(Stretch(verdict.first, verdict.last))
    seen = {pattern_id: _merged(stretches) for pattern_id, stretches in confirmed.items()}
    left = [
        mark for mark in marks if not within(mark.at, revoked) and not within(mark.at, seen.get(mark.pattern_id, ()))
    ]
    return tuple(_stretches(sorted(left), reach, settings.max_marks)), revoked


def within(at: datetime, stretches: Sequence[Stretch]) -> bool:
    """Whether a time lies in one of some stretches, which are in order and apart from each other."""
    place = bisect_right(stretches, at, key=itemgetter(0)) - 1
    return place >= 0 and at <= stretches[place].last


def _merged(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    merged: list[Stretch] = []
    for stretch in sorted(stretches):
        if merged and stretch.first <= merged[-1].last:
            merged[-1] = Stretch(merged[-1].first, max(merged[-1].last, stretch.last))
        else:
            merged.append(stretch)
    return tuple(merged)


def _widened(verdict: BurstVerdict, reach: timedelta) -> Stretch:
    first, last = verdict.first, verdict.last
    return Stretch(
        first - reach if first - UNDATED > reach else UNDATED,
        last + reach if _END_OF_TIME - last > reach else _END_OF_TIME,
    )


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


def format_burst(burst: Burst) -> str:
    """A burst in one line."""
    blamed = plural(len(burst.patterns), "pattern")
    applied = {0: "", len(burst.patterns): " that it never applied"}.get(
        burst.never_applied, f", {burst.never_applied:,} of which it never applied"
    )
    return f"{short_id(burst.source)} blames {blamed}{applied}; its marks are held until somebody decides"
