"""Measure the success metrics (docs/task-memory.md#success-metrics)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.learning.outcomes import WorkReport, attempt_success, collect_reports
from core.learning.statistics import Difference, format_inconclusive, jeffreys_interval, required_cases
from core.records.loops import Outcome
from core.tasks.attempts import AttemptState, assess_attempts
from core.tasks.task_links import Coverage, measure_coverage

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.records.episodes import Attempt
    from core.records.reflections import Reflection
    from core.records.snapshot import Snapshot

TARGET_IMPROVEMENT: Final = 0.20
"""Target difference of success rates; not relative, since the rate without reflections may be 0."""
_NOTHING: Final = WorkReport()
READ_LATENCY_SECONDS: Final = 0.050  # target for reading the history of a task


class AttemptGroup(Struct, frozen=True, kw_only=True):
    """Results of a group of attempts, and the interval of their success rate (0..1)."""

    successes: int = 0
    failures: int = 0
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, successes: int, failures: int, level: float) -> AttemptGroup:
        low, high = jeffreys_interval(successes, failures, level)
        return cls(successes=successes, failures=failures, low=low, high=high)

    @property
    def attempts(self) -> int:
        return self.successes + self.failures

    @property
    def rate(self) -> float | None:
        """Success rate, 0..1; None if there are no attempts."""
        return self.successes / self.attempts if self.attempts else None

    @property
    def variance(self) -> float:
        """Variance of one attempt's success, with the rate moved slightly towards 0.5."""
        rate = (self.successes + 0.5) / (self.attempts + 1)
        return rate * (1 - rate)


class GroupComparison(Difference, frozen=True, kw_only=True):
    """Difference of two success rates (-1..1), with Newcombe's interval."""

    having: AttemptGroup
    lacking: AttemptGroup

    @property
    def relative(self) -> float | None:
        """The difference divided by the rate of the group `lacking` reflections."""
        return self.difference / self.lacking.rate if self.difference is not None and self.lacking.rate else None

    @property
    def verdict(self) -> str:
        """Such as "+25 percentage points", or the amount of data that is missing."""
        if self.is_conclusive and self.difference is not None:
            return f"{format_points(self.difference)} percentage points"
        return format_inconclusive(self.needed, "attempt")

    def reaches(self, target: float) -> bool | None:
        """Whether the difference is at least `target` (0..1); None if inconclusive."""
        if self.low is None or self.high is None:
            return None
        return True if self.low >= target else False if self.high < target else None


class RetryImprovement(Struct, frozen=True, kw_only=True):
    """Results of first attempts, and of retries with and without reflections."""

    first: AttemptGroup
    reflected: AttemptGroup
    unreflected: AttemptGroup
    against_first: GroupComparison
    against_unreflected: GroupComparison
    open: tuple[str, ...] = ()  # IDs of excluded attempts that are open
    unclear: tuple[str, ...] = ()  # IDs of excluded attempts that ended without success or failure


def measure_improvement(
    attempts: Iterable[Attempt],
    reflections: Iterable[Reflection],
    reports: Mapping[str, WorkReport],
    settings: Settings,
) -> RetryImprovement:
    """Compare the results of attempts with and without earlier reflections.

    Reflections of loops are ignored. `reports` are the results in the event log by attempt ID. `settings` contain the
    level of the intervals and the minimum size of a group.
    """
    known = tuple(attempts)
    written: dict[str, list[Reflection]] = defaultdict(list)
    for reflection in reflections:
        if reflection.task_id and reflection.attempt is not None and reflection.has_learning:
            written[reflection.task_id].append(reflection)
    first: dict[str, int] = {}
    for attempt in known:
        first[attempt.task_id] = min(attempt.number, first.get(attempt.task_id, 1))
    counts = {kind: [0, 0] for kind in ("first", "reflected", "unreflected")}
    left: dict[str, list[str]] = {"open": [], "unclear": []}
    for attempt in known:
        success = attempt_success(attempt, reports.get(attempt.id, _NOTHING))
        if success is None:
            left["open" if attempt.is_open else "unclear"].append(attempt.id)
            continue
        kind = "reflected" if _is_reflected(attempt, written.get(attempt.task_id, ())) else "unreflected"
        counts["first" if attempt.number == first[attempt.task_id] else kind][not success] += 1
    groups = {kind: AttemptGroup.of(good, bad, settings.interval_level) for kind, (good, bad) in counts.items()}
    return RetryImprovement(
        **groups,
        against_first=compare_attempt_groups(groups["reflected"], groups["first"], settings),
        against_unreflected=compare_attempt_groups(groups["reflected"], groups["unreflected"], settings),
        open=tuple(left["open"]),
        unclear=tuple(left["unclear"]),
    )


