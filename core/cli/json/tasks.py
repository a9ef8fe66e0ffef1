"""JSON of the task memory: tasks, attempts, actions, reports, search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from core.cli.json import objects
from core.cli.json.wire import Wire

if TYPE_CHECKING:
    from core.episodes.history import AttemptDetail, WholeHistory
    from core.episodes.loop_links import LoopLink
    from core.episodes.plan_file import AttemptLessons
    from core.episodes.replay import ReplayStep as StepRecord
    from core.episodes.search_reader import SearchHit as HitRecord
    from core.episodes.success_metrics import AttemptGroup, GroupComparison, SuccessMetrics
    from core.records.episodes import Action as ActionRecord
    from core.records.episodes import Attempt as AttemptRecord


def attempt(record: AttemptRecord) -> Wire:
    """One attempt."""
    return objects.Attempt.of(record, open=record.is_open)


def attempt_lesson(lesson: AttemptLessons) -> Wire:
    """An earlier attempt in the plan of a new one."""
    return objects.AttemptLesson.of(lesson.attempt, attempt=lesson.attempt.number, reflections=lesson.reflections)


def task_report(found: SuccessMetrics, links: Iterable[LoopLink], level: float, **given: Any) -> Wire:
    """How retries with reflections do, and the success metrics."""
    from core.episodes.success_metrics import READ_LATENCY_SECONDS, TARGET_IMPROVEMENT

    improvement, latency = found.improvement, found.latency
    return objects.TaskReport.of(
        **given,
        improvement=objects.RetryImprovement(
            first=_outcome_group(improvement.first),
            with_reflections=_outcome_group(improvement.reflected),
            without_reflections=_outcome_group(improvement.unreflected),
            against_first=_rate_difference(improvement.against_first),
            against_without=_rate_difference(improvement.against_unreflected),
            level=level,
        ),
        left_out=objects.OmittedAttempts.of(found, unclear=improvement.unclear),
        metrics=objects.TaskMetrics(
            tracking_coverage=objects.TrackingCoverage.of(
                found.coverage,
                met=found.covers,
                links=[objects.TaskLink(task=link.task_id, loop=link.loop_id, how=link.how) for link in links],
            ),
            read_latency=objects.ReadLatency.of(
                latency,
                limit_ms=READ_LATENCY_SECONDS * 1000,
                median_ms=None if latency.median is None else latency.median * 1000,
                slowest_ms=None if latency.slowest is None else latency.slowest * 1000,
            ),
            retry_improvement=objects.RetryTarget(
                met=found.improves,
                target=TARGET_IMPROVEMENT,
                difference=improvement.against_unreflected.difference,
                interval=_interval(improvement.against_unreflected),
            ),
            audit_trail=objects.AuditTrail.of(found.audit),
        ),
    )


def _outcome_group(group: AttemptGroup) -> Wire:
    return objects.OutcomeGroup.of(group, interval=[group.low, group.high])


def _rate_difference(found: GroupComparison) -> Wire:
    return objects.RateDifference.of(found, tells=found.is_conclusive, interval=_interval(found))


def _interval(found: GroupComparison) -> list[float] | None:
    return None if found.low is None or found.high is None else [found.low, found.high]


def action(record: ActionRecord) -> Wire:
    """One action."""
    return objects.Action.of(record, params=_named_texts(record.params))


def _named_texts(pairs: Iterable[tuple[str, str]]) -> list[Wire]:
    return [objects.NamedText(name=name, text=text) for name, text in pairs]


def history_document(whole: WholeHistory, findings: object) -> Wire:
    """All attempts at a task."""
    history = whole.task
    return objects.HistoryDocument.of(
        history,
        attempts=[
            objects.AttemptHistory.of(
                detail.attempt,
                open=detail.attempt.is_open,
                plan_text=detail.plan_text,
                plan_steps=detail.steps,
                estimated_iterations=detail.estimated_iterations,
                results=detail.results,
                log=list(map(action, detail.actions)),
            )
            for detail in whole.attempts
        ],
        summary=_named_texts(history.summary),
        findings=findings,
    )


def attempt_document(detail: AttemptDetail, findings: object) -> Wire:
    """Everything about one attempt."""
    return objects.AttemptDocument.of(
        detail,
        attempt=attempt(detail.attempt),
        plan_steps=detail.steps,
        actions=list(map(action, detail.actions)),
        findings=findings,
    )


def replay_step(step: StepRecord) -> Wire:
    """One action in its place."""
    return objects.ReplayStep.of(
        step.action,
        params=_named_texts(step.action.params),
        verdict="not told" if step.verdict.value == "unknown" else step.verdict,  # the documented value
        real=step.real,
        elapsed=step.elapsed,
        pause=step.pause,
        begins_iteration=step.begins_iteration,
        quality=step.quality,
        diff=step.diff,
    )


def search_hit(hit: HitRecord, snippet: str) -> Wire:
    """A record that contains all words."""
    return objects.SearchHit.of(hit, snippet=snippet, **{"in": hit.place})
