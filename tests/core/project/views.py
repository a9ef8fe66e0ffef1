"""Everything that a project shows as plain data, and the ways to get it that must agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from core.base.paths import ProjectPaths
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState, all_findings
from core.index.review_items import OFFER
from core.learning.maturity import Assessment
from core.project.project import Project
from core.sources.configuration import Configuration
from tests.fence_token import FENCE_TOKEN

TASKS: Final = ("Fix TypeScript type errors in user validation", "TypeError: Cannot read properties of null")
"""Tasks whose contexts are compared."""
MAPPINGS: Final = (
    *("patterns", "loops", "reflections", "memory_tasks", "tasks", "attempts", "debug_sessions", "escalations"),
    *("lessons", "unreadable"),
)
"""Fields of a snapshot that are mappings by ID."""
ORDERED: Final = ("loops", "reflections")
"""Those whose order is part of the answer: newest first."""
VALUES: Final = ("events", "withdrawn", "decisions", "curation", "foreign", "team", "complete")


_UNCOMPARED: Final = {"priority": None, "impact": None}
"""Values of a question that may be a minute old; the order of the questions shows what matters of them."""


class Clock:
    """A clock that a test sets; each reading is later by a step, so that all records have an order."""

    def __init__(self, now: datetime, step: timedelta = timedelta()) -> None:
        self.now = now
        self._step = step

    def __call__(self) -> datetime:
        self.now += self._step
        return self.now


STEP: Final = timedelta(milliseconds=10)


class ReaderView:
    """A project as commands and the dashboard read it, with or without a cache between two processes."""

    def __init__(self, paths: ProjectPaths, clock: Clock, *, cache: bool) -> None:
        self._paths = paths
        self._clock = clock
        self._cache = cache
        self._configuration = self._configure()
        self._project = self._make()

    def open(self) -> None:
        """Read the project as a new process does; what was kept on disk may be used."""
        self._project.adapters.close()
        self._configuration = self._configure()
        self._project = self._make()
        self._project.load()
        self._project.search_all()
        self._project.keep_questions()

    def apply(self, changed: Collection[Path] | None) -> None:
        """Take changed files; None finds them by a sweep."""
        if self._configure() != self._configuration:  # settings are read when a process starts
            self.open()
        else:
            self._project.apply(changed)

    def _configure(self) -> Configuration:
        return Configuration.read(self._paths).with_registry(self._paths)

    def _make(self) -> Project:
        found, now = self._configuration, self._clock
        return Project(self._paths, found.settings, by="ana", clock=now, cache=self._cache, findings=found.findings)

    def plain(self) -> dict[str, Any]:
        """All records, states, scores, questions, findings and contexts at the present time, see `plain_state`."""
        self._project.read_adapted()
        self._project.refresh()
        while self._project.search_next() is not None:
            pass
        return plain_state(self._project.view)


def plain_state(state: ProjectState) -> dict[str, Any]:
    """A state as JSON values: records and states by ID, questions by key, all in their order."""
    snapshot, board = state.snapshot, state.board
    found = {name: plain(getattr(snapshot, name)) for name in (*MAPPINGS, *VALUES)}
    found["order"] = {name: list(getattr(snapshot, name)) for name in ORDERED}
    found["contexts"] = {task: prepare_task_injection(state, task, token=FENCE_TOKEN).context for task in TASKS}
    found["assessments"] = {id: _plain_assessment(board.assessment(id)) for id in snapshot.patterns}
    found["evidence"] = {id: plain(board.observations(id)) for id in snapshot.patterns}
    found["conflicts"] = {id: plain(board.reconcile(id)) for id in snapshot.patterns}
    found["outcomes"] = {id: plain(state.outcome(id)) for id in (*snapshot.loops, *snapshot.attempts)}
    found["loop_patterns"] = {id: plain(board.inputs.loop_patterns(id)) for id in snapshot.loops}
    found["bursts"] = plain(board.bursts)
    # An offer is kept although files change that only the details of its loop contain.
    asked = [item for item in state.queue if item.kind != OFFER]
    found["questions"] = [{"id": item.question_key, **plain(item), **_UNCOMPARED} for item in asked]
    found["findings"] = plain(all_findings(state))
    found["escalated"] = plain(state.escalations())
    return found


def _plain_assessment(assessment: Assessment) -> dict[str, Any]:
    """An assessment with its interval, whether that was computed for all patterns at once or alone."""
    found: dict[str, Any] = plain(assessment)
    del found["known_interval"]
    return found | {"interval": plain(assessment.interval)}


def plain(value: Any) -> Any:
    """A record as JSON values; sets are sorted, fractions have 9 digits, because sums have no fixed order."""
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if is_dataclass(value):
        values = {one.name: getattr(value, one.name) for one in fields(value)}
        return {name: plain(item) for name, item in values.items() if not callable(item)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | np.floating):
        return float(f"{value:.9g}")
    if isinstance(value, np.generic):
        return value.item()
    return [plain(item) for item in value]
