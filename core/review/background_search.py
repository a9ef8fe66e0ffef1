"""What could be asked in Review and has to be worked out first: loops to extract from, patterns that are alike."""

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
"""From so many of the loops that ended last an extraction is offered unasked; from others it is to be had."""
_MOST_COMPARED: Final = 20_000
"""A larger registry is not searched for duplicates unasked: that takes more than some seconds."""
_AT_ONCE: Final = 32
"""So many patterns are compared with the others in one look, some 10 ms."""
_LIKEST: Final = 8
"""So many of the others that a pattern is most alike to are kept: of thousands that say the same, each is asked about
with one of them at a time."""


class BackgroundSearch:
    """Grows by one look at a time; one thread at a time.

    Attributes:
        offers: What could be extracted, by loop.
        alike: Pairs of patterns that say nearly the same, with their likeness, best first.
    """

    def __init__(self, settings: ExtractionSettings) -> None:
        self.offers: Mapping[str, Extraction] = MappingProxyType({})
        self.alike: tuple[tuple[str, str, float], ...] = ()
        self._settings = settings
        self._looked_at: dict[str, Loop] = {}
        self._ever_offered: set[str] = set()
        self._likeness: LazySimilarity | None = None
        self._compared: dict[str, str] = {}
        """The text of each pattern that was compared with all others, as its hash."""
        self._waiting: list[str] = []
        self._pairs: dict[tuple[str, str], float] = {}
        self._searched = True

    def doubt(self) -> None:
        """The registry has changed: what is offered may be known by now, or what was taken be gone again."""
        for loop_id in self._ever_offered:
            self._looked_at.pop(loop_id, None)

    def take(self, loop_id: str) -> None:
        """What a loop offers is in the registry now."""
        self.offers = MappingProxyType({key: offer for key, offer in self.offers.items() if key != loop_id})

    def look(
        self, snapshot: Snapshot, similarity: LazySimilarity, extraction: Callable[[str], Extraction]
    ) -> bool | None:
        """Look at one thing more.

        Args:
            snapshot: The records.
            likeness: Of the patterns of `snapshot`.
            extraction: What a loop offers; may raise `RalphdeckError`.

        Returns:
            Whether anything else is offered or alike now; None if nothing was left to look at.
        """
        candidates = tuple(self._candidates(snapshot))
        if self._withdraw({loop.id for loop in candidates}):
            return True
        for loop in candidates:
            if self._looked_at.get(loop.id) is not loop:
                self._looked_at[loop.id] = loop
                return self._offer(loop, extraction)
        if self._likeness is not similarity and len(snapshot.patterns) <= _MOST_COMPARED:
            self._likeness = similarity
            self._forget_changed(snapshot.patterns)
        return None if self._searched else self._compare(snapshot.patterns, similarity.get())

    def _candidates(self, snapshot: Snapshot) -> Iterator[Loop]:
        """The loops that ended last; loops come newest start first."""
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
        """What loops offer that are no longer among those that ended last is not asked any more."""
        gone = self.offers.keys() - candidates
        for loop_id in gone:
            self._looked_at.pop(loop_id, None)
            self.take(loop_id)
        return bool(gone)

    def _offer(self, loop: Loop, extraction: Callable[[str], Extraction]) -> bool:
        try:
            found = extraction(loop.id)
        except RalphdeckError:
            found = Extraction(source_id=loop.id)
        offers = {key: offer for key, offer in self.offers.items() if key != loop.id}
        if found.new or found.merges:
            offers[loop.id] = found
            self._ever_offered.add(loop.id)
        changed = offers != self.offers
        self.offers = MappingProxyType(offers)
        return changed

    def _forget_changed(self, patterns: Mapping[str, Pattern]) -> None:
        """Only texts that are new are compared again, however often counts change, and what was alike to one that is
        gone: it may be alike to others that were not kept.
        """
        stale = {id for id, text in self._compared.items() if id not in patterns or patterns[id].content_hash != text}
        lost = {pair for pair in self._pairs if not stale.isdisjoint(pair)}
        for id in stale.union(*lost):
            self._compared.pop(id, None)
        self._pairs = {pair: similarity for pair, similarity in self._pairs.items() if pair not in lost}
        self._waiting = [id for id in patterns if id not in self._compared]
        self._searched = not stale and not self._waiting

    def _compare(self, patterns: Mapping[str, Pattern], index: SimilarityIndex) -> bool:
        for id in self._waiting[:_AT_ONCE]:
            self._compared[id] = patterns[id].content_hash
            for other, similarity in index.some_nearest(patterns[id], self._settings.similarity_threshold)[:_LIKEST]:
                self._pairs[min(id, other), max(id, other)] = similarity
        del self._waiting[:_AT_ONCE]
        if self._waiting:
            return False
        self._searched = True
        before = self.alike
        found = ((*pair, similarity) for pair, similarity in self._pairs.items())
        self.alike = tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))
        return self.alike != before
