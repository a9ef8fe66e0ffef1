"""Search for extraction offers, duplicates and held reflections when idle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.records.agent_sessions import HOOKS
from core.records.extractions import Extraction
from core.retrieval.embedding import is_available
from core.review.context_recipients import Recipient, list_recipients
from core.scanning.messages import find_withhold_reason
from core.scanning.scan import scan_text
from core.state.contexts import held_reflections_in_steps
from core.state.review_items import HeldText

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.config.settings import ExtractionSettings
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.retrieval.similarity import SimilarityIndex
    from core.state.project_state import ProjectState
    from core.state.texts import Texts

OFFERED_LOOPS: Final = 20  # Number of last finished loops whose extraction is offered.
_MOST_COMPARED: Final = 20_000
"""Largest registry that is searched for duplicates; a larger one would take many seconds."""
_STEP_SECONDS: Final = 0.01  # Time in which indexes are built at once.
_AT_ONCE: Final = 32  # Patterns compared in one step, about 10 ms.
_MOST_SIMILAR: Final = 8  # Maximum number of similar patterns stored per pattern.
MAX_TEXTS: Final = 100  # Maximum number of held reflections that are asked about at a time.
_PAUSE: Final = timedelta(minutes=1)  # Minimum time between two searches for held reflections.


class BackgroundSearch:
    """Searches for offers and duplicates step by step; not thread-safe.

    `offers` has possible extractions by loop, `alike` has (ID, ID, similarity 0..1) of similar patterns, best first.
    """

    def __init__(self, settings: ExtractionSettings) -> None:
        self.offers: Mapping[str, Extraction] = MappingProxyType({})
        self.alike: tuple[tuple[str, str, float], ...] = ()
        self._settings = settings
        self._searched_loops: dict[str, Loop] = {}
        self._offered: set[str] = set()
        self._patterns: Mapping[str, Pattern] | None = None
        self._compared: dict[str, str] = {}
        """Content hash of each pattern that was compared with all others."""
        self._pending: list[str] = []
        self._pairs: dict[tuple[str, str], float] = {}
        self._is_complete = True

    def forget_offers(self) -> None:
        """Search for all offers again, since the registry changed."""
        for loop_id in self._offered:
            self._searched_loops.pop(loop_id, None)

    def remove_offer(self, loop_id: str) -> None:
        """Remove the offer of a loop that was extracted."""
        self.offers = MappingProxyType({key: offer for key, offer in self.offers.items() if key != loop_id})

    def look(
        self,
        snapshot: Snapshot,
        texts: Texts,
        extraction: Callable[[str], Extraction],
        prepare: Callable[[float], bool] = lambda _seconds: True,
    ) -> bool | None:
        """Do one step; whether the result changed, None if nothing is left to search.

        `texts` are those of `snapshot`; if `extraction` raises `RalphdeckError`, nothing is offered.
        `prepare` works for some seconds on what `extraction` needs, and returns whether it is ready.
        """
        ended = (loop for loop in snapshot.loops.values() if loop.status.ended and not self._is_extracted(loop))
        candidates = tuple(islice(ended, OFFERED_LOOPS)) if self._settings.enabled else ()
        if removed := self.offers.keys() - {loop.id for loop in candidates}:
            for loop_id in removed:
                self._searched_loops.pop(loop_id, None)
                self.remove_offer(loop_id)
            return True
        for loop in candidates:
            if self._searched_loops.get(loop.id) is not loop:
                if not texts.prepare_similarity(_STEP_SECONDS) or not prepare(_STEP_SECONDS):
                    return False
                self._searched_loops[loop.id] = loop
                return self._offer(loop, extraction)
        if self._patterns is not snapshot.patterns and len(snapshot.patterns) <= _MOST_COMPARED:
            self._patterns = snapshot.patterns
            self._forget_changed(snapshot.patterns)
        if self._is_complete:
            return None
        return texts.prepare_similarity(_STEP_SECONDS) and self._compare(snapshot.patterns, texts.similarity)

    def _is_extracted(self, loop: Loop) -> bool:
        """Return whether hooks extract from the tasks of a session when they end."""
        return HOOKS in loop.sources and self._settings.auto_extract_on_completion

    def _offer(self, loop: Loop, extraction: Callable[[str], Extraction]) -> bool:
        try:
            found = extraction(loop.id)
        except RalphdeckError:
            found = Extraction(source_id=loop.id)
        offers = {key: offer for key, offer in self.offers.items() if key != loop.id}
        if found.new or found.merges:
            offers[loop.id] = found
            self._offered.add(loop.id)
        changed = offers != self.offers
        self.offers = MappingProxyType(offers)
        return changed

    def _forget_changed(self, patterns: Mapping[str, Pattern]) -> None:
        """Queue changed texts, and patterns similar to changed or removed ones."""
        stale = {id for id, text in self._compared.items() if id not in patterns or patterns[id].content_hash != text}
        lost = {pair for pair in self._pairs if not stale.isdisjoint(pair)}
        for id in stale.union(*lost):
            self._compared.pop(id, None)
        self._pairs = {pair: similarity for pair, similarity in self._pairs.items() if pair not in lost}
        self._pending = [id for id in patterns if id not in self._compared]
        self._is_complete = not stale and not self._pending

    def _compare(self, patterns: Mapping[str, Pattern], index: SimilarityIndex) -> bool:
        for id in self._pending[:_AT_ONCE]:
            self._compared[id] = patterns[id].content_hash
            nearest = index.some_nearest(patterns[id], self._settings.similarity_threshold)
            for other, similarity in nearest[:_MOST_SIMILAR]:
                self._pairs[min(id, other), max(id, other)] = similarity
        del self._pending[:_AT_ONCE]
        if self._pending:
            return False
        self._is_complete = True
        before = self.alike
        found = ((*pair, similarity) for pair, similarity in self._pairs.items())
        self.alike = tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))
        return self.alike != before


class HeldTexts:
    """Finds held reflections that loops or tasks would get; not thread-safe."""

    def __init__(self) -> None:
        self.found: tuple[HeldText, ...] = ()
        self._known: tuple[object, ...] = ()
        self._begun: datetime | None = None
        self._waiting: list[Recipient] = []
        self._next: dict[str, HeldText] = {}
        self._searching: Steps[None] | None = None  # for the last one that is waiting
        self._embedding: threading.Thread | None = None  # compares the tasks, so that their vectors are known

    def look(self, view: ProjectState) -> bool | None:
        """Do one step of the search for one more task; whether `found` changed, None if no task was left."""
        if not self._waiting:
            self._begin(view)
        if not self._waiting:
            return None
        if not view.texts.prepare_learnings(_STEP_SECONDS) or not self._has_vectors(view):
            return False
        self._searching = self._searching or self._search(view, self._waiting[-1])
        if next(self._searching, True) is None:
            return False
        self._searching = None
        self._waiting.pop()
        if self._waiting:
            return False
        found = tuple(self._next.values())[:MAX_TEXTS]
        changed, self.found = found != self.found, found
        return changed

    def _search(self, view: ProjectState, reader: Recipient) -> Steps[None]:
        limit = view.settings.injection.max_field_chars
        used = view.board.used_scripts

        def shown(text: str) -> str:
            return visible_line(text.strip(), limit)

        for one in (yield from held_reflections_in_steps(view, reader.task)):
            known = self._next.get(one.id)
            readers = (*(known.readers if known is not None else ()), reader.id)
            does = find_withhold_reason(one.text, shown, used_scripts=used)
            self._next[one.id] = HeldText(
                id=one.id,
                text=one.text,
                does=does,
                title=one.title,
                sources=one.sources,
                readers=readers,
                marks=scan_text(one.text),
            )

    def _has_vectors(self, view: ProjectState) -> bool:
        """Return whether the tasks can be compared at once; a thread waits for the embedding model, which needs 1 s."""
        embeddings = view.task_embeddings
        if embeddings is None or not is_available():
            return True
        if self._embedding is None:
            index, tasks = view.learnings, [reader.task for reader in self._waiting]

            def embed() -> None:
                for task in tasks:
                    embeddings.closeness(task, index.work_keys, index.works)

            self._embedding = threading.Thread(target=embed, daemon=True)
            self._embedding.start()
        self._embedding.join(_STEP_SECONDS)
        return not self._embedding.is_alive()

    def _begin(self, view: ProjectState) -> None:
        """Start over if the records changed, but not within `_PAUSE` of the last start."""
        snapshot = view.snapshot
        known = (snapshot.reflections, snapshot.memory_tasks, snapshot.tasks, snapshot.loops)
        is_same = len(known) == len(self._known) and all(map(is_, known, self._known))
        if is_same or (self._begun is not None and view.now - self._begun < _PAUSE):
            return
        self._known, self._begun, self._next, self._embedding = known, view.now, {}, None
        readers = list_recipients(snapshot) if view.settings.scan.holds_other_texts else ()
        self._waiting = list({reader.task: reader for reader in reversed(readers)}.values())