def compare_attempt_groups(having: AttemptGroup, lacking: AttemptGroup, settings: Settings) -> GroupComparison:
    """Compare the success rates of two groups of attempts."""
    comparison = GroupComparison(having=having, lacking=lacking)
    fewest, least = min(having.attempts, lacking.attempts), settings.extraction.min_usage_count_for_evaluation
    if having.rate is None or lacking.rate is None:
        return replace(comparison, needed=max(least, 1))
    difference = having.rate - lacking.rate
    if fewest < least:
        return replace(comparison, difference=difference, needed=least - fewest)
    low = difference - math.hypot(having.rate - having.low, lacking.high - lacking.rate)
    high = difference + math.hypot(having.high - having.rate, lacking.rate - lacking.low)
    comparison = replace(comparison, difference=difference, low=low, high=high)
    if low > 0 or high < 0:
        return comparison
    variance = (having.variance + lacking.variance) / 2
    enough = required_cases(difference, variance, settings.interval_level, settings.power)
    return replace(comparison, needed=max(enough - fewest, 1))


def format_points(difference: float) -> str:
    """Format a difference of rates in whole percentage points, such as `+25` or `0`."""
    whole = math.floor(abs(difference) * 100 + 0.5)
    return f"{math.copysign(whole, difference):+.0f}" if whole else "0"


def _is_reflected(attempt: Attempt, written: Iterable[Reflection]) -> bool:
    """Whether an attempt began after a reflection on an earlier attempt at the task."""
    for reflection in written:
        if reflection.attempt is None or reflection.attempt >= attempt.number:
            continue
        at = reflection.drafted_at or (None if reflection.at_approximate else reflection.at)
        if at is None or attempt.started_at is None or at <= attempt.started_at:
            return True
    return False


class Latency(Struct, frozen=True, kw_only=True):
    """Seconds to read the histories of `tasks` tasks; None if there are no tasks."""

    tasks: int = 0
    median: float | None = None
    slowest: float | None = None
    slowest_task: str = ""

    @property
    def met(self) -> bool | None:
        """Whether every history was read within the target; None if there are no tasks."""
        return None if self.slowest is None else self.slowest < READ_LATENCY_SECONDS


class AuditTrail(Struct, frozen=True, kw_only=True):
    """Ended attempts, and IDs of those without actions, outcome or reflection."""

    ended: int = 0  # number of ended attempts
    complete: int = 0  # number of ended attempts with actions, outcome and reflection
    without_actions: tuple[str, ...] = ()
    without_outcome: tuple[str, ...] = ()
    without_reflection: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether nothing is missing; None if no attempt has ended."""
        return self.complete == self.ended if self.ended else None


class SuccessMetrics(Struct, frozen=True, kw_only=True):
    """All success metrics, and the IDs of open attempts by state."""

    coverage: Coverage
    latency: Latency
    improvement: RetryImprovement
    audit: AuditTrail
    running: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def covers(self) -> bool | None:
        """Whether the task memory contains all loops; None if there are no loops."""
        return None if self.coverage.share is None else not (self.coverage.remembered or self.coverage.missing)

    @property
    def improves(self) -> bool | None:
        """Whether reflections improve retries by the target; None if inconclusive."""
        return self.improvement.against_unreflected.reaches(TARGET_IMPROVEMENT)


def measure_success(
    snapshot: Snapshot, seconds: Mapping[str, float], now: datetime, settings: Settings
) -> SuccessMetrics:
    """Measure all metrics; `seconds` are times to read task histories, by task ID."""
    reflections = snapshot.reflections.values()
    attempts = {one.id: one for one in sorted(snapshot.attempts.values(), key=lambda one: (one.task_id, one.number))}
    states = assess_attempts(snapshot.tasks, attempts, now, settings.watch)
    by_state = {
        state: tuple(id for id, condition in states.items() if condition.state is state) for state in AttemptState
    }
    return SuccessMetrics(
        coverage=measure_coverage(snapshot.tasks, snapshot.memory_tasks, snapshot.loops),
        latency=measure_latency(seconds),
        improvement=measure_improvement(attempts.values(), reflections, collect_reports(snapshot.events), settings),
        audit=measure_audit_trail(attempts.values(), reflections),
        running=by_state[AttemptState.RUNNING],
        paused=by_state[AttemptState.PAUSED],
        left=by_state[AttemptState.LEFT],
    )


def measure_latency(seconds: Mapping[str, float]) -> Latency:
    if not seconds:
        return Latency()
    slowest = max(seconds, key=seconds.__getitem__)
    return Latency(tasks=len(seconds), median=median(seconds.values()), slowest=seconds[slowest], slowest_task=slowest)


def measure_audit_trail(attempts: Iterable[Attempt], reflections: Iterable[Reflection]) -> AuditTrail:
    """Find ended attempts with missing data; only actions in a log count."""
    reflected = {(reflection.task_id, reflection.attempt) for reflection in reflections}
    ended = [attempt for attempt in attempts if not attempt.is_open]
    actions = tuple(one.id for one in ended if not (one.actions and one.errors is not None))
    outcome = tuple(one.id for one in ended if one.outcome is Outcome.UNKNOWN)
    reflection = tuple(one.id for one in ended if (one.task_id, one.number) not in reflected)
    return AuditTrail(
        ended=len(ended),
        complete=len(ended) - len({*actions, *outcome, *reflection}),
        without_actions=actions,
        without_outcome=outcome,
        without_reflection=reflection,
    )
