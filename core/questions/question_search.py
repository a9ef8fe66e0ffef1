"""All searches for review questions, one step at a time.

What they found is stored with the number of the view of the index, so that nothing is searched if nothing changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, structs

from core.index.snapshot import IndexedSnapshot
from core.index.verdicts import FOUND, StoredVerdicts, VerdictsInMemory, digest_of, read_verdicts, write_verdicts
from core.questions.broad import BroadTriggerSearch
from core.questions.duplicate import DuplicateSearch
from core.questions.held import HeldTextSearch
from core.questions.lesson import LessonSearch
from core.questions.offer import JoinedOffer, OfferSearch
from core.questions.queue import Found
from core.questions.recurring import RecurringSearch
from core.questions.unreconciled import CountSearch
from core.questions.weakened import WeakenedTestSearch
from core.records.decisions import Verb
from core.records.extractions import Extraction
from core.retrieval.task import analyse_task

if TYPE_CHECKING:
    from datetime import datetime

    from core.config.settings import Settings
    from core.extraction.offers import Offers
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import ComparableWork, Embeddings
    from core.state.project_state import ProjectState

PACKAGES: Final = ("questions", "extraction", "state")
"""Packages of `core`, besides those of the index, that decide what the searches find."""
_STEP_SECONDS: Final = 0.01  # time in which indexes are built at once


class FoundVerdict(Struct, frozen=True, array_like=True):
    """What all searches found in one view of the index.

    `is_whole` is whether all loops that a long run has the time for were judged. `sources` are those of the joined
    `offers`, which `found` does not repeat.
    """

    is_whole: bool
    offers: dict[str, Extraction]
    sources: tuple[tuple[str, ...], ...]
    found: Found

    @classmethod
    def of(cls, found: Found, offers: Mapping[str, Extraction], *, is_whole: bool) -> FoundVerdict:
        sources = tuple(one.sources for one in found.offers)
        return cls(is_whole, dict(offers), sources, structs.replace(found, offers=()))

    @property
    def whole(self) -> Found:
        """What was found, with the joined offers."""
        offers = tuple(JoinedOffer(self.offers[sources[0]], sources) for sources in self.sources)
        return structs.replace(self.found, offers=offers)


def verdict_settings(settings: Settings) -> bytes:
    """Return the settings that all verdicts depend on, encoded."""
    return msgspec.msgpack.encode((settings.extraction, settings.review))


def read_found(
    stored: StoredVerdicts,
    snapshot: Snapshot,
    now: datetime,
    settings: Settings,
    embeddings: Embeddings[ComparableWork] | None,
) -> FoundVerdict | None:
    """Return what the searches found in this view of the index, on the same day; None if they have not ended."""
    key = _find_key(snapshot, now, settings, embeddings)
    return read_verdicts(stored, FOUND, [key], FoundVerdict).get(key) if key else None


def _find_key(
    snapshot: Snapshot, now: datetime, settings: Settings, embeddings: Embeddings[ComparableWork] | None
) -> str:
    """Return a digest of all that the searches depend on; "" for records that are not those of a view."""
    if not isinstance(snapshot, IndexedSnapshot):
        return ""
    stamp = embeddings.stamp if embeddings is not None else None
    return digest_of(snapshot.number, msgspec.to_builtins(settings), now.date(), stamp).hex()


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
        self._stored = stored = VerdictsInMemory() if stored is None else stored
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
        self._removed = set[str]()  # sources from which patterns were extracted
        self._imports: threading.Thread | None = None
        self._has_begun = False  # whether a step was done in this process
        self._known: tuple[str, bool] = "", False  # the key of the stored verdict, and whether it is whole

    def recall(self, snapshot: Snapshot, now: datetime, embeddings: Embeddings[ComparableWork] | None) -> bool:
        """Begin with what the searches of another process found in this view; return whether they had ended."""
        if self._has_begun:
            return False
        verdict = read_found(self._stored, snapshot, now, self._settings, embeddings)
        if verdict is None:
            return False
        found = verdict.whole
        self.offers.recall(verdict.offers, found.offers)
        self._duplicates.alike = found.alike
        self._recurring.found = found.recurring
        self._lessons.found = found.lessons
        self._held_texts.found = found.held
        self._weakened_tests.found = found.weakened
        self._broad.found = found.broad
        self._counts.found = found.unreconciled
        self._known = _find_key(snapshot, now, self._settings, embeddings), verdict.is_whole
        return True

    @property
    def has_judged_all(self) -> bool:
        """Whether the searches that were recalled had judged all loops that a long run has the time for."""
        return self._known[1]

    def _remember(self, view: ProjectState, *, is_whole: bool) -> None:
        """Store what was found in this view, if a search from nothing would find the same."""
        key = _find_key(view.snapshot, view.now, self._settings, view.task_embeddings)
        is_known = key == self._known[0] and (self._known[1] or not is_whole)
        if not key or is_known or not (self._lessons.is_current(view) and self._held_texts.is_current(view)):
            return
        verdict = FoundVerdict.of(self.found, self.offers.offers, is_whole=is_whole)
        write_verdicts(self._stored, FOUND, {key: verdict})
        self._known = key, is_whole

    def is_finished(self, view: ProjectState, *, is_idle: bool) -> bool:
        """Return whether what was recalled is all that can be found in this state."""
        key, is_whole = self._known
        if self._has_begun or not key or (is_idle and not is_whole):
            return False
        return key == _find_key(view.snapshot, view.now, self._settings, view.task_embeddings)

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
            broad=dict(self._broad.found),
            unreconciled=dict(self._counts.found),
        )

    def remove(self, source_id: str) -> None:
        """Remove the questions about a source from which patterns were extracted."""
        self._removed.add(source_id)
        self.offers.remove(source_id)
        self._recurring.remove(source_id)
        self._lessons.remove(source_id)

    def restore_undone(self, snapshot: Snapshot) -> None:
        """Ask again about removed sources whose extraction was undone, without searching for them."""
        if not self._removed:
            return
        extracted = set[str]()
        for one in reversed(snapshot.decisions):
            if one.verb is not Verb.EXTRACT or one.subject in extracted or one.subject not in self._removed:
                continue
            extracted.add(one.subject)
            if one.id in snapshot.curation.undone:
                self._removed.discard(one.subject)
                self.offers.restore(one.subject)
                self._recurring.restore(one.subject)
                self._lessons.restore(one.subject)

    def look(self, view: ProjectState, *, is_idle: bool = False) -> bool | None:
        """Do one step (at most about 10 ms); whether `found` changed, None if nothing is left to search.

        If `is_idle`, loops are judged, too, that only a long run has the time for.
        """
        self._has_begun = True
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
                lambda: self._get_offers().find_recurring_in_steps(snapshot),
                lambda cluster: self._get_offers().extract_cluster(cluster, view),
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
        if changed is None:
            self._remember(view, is_whole=is_idle)
            if self._settings.extraction.enabled:
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
