"""What happened in a task after the experiment gave it a pattern or held it out (docs/experiments.md#outcomes).

Both arms are judged by the same facts of the log, whether the agent got the pattern or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.learning.experiments import text_key
from core.project.finished_work import make_event
from core.records.events import ASSIGNED, TRIAL_OUTCOME
from core.records.loops import Outcome
from core.records.patterns import PatternType
from core.retrieval.similarity import find_repeated
from core.tasks.log_summary import parse_command

if TYPE_CHECKING:
    from datetime import datetime

    from core.project.finished_work import ActionLogs
    from core.project.project import Project
    from core.questions.extraction.recorded_work import ActionLog
    from core.records.episodes import Action
    from core.records.events import Event
    from core.records.patterns import Pattern

_SUCCESS: Final = {Outcome.SUCCESS: True, Outcome.FAILURE: False}


def record_outcomes(project: Project, task_id: str, key: str, logs: ActionLogs) -> None:
    """Record what happened in a task that is over, once for each pattern that was assigned; `key` is its trial's."""
    if events := list(_find_outcomes(project, task_id, key, logs)):
        project.record(*events)


def _find_outcomes(project: Project, task_id: str, key: str, logs: ActionLogs) -> Iterator[Event]:
    state = project.view
    about = [event for event in state.inputs.list_trials(text_key(key)) if event.trial and event.trial.task == key]
    recorded = {event.pattern_id for event in about if event.kind == TRIAL_OUTCOME}
    assigned: dict[str, Event] = {}
    for event in about:
        if event.kind == ASSIGNED and event.pattern_id not in recorded:
            assigned.setdefault(event.pattern_id, event)
    if not assigned:
        return
    attempts = sorted(
        (one for one in state.snapshot.attempts.values() if one.task_id == task_id), key=lambda one: one.number
    )
    if not attempts:
        return
    read = [logs.read(attempt) for attempt in attempts]
    actions = [action for log in read for action in log.actions]
    is_own = state.snapshot.foreign.is_own_event
    given = {
        event.pattern_id
        for one in attempts
        for event in state.inputs.about_work(one.id)
        if event.kind == "injected" and is_own(event)
    }
    held_out = [id for id, event in assigned.items() if event.trial is not None and event.trial.is_held_out]
    given |= _find_in_agent_files(project, held_out)
    for pattern_id, event in sorted(assigned.items()):
        assert event.trial is not None
        pattern = state.snapshot.patterns.get(pattern_id)
        later = [action for action in actions if action.at is None or action.at > event.at]
        steps, minutes = _find_success(later, event.at)
        trial = replace(
            event.trial,
            returned=_has_returned(pattern, read, event.at),
            steps=steps,
            minutes=minutes,
            crossed=(pattern_id in given) is event.trial.is_held_out,
        )
        last = attempts[-1]
        yield make_event(project, TRIAL_OUTCOME, last.id, pattern_id, success=_SUCCESS.get(last.outcome), trial=trial)


def _find_in_agent_files(project: Project, pattern_ids: Iterable[str]) -> set[str]:
    """Return the patterns whose text is in a file that an agent loads by itself."""
    patterns = project.view.snapshot.patterns
    known = [patterns[id] for id in pattern_ids if id in patterns]
    if not known:
        return set()
    texts = {one.id: (one.description, one.title, one.better_alternative) for one in known}
    files = project.adapters.agent_files()
    return set(find_repeated(texts, ((file.file, file.lines[: file.loaded]) for file in files)))


def _has_returned(pattern: Pattern | None, logs: Iterable[ActionLog], since: datetime) -> bool | None:
    """Return whether the error of a pattern occurred after a moment; None if it has none."""
    if pattern is None or pattern.type is not PatternType.ERROR:
        return None
    return any(log.has_error(pattern, since) for log in logs)


def _find_success(actions: Sequence[Action], since: datetime) -> tuple[int | None, float | None]:
    """Return the steps and minutes to the check that passed and after which none failed; None without one."""
    found: tuple[int, Action] | None = None
    for steps, action in enumerate(actions, start=1):
        if action.success is None or not parse_command(action).check:
            continue
        if action.has_failed:
            found = None
        elif found is None:
            found = steps, action
    if found is None:
        return None, None
    steps, action = found
    return steps, (action.at - since).total_seconds() / 60 if action.at is not None else None
