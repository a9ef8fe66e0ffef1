"""Whether retries with reflections succeed more often (1) improvement_tracking, and how sure that is.

Counted are attempts that came out, each by what its files or a report on it say. An attempt is the first of its task,
a retry with reflections, or a retry without: with them if a reflection on an earlier attempt at the task was written
before it began. A draft counts if it taught anything: the plan takes in no other. Nothing is drawn at random here: a
task that needs a retry is a hard one, so against first attempts reflections look worse than they are; against retries
without them like is compared with like.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.config.settings import Settings
from core.learning.finished_work import Report, attempt_success
from core.learning.statistics import Difference, format_inconclusive, jeffreys_interval, required_cases
from core.records.episodes import Attempt
from core.records.reflections import Reflection

TARGET_IMPROVEMENT: Final = 0.20
"""(1) success_metrics retry_improvement, (1) research_backing: "20% improvement". REF-021 gives differences of success
rates, so these are percentage points; as a share of a rate it would mean nothing where no retry succeeds without."""
_NOTHING: Final = Report()


class AttemptGroup(Struct, frozen=True, kw_only=True):
    """Attempts of one kind that came out, and the Jeffreys interval of their success rate; rates 0..1."""

    successes: int = 0
    failures: int = 0
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, successes: int, failures: int, level: float) -> AttemptGroup:
        """With the interval of probability `level`."""
        low, high = jeffreys_interval(successes, failures, level)
        return cls(successes=successes, failures=failures, low=low, high=high)

    @property
    def attempts(self) -> int:
        """How many there are."""
        return self.successes + self.failures

    @property
    def rate(self) -> float | None:
        """The share that succeeded; None without any."""
        return self.successes / self.attempts if self.attempts else None


class GroupComparison(Difference, frozen=True, kw_only=True):
    """Success rates of two groups against each other.

    The difference is -1..1, above 0 is an improvement. Its interval is Newcombe's, made of the Jeffreys intervals of
    both rates.
    """

    having: AttemptGroup
    lacking: AttemptGroup

    @property
    def relative(self) -> float | None:
        """The difference as a share of the rate without; None where that is 0 or unknown."""
        return self.difference / self.lacking.rate if self.difference is not None and self.lacking.rate else None

    @property
    def verdict(self) -> str:
        """`+25 percentage points`, or what it would take to tell."""
        if self.is_conclusive and self.difference is not None:
            return f"{format_points(self.difference)} percentage points"
        return format_inconclusive(self.needed, "attempt")

    def reaches(self, target: float) -> bool | None:
        """Whether the improvement is at least `target` (0..1); None while the interval holds more and less."""
        if self.low is None or self.high is None:
            return None
        return True if self.low >= target else False if self.high < target else None


class Improvement(Struct, frozen=True, kw_only=True):
    """How first attempts and retries came out.

    Attributes:
        first, reflected, unreflected: First attempts, retries with reflections, retries without.
        against_first, against_unreflected: Retries with reflections against either.
        open, unclear: Ids of attempts that are left out: nobody has said how they came out; or they have ended, but
            neither as a success nor as a failure.
    """

    first: AttemptGroup
    reflected: AttemptGroup
    unreflected: AttemptGroup
    against_first: GroupComparison
    against_unreflected: GroupComparison
    open: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


def measure_improvement(
    attempts: Iterable[Attempt],
    reflections: Iterable[Reflection],
    reports: Mapping[str, Report],
    settings: Settings,
) -> Improvement:
    """(1) "Track success rate improvement across retries with reflections".

    Args:
        attempts: At all tasks.
        reflections: Of all tasks; those of loops are passed over.
        reports: What the event log says of attempts, by their ids.
        settings: Probability of the intervals, and from how many attempts on a group says anything.
    """
    written, known = _by_task(reflections), tuple(attempts)
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
    return Improvement(
        **groups,
        against_first=compare(groups["reflected"], groups["first"], settings),
        against_unreflected=compare(groups["reflected"], groups["unreflected"], settings),
        open=tuple(left["open"]),
        unclear=tuple(left["unclear"]),
    )


def compare(having: AttemptGroup, lacking: AttemptGroup, settings: Settings) -> GroupComparison:
    """See `GroupComparison`."""
    told = GroupComparison(having=having, lacking=lacking)
    fewest, least = min(having.attempts, lacking.attempts), settings.extraction.min_usage_count_for_evaluation
    if having.rate is None or lacking.rate is None:
        return replace(told, needed=max(least, 1))
    difference = having.rate - lacking.rate
    if fewest < least:
        return replace(told, difference=difference, needed=least - fewest)
    low = difference - math.hypot(having.rate - having.low, lacking.high - lacking.rate)
    high = difference + math.hypot(having.high - having.rate, lacking.rate - lacking.low)
    told = replace(told, difference=difference, low=low, high=high)
    if low > 0 or high < 0:
        return told
    variance = (_variance(having) + _variance(lacking)) / 2
    enough = required_cases(difference, variance, settings.interval_level, settings.power)
    return replace(told, needed=max(enough - fewest, 1))


def format_points(difference: float) -> str:
    """A difference of rates in whole percentage points, half away from 0: `+25`, `0`."""
    whole = math.floor(abs(difference) * 100 + 0.5)
    return f"{math.copysign(whole, difference):+.0f}" if whole else "0"


def _by_task(reflections: Iterable[Reflection]) -> dict[str, list[Reflection]]:
    found: dict[str, list[Reflection]] = defaultdict(list)
    for reflection in reflections:
        if reflection.task_id and reflection.attempt is not None and reflection.teaches:
            found[reflection.task_id].append(reflection)
    return found


def _is_reflected(attempt: Attempt, written: Iterable[Reflection]) -> bool:
    """Whether a reflection on an earlier attempt was there when this one began; where times do not tell, the
    numbers do."""
    for reflection in written:
        if reflection.attempt is None or reflection.attempt >= attempt.number:
            continue
        at = reflection.drafted_at or (None if reflection.at_approximate else reflection.at)
        if at is None or attempt.started_at is None or at <= attempt.started_at:
            return True
    return False


def _variance(group: AttemptGroup) -> float:
    """Of one attempt; from a rate drawn a little to the middle, since no failure so far is no proof of none ever."""
    rate = (group.successes + 0.5) / (group.attempts + 1)
    return rate * (1 - rate)
