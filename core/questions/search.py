"""All searches for review questions, one step at a time.

What they found is stored with the number of the view of the index, so that nothing is searched if nothing changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, structs

from core.base.steps import Work
from core.index.anchors import Stale
from core.index.review_items import HeldText
from core.index.snapshot import IndexedSnapshot
from core.index.verdicts import FOUND, StoredVerdicts, VerdictsInMemory, digest_of, read_verdicts, write_verdicts
from core.questions.acknowledgement import WeakenedTests
from core.questions.asking import Found, JoinedOffer, RecurringLearning
from core.questions.doubts import checked_out
from core.questions.duplicate import Duplicates
from core.questions.kinds import TABLE, SearchTools
from core.questions.offer import (
    JUDGED_AT_ONCE,
    MOST_JUDGED,
    Extract,
    FoundOffers,
    RecurringLearnings,
    join_offers,
)
from core.records.decisions import Verb
from core.records.extractions import Extraction
from core.records.findings import Finding
from core.records.instructions import InstructionPair
from core.records.reflections import JoinedLesson
from core.retrieval.task import analyse_task

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.questions.extraction.extractor import Extractor
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import ComparableWork, Embeddings

ROOMS: Final = ("questions",)
"""Rooms, besides those of the index, that decide what the searches find."""
_SEARCHES: Final = {row.search.name: row.search for row in TABLE if row.search is not None}
_ORDER: Final = Found.__struct_fields__  # the searches have their turns in the order of the fields
Candidate: TypeAlias = tuple[RecurringLearning | JoinedLesson, Extraction]
_STEP_SECONDS: Final = 0.01  # time in which a search works at once
_PAUSE: Final = timedelta(minutes=1)  # minimum time between two searches for held texts, which a busy loop changes


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
    """Return what ended searches found in this view on the same day, else None."""
    key = _find_key(snapshot, now, settings, embeddings)
    return read_verdicts(stored, FOUND, [key], FoundVerdict).get(key) if key else None


def _find_key(
    snapshot: Snapshot, now: datetime, settings: Settings, embeddings: Embeddings[ComparableWork] | None
) -> str:
    """Return a digest of what searches depend on; "" for records not of a view."""
    if not isinstance(snapshot, IndexedSnapshot):
        return ""
    stamp = embeddings.stamp if embeddings is not None else None
    head = checked_out(snapshot)
    return digest_of(snapshot.number, msgspec.to_builtins(settings), now.date(), stamp, head).hex()


class Basis(NamedTuple):
    """Inputs of a search: records by identity, when it began, and evidence then."""

    records: tuple[object, ...]
    at: datetime
    evidence: object

    @classmethod
    def of(cls, kind: str, view: ProjectState) -> Basis:
        return cls(_SEARCHES[kind].records(view), view.now, view.board.evidence)


class SearchState(Struct, frozen=True):
    """What each search found, under its name.

    `bases` has what each search was made from, `removed` what `without` removed, by source.
    """

    offers: FoundOffers = FoundOffers()
    alike: Duplicates = Duplicates()
    broad: Mapping[str, float] = {}
    unreconciled: Mapping[str, Finding] = {}
    recurring: RecurringLearnings = RecurringLearnings()
    held: tuple[HeldText, ...] = ()
    lessons: tuple[tuple[JoinedLesson, Extraction], ...] = ()
    weakened: WeakenedTests = WeakenedTests()
    stale: Stale = {}
    pairs: tuple[InstructionPair, ...] = ()
    bases: Mapping[str, Basis] = {}
    removed: Mapping[str, Candidate] = {}

    @classmethod
    def of(cls, found: Found, offers: Mapping[str, Extraction]) -> SearchState:
        """Return the state in which this was found, in unknown records."""
        return cls(
            offers=FoundOffers(offers, offered=frozenset(offers)),
            alike=Duplicates(found.alike),
            broad=found.broad,
            unreconciled=found.unreconciled,
            recurring=RecurringLearnings(found.recurring),
            held=found.held,
            lessons=found.lessons,
            weakened=WeakenedTests(found.weakened),
            stale=found.stale,
            pairs=found.pairs,
        )

    def found(self, offers: tuple[JoinedOffer, ...]) -> Found:
        """Return what was found, with offers."""
        return Found(
            alike=self.alike.alike,
            offers=offers,
            recurring=self.recurring.found,
            lessons=self.lessons,
            held=self.held,
            weakened=self.weakened.found,
            broad=dict(self.broad),
            unreconciled=dict(self.unreconciled),
            stale=dict(self.stale),
            pairs=self.pairs,
        )

    def is_current(self, kind: str, view: ProjectState) -> bool:
        """Return whether a search has the same records and, if learnings fade, day."""
        basis = self.bases.get(kind)
        if basis is None or (kind == "held" and basis.at.date() != view.now.date()):
            return False
        return all(map(is_, basis.records, _SEARCHES[kind].records(view)))

    def is_exact(self, view: ProjectState) -> bool:
        """Return whether all searches, even of held texts and lessons, are up to date."""
        if not self.is_current("held", view):
            return False
        basis = self.bases.get("lessons")
        is_weighed = basis is not None and basis.evidence is view.board.evidence and basis.at.date() == view.now.date()
        return is_weighed or not view.snapshot.lessons

    def without(self, source_id: str) -> SearchState:
        """Return the state without questions about a source that was extracted."""
        recurring, lessons = self.recurring.found, self.lessons
        asked: tuple[Candidate, ...] = (*recurring, *lessons)
        return structs.replace(
            self,
            offers=self.offers.without(source_id),
            recurring=structs.replace(self.recurring, found=tuple(one for one in recurring if one[0].id != source_id)),
            lessons=tuple(one for one in lessons if one[0].id != source_id),
            removed={**self.removed, **{one[0].id: one for one in asked if one[0].id == source_id}},
        )

    def restored(self, source_id: str) -> SearchState:
        """Return the state that asks again about what `without` removed."""
        if source_id not in self.removed:
            return structs.replace(self, offers=self.offers.restored(source_id))
        state, (source, offer) = self.without(source_id), self.removed[source_id]
        removed = {id: one for id, one in self.removed.items() if id != source_id}
        if isinstance(source, JoinedLesson):
            return structs.replace(state, lessons=((source, offer), *state.lessons), removed=removed)
        recurring = structs.replace(state.recurring, found=((source, offer), *state.recurring.found))
        return structs.replace(state, recurring=recurring, removed=removed)


class Running(NamedTuple):
    """A search that has begun."""

    kind: str
    basis: Basis
    work: Work[Any]


class QuestionSearch:
    """Runs the searches for review questions one after the other; not thread-safe.

    `get_extractor` imports much, so it is called only where patterns are extracted; `extract` extracts from a loop of a
    view.
    """

    def __init__(
        self,
        settings: Settings,
        get_extractor: Callable[[], Extractor],
        extract: Extract,
        stored: StoredVerdicts | None = None,
    ) -> None:
        self._stored = VerdictsInMemory() if stored is None else stored
        self._settings = settings
        self._get_extractor = get_extractor
        self._extract = extract
        self._state = SearchState()
        self._joined: tuple[object, tuple[JoinedOffer, ...]] = None, ()  # the joined offers, after those they are of
        self._running: Running | None = None
        self._next = 0  # place in `_ORDER` of the search whose turn it is
        self._imports: threading.Thread | None = None
        self._has_begun = False  # whether a step was done in this process
        self._known: tuple[str, bool] = "", False  # the key of the stored verdict, and whether it is whole

    def recall(self, snapshot: Snapshot, now: datetime, embeddings: Embeddings[ComparableWork] | None) -> bool:
        """Begin with another process's results for this view; return whether it had any."""
        if self._has_begun:
            return False
        verdict = read_found(self._stored, snapshot, now, self._settings, embeddings)
        if verdict is None:
            return False
        found = verdict.whole
        self._state = SearchState.of(found, verdict.offers)
        self._joined = verdict.offers, found.offers
        self._known = _find_key(snapshot, now, self._settings, embeddings), verdict.is_whole
        return True

    @property
    def has_judged_all(self) -> bool:
        """Whether recalled searches had judged all loops that a long run has time for."""
        return self._known[1]

    def _remember(self, view: ProjectState, *, is_whole: bool) -> None:
        """Store what was found in this view, if a new search would find the same."""
        key = _find_key(view.snapshot, view.now, self._settings, view.task_embeddings)
        is_known = key == self._known[0] and (self._known[1] or not is_whole)
        if not key or is_known or not self._state.is_exact(view):
            return
        verdict = FoundVerdict.of(self.found, self.offers, is_whole=is_whole)
        write_verdicts(self._stored, FOUND, {key: verdict})
        self._known = key, is_whole

    def is_finished(self, view: ProjectState, *, is_idle: bool) -> bool:
        """Return whether what was recalled is all that can be found in this state."""
        key, is_whole = self._known
        if self._has_begun or not key or (is_idle and not is_whole):
            return False
        return key == _find_key(view.snapshot, view.now, self._settings, view.task_embeddings)

    @property
    def offers(self) -> Mapping[str, Extraction]:
        """The possible extractions found so far, by loop, newest first."""
        return self._state.offers.offers

    @property
    def found(self) -> Found:
        """What was found so far."""
        if self._joined[0] is not self.offers:
            self._joined = self.offers, join_offers(self.offers, self._settings.extraction.similarity_threshold)
        return self._state.found(self._joined[1])

    def forget(self, source_id: str) -> None:
        """Make the offer of a loop again."""
        self._running = None
        self._state = structs.replace(self._state, offers=self._state.offers.forget(source_id))

    def remove(self, source_id: str) -> None:
        """Remove the questions about a source from which patterns were extracted."""
        self._state = self._state.without(source_id)
        if self._running is not None and self._running.kind in ("offers", "recurring", "lessons"):
            self._running = None  # it may ask about the source

    def restore_undone(self, snapshot: Snapshot) -> None:
        """Ask again about sources whose extraction was undone, without a search."""
        removed = {*self._state.removed, *self._state.offers.removed}
        if not removed:
            return
        for decision in reversed(snapshot.decisions):
            if decision.verb is Verb.EXTRACT and decision.subject in removed:
                removed.discard(decision.subject)
                if decision.id in snapshot.curation.undone:
                    self._state = self._state.restored(decision.subject)

    def look(self, view: ProjectState, *, is_idle: bool = False) -> bool | None:
        """Do one step (about 10 ms at most); whether `found` changed, None if done.

        If `is_idle`, loops are judged, too, that only a long run has the time for. A search that has begun ends in the
        view in which it began: otherwise, none would end while records keep changing.
        """
        self._has_begun = True
        # Two threads that import modules which import each other may see them half loaded.
        if self._imports is not None and not self._is_imported(_STEP_SECONDS):
            return False
        if self._running is None:
            self._running = self._begin(view, is_idle=is_idle)
        if self._running is not None:
            return self._continue(self._running)
        self._remember(view, is_whole=is_idle)
        if self._settings.extraction.enabled:
            self._get_extractor().release()
        return None

    def _begin(self, view: ProjectState, *, is_idle: bool) -> Running | None:
        """Begin the next due search; each has its turn, however often others change."""
        turns = (*_ORDER[self._next :], *_ORDER[: self._next])
        kind, most = next((one for one in turns if self._is_due(one, view)), None), JUDGED_AT_ONCE
        if kind is None and is_idle and not self._state.offers.is_whole:
            kind, most = "offers", MOST_JUDGED
        if kind is None:
            return None
        self._next = _ORDER.index(kind) + 1
        return Running(kind, Basis.of(kind, view), Work(self._search(kind, view, most)))

    def _is_due(self, kind: str, view: ProjectState) -> bool:
        if self._state.is_current(kind, view):
            return kind == "offers" and not self._state.offers.is_done
        basis = self._state.bases.get(kind)
        return kind != "held" or basis is None or view.now - basis.at >= _PAUSE

    def _search(self, kind: str, view: ProjectState, most: int) -> Steps[Any]:
        before = getattr(self._state, kind)
        tools = SearchTools(before, self._stored, self._load_extractor, self._extract, most)
        return _SEARCHES[kind].find(view, tools)

    def _continue(self, running: Running) -> bool:
        """Do a step of a search; whether what was found changed."""
        self._running = None  # if it raises, it begins again
        result = running.work.run_for(_STEP_SECONDS)
        if result is None:
            self._running = running
            return False
        before = self._state
        self._state = structs.replace(
            before, **{running.kind: result}, bases={**before.bases, running.kind: running.basis}
        )
        return before.offers.offers is not self._state.offers.offers or before.found(()) != self._state.found(())

    def _load_extractor(self) -> Steps[Extractor]:
        while not self._is_imported(_STEP_SECONDS):
            yield
        return self._get_extractor()

    def _is_imported(self, seconds: float) -> bool:
        """Import and compile what extraction needs, in a thread, because it takes 0.2 s."""
        if self._imports is None:
            self._imports = threading.Thread(target=self._import_extraction, daemon=True)
            self._imports.start()
        self._imports.join(seconds)
        return not self._imports.is_alive()

    def _import_extraction(self) -> None:
        # The package first, as all other importers do: importing a module of it first can deadlock with them, which
        # Python resolves by a module that is only partly initialised.
        import rapidfuzz  # noqa: F401

        from core.base.masking import may_contain_secret
        from core.base.scanning.engine import get_engine

        get_engine()
        may_contain_secret("")  # compiles the expressions for secrets
        analyse_task("")  # compiles its expressions
        self._get_extractor()
