"""The JSON of tasks, attempts and what was done in them; see `core.cli.shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.shapes import Shape, number
from core.records.times import iso

if TYPE_CHECKING:
    from core.episodes.planning import Lesson
    from core.records.episodes import Attempt, Task
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
        "quality": [{"iteration": entry.iteration, "quality": number(entry.quality)} for entry in attempt.quality],
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


def lesson_json(lesson: Lesson) -> Shape:
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
