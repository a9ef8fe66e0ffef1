"""The review queue of an open project, which grows while questions are searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from core.base.steps import Steps, Work, run_all
from core.questions.asking import QueueRecords
from core.questions.edited import find_edited_files
from core.questions.queue import review_queue_in_steps

if TYPE_CHECKING:
    from pathlib import Path

    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.questions.asking import Questions
    from core.questions.search import QuestionSearch
    from core.records.extractions import Extraction
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import ComparableWork, Embeddings

_MAX_AGE: Final = timedelta(minutes=1)  # of the queue if only time has passed
_PAUSE: Final = timedelta(seconds=0.3)  # minimum age of the queue before found questions are added
_STEP_SECONDS: Final = 0.01  # time in which the queue is made at once while searching


class ReviewQueue:
    """Makes the queue of `reviewer` for a state, and searches for more questions.

    Its project locks it. `earlier_count` is the number of questions in the last run, until the searches of this run
    have ended once, from when on `is_searched` is set.
    """

    def __init__(
        self,
        search: QuestionSearch,
        settings: Settings,
        clock: Callable[[], datetime],
        reviewer: str,
        project: Path | None = None,
    ) -> None:
        self.earlier_count = 0
        self.is_searched = False
        self._search = search
        self._settings = settings
        self._clock = clock
        self._reviewer = reviewer
        self._project = project
        self._made_at = clock()
        self._questions: Questions = {}
        self._is_due = False  # whether a search found something that the queue lacks
        self._next: tuple[ProjectState, Work[tuple[ReviewItem, ...]]] | None = None  # with the state it is for

    @property
    def offers(self) -> Mapping[str, Extraction]:
        """The possible extractions found so far."""
        return self._search.offers

    def make(self, snapshot: Snapshot, board: Scoreboard, now: datetime) -> tuple[ReviewItem, ...]:
        """Return the questions of a state, with all that was found for it so far."""
        return run_all(self._make_in_steps(snapshot, board, now))

    def _make_in_steps(self, snapshot: Snapshot, board: Scoreboard, now: datetime) -> Steps[tuple[ReviewItem, ...]]:
        self._made_at = now
        self._search.restore_undone(snapshot)
        found = self._search.found
        edited = find_edited_files(self._project, snapshot, board, self._settings) if self._project else ()
        records = QueueRecords.of(snapshot, board, now, self._settings, found, self._reviewer, edited)
        return review_queue_in_steps(records, self._questions)

    def is_old(self, now: datetime) -> bool:
        """Return whether the queue is too old even if nothing has changed."""
        return abs(now - self._made_at) >= _MAX_AGE

    def recall(self, snapshot: Snapshot, now: datetime, embeddings: Embeddings[ComparableWork] | None) -> bool:
        """Take what an earlier run found in the same index view; return if there is any."""
        has_recalled = self._search.recall(snapshot, now, embeddings)
        if has_recalled and self._search.has_judged_all:
            self._end_search()
        return has_recalled

    def forget(self, source_id: str) -> None:
        """Make an offer again."""
        self._search.forget(source_id)

    def remove(self, source_id: str) -> None:
        """Remove an offer that was decided."""
        self._search.remove(source_id)

    def search_next(self, view: ProjectState) -> ProjectState | None:
        """Do a step of about 10 ms at most; return the new state, None if none is left.

        The state is the same one as long as its queue does not change.
        """
        is_due = self._is_due and abs(self._clock() - self._made_at) >= _PAUSE
        if not is_due and self._next is None:
            if not self._search.is_finished(view, is_idle=True):
                changed = self._search.look(view, is_idle=True)
                self._is_due |= bool(changed)
                if changed is not None:
                    return view
            self._end_search()
            if not self._is_due and not view.earlier_count:
                return None
        if self._next is None or self._next[0] is not view:  # starts again if the state has changed
            self._next = view, Work(self._make_in_steps(view.snapshot, view.board, self._clock()))
        queue = self._next[1].run_for(_STEP_SECONDS)
        if queue is None:
            return view
        self._next = None
        return self._with_queue(view, queue)

    def is_finished(self, view: ProjectState) -> bool:
        """Return whether a search that does not wait for idle time has found everything."""
        return self._search.is_finished(view, is_idle=False)

    def look(self, view: ProjectState) -> bool:
        """Do a step of such a search; return whether anything is left."""
        self._is_due = True
        return self._search.look(view) is not None

    def finish(self, view: ProjectState) -> ProjectState:
        """Return the state with all that was found."""
        self._end_search()
        if not self._is_due and not view.earlier_count:
            return view
        return self.collect(view)

    def collect(self, view: ProjectState) -> ProjectState:
        """Return the state with what was found so far."""
        return self._with_queue(view, self.make(view.snapshot, view.board, self._clock()))

    def _end_search(self) -> None:
        self.is_searched, self.earlier_count = True, 0

    def _with_queue(self, view: ProjectState, queue: tuple[ReviewItem, ...]) -> ProjectState:
        self._is_due = False
        return replace(view, queue=queue, offers=self.offers, earlier_count=self.earlier_count)
