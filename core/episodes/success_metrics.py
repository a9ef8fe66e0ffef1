"""Measure the four success metrics of the task memory (docs/task-memory.md#success-metrics)."""

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
"""Target for reading the history of a task."""


class Latency(Struct, frozen=True, kw_only=True):
    """Measured time to read task histories.

    Attributes:
        tasks: Histories that were read.
        median, slowest: Seconds; None without any history.
        slowest_task: Its ID.
    """

    tasks: int = 0
    median: float | None = None
    slowest: float | None = None
    slowest_task: str = ""

    @property
    def met(self) -> bool | None:
        """Whether every history was read in time; None without any."""
        return None if self.slowest is None else self.slowest < READ_LATENCY_SECONDS


class AuditTrail(Struct, frozen=True, kw_only=True):
    """Which ended attempts have actions, an outcome and a reflection.

    Attributes:
        ended: Ended attempts; `complete` of them have all three.
        without_actions, without_outcome, without_reflection: IDs of the others.
    """

    ended: int = 0
    complete: int = 0
    without_actions: tuple[str, ...] = ()
    without_outcome: tuple[str, ...] = ()
    without_reflection: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether nothing is missing; None without any ended attempt."""
        return self.complete == self.ended if self.ended else None


class SuccessMetrics(Struct, frozen=True, kw_only=True):
    """All four success metrics.

    Attributes:
        running, paused, left: IDs of open attempts by state, see `core.episodes.attempt_state`.
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
        """Whether all loops are recorded in the task memory; None without any loop."""
        return None if self.coverage.share is None else not (self.coverage.remembered or self.coverage.missing)

    @property
    def improves(self) -> bool | None:
        """Whether retries with reflections reach the target improvement; None if the data is not sufficient."""
        return self.improvement.against_unreflected.reaches(TARGET_IMPROVEMENT)


def success_metrics(
    snapshot: Snapshot, seconds: Mapping[str, float], now: datetime, settings: Settings
) -> SuccessMetrics:
    """Measure all four metrics of one snapshot.

    Args:
        seconds: Time to read the history of some tasks, by ID.
        now: Aware UTC.
        settings: When an open attempt counts as left, and the interval level.
    """
    reflections = snapshot.reflections.values()
    attempts = {one.id: one for one in sorted(snapshot.attempts.values(), key=lambda one: (one.task_id, one.number))}
    states = assess_attempts(snapshot.tasks, attempts, now, settings.watch)
    by_state = {
        state: tuple(id for id, condition in states.items() if condition.state is state) for state in AttemptState
    }
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
    """Summarize the times of reading tasks."""
    if not seconds:
        return Latency()
    slowest = max(seconds, key=seconds.__getitem__)
    return Latency(tasks=len(seconds), median=median(seconds.values()), slowest=seconds[slowest], slowest_task=slowest)


def audit_trail(attempts: Iterable[Attempt], reflections: Iterable[Reflection]) -> AuditTrail:
    """Find what is missing of ended attempts.

    Only actions in the log count, not counts in other files.
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
