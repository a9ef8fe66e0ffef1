"""What an answer in Review would change, worked out before anything is written: by making the decision on copies."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.curation.curator import Decided
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.lineage import LineageEvent
from core.learning.score_arrays import Codes
from core.learning.scoreboard import Scoreboard
from core.learning.states import STATES
from core.project.project import Project
from core.records.patterns import Pattern
from core.retrieval.embeddings import Coverage
from core.retrieval.injection import InjectedContext
from core.retrieval.rendering import count_tokens, render_context
from core.review.answers import Answer
from core.review.context_recipients import LOOP, PAUSED, TASK, TOPIC, Contexts, Reader, audience, same_texts
from core.state.project_state import ProjectState
from core.state.review_items import DUPLICATE, ReviewItem

SHOWN: Final[tuple[str, ...]] = (*STATES, QUARANTINE, HELD)
"""The states that are shown: quarantine and held are states of their own there."""
SUPPOSED: Final = "supposed"
"""The reason that a rehearsed decision gets where one is required; no context shows it."""

Decide = Callable[[Project], Decided]
Stop = Callable[[], bool]
"""Asked between contexts whether to end here."""


@dataclass(frozen=True, slots=True)
class Merger:
    """What two patterns would be as one.

    Attributes:
        kept, other: The two, as they are.
        result: The kept one with the uses and the lineage of the other one.
        before: How the two stand now, the kept one first.
        after: How the result would stand.
        lineage: The life of the result.
        saved: Tokens that a context with both is longer than one with the result, as the budget counts them.
    """

    kept: Pattern
    other: Pattern
    result: Pattern
    before: tuple[Assessment, Assessment]
    after: Assessment
    lineage: tuple[LineageEvent, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A context that would be another one.

    Attributes:
        kind: Whose: a running `loop`, a `paused` loop (when it resumes), a past `task`, or the `topic` of the
            pattern itself.
        id: Of the loop, the task or the pattern.
        title: Its task; untrusted.
        before, after: The exact texts, "" where nothing is injected.
        tokens: Of both, estimated.
    """

    kind: str
    id: str
    title: str
    before: str
    after: str
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one pattern stands.

    Attributes:
        given: In how many of the contexts that were looked at it is.
        rank: Its place by score among all patterns, from 1; patterns of one score share the best place. None where
            there is no such pattern.
    """

    given: int
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The effect of an answer.

    Attributes:
        action: Of the answer, "" for a decision that answers no question.
        loops, paused, tasks: Number of running loops, paused loops and past tasks whose contexts were compared.
        changed: The contexts that would be others, those of running loops first, then those of paused ones.
        tokens: Of all contexts that were looked at, before and after.
        turned: Patterns whose state would be another one, with the state before and after, as `SHOWN` has them.
        added, gone: Ids of patterns that would come into the registry or leave it.
        places: Where the patterns in question stand, before and after.
        merger: For a merge, what would come of it.
        by_words: How far vectors were made, if some were missing: as they come, contexts become others.
    """

    action: str = ""
    loops: int
    paused: int = 0
    tasks: int
    changed: tuple[ContextChange, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    turned: tuple[tuple[str, str, str], ...] = ()
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    places: tuple[tuple[str, Place, Place], ...] = ()
    merger: Merger | None = None
    by_words: Coverage | None = None

    def changed_of(self, kind: str) -> int:
        """How many contexts of a kind would be others."""
        return sum(change.kind == kind for change in self.changed)


def forecast(deck: Project, item: ReviewItem, answer: Answer, typed: str = "") -> Forecast:
    """What one answer changes; of many, or again and again, ask a `Forecaster`."""
    found = Forecaster(deck).forecast(deck.view, item, answer, typed)
    assert found is not None  # nobody stops it
    return found


class Forecaster:
    """Works out what answers change, and keeps what several of them share. From any thread, one at a time."""

    def __init__(self, deck: Project) -> None:
        self._deck = deck
        self._contexts = Contexts()
        self._lock = threading.Lock()

    def forecast(
        self, view: ProjectState, item: ReviewItem, answer: Answer, typed: str = "", stop: Stop | None = None
    ) -> Forecast | None:
        """Rehearse the answer, and inject again.

        Args:
            view: What is known; the contexts before are kept as long as it is the same one.
            item: The question.
            answer: One of its `answers`.
            typed: The reason, or the text of a rewrite, as far as it is known by now.
            stop: See `Stop`.

        Returns:
            None if it was stopped.

        Raises:
            RalphdeckError: The answer cannot be given; what it says is why.
        """
        with self._lock:
            return self._forecast(view, item, answer, typed, stop or (lambda: False))

    def effect(self, view: ProjectState, decide: Decide, about: tuple[str, ...] = ()) -> Forecast:
        """What a decision changes that answers no question.

        Args:
            view: See `forecast`.
            decide: Makes the decision, on the deck that it is given.
            about: The patterns whose places are told.

        Raises:
            RalphdeckError: What the decision would raise.
        """
        with self._lock:
            found = self._effect(view, decide, about, _readers(view, about), lambda: False)
        assert found is not None  # nobody stops it
        return found[0]

    def _forecast(
        self, view: ProjectState, item: ReviewItem, answer: Answer, typed: str, stop: Stop
    ) -> Forecast | None:
        about = tuple(id for id in (item.subject, item.other) if id) if item.is_about_pattern else ()
        readers = _readers(view, about)
        if not answer.matters:
            return _of_readers(readers, action=answer.action)
        typed = typed or (SUPPOSED if answer.needs_reason else "")
        found = self._effect(view, lambda deck: answer.decide(deck, typed), about, readers, stop)
        if found is None:
            return None
        effect, after = found
        return replace(effect, action=answer.action, merger=_merger(view, after, item, answer))

    def _effect(
        self, view: ProjectState, decide: Decide, about: tuple[str, ...], readers: tuple[Reader, ...], stop: Stop
    ) -> tuple[Forecast, ProjectState] | None:
        by_words = view.coverage
        given: dict[str, InjectedContext] = {}
        for reader in readers:
            if stop():
                return None
            given[reader.task] = self._contexts.given(view, reader.task)
        after = self._deck.rehearsed(decide, view)
        same = same_texts(view, after)
        supposed: dict[str, InjectedContext] = {}
        for reader in readers:
            if stop():
                return None
            if reader.task not in supposed:
                supposed[reader.task] = self._contexts.supposed(after, reader.task, same=same)
        pairs = [(reader, given[reader.task], supposed[reader.task]) for reader in readers]
        known, come = view.snapshot.patterns.keys(), after.snapshot.patterns.keys()
        effect = _of_readers(
            readers,
            changed=tuple(_change(*pair) for pair in pairs if pair[1].context != pair[2].context),
            tokens=(sum(one.tokens for _, one, _ in pairs), sum(two.tokens for _, _, two in pairs)),
            turned=tuple(_turned(view, after)),
            added=tuple(sorted(come - known)),
            gone=tuple(sorted(known - come)),
            places=tuple(
                (
                    id,
                    _place(view, id, [one.pattern_ids for _, one, _ in pairs]),
                    _place(after, id, [two.pattern_ids for _, _, two in pairs]),
                )
                for id in about
            ),
            by_words=by_words,
        )
        return effect, after


def _of_readers(readers: tuple[Reader, ...], **found: Any) -> Forecast:
    kinds = Counter(reader.kind for reader in readers)
    return Forecast(loops=kinds[LOOP], paused=kinds[PAUSED], tasks=kinds[TASK], **found)


def _readers(view: ProjectState, about: tuple[str, ...]) -> tuple[Reader, ...]:
    """Who is looked at; where nobody runs or ran, what the first of the patterns is about."""
    return audience(view.snapshot) or tuple(_topic(view, about[:1]))


def _change(reader: Reader, one: InjectedContext, two: InjectedContext) -> ContextChange:
    return ContextChange(reader.kind, reader.id, reader.task, one.context, two.context, (one.tokens, two.tokens))


def _topic(view: ProjectState, about: tuple[str, ...]) -> Iterator[Reader]:
    for id in about:
        pattern = view.snapshot.patterns.get(id)
        if pattern is not None:
            yield Reader(TOPIC, pattern.id, f"{pattern.title} {pattern.description}")


def shown_codes(board: Scoreboard) -> Codes:
    """The state of every row as people are told it; indices into `SHOWN`."""
    kept_out = np.where(board.held, SHOWN.index(HELD), SHOWN.index(QUARANTINE))
    return np.where(board.quarantined, kept_out, board.state_codes).astype(np.int8)


def _turned(view: ProjectState, after: ProjectState) -> Iterator[tuple[str, str, str]]:
    """The patterns that are there before and after, in the order of the registry, and in another state."""
    ids = after.board.ids
    if ids != view.board.ids:
        ids = tuple(id for id in ids if id in view.board)
    one = shown_codes(view.board)[view.board.rows_of(ids)]
    two = shown_codes(after.board)[after.board.rows_of(ids)]
    for place in np.flatnonzero(one != two).tolist():
        yield ids[place], SHOWN[one[place]], SHOWN[two[place]]


def _place(view: ProjectState, pattern_id: str, given: list[tuple[str, ...]]) -> Place:
    if pattern_id not in view.board:
        return Place(0, None)
    score = view.board.score
    better = int(np.count_nonzero(score > score[view.board.row(pattern_id)]))
    return Place(sum(pattern_id in ids for ids in given), better + 1)


def _merger(view: ProjectState, after: ProjectState, item: ReviewItem, answer: Answer) -> Merger | None:
    """What came of a merge; to keep the other one of the two is the other way to answer."""
    if item.kind != DUPLICATE:
        return None
    ids = (item.subject, item.other) if answer.action == "accept" else (item.other, item.subject)
    kept, other = map(view.pattern, ids)
    return Merger(
        kept=kept,
        other=other,
        result=after.pattern(kept.id),
        before=(view.assessment(kept.id), view.assessment(other.id)),
        after=after.assessment(kept.id),
        lineage=after.lineage(kept.id),
        saved=_tokens(view, kept.id, other.id) - _tokens(after, kept.id),
    )


def _tokens(view: ProjectState, *pattern_ids: str) -> int:
    """Of a context with just these patterns, whatever their states."""
    items = [(view.pattern(id), view.assessment(id)) for id in pattern_ids]
    return count_tokens(render_context(items, view.settings.injection))
