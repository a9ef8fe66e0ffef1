"""What could be asked in Review and has to be worked out first: loops to extract from, patterns that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from core.errors import RalphdeckError
from core.extraction.proposals import Extraction
from core.records.loops import Loop
from core.settings import ExtractionSettings
from core.similarity import LazySimilarity
from core.snapshot import Snapshot

OFFERED_LOOPS: Final = 20
"""From so many of the loops that ended last an extraction is offered unasked; from others it is to be had."""
_MOST_COMPARED: Final = 20_000
"""A larger registry is not searched for duplicates unasked: that takes more than some seconds."""


class Prospects:
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
        self._compared: LazySimilarity | None = None

    def doubt(self) -> None:
        """The registry has changed: what is offered may be known by now."""
        for loop_id in self.offers:
            self._looked_at.pop(loop_id, None)

    def look(
        self, snapshot: Snapshot, likeness: LazySimilarity, extraction: Callable[[str], Extraction]
    ) -> bool | None:
        """Look at one thing more.

        Args:
            snapshot: The records.
            likeness: Of the patterns of `snapshot`.
            extraction: What a loop offers; may raise `RalphdeckError`.

        Returns:
            Whether anything else is offered or alike now; None if nothing was left to look at.
        """
        for loop in self._candidates(snapshot):
            if self._looked_at.get(loop.id) is not loop:
                self._looked_at[loop.id] = loop
                return self._offer(loop, extraction)
        if self._compared is not likeness and len(snapshot.patterns) <= _MOST_COMPARED:
            self._compared = likeness
            before = self.alike
            self.alike = likeness.get().pairs(self._settings.similarity_threshold)
            return self.alike != before
        return None

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

    def _offer(self, loop: Loop, extraction: Callable[[str], Extraction]) -> bool:
        try:
            found = extraction(loop.id)
        except RalphdeckError:
            found = Extraction(source_id=loop.id)
        offers = {key: offer for key, offer in self.offers.items() if key != loop.id}
        if found.new or found.merges:
            offers[loop.id] = found
        changed = offers != self.offers
        self.offers = MappingProxyType(offers)
        return changed
