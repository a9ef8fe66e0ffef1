"""Bursts of harmful reports of one source, and held results of team members.

See docs/scoring.md#suspicious-reports.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.formatting import shorten_id
from core.base.steps import group_pairs
from core.base.text import plural
from core.records.decisions import CLIENT

if TYPE_CHECKING:
    from core.base.settings import LearningSettings
    from core.records.decisions import BurstVerdict
    from core.records.events import Event
    from core.records.loops import InjectedUse, Loop
    from core.records.team import HeldUses

UNDATED: Final = datetime.min.replace(tzinfo=UTC)  # placeholder for an unknown time
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_BY: Final = "by "
MEMBER: Final = "member "
"""Start of the source of reports that a member of the team sent; a loop or attempt has no such name."""
_REPORTING: Final = frozenset({"applied", "outcome", "feedback"})


class HarmfulReport(NamedTuple):
    """A report that a pattern did harm; `at` is `UNDATED` if the time is unknown."""

    at: datetime
    pattern_id: str


class Burst(Struct, frozen=True, kw_only=True):
    """Undecided harmful reports of one source, or held results of a team member."""

    source: str  # ID of the loop or attempt; `by NAME` for reports without one; `member NAME` for those of a member
    first: datetime  # first and last report; `UNDATED` if the time is unknown
    last: datetime
    patterns: tuple[str, ...]  # IDs
    never_given: int = 0  # number of these patterns that were not injected into the source
    successes: int = 0  # held results of a member; 0 for a loop or attempt
    failures: int = 0

    @property
    def is_of_member(self) -> bool:
        return self.source.startswith(MEMBER)


class Period(NamedTuple):
    """A time span, ends included."""

    first: datetime
    last: datetime


def known_time(at: datetime) -> datetime | None:
    """Return the time of a report, or None if it is unknown."""
    return None if at == UNDATED else at


def source_of(event: Event) -> str:
    """Return the source of a report: its loop or attempt, or `by NAME` without one.

    What an agent reports through the MCP server has one source, whichever loops it names.
    """
    if event.loop_id and not event.by.startswith(CLIENT):
        return f"bead {event.loop_id}" if event.loop_id.startswith((_BY, MEMBER)) else event.loop_id
    return f"{_BY}{event.by}"


def report_of_event(event: Event) -> HarmfulReport | None:
    """Return the harmful report that an event contains, if any."""
    if event.success is not False or not event.pattern_id or not event.weight > 0 or event.kind not in _REPORTING:
        return None
    return HarmfulReport(event.at, event.pattern_id)


def report_of_use(loop: Loop, use: InjectedUse) -> HarmfulReport | None:
    """Return the harmful report in an `injected` entry of a loop, if any."""
    if use.successful is not False or not use.applied:
        return None
    at = use.at or loop.ended_at or loop.last_activity or loop.started_at or UNDATED
    return HarmfulReport(at, use.pattern_id)


def member_bursts(held: Iterable[HeldUses], verdicts: Mapping[str, Sequence[BurstVerdict]]) -> Iterator[Burst]:
    """Yield undecided held results of members; `verdicts` are by source."""
    for one in held:
        source = f"{MEMBER}{one.member}"
        if not any(verdict.last >= one.last for verdict in verdicts.get(source, ())):
            yield Burst(
                source=source,
                first=one.first,
                last=one.last,
                patterns=one.patterns,
                successes=one.successes,
                failures=one.failures,
            )


class IgnoredPeriods(NamedTuple):
    """Sorted periods in which the harmful reports of one source do not count."""

    held: tuple[Period, ...]
    revoked: tuple[Period, ...]


def find_ignored_periods(
    reports: Iterable[HarmfulReport], verdicts: Sequence[BurstVerdict], settings: LearningSettings
) -> IgnoredPeriods:
    """Find the periods in which the harmful reports of one source do not count.

    A revocation covers all reports from `burst_minutes` before the first one of the burst until `burst_minutes` after
    the last one. A confirmation covers only the reports of the burst.
    """
    reach = timedelta(minutes=settings.burst_minutes)
    revoked = _merge_periods(_widen_period(verdict, reach) for verdict in verdicts if verdict.verdict == "revoked")
    confirmed = group_pairs(
        (pattern_id, Period(verdict.first, verdict.last))
        for verdict in verdicts
        if verdict.verdict == "confirmed"
        for pattern_id in verdict.patterns
    )
    merged = {pattern_id: _merge_periods(periods) for pattern_id, periods in confirmed.items()}
    undecided = [
        one
        for one in reports
        if not is_within(one.at, revoked) and not is_within(one.at, merged.get(one.pattern_id, ()))
    ]
    return IgnoredPeriods(tuple(_find_bursts(sorted(undecided), reach, settings.max_marks)), revoked)


def is_within(at: datetime, periods: Sequence[Period]) -> bool:
    """Return whether a time is in one of the sorted periods, ends included."""
    place = bisect_right(periods, at, key=itemgetter(0)) - 1
    return place >= 0 and at <= periods[place].last


def _merge_periods(periods: Iterable[Period]) -> tuple[Period, ...]:
    merged: list[Period] = []
    for period in sorted(periods):
        if merged and period.first <= merged[-1].last:
            merged[-1] = Period(merged[-1].first, max(merged[-1].last, period.last))
        else:
            merged.append(period)
    return tuple(merged)


def _widen_period(verdict: BurstVerdict, reach: timedelta) -> Period:
    first, last = verdict.first, verdict.last
    return Period(
        first - reach if first - UNDATED > reach else UNDATED,
        last + reach if _END_OF_TIME - last > reach else _END_OF_TIME,
    )


def _find_bursts(reports: Sequence[HarmfulReport], reach: timedelta, maximum: int) -> Iterator[Period]:
    """Yield periods with reports on more than `maximum` patterns within `reach`."""
    begin = 0
    inside: Counter[str] = Counter()
    found: Period | None = None
    for report in reports:
        inside[report.pattern_id] += 1
        while report.at - reports[begin].at > reach:
            left = reports[begin].pattern_id
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            begin += 1
        if len(inside) > maximum:
            if found is not None and reports[begin].at > found.last:
                yield found
                found = None
            found = Period(found.first if found is not None else reports[begin].at, report.at)
    if found is not None:
        yield found


def format_source(source: str) -> str:
    """Format the source of a report: a loop or attempt, or who recorded it."""
    return shorten_id(source.removeprefix(_BY))


def format_burst(burst: Burst) -> str:
    total = len(burst.patterns)
    if burst.is_of_member:
        results = f"{plural(burst.successes, 'success')} and {plural(burst.failures, 'failure')}"
        return (
            f"{format_source(burst.source)} sent {results} of {plural(total, 'pattern')} to the team; "
            "they do not count until a reviewer decides"
        )
    some = f"; it was not given {burst.never_given:,} of them"
    never = {0: "", total: "; it was given none of them"}.get(burst.never_given, some)
    text = f"{format_source(burst.source)} reports {plural(total, 'pattern')} as harmful{never}"
    return f"{text}; its reports are held until you decide"
