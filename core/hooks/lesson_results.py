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
    from core.episodes.log_summary import LoggedFailure
    from core.project.project import Project
    from core.records.episodes import Attempt


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
    given: dict[str, set[str]] = {}
    for event in about:
        if event.kind == "injected" and event.loop_id in attempts and event.pattern_id not in counted:
            given.setdefault(event.loop_id, set()).add(event.pattern_id)
    for work_id, pattern_ids in sorted(given.items()):
        attempt = attempts[work_id]
        failures = _read_failures(project, attempt)
        for pattern_id in sorted(pattern_ids):
            pattern = snapshot.patterns.get(pattern_id)
            if pattern is None or pattern.type is not PatternType.ERROR or not pattern.error_pattern:
                continue
            matcher = safe_matcher(pattern.error_pattern)
            met = [failure.solved for failure in failures if matcher.matches(failure.message)]
            if met and (all(met) or attempt.outcome is Outcome.FAILURE):
                yield Event(
                    id=event_id(now),
                    at=now,
                    kind="applied",
                    pattern_id=pattern_id,
                    loop_id=work_id,
                    success=all(met),
                    by=project.by,
                    agent=project.agent,
                )


def _read_failures(project: Project, attempt: Attempt) -> tuple[LoggedFailure, ...]:
    """Read the failures in the log of an attempt; none if its folder is gone or unsafe."""
    try:
        folder = TaskFolder.of(project.project, attempt.task_id)
        return StrictReader(folder).log(find_attempt_folder(folder, attempt.number)).failures
    except (BadInput, UnknownRecord):
        return ()
