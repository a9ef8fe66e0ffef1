"""Questions whether two patterns are the same lesson; docs/curation.md#merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import visible_line
from core.decisions import commands
from core.index.review_items import DUPLICATE
from core.index.verdicts import StoredVerdicts, read_in_steps, write_in_steps
from core.questions.answer import Answer, dismissal, yes
from core.questions.asking import Asker, chars_of, quoted_title
from core.questions.impact import WASTED_USE
from core.retrieval.similarity import cap_similarity

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem

_MOST_COMPARED: Final = 20_000
"""Largest registry that is searched for duplicates; a larger one would take many seconds."""
_MOST_SIMILAR: Final = 8  # Maximum number of similar patterns stored per pattern.
_KIND: Final = "duplicate"


class PatternVerdict(Struct, frozen=True, array_like=True):
    """Patterns similar to a text: ID, text, similarity 0..1; texts as content hashes."""

    text: str
    alike: tuple[tuple[str, str, float], ...] = ()

    def holds(self, id: str, texts: Mapping[str, str]) -> bool:
        """Return whether the pattern and all similar ones still have the same `texts`."""
        return texts[id] == self.text and all(texts.get(other) == text for other, text, _ in self.alike)


class Duplicates(Struct, frozen=True):
    """Similar patterns (ID, ID, similarity 0..1), best first, of those `compared`."""

    alike: tuple[tuple[str, str, float], ...] = ()
    compared: Set[str] = frozenset()


def find_duplicates(view: ProjectState, before: Duplicates, stored: StoredVerdicts) -> Steps[Duplicates]:
    """Compare each pattern with all others.

    One that was compared before is compared again if its text or that of a similar pattern has changed, or a similar
    one has gone: another one may take its place. So is one that returns, for it was not there for what came meanwhile.
    """
    patterns, threshold = view.snapshot.patterns, view.settings.extraction.similarity_threshold
    if len(patterns) > _MOST_COMPARED:
        return before
    texts = {}
    for id in patterns:
        texts[id] = patterns[id].content_hash
        yield
    verdicts = yield from read_in_steps(stored, _KIND, texts.keys() & (before.compared or texts.keys()), PatternVerdict)
    pairs, new = {}, {}
    for id, text in texts.items():
        verdict = verdicts.get(id)
        if verdict is None or not verdict.holds(id, texts):
            nearest = view.texts.similarity.some_nearest(patterns[id], threshold)[:_MOST_SIMILAR]
            alike = tuple((other, texts[other], similarity) for other, similarity in nearest)
            verdict = new[id] = PatternVerdict(text, alike)
        for other, _, similarity in verdict.alike:
            pairs[min(id, other), max(id, other)] = similarity
        yield
    yield from write_in_steps(stored, _KIND, new)
    rows = ((*pair, similarity) for pair, similarity in pairs.items())
    return Duplicates(tuple(sorted(rows, key=lambda pair: (-pair[2], pair[0], pair[1]))), frozenset(texts))


def ask_duplicates(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about duplicates; for each pattern only the most similar pair at a time."""
    asked: set[str] = set()
    quarantined, times = asker.board.quarantined, asker.board.uses + asker.board.injected_only

    def is_registered(pattern_id: str) -> bool:
        pattern = asker.patterns.get(pattern_id)
        return pattern is not None and pattern.is_registered and pattern_id in asker.board

    def order(pattern_id: str) -> tuple[bool, int, str]:
        return bool(quarantined[asker.board.row(pattern_id)]), -times.item(asker.board.row(pattern_id)), pattern_id

    for one, other, similarity in asker.found.alike:
        if one in asked or other in asked or not (is_registered(one) and is_registered(other)):
            continue
        target, merged = sorted((one, other), key=order)
        asked |= {target, merged}
        uses = asker.results(target) + asker.results(merged)
        yield asker.ask(
            DUPLICATE,
            target,
            partial(_duplicate, asker, target, merged, similarity, uses),
            *(asker.patterns[merged], asker.counts(merged), similarity, uses),
            impact=WASTED_USE * similarity * asker.uses(merged),
            other=merged,
        )


def _duplicate(asker: Asker, target: str, merged: str, similarity: float, uses: int) -> ReviewItem:
    return asker.item(
        DUPLICATE,
        target,
        question="Are {} the same lesson?",
        name=f"{quoted_title(asker.patterns[target])} and {quoted_title(asker.patterns[merged])}",
        this="these two",
        reason=f"{cap_similarity(similarity):.0%} similar",
        place=f"{asker.describe_uses(target)}; the other one: {asker.describe_uses(merged)}",
        chars=chars_of(asker.patterns[target]) + chars_of(asker.patterns[merged]),
        other=merged,
        similarity=similarity,
        evidence=uses,
    )


def answer_duplicate(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which merges them, no, and the merge into the other one."""
    name, other = visible_line(item.subject, 80), visible_line(item.other, 80)
    yield yes("merge", f"merged: {name} stays, with the uses of both", commands.Merge(item.subject, item.other))
    yield dismissal(item, "reject", "keep both", f"kept both {name} and {other}", "both stay")
    effect = f"{other} stays, with the uses of both"
    yield Answer("rewrite", "keep the other one", effect, commands.Merge(item.other, item.subject))
