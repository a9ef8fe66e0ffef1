"""The JSON of tasks, attempts and what was done in them; see `core.cli.json.shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.json.shapes import Shape, number, reflection_json
from core.records.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.episodes.history import AttemptDetail, WholeHistory
    from core.episodes.improvement import AttemptGroup, GroupComparison
    from core.episodes.loop_links import LoopLink
    from core.episodes.plan_file import AttemptLessons
    from core.episodes.replay import ReplayStep
    from core.episodes.search_reader import SearchHit
    from core.episodes.success_metrics import SuccessMetrics
    from core.records.episodes import Action, Attempt, Milestone, Task
    from core.records.reflections import Reflection


def task_json(task: Task) -> Shape:
    """One task; `status` is the normalised word, `raw_status` the one of the file."""
    return {
        "id": task.id,
        "description": task.description,
        "criteria": task.criteria,
        "status": task.status.value,
        "raw_status": task.raw_status,
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
        "completed_at": iso(task.completed_at),
        "current_attempt": task.current_attempt,
        "total_attempts": task.total_attempts,
        "tags": list(task.tags),
        "related": list(task.related),
        "agent": task.agent or None,
        "loop_id": task.loop_id or None,
        "file": task.file,
    }


def attempt_json(attempt: Attempt) -> Shape:
    """One attempt; null where nobody has told or counted."""
    return {
        "id": attempt.id,
        "task_id": attempt.task_id,
        "number": attempt.number,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "open": attempt.is_open,
        "outcome": attempt.outcome.value,
        "reason": attempt.reason,
        "plan": attempt.plan,
        "agent": attempt.agent or None,
        "iterations": attempt.iterations,
        "actions": attempt.actions,
        "errors": attempt.errors,
        "last_action_at": iso(attempt.last_action_at),
        "quality": [
            {"iteration": entry.iteration, "quality": number(entry.quality), "delta": number(entry.delta)}
            for entry in attempt.quality
        ],
        "final_quality": number(attempt.final_quality),
        "completion": number(attempt.completion),
        "worked": list(attempt.worked),
        "failed": list(attempt.failed),
        "suggestions": list(attempt.suggestions),
        "file": attempt.file,
    }


def said_json(reflection: Reflection) -> Shape:
    """One reflection on an attempt, without where it stands."""
    return {
        "attempt": reflection.attempt,
        "at": iso(reflection.at),
        "kind": reflection.kind or None,
        "trigger": reflection.trigger or None,
        "observation": reflection.observation,
        "analysis": reflection.analysis,
        "learning": reflection.learning,
        "actions": list(reflection.actions),
        "draft": reflection.draft,
    }


def lesson_json(lesson: AttemptLessons) -> Shape:
    """One earlier attempt that a plan takes in."""
    return {
        "attempt": lesson.attempt.number,
        "outcome": lesson.attempt.outcome.value,
        "reason": lesson.attempt.reason,
        "plan": lesson.attempt.plan,
        "worked": list(lesson.attempt.worked),
        "failed": list(lesson.attempt.failed),
        "suggestions": list(lesson.attempt.suggestions),
        "reflections": [said_json(one) for one in lesson.reflections],
    }


def report_json(found: SuccessMetrics, links: Iterable[LoopLink], level: float) -> Shape:
    """How retries do, and the success metrics; `met` is null where that cannot be told.

    `left_out` are ids of attempts that no rate counts; `difference`, its `interval` and `target` are differences of
    rates, 0.2 is 20 percentage points; `level` is the probability of all intervals.
    """
    from core.episodes.improvement import TARGET_IMPROVEMENT
    from core.episodes.success_metrics import READ_LATENCY_SECONDS

    told, covered, latency, audit = found.improvement, found.coverage, found.latency, found.audit
    against = _comparison_json(told.against_unreflected)
    return {
        "improvement": {
            "first": _group_json(told.first),
            "with_reflections": _group_json(told.reflected),
            "without_reflections": _group_json(told.unreflected),
            "against_first": _comparison_json(told.against_first),
            "against_without": against,
            "level": level,
        },
        "left_out": {
            "running": list(found.running),
            "paused": list(found.paused),
            "left": list(found.left),
            "unclear": list(told.unclear),
        },
        "metrics": {
            "tracking_coverage": {
                "met": found.covers,
                "loops": covered.loops,
                "tracked": list(covered.tracked),
                "remembered": list(covered.remembered),
                "missing": list(covered.missing),
                "share": number(covered.share),
                "links": [{"task": link.task_id, "loop": link.loop_id, "how": link.how} for link in links],
            },
            "read_latency": {
                "met": latency.met,
                "limit_ms": READ_LATENCY_SECONDS * 1000,
                "tasks": latency.tasks,
                "median_ms": None if latency.median is None else latency.median * 1000,
                "slowest_ms": None if latency.slowest is None else latency.slowest * 1000,
                "slowest_task": latency.slowest_task or None,
            },
            "retry_improvement": {
                "met": found.improves,
                "target": TARGET_IMPROVEMENT,
                "difference": against["difference"],
                "interval": against["interval"],
            },
            "audit_trail": {
                "met": audit.met,
                "ended": audit.ended,
                "complete": audit.complete,
                "without_actions": list(audit.without_actions),
                "without_outcome": list(audit.without_outcome),
                "without_reflection": list(audit.without_reflection),
            },
        },
    }


def _group_json(group: AttemptGroup) -> Shape:
    return {
        "successes": group.successes,
        "failures": group.failures,
        "rate": number(group.rate),
        "interval": [number(group.low), number(group.high)],
    }


def _comparison_json(told: GroupComparison) -> Shape:
    return {
        "tells": told.is_conclusive,
        "difference": number(told.difference),
        "interval": None if told.low is None or told.high is None else [number(told.low), number(told.high)],
        "relative": number(told.relative),
        "needed": told.needed,
    }


def milestone_json(milestone: Milestone) -> Shape:
    """One milestone; `attempt` is null where it is one of the whole task."""
    return {
        "at": iso(milestone.at),
        "event": milestone.event,
        "details": milestone.details,
        "attempt": milestone.attempt,
    }


def history_json(whole: WholeHistory) -> Shape:
    """What was tried at a task; `log` are all actions of an attempt, `actions` is their number."""
    history = whole.task
    return {
        "task": task_json(history.task),
        "attempts": [
            {
                **attempt_json(detail.attempt),
                "plan_text": detail.plan_text,
                "plan_steps": list(detail.steps),
                "estimated_iterations": detail.estimated_iterations,
                "results": list(detail.results),
                "log": [action_json(action) for action in detail.actions],
            }
            for detail in whole.attempts
        ],
        "milestones": [milestone_json(milestone) for milestone in history.milestones],
        "final_quality": number(history.final_quality),
        "completion": number(history.completion),
        "summary": [{"name": name, "text": text} for name, text in history.summary],
        "reflections": [reflection_json(reflection) for reflection in history.reflections],
    }


def attempt_details_json(detail: AttemptDetail) -> Shape:
    """Everything about one attempt."""
    return {
        "attempt": attempt_json(detail.attempt),
        "plan_text": detail.plan_text,
        "plan_steps": list(detail.steps),
        "estimated_iterations": detail.estimated_iterations,
        "actions": [action_json(action) for action in detail.actions],
        "results": list(detail.results),
        "milestones": [milestone_json(milestone) for milestone in detail.milestones],
        "reflections": [reflection_json(reflection) for reflection in detail.reflections],
    }


def action_json(action: Action) -> Shape:
    """One action; long texts are cut."""
    return {
        "number": action.number,
        "at": iso(action.at),
        "iteration": action.iteration,
        "type": action.type,
        "tool": action.tool,
        "params": [{"name": name, "text": text} for name, text in action.params],
        "success": action.success,
        "output": action.output,
        "error": action.error,
        "reasoning": action.reasoning,
        "expected": action.expected,
    }


def step_json(step: ReplayStep) -> Shape:
    """One action in its place; `elapsed` and `pause` in seconds."""
    return {
        **action_json(step.action),
        "verdict": step.verdict.value,
        "real": step.real,
        "elapsed": number(step.elapsed),
        "pause": number(step.pause),
        "begins_iteration": step.begins_iteration,
        "quality": number(step.quality),
        "diff": list(step.diff),
    }


def hit_json(hit: SearchHit, snippet: str) -> Shape:
    """Where a query was found."""
    return {
        "in": hit.place.value,
        "task_id": hit.task_id or None,
        "attempt": hit.attempt,
        "action": hit.action,
        "subject": hit.subject or None,
        "at": iso(hit.at),
        "snippet": snippet,
        "file": hit.file,
        "pointer": hit.pointer,
    }
