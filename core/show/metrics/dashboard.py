"""All metrics at one moment, by week; docs/metrics.md#upcoming-changes.

The screen, the command and the exports show them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct

from core.base.steps import group_pairs
from core.learning.maturity import SECONDS_PER_DAY, STATES, state_codes
from core.learning.scores import HARMFUL, HELPFUL, INJECTED_ONLY, KINDS, NO_RESULT
from core.learning.statistics import jeffreys_interval, jeffreys_intervals
from core.records.decisions import TURNS, CurationState, Decision, Verb
from core.records.patterns import Maturity
from core.records.team import TeamStatus
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.context_cost import ContextCost, measure_cost
from core.show.metrics.effectiveness import (
    Comparison,
    LoopCounts,
    MeasuredBenefit,
    ReviewerAccuracy,
    compare_injection,
    compare_reflections,
    count_inherited,
    measure_accuracy,
    measure_benefit,
)
from core.show.metrics.lesson_effect import LessonEffect, measure_lesson_effect
from core.show.metrics.sessions import (
    Cause,
    UsageGroup,
    count_failed_loops,
    daily_usage,
    group_usage,
    top_causes,
    usage_day,
)

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Flags, Floats, Ints
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


WEEK: Final = timedelta(weeks=1)
COSTS_LISTED: Final = 8  # lessons whose cost is listed, those with most tokens
USAGE_DAYS: Final = 28  # most days of which the usage is shown
RANGES: Final = (4, 12, 52)  # numbers of weeks that the screen offers
StateChange = tuple[Maturity, Maturity]  # state before and after
REVIEW_VERBS: Final = frozenset(
    {
        *(Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION),
        *(Verb.EXTRACT, Verb.MERGE, Verb.RESTORE, Verb.QUARANTINE, Verb.RELEASE),
    }
)
"""Decisions that count as a review of the pattern."""
_NO_ANSWERS: Final = TURNS | {Verb.NOTE}


class Week(Struct, frozen=True, kw_only=True):
    """Evidence of one week on all registered patterns."""

    start: datetime  # Monday, 00:00 UTC
    good: int  # uses that worked and uses that failed
    bad: int
    open: int  # uses without a result
    shown: int  # injections without a use
    low: float | None = None  # ends of the interval of the success rate, 0..1; None without results
    high: float | None = None

    @property
    def results(self) -> int:
        return self.good + self.bad

    @property
    def uses(self) -> int:
        return self.results + self.open

    @property
    def rate(self) -> float | None:
        """Success rate, 0..1; None without results."""
        return self.good / self.results if self.results else None


class SuccessRate(NamedTuple):
    """Success rate of a period, with its interval, 0..1."""

    good: int
    results: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Success rate, 0..1."""
        return self.good / self.results


class Trend(NamedTuple):
    """Success rates before and after `since`, the middle of the weeks with results."""

    since: datetime
    before: SuccessRate
    after: SuccessRate

    @property
    def is_significant(self) -> bool:
        """Whether the intervals are disjoint; stricter than a test of the difference."""
        return self.before.high < self.after.low or self.after.high < self.before.low


