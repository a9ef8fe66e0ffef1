"""Searches for extraction offers and duplicate patterns in idle moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Final

from core.base.errors import RalphdeckError
from core.config.settings import ExtractionSettings
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot
from core.retrieval.similarity import LazySimilarity, SimilarityIndex

OFFERED_LOOPS: Final = 20
"""Number of last finished loops whose extraction is offered."""
_MOST_COMPARED: Final = 20_000
"""Largest registry that is searched for duplicates; a larger one would take many seconds."""
_AT_ONCE: Final = 32
"""Patterns compared in one step, about 10 ms."""
_MOST_SIMILAR: Final = 8
"""Most similar patterns stored per pattern."""


class BackgroundSearch:
    """Searches step by step; not thread-safe.

    `offers` has possible extractions by loop, `alike` pairs of similar patterns with their similarity, best first.
    """

    def __init__(self, settings: ExtractionSettings) -> None:
        self.offers: Mapping[str, Extraction] = MappingProxyType({})
        self.alike: tuple[tuple[str, str, float], ...] = ()
        self._settings = settings
        self._searched_loops: dict[str, Loop] = {}
        self._offered: set[str] = set()
        self._similarity: LazySimilarity | None = None
        self._compared: dict[str, str] = {}
        """Content hash of each pattern that was compared with all others."""
        self._pending: list[str] = []
        self._pairs: dict[tuple[str, str], float] = {}
        self._is_complete = True

    def doubt(self) -> None:
        """Search all offers again, since the registry changed."""
        for loop_id in self._offered:
            self._searched_loops.pop(loop_id, None)

    def take(self, loop_id: str) -> None:
        """Remove the offer of a loop that was extracted."""
        self.offers = MappingProxyType({key: offer for key, offer in self.offers.items() if key != loop_id})

    def look(
        self, snapshot: Snapshot, similarity: LazySimilarity, extraction: Callable[[str], Extraction]
    ) -> bool | None:
        """Do one step; whether the result changed, None if nothing is left to search.

        `similarity` is that of the patterns of `snapshot`; `extraction` may raise `RalphdeckError`.
        """
        candidates = tuple(self._candidates(snapshot))
        if self._withdraw({loop.id for loop in candidates}):
            return True
        for loop in candidates:
            if self._searched_loops.get(loop.id) is not loop:
                self._searched_loops[loop.id] = loop
                return self._offer(loop, extraction)
        if self._similarity is not similarity and len(snapshot.patterns) <= _MOST_COMPARED:
            self._similarity = similarity
            self._forget_changed(snapshot.patterns)
        return None if self._is_complete else self._compare(snapshot.patterns, similarity.get())

    def _candidates(self, snapshot: Snapshot) -> Iterator[Loop]:
        """The last finished loops."""
        if not self._settings.enabled:
            return
        left = OFFERED_LOOPS
        for loop in snapshot.loops.values():
            if loop.status.ended:
                yield loop
                left -= 1
                if not left:
                    return

    def _withdraw(self, candidates: Set[str]) -> bool:
        """Remove the offers of loops that are not candidates any more."""
        removed = self.offers.keys() - candidates
        for loop_id in removed:
            self._searched_loops.pop(loop_id, None)
            self.take(loop_id)
        return bool(removed)

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
            for other, similarity in index.some_nearest(patterns[id], self._settings.similarity_threshold)[
                :_MOST_SIMILAR
            ]:
                self._pairs[min(id, other), max(id, other)] = similarity
        del self._pending[:_AT_ONCE]
        if self._pending:
            return False
        self._is_complete = True
        before = self.alike
        found = ((*pair, similarity) for pair, similarity in self._pairs.items())
        self.alike = tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))
        return self.alike != before
