"""All searches for review questions, one step at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from core.retrieval.task import analyse_task
from core.review.lesson_search import LessonSearch
from core.review.questions.broad import BroadTriggerSearch
from core.review.questions.duplicate import DuplicateSearch
from core.review.questions.held import HeldTextSearch
from core.review.questions.offer import OfferSearch
from core.review.questions.recurring import RecurringSearch
from core.review.questions.unreconciled import CountSearch
from core.review.queue import Found
from core.review.stored_verdicts import StoredVerdicts, VerdictsInMemory
from core.review.weakened_search import WeakenedTestSearch

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.extraction.offers import Offers
    from core.records.extractions import Extraction
    from core.state.project_state import ProjectState

_STEP_SECONDS: Final = 0.01  # time in which indexes are built at once


class QuestionSearch:
    """Runs the searches for review questions one after the other; not thread-safe.

    `get_offers` imports much, so it is called only where patterns are extracted; `extract` extracts from a loop.
    """

    def __init__(
        self,
        settings: Settings,
        get_offers: Callable[[], Offers],
        extract: Callable[[str], Extraction],
        stored: StoredVerdicts | None = None,
    ) -> None:
        stored = VerdictsInMemory() if stored is None else stored
        self._settings = settings
        self._get_offers = get_offers
        self._extract = extract
        self.offers = OfferSearch(settings.extraction, stored)
        self._duplicates = DuplicateSearch(settings.extraction, stored)
        self._broad = BroadTriggerSearch(settings.review, stored)
        self._counts = CountSearch()
        self._recurring = RecurringSearch(settings.extraction, stored)
        self._held_texts = HeldTextSearch()
        self._lessons = LessonSearch(settings)
        self._weakened_tests = WeakenedTestSearch()
        self._imports: threading.Thread | None = None

    @property
    def found(self) -> Found:
        """What was found so far."""
        return Found(
            alike=self._duplicates.alike,
            offers=self.offers.joined,
            recurring=self._recurring.found,
            lessons=self._lessons.found,
            held=self._held_texts.found,
            weakened=self._weakened_tests.found,
            broad=self._broad.found,
            unreconciled=self._counts.found,
        )

    def remove(self, source_id: str) -> None:
        """Remove the questions about a source from which patterns were extracted."""
        self.offers.remove(source_id)
        self._recurring.remove(source_id)
        self._lessons.remove(source_id)

    def look(self, view: ProjectState, *, is_idle: bool = False) -> bool | None:
        """Do one step (at most about 10 ms); whether `found` changed, None if nothing is left to search.

        If `is_idle`, loops are judged, too, that only a long run has the time for.
        """
        # Two threads that import modules which import each other may see them half loaded.
        if self._imports is not None and not self._is_imported(_STEP_SECONDS):
            return False
        snapshot, prepare = view.snapshot, partial(self._prepare, view)
        changed = self.offers.look(snapshot, self._extract, prepare)
        if changed is None:
            changed = self._duplicates.look(snapshot.patterns, view.texts)
        if changed is None:
            changed = self._broad.look(snapshot.patterns)
        if changed is None:
            changed = self._counts.look(snapshot.patterns, view.board)
        if changed is None:
            changed = self._recurring.look(
                snapshot,
                view.now,
                lambda: self._get_offers().find_recurring_in_steps(snapshot),
                lambda cluster: self._get_offers().extract_cluster(cluster, view),
                is_idle=is_idle,
            )
        if changed is None:
            changed = self._held_texts.look(view)
        if changed is None and self._settings.extraction.enabled:
            changed = self._lessons.look(
                view,
                lambda: self._get_offers().find_lessons_in_steps(view),
                lambda joined: self._get_offers().extract_lesson(joined, view),
                partial(prepare, _STEP_SECONDS),
            )
        if changed is None and self._settings.extraction.enabled:
            changed = self._weakened_tests.look(
                snapshot.attempts,
                lambda attempt: self._get_offers().find_weakened_tests(attempt),
                lambda: self._is_imported(_STEP_SECONDS),
            )
        if changed is None and is_idle:
            changed = self.offers.look(snapshot, self._extract, prepare, is_idle=True)
        if changed is None and self._settings.extraction.enabled:
            self._get_offers().release()
        return changed

    def _prepare(self, view: ProjectState, seconds: float) -> bool:
        """Work for some time on what extraction needs, and return whether it is ready."""
        if not self._is_imported(seconds):
            return False
        return self._get_offers().prepare(view, seconds)

    def _is_imported(self, seconds: float) -> bool:
        """Import and compile for some time what extraction needs, in a thread, because that takes 0.2 s."""
        if self._imports is None:
            self._imports = threading.Thread(target=self._import_extraction, daemon=True)
            self._imports.start()
        self._imports.join(seconds)
        return not self._imports.is_alive()

    def _import_extraction(self) -> None:
        # The package first, as all other importers do: importing a module of it first can deadlock with them, which
        # Python resolves by a module that is only partly initialised.
        import rapidfuzz  # noqa: F401

        from core.redaction.prefilter import may_contain_secret
        from core.scanning.engine import get_engine

        get_engine()
        may_contain_secret("")  # compiles the expressions for secrets
        analyse_task("")  # compiles its expressions
        self._get_offers()