def list_week_starts(now: datetime, weeks: int) -> tuple[datetime, ...]:
    """Return the Mondays (00:00 UTC) of the last `weeks` weeks, the current one last."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - WEEK * back for back in range(weeks - 1, -1, -1))


def count_weekly(board: Scoreboard, registry: Flags, starts: Sequence[datetime]) -> tuple[Week, ...]:
    """Count the evidence of each week; evidence dated in the future counts as now.

    `registry` selects the rows of the board to count; `starts` are Mondays from `list_week_starts`.
    """
    places = find_weeks(board, starts)
    use_times = board.use_times
    counted = (places >= 0) & registry[use_times.rows]
    cells = places[counted] * len(KINDS) + use_times.kinds[counted]
    sums = np.bincount(cells, use_times.counts[counted], minlength=len(starts) * len(KINDS))
    counts = sums.astype(np.int64).reshape(-1, len(KINDS))
    low, high = jeffreys_intervals(counts[:, HELPFUL], counts[:, HARMFUL], board.settings.interval_level)
    return tuple(
        Week(
            start=start,
            good=row[HELPFUL],
            bad=row[HARMFUL],
            open=row[NO_RESULT],
            shown=row[INJECTED_ONLY],
            low=float(low[n]) if row[HELPFUL] + row[HARMFUL] else None,
            high=float(high[n]) if row[HELPFUL] + row[HARMFUL] else None,
        )
        for n, (start, row) in enumerate(zip(starts, counts.tolist(), strict=True))
    )


def list_used(board: Scoreboard, registry: Flags, start: datetime) -> tuple[str, ...]:
    """Return the patterns used or injected in the week from `start`, most used first."""
    places = find_weeks(board, (start,))
    use_times = board.use_times
    counted = (places == 0) & registry[use_times.rows]
    uses = np.where(use_times.kinds[counted] == INJECTED_ONLY, 0, use_times.counts[counted])
    rows, inverse = np.unique(use_times.rows[counted], return_inverse=True)
    order = np.argsort(-np.bincount(inverse, uses, minlength=len(rows)), kind="stable")
    return tuple(board.ids[row] for row in rows[order].tolist())


def find_weeks(board: Scoreboard, starts: Sequence[datetime]) -> Ints:
    """Return the week number of each entry of `use_times`; negative if outside."""
    at = np.minimum(board.use_times.at, board.now.timestamp())
    places = np.floor((at - starts[0].timestamp()) / WEEK.total_seconds()).astype(np.int64)
    return np.where(places < len(starts), places, -1)


def compute_trend(weeks: Sequence[Week], level: float) -> Trend | None:
    """Compare the success rates of two halves of the weeks; None without results."""
    first = next((n for n, week in enumerate(weeks) if week.results), len(weeks))
    known = weeks[first:]
    middle = (len(known) + 1) // 2
    before, after = (_sum_success(half, level) for half in (known[:middle], known[middle:]))
    return Trend(known[middle].start, before, after) if before is not None and after is not None else None


def _sum_success(weeks: Sequence[Week], level: float) -> SuccessRate | None:
    good, bad = sum(week.good for week in weeks), sum(week.bad for week in weeks)
    return SuccessRate(good, good + bad, *jeffreys_interval(good, bad, level)) if good + bad else None


def count_states(
    board: Scoreboard, registry: Flags, snapshot: Snapshot, times: Sequence[datetime]
) -> tuple[dict[Maturity, int], ...]:
    """Count the registered patterns in each state at some past times, oldest first.

    Later uses are taken out of the sums, with a weight of 1. Uses without a date count from the start, and a pin from
    its time on; earlier pins and quarantines are not known.
    """
    patterns, pins = snapshot.patterns, snapshot.curation.pins
    use_times, limits = board.use_times, board.settings.maturity
    half_life, now = limits.half_life_days * SECONDS_PER_DAY, board.now.timestamp()
    found_at = np.array([_seconds(patterns[id].first_discovered) for id in board.ids])
    pinned_at = np.array([_seconds(pins[id].at) if id in pins else now for id in board.ids])
    values = use_times.counts * np.exp2((np.minimum(use_times.at, now) - now) / half_life)
    counts = []
    for time in times:
        at = time.timestamp()
        later = use_times.at > at
        good, bad = (
            np.bincount(use_times.rows, values * (later & (use_times.kinds == kind)), minlength=len(board.ids))
            for kind in (HELPFUL, HARMFUL)
        )
        growth = np.exp2((now - at) / half_life)
        helpful = np.maximum(board.helpful - good, 0.0) * growth
        harmful = np.maximum(board.harmful - bad, 0.0) * growth
        is_known = (pinned_at < at) | (at >= now)
        codes = np.where(is_known, board.state_codes, state_codes(helpful, harmful, limits))
        by_code = np.bincount(codes[registry & (found_at <= at)], minlength=len(STATES)).tolist()
        counts.append(dict(zip(STATES, by_code, strict=True)))
    return tuple(counts)


def _seconds(time: datetime | None) -> float:
    return -math.inf if time is None else time.timestamp()


class WeekAhead(Struct, frozen=True, kw_only=True):
    """Changes of state in one week if no evidence is added."""

    start: datetime  # Monday, or now for the current week
    end: datetime
    changes: dict[StateChange, tuple[str, ...]]  # pattern IDs by change, in the order of the board

    @property
    def count(self) -> int:
        return sum(map(len, self.changes.values()))


def find_upcoming(board: Scoreboard, registry: Flags, weeks: int) -> tuple[WeekAhead, ...]:
    """Find the changes of state in the next `weeks` weeks if no evidence is added."""
    bounds = [board.now, *(list_week_starts(board.now, 1)[0] + WEEK * n for n in range(1, weeks + 1))]
    found = []
    before = board.state_codes
    for start, end in pairwise(bounds):
        after = board.rescored(end).state_codes
        changes: dict[StateChange, list[str]] = {}
        for row in np.flatnonzero((before != after) & registry).tolist():
            changes.setdefault((STATES[before[row]], STATES[after[row]]), []).append(board.ids[row])
        ordered = {change: tuple(changes[change]) for change in sorted(changes, key=_order)}
        found.append(WeekAhead(start=start, end=end, changes=ordered))
        before = after
    return tuple(found)


def count_changes(weeks: Sequence[WeekAhead]) -> dict[StateChange, int]:
    """Return the number of patterns per change of state, in a fixed order."""
    counts: Counter[StateChange] = Counter()
    for week in weeks:
        counts.update({change: len(ids) for change, ids in week.changes.items()})
    return {change: counts[change] for change in sorted(counts, key=_order)}


def _order(change: StateChange) -> tuple[int, int]:
    """Sort key: changes from the best state first."""
    return -STATES.index(change[0]), STATES.index(change[1])


class CoverageWeek(Struct, frozen=True, kw_only=True):
    """Review coverage of one week."""

    start: datetime  # Monday, 00:00 UTC
    injected: int  # number of injections, used or not, of registered patterns
    reviewed: int  # injections of patterns that a person had reviewed by the end of the week
    decisions: int  # decisions of the week that are in effect

    @property
    def share(self) -> float | None:
        """Share of reviewed injections, 0..1; None without injections."""
        return self.reviewed / self.injected if self.injected else None


class OpenKind(Struct, frozen=True, kw_only=True):
    """All open questions of one kind."""

    kind: str
    count: int
    share: float  # part of the expected impact of all open questions, 0..1
    first: str  # `question_key` of the question with the highest priority


def compute_coverage(
    board: Scoreboard,
    registry: Flags,
    decisions: Iterable[Decision],
    curation: CurationState,
    starts: Sequence[datetime],
) -> tuple[CoverageWeek, ...]:
    """Compute the review coverage per week.

    An edit after a pin revokes its review; an unattended extraction is not a review. `registry` selects the rows of the
    board to count; `starts` are Mondays from `list_week_starts`.
    """
    effective = [one for one in decisions if one.id not in curation.undone and not one.is_unattended]
    since = _find_first_reviews(board, effective)
    use_times, week, first = board.use_times, WEEK.total_seconds(), starts[0].timestamp()
    places = find_weeks(board, starts)
    counted = (places >= 0) & registry[use_times.rows]
    places, counts = places[counted], use_times.counts[counted]
    is_reviewed = since[use_times.rows[counted]] < first + (places + 1) * week
    injected = np.bincount(places, counts, minlength=len(starts)).astype(np.int64).tolist()
    reviewed = np.bincount(places, counts * is_reviewed, minlength=len(starts)).astype(np.int64).tolist()
    answers = [decision.at for decision in effective if decision.verb not in _NO_ANSWERS]
    return tuple(
        CoverageWeek(
            start=start,
            injected=injected[n],
            reviewed=reviewed[n],
            decisions=sum(start <= at < start + WEEK for at in answers),
        )
        for n, start in enumerate(starts)
    )


def _find_first_reviews(board: Scoreboard, effective: Iterable[Decision]) -> Floats:
    """Return the first review of each row in epoch seconds; infinity without one."""
    since = np.full(len(board.ids), np.inf)
    for decision in effective:
        if decision.verb in REVIEW_VERBS:
            several = decision.after.get("patterns")
            for id in (decision.subject, *(several if isinstance(several, list) else ())):
                if isinstance(id, str) and id in board:
                    row = board.row(id)
                    since[row] = min(since[row], decision.at.timestamp())
    return np.where(board.pin_stale, np.inf, since)


def count_questions(queue: Sequence[ReviewItem]) -> tuple[OpenKind, ...]:
    """Count the questions of each kind; `queue` is sorted by priority."""
    kinds = group_pairs((item.kind, item) for item in queue)
    whole = sum(item.impact for item in queue) or 1.0
    found = []
    for kind, items in kinds.items():
        share, first = sum(item.impact for item in items) / whole, items[0].question_key
        found.append(OpenKind(kind=kind, count=len(items), share=share, first=first))
    return tuple(sorted(found, key=lambda open: (-open.share, open.kind)))


def count_first_half(queue: Sequence[ReviewItem]) -> int:
    """Return how many of the first non-urgent questions have half of the impact."""
    sums = list(accumulate(item.impact for item in queue if not item.is_urgent))
    return bisect_left(sums, sums[-1] / 2) + 1 if sums and sums[-1] else 0


class Dashboard(Struct, frozen=True, kw_only=True):
    """Metrics of a number of weeks before and after a moment."""

    now: datetime
    weeks: int  # number of weeks before and after `now`
    level: float  # level of the intervals, 0..1
    states: tuple[dict[Maturity, int], ...]  # number of registered patterns by state, at the end of each week
    evidence: tuple[Week, ...]  # evidence by week, oldest first; the last week is the current one
    undated: int  # uses recorded only as totals, without a date
    trend: Trend | None  # change of the success rate; None without enough data
    lessons: LessonEffect
    benefit: MeasuredBenefit  # number and iterations of loops with and without injected patterns
    iterations: Comparison  # all loops with injected patterns compared with those without
    reflections: Comparison  # all loops with injected reflections compared with those without
    ahead: tuple[WeekAhead, ...]  # upcoming changes by week; the first week is the current one
    costs: ContextCost  # of the lessons that were given in the past weeks
    coverage: tuple[CoverageWeek, ...]  # review coverage by week, as `evidence`
    open: tuple[OpenKind, ...]
    first_half: int  # number of first questions with half of the expected impact
    causes: tuple[Cause, ...]  # failure causes of the past weeks
    failed_loops: int  # loops that failed in the past weeks, with or without a known cause
    accuracy: ReviewerAccuracy
    usage: tuple[UsageGroup, ...]  # tokens and cost by day, oldest first; the last day is today
    usage_sources: tuple[UsageGroup, ...]  # the same by source, that with most tokens first
    team: TeamStatus | None = None  # with the uses of all projects; None without a team


def build_dashboard(
    view: ProjectState,
    by: str,
    weeks: int = DEFAULT_WEEKS,
    team: TeamStatus | None = None,
    loops: LoopCounts | None = None,
) -> Dashboard:
    """Compute all metrics at the time of a project state.

    `by` is the name of the reviewer in the decision log. `weeks` is the number of weeks in both directions, at least 1.
    `team` has the uses of all projects of the team, if any. `loops` are those of the state.
    """
    snapshot, board = view.snapshot, view.board
    registry = select_registered(board, snapshot.patterns)
    starts = list_week_starts(board.now, weeks)
    evidence = count_weekly(board, registry, starts)
    loops = loops or LoopCounts.of(snapshot)
    ends = [min(start + WEEK, board.now) for start in starts]
    days = daily_usage(snapshot.loops.values(), board.now, min(weeks * 7, USAGE_DAYS))
    names = {day.name for day in days}
    used = (board.use_times.kinds != INJECTED_ONLY) & registry[board.use_times.rows]
    return Dashboard(
        now=board.now,
        weeks=weeks,
        level=view.settings.interval_level,
        states=count_states(board, registry, snapshot, ends),
        evidence=evidence,
        undated=int((board.uses - board.team_uses)[registry].sum() - board.use_times.counts[used].sum())
        - count_inherited(board, (one for one in snapshot.patterns.values() if not one.copy_folder)).uses,
        trend=compute_trend(evidence, view.settings.interval_level),
        lessons=measure_lesson_effect(snapshot, board, view.settings, loops, is_running=view.experiment is not None),
        benefit=measure_benefit(loops),
        iterations=compare_injection(snapshot, view.settings, loops),
        reflections=compare_reflections(snapshot, view.settings, loops),
        ahead=find_upcoming(board, registry, weeks),
        costs=measure_cost(view, starts[0], COSTS_LISTED),
        coverage=compute_coverage(board, registry, snapshot.decisions, snapshot.curation, starts),
        open=count_questions(view.queue),
        first_half=count_first_half(view.queue),
        causes=top_causes(snapshot, starts[0], board.now),
        failed_loops=count_failed_loops(snapshot.loops.values(), starts[0], board.now),
        accuracy=measure_accuracy(view, by),
        usage=days,
        usage_sources=group_usage((loop for loop in snapshot.loops.values() if usage_day(loop) in names), "source"),
        team=team,
    )


def select_registered(board: Scoreboard, patterns: Mapping[str, Pattern]) -> Flags:
    """Return a mask of the registered rows, without copies in other folders."""
    return np.fromiter((not patterns[id].copy_folder for id in board.ids), np.bool_, len(board.ids))
