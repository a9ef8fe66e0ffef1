"""Unattended extraction from loops that end, for the dashboard and for `watch`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Final

from core.base.errors import Conflict, Refused, UnknownRecord
from core.config.settings import ExtractionSettings
from core.curation.commands import Extract
from core.curation.decision_writer import Decided
from core.extraction.strategies import list_work_ids
from core.project.project import Project
from core.records.decisions import Verb
from core.records.loops import FINISHED, Loop
from core.records.snapshot import Delta
from core.state.project_state import ProjectState

SETTLING_SECONDS: Final = 1.0  # time that a finished loop gets to write its last files
REASON: Final = "unattended, when the loop ended"


def is_wanted(settings: ExtractionSettings) -> bool:
    """Whether the settings ask for extraction when a loop ends."""
    return settings.enabled and settings.auto_extract_on_completion


class AutoExtraction:
    """Extracts once from each loop that ended, even with several processes.

    Review asks about every new pattern. The decisions are signed separately, so that undo never takes one for the
    user's newest decision. Use it from one thread. `clock` returns monotonic seconds.
    """

    def __init__(self, project: Project, *, clock: Callable[[], float] = monotonic) -> None:
        self._project = project
        self._clock = clock
        self._since = project.now()
        self._due: dict[str, float] = {}

    def add_missed(self) -> None:
        """Add the loops that ended since the last unattended extraction."""
        snapshot = self._project.view.snapshot
        unattended = [d.at for d in snapshot.decisions if d.verb is Verb.EXTRACT and "hashes" in d.after]
        since = max(unattended, default=None)
        for loop in snapshot.loops.values():
            if since and loop.status in FINISHED and loop.ended_at and loop.ended_at > since:
                self._due[loop.id] = self._clock()

    def add_ended(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        """Add the loops that ended between two states of the project."""
        for loop_id in delta.loops:
            old, new = before.snapshot.loops.get(loop_id), after.snapshot.loops.get(loop_id)
            if new is None or new.status not in FINISHED:
                continue
            if not old.status.ended if old is not None else _ended_since(new, self._since):
                self._due[loop_id] = self._clock() + SETTLING_SECONDS

    def seconds_left(self, most: float) -> float:
        """Seconds until the next loop is due, 0 to `most`."""
        next_due = min(self._due.values(), default=self._clock() + most)
        return max(min(next_due - self._clock(), most), 0.0)

    def extract_next(self) -> tuple[str, Decided | None] | None:
        """Extract from one loop that is due.

        Returns the loop, and the decision or None if it had nothing new; None if no loop is due.
        """
        now = self._clock()
        loop_id = next((loop_id for loop_id, due in self._due.items() if due <= now), None)
        if loop_id is None:
            return None
        del self._due[loop_id]
        loop = self._project.view.snapshot.loops.get(loop_id)
        if loop is None or loop.status not in FINISHED or self._is_done(loop):
            return loop_id, None
        for work_id in list_work_ids(loop_id, self._project.view.snapshot):
            self._project.learn_strategies(work_id)
        try:
            offer = self._project.extraction(loop_id)
            if not offer.new and not offer.merges:
                return loop_id, None
            by = f"{self._project.by} (unattended)"
            return loop_id, self._project.decide(Extract(loop_id, unattended=True, reason=REASON, by=by))
        except (Conflict, Refused, UnknownRecord):  # another process extracted or moved the loop
            return loop_id, None

    def _is_done(self, loop: Loop) -> bool:
        """Whether patterns were extracted since the loop ended, even if undone."""
        names = {loop.id, *loop.aliases}
        return any(
            decision.verb is Verb.EXTRACT
            and decision.subject in names
            and (loop.ended_at is None or decision.at >= loop.ended_at)
            for decision in self._project.view.snapshot.decisions
        )


def _ended_since(loop: Loop, since: datetime) -> bool:
    """Whether a loop that had already ended when first read did so after `since`."""
    return loop.ended_at is not None and loop.ended_at >= since
