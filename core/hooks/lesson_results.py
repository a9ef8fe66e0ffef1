"""Results of the lessons that a session was given (docs/agents.md#sessions).

An injection alone is not a use. An error pattern that was given to an attempt was used if its error occurred: with
success if the error was solved, and without if the attempt failed with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.base.errors import BadInput, UnknownRecord
from core.base.text import safe_matcher
from core.episodes.folders import TaskFolder, find_attempt_folder
from core.episodes.strict_reader import StrictReader
from core.records.events import Event, event_id
from core.records.loops import Outcome
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.project.project import Project


def record_results(project: Project, task_id: str) -> None:
    """Record the results of the error patterns that the attempts at a task were given, each once."""
    if events := list(_find_results(project, task_id)):
        project.record(*events)


def _find_results(project: Project, task_id: str) -> Iterator[Event]:
    snapshot, now = project.view.snapshot, project.now()
    attempts = {
        id: attempt
        for id, attempt in snapshot.attempts.items()
        if attempt.task_id == task_id and attempt.outcome in (Outcome.SUCCESS, Outcome.FAILURE)
    }
    about = [event for event in snapshot.events if event.loop_id in attempts or event.loop_id == task_id]
    counted = {event.pattern_id for event in about if event.kind in ("applied", "extracted")}
    given = {(event.loop_id, event.pattern_id) for event in about if event.kind == "injected"}
    for work_id, pattern_id in sorted(given):
        pattern = snapshot.patterns.get(pattern_id)
        if pattern is None or pattern.type is not PatternType.ERROR or not pattern.error_pattern:
            continue
        if work_id not in attempts or pattern_id in counted:
            continue
        solved = _is_solved(project, task_id, attempts[work_id].number, pattern.error_pattern)
        if solved or (solved is False and attempts[work_id].outcome is Outcome.FAILURE):
            yield Event(
                id=event_id(now),
                at=now,
                kind="applied",
                pattern_id=pattern_id,
                loop_id=work_id,
                success=solved,
                by=project.by,
                agent=project.agent,
            )


def _is_solved(project: Project, task_id: str, number: int, signature: str) -> bool | None:
    """Return whether an error was solved in an attempt; None if it did not occur."""
    try:
        folder = TaskFolder.of(project.project, task_id)
        failures = StrictReader(folder).log(find_attempt_folder(folder, number)).failures
    except (BadInput, UnknownRecord):
        return None
    matcher = safe_matcher(signature)
    met = [failure.solved for failure in failures if matcher.matches(failure.message)]
    return all(met) if met else None
