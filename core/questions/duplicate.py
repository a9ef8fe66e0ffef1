"""Whether two similar patterns are the same lesson: find them, ask, answer; docs/curation.md#merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import visible_line
from core.curation import commands
from core.index.verdicts import StoredVerdicts, read_verdicts, write_verdicts
from core.questions.answer import Answer, dismissal, yes
from core.questions.impact import WASTED_USE
from core.questions.priority import ImpactEstimator, chars_of, quoted_title
from core.retrieval.similarity import cap_similarity
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.config.settings import ExtractionSettings
    from core.index.similarity import SimilarityIndex
    from core.index.texts import Texts
    from core.records.patterns import Pattern
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

_MOST_COMPARED: Final = 20_000
"""Largest registry that is searched for duplicates; a larger one would take many seconds."""
_STEP_SECONDS: Final = 0.01  # Time in which indexes are built at once.
_AT_ONCE: Final = 32  # Patterns compared in one step, about 10 ms.
_MOST_SIMILAR: Final = 8  # Maximum number of similar patterns stored per pattern.
_KIND: Final = "duplicate"


class TextVerdict(Struct, frozen=True, array_like=True):
    """The texts that are similar to that of a pattern: content hash, and similarity 0..1."""

    alike: tuple[tuple[str, float], ...] = ()


class DuplicateSearch:
    """Compares each pattern with all others, some in a step; not thread-safe.

    `alike` has (ID, ID, similarity 0..1) of similar patterns, best first. A text that was compared in an earlier run
    is compared again only if a text that was similar to it has gone: another one may take its place.
    """

    def __init__(self, settings: ExtractionSettings, stored: StoredVerdicts) -> None:
        self.alike: tuple[tuple[str, str, float], ...] = ()
        self._settings = settings
        self._stored = stored
        self._patterns: Mapping[str, Pattern] | None = None
        self._compared: dict[str, str] = {}
        """Content hash of each pattern that was compared with all others."""
        self._pending: list[str] = []
        self._pairs: dict[tuple[str, str], float] = {}
        self._new: dict[str, TextVerdict] = {}  # verdicts that are not stored yet
        self._is_complete = True

    def look(self, patterns: Mapping[str, Pattern], texts: Texts) -> bool | None:
        """Do one step; whether `alike` changed, None if nothing is left to compare.

        `texts` are those of the patterns.
        """
        if self._patterns is not patterns and len(patterns) <= _MOST_COMPARED:
            self._patterns = patterns
            self._forget_changed(patterns)
            self._recall(patterns)
        if self._is_complete:
            return None
        if not self._pending:
            return self._finish()
        return self._compare(patterns, texts.similarity)

    def _forget_changed(self, patterns: Mapping[str, Pattern]) -> None:
        """Queue changed texts, and patterns similar to changed or removed ones."""
        stale = {id for id, text in self._compared.items() if id not in patterns or patterns[id].content_hash != text}
        lost = {pair for pair in self._pairs if not stale.isdisjoint(pair)}
        for id in stale.union(*lost):
            self._compared.pop(id, None)
        self._pairs = {pair: similarity for pair, similarity in self._pairs.items() if pair not in lost}
        self._pending = [id for id in patterns if id not in self._compared]
        self._is_complete = not stale and not self._pending

    def _recall(self, patterns: Mapping[str, Pattern]) -> None:
        """Use the stored verdicts of pending patterns whose text no other pattern has."""
        if not self._pending:
            return
        counts = Counter(one.content_hash for one in patterns.values())
        ids = {one.content_hash: one.id for one in patterns.values() if counts[one.content_hash] == 1}
        hashes = [text for id in self._pending if (text := patterns[id].content_hash) in ids]
        for text, verdict in read_verdicts(self._stored, _KIND, hashes, TextVerdict).items():
            if all(other in ids for other, _ in verdict.alike):
                self._compared[ids[text]] = text
                for other, similarity in verdict.alike:
                    self._pairs[min(ids[text], ids[other]), max(ids[text], ids[other])] = similarity
        self._pending = [id for id in self._pending if id not in self._compared]

    def _compare(self, patterns: Mapping[str, Pattern], index: SimilarityIndex) -> bool:
        for id in self._pending[:_AT_ONCE]:
            self._compared[id] = patterns[id].content_hash
            nearest = index.some_nearest(patterns[id], self._settings.similarity_threshold)[:_MOST_SIMILAR]
            for other, similarity in nearest:
                self._pairs[min(id, other), max(id, other)] = similarity
            alike = tuple((patterns[other].content_hash, similarity) for other, similarity in nearest)
            self._new[patterns[id].content_hash] = TextVerdict(alike)
        del self._pending[:_AT_ONCE]
        return False if self._pending else self._finish()

    def _finish(self) -> bool:
        self._is_complete = True
        write_verdicts(self._stored, _KIND, self._new)
        self._new = {}
        before = self.alike
        found = ((*pair, similarity) for pair, similarity in self._pairs.items())
        self.alike = tuple(sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1])))
        return self.alike != before


def duplicates(scales: ImpactEstimator, alike: Sequence[tuple[str, str, float]]) -> Iterator[ReviewItem]:
    """Ask about duplicates; for each pattern only the most similar pair at a time."""
    asked: set[str] = set()
    quarantined = scales.board.quarantined

    def is_registered(pattern_id: str) -> bool:
        pattern = scales.patterns.get(pattern_id)
        return pattern is not None and pattern.is_registered and pattern_id in scales.board

    def order(pattern_id: str) -> tuple[bool, int, str]:
        return bool(quarantined[scales.board.row(pattern_id)]), -scales.times(pattern_id), pattern_id

    for one, other, similarity in alike:
        if one in asked or other in asked or not (is_registered(one) and is_registered(other)):
            continue
        target, merged = sorted((one, other), key=order)
        asked |= {target, merged}
        uses = scales.results(target) + scales.results(merged)
        yield scales.ask(
            kinds.DUPLICATE,
            target,
            partial(_duplicate, scales, target, merged, similarity, uses),
            *(scales.patterns[merged], scales.counts(merged), similarity, uses),
            impact=WASTED_USE * similarity * scales.uses(merged),
            other=merged,
        )


def _duplicate(scales: ImpactEstimator, target: str, merged: str, similarity: float, uses: int) -> ReviewItem:
    return scales.item(
        kinds.DUPLICATE,
        target,
        question="Are {} the same lesson?",
        name=f"{quoted_title(scales.patterns[target])} and {quoted_title(scales.patterns[merged])}",
        this="these two",
        reason=f"{cap_similarity(similarity):.0%} similar",
        place=f"{scales.given(target)}; the other one: {scales.given(merged)}",
        chars=chars_of(scales.patterns[target]) + chars_of(scales.patterns[merged]),
        other=merged,
        similarity=similarity,
        evidence=uses,
    )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which merges them, no, and the merge into the other one."""
    name, other = visible_line(item.subject, 80), visible_line(item.other, 80)
    yield yes("merge", f"merged: {name} stays, with the uses of both", commands.Merge(item.subject, item.other))
    yield dismissal(item, "reject", "keep both", f"kept both {name} and {other}", "both stay")
    effect = f"{other} stays, with the uses of both"
    yield Answer("rewrite", "keep the other one", effect, commands.Merge(item.other, item.subject))
