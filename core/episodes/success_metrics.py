"""The four success metrics of (1), each with what it was measured on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median
from typing import Final

from msgspec import Struct

from core.config.settings import Settings
from core.episodes.attempt_state import AttemptState, assess_attempts
from core.episodes.improvement import TARGET_IMPROVEMENT, Improvement, measure_improvement
from core.episodes.loop_links import Coverage, measure_coverage
from core.learning.finished_work import collect_reports
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot

READ_LATENCY_SECONDS: Final = 0.050
"""(1) success_metrics read_latency: "<50ms read latency for task history"."""


class Latency(Struct, frozen=True, kw_only=True):
    """(1) read_latency: how long it took just now to read histories of tasks.

    Attributes:
        tasks: How many were read.
        median, slowest: Seconds; None where there was none to read.
        slowest_task: Its id.
    """

    tasks: int = 0
    median: float | None = None
    slowest: float | None = None
    slowest_task: str = ""

    @property
    def met(self) -> bool | None:
        """Whether every history was read in time; None where there was none."""
        return None if self.slowest is None else self.slowest < READ_LATENCY_SECONDS


class AuditTrail(Struct, frozen=True, kw_only=True):
    """(1) audit_trail: which of the attempts that have ended have actions, an outcome and a reflection.

    Attributes:
        ended: How many have ended.
        complete: How many of these have all three.
        without_actions, without_outcome, without_reflection: Ids of those that lack something.
    """

    ended: int = 0
    complete: int = 0
    without_actions: tuple[str, ...] = ()
    without_outcome: tuple[str, ...] = ()
    without_reflection: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether nothing is missing; None where no attempt has ended."""
        return self.complete == self.ended if self.ended else None


class SuccessMetrics(Struct, frozen=True, kw_only=True):
    """How the episodic memory does by its own measures, (1) success_metrics.

    Attributes:
        running, paused, left: Ids of the open attempts by their state, see `core.episodes.attempt_state`.
    """

    coverage: Coverage
    latency: Latency
    improvement: Improvement
    audit: AuditTrail
    running: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def covers(self) -> bool | None:
        """(1) tracking_coverage: whether all loops are tracked in the structured memory; None without any loop."""
        return None if self.coverage.share is None else not (self.coverage.remembered or self.coverage.missing)

    @property
    def improves(self) -> bool | None:
        """(1) retry_improvement: whether retries with reflections succeed so much more often than those without;
        None where that cannot be told."""
        return self.improvement.against_unreflected.reaches(TARGET_IMPROVEMENT)


def success_metrics(
    snapshot: Snapshot, seconds: Mapping[str, float], now: datetime, settings: Settings
) -> SuccessMetrics:
    """All four, of one snapshot.

    Args:
        snapshot: The records.
        seconds: How long it took to read the history of each of some tasks, by their ids.
        now: Aware UTC; open attempts without a sign of life for long have been left.
        settings: How long that is, and of the intervals.
    """
    reflections = snapshot.reflections.values()
    attempts = {one.id: one for one in sorted(snapshot.attempts.values(), key=lambda one: (one.task_id, one.number))}
    states = assess_attempts(snapshot.tasks, attempts, now, settings.watch)
    by_state = {state: tuple(id for id, told in states.items() if told.state is state) for state in AttemptState}
    return SuccessMetrics(
        coverage=measure_coverage(snapshot.tasks, snapshot.memory_tasks, snapshot.loops),
        latency=latency(seconds),
        improvement=measure_improvement(attempts.values(), reflections, collect_reports(snapshot.events), settings),
        audit=audit_trail(attempts.values(), reflections),
        running=by_state[AttemptState.RUNNING],
        paused=by_state[AttemptState.PAUSED],
        left=by_state[AttemptState.LEFT],
    )


def latency(seconds: Mapping[str, float]) -> Latency:
    """What the times of reading each task amount to."""
    if not seconds:
        return Latency()
    slowest = max(seconds, key=seconds.__getitem__)
    return Latency(
        tasks=len(seconds),
        median=median(seconds.values()),
        slowest=seconds[slowest],
        slowest_task=slowest,
    )


def audit_trail(attempts: Iterable[Attempt], reflections: Iterable[Reflection]) -> AuditTrail:
    """What is missing of the attempts that have ended.

    An attempt has actions if its log has some; what other files claim to have counted is none.
    """
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
