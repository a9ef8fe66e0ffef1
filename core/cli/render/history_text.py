"""Text output of the history of a task."""

from __future__ import annotations

from typing import Final

from core.cli.render.document import print_blocks, print_document
from core.cli.render.output import remark
from core.cli.support.project import now, read_configuration
from core.config.settings import WatchSettings
from core.documents.tasks import attempt_document, reflection_sections, task_document
from core.episodes.attempt_state import AttemptCondition, assess_attempt
from core.episodes.history import COUNT_DIFFERS, AttemptDetail, TaskHistory
from core.records.episodes import Attempt


class AttemptStates:
    """The state of each attempt of a task; settings are read only for open attempts."""

    def __init__(self, history: TaskHistory) -> None:
        self._task: Final = history.task
        self._latest: Final = max((one.number for one in history.attempts), default=0)
        is_open = any(one.is_open for one in history.attempts)
        self._settings: Final = read_configuration().settings.watch if is_open else WatchSettings()

    def condition(self, attempt: Attempt) -> AttemptCondition:
        """Return the state of an attempt and the reason."""
        return assess_attempt(attempt, self._task, self._latest, now(), self._settings)


def print_history(shown: TaskHistory | AttemptDetail, history: TaskHistory, only_reflections: bool, limit: int) -> None:
    """Print a task or one attempt; with `only_reflections` its newest reflections.

    Args:
        history: All attempts of the task, for the state of open ones.
    """
    states = AttemptStates(history)
    if only_reflections:
        print_blocks(reflection_sections(shown.reflections[-limit:]))
        if not shown.reflections:
            remark("no reflections")
    elif isinstance(shown, AttemptDetail):
        print_document(attempt_document(shown, states.condition(shown.attempt)))
    else:
        print_document(task_document(shown, states.condition, limit))
        if history.attempts and not shown.attempts:
            remark("no attempt has this outcome")
        for finding in shown.findings:
            if finding.code == COUNT_DIFFERS:
                remark(f"{finding.file} {finding.message}")
