"""Forecast by a dry run which contexts and states a decision would change."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.decisions.commands import Command, bulk
from core.index.findings import pattern_lineage
from core.index.review_items import DUPLICATE, ReviewItem
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.states import STATES
from core.project.dry_run import DryRun, dry_run
from core.questions.context_recipients import (
    LOOP,
    PAUSED,
    TASK,
    ContextCache,
    Recipient,
    find_changed_rows,
    list_recipients,
    same_texts,
)
from core.retrieval.rendering import count_tokens, render_context

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.explanation import LineageEvent
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Codes
    from core.project.project import Project
    from core.questions.answer import Answer
    from core.records.decisions import Verb
    from core.records.patterns import Pattern
    from core.retrieval.embeddings import Coverage
    from core.retrieval.injection import InjectedContext

SHOWN: Final[tuple[str, ...]] = (*STATES, QUARANTINE, HELD)
"""The states as shown to users, including quarantine and held."""
SUPPOSED: Final = "supposed"  # Placeholder reason for a dry run that requires one; no context shows it.
_NAMED: Final = 80  # Maximum length of an ID in refusals.

Stop = Callable[[], bool]  # Called between contexts; returns True to stop.


@dataclass(frozen=True, slots=True)
class Merger:
    """The result of merging two patterns; `target` is kept.

    `before` has the assessments of both, the kept one first; `after` and `lineage` are those of the result. `saved` is
    the estimated number of tokens by which a context gets shorter than with both.
    """

    target: Pattern
    other: Pattern
    result: Pattern
    before: tuple[Assessment, Assessment]
    after: Assessment
    lineage: tuple[LineageEvent, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A context that would change.

    `kind`, `id` and `title` are those of the recipient (see `Recipient`). `before` and `after` are the exact texts, ""
    if nothing is injected; `tokens` has the estimated tokens of both.
    """

    kind: str
    id: str
    title: str
    before: str
    after: str
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PatternRank:
    """How often a pattern is injected, and its rank by score.

    `given` is the number of compared contexts that contain it. `rank` starts at 1, and equal scores share the best
    rank; None if the pattern does not exist.
    """

    given: int
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The effect of a decision.

    `action` is that of the answer, "" for a decision that answers no question. `loops`, `paused` and `tasks` are the
    numbers of compared contexts of running loops, paused loops and past tasks. `changed` has those that would change,
    in this order; `tokens` are the totals before and after. `turned` has (ID, before, after) of patterns whose shown
    state (`SHOWN`) would change, `added` and `removed` the IDs that would enter or leave the registry, `places` the
    ranks before and after by pattern ID. `by_words` is the embedding coverage if vectors are missing, which can still
    change contexts when computed.
    """

    action: str = ""
    loops: int
    paused: int = 0
    tasks: int
    changed: tuple[ContextChange, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    turned: tuple[tuple[str, str, str], ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    places: tuple[tuple[str, PatternRank, PatternRank], ...] = ()
    merger: Merger | None = None
    by_words: Coverage | None = None

    def changed_of(self, kind: str) -> int:
        return sum(change.kind == kind for change in self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForecast:
    """The effect of one decision about many patterns.

    `refused` has (reason, number of patterns) and `turned` (state before, state after, number of patterns), the most
    frequent first.
    """

    asked: int
    decided: int
    refused: tuple[tuple[str, int], ...]
    turned: tuple[tuple[str, str, int], ...]
    effect: Forecast


def forecast_bulk(
    project: Project, verb: Verb, pattern_ids: Sequence[str], stop: Stop = lambda: False
) -> BulkForecast | None:
    """Forecast a verb about many patterns by a dry run; None if `stop` ended it."""
    state, asked = project.view, len(set(pattern_ids))
    try:
        found = Forecaster(project)._effect(state, bulk(verb, pattern_ids, SUPPOSED), stop)
    except RalphdeckError as error:
        effect = Forecast(loops=0, tasks=0)
        return BulkForecast(asked=asked, decided=0, refused=((str(error), asked),), turned=(), effect=effect)
    if found is None:
        return None
    effect, run = found
    # Equal reasons are counted, whatever the pattern.
    reasons = Counter(one.why.replace(visible_line(one.pattern_id, _NAMED), "it") for one in run.decided.refused)
    turned = Counter((before, after) for _, before, after in effect.turned)
    return BulkForecast(
        asked=asked,
        decided=len(run.decided.decisions),
        refused=tuple(reasons.most_common()),
        turned=tuple((before, after, count) for (before, after), count in turned.most_common()),
        effect=effect,
    )


class Forecaster:
    """Forecasts answers and caches the contexts that they share. Thread-safe."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._contexts = ContextCache()
        self._lock = threading.Lock()

    def forecast(
        self, state: ProjectState, item: ReviewItem, answer: Answer, typed: str = "", stop: Stop = lambda: False
    ) -> Forecast | None:
        """Dry-run an answer and compare the contexts; None if `stop` ended it.

        Contexts are cached while `state` stays the same. `typed` is the reason, or the text of a rewrite, if already
        typed. Raises `RalphdeckError`, with the reason as message, if the answer is refused.
        """
        about = tuple(id for id in (item.subject, item.other) if id) if item.is_about_pattern else ()
        if not answer.matters:
            return _of_readers(_readers(state, about), action=answer.action)
        typed = typed or (SUPPOSED if answer.needs_reason else "")
        with self._lock:
            found = self._effect(state, answer.with_text(typed), stop, about)
        if found is None:
            return None
        effect, run = found
        return replace(effect, action=answer.action, merger=_merger(state, run.state, item, answer))

    def effect(self, state: ProjectState, command: Command) -> tuple[Forecast, DryRun]:
        """Forecast a decision that answers no question; may raise its `RalphdeckError`."""
        with self._lock:
            found = self._effect(state, command, lambda: False)
        assert found is not None  # without `stop` it always finishes
        return found

    def _effect(
        self, state: ProjectState, command: Command, stop: Stop, about: tuple[str, ...] = ()
    ) -> tuple[Forecast, DryRun] | None:
        """Dry-run a decision; compare contexts, and the ranks of patterns in `about`."""
        by_words, contexts = state.coverage, self._contexts
        run = dry_run(self._project, command, state)
        after, same = run.state, same_texts(state, run.state)
        changed = find_changed_rows(state, after) if same else None
        readers = _readers(state, about)
        compared: dict[str, tuple[InjectedContext, InjectedContext]] = {}
        for task in dict.fromkeys(reader.task for reader in readers):
            if stop():
                return None
            now = contexts.current_context(state, task)
            compared[task] = now, contexts.dry_run_context(after, task, same=same, changed=changed)
        pairs = [(reader, *compared[reader.task]) for reader in readers]
        known, come = state.snapshot.patterns.keys(), after.snapshot.patterns.keys()
        given, supposed = [one.pattern_ids for _, one, _ in pairs], [two.pattern_ids for _, _, two in pairs]
        effect = _of_readers(
            readers,
            changed=tuple(
                ContextChange(reader.kind, reader.id, reader.task, one.context, two.context, (one.tokens, two.tokens))
                for reader, one, two in pairs
                if one.context != two.context
            ),
            tokens=(sum(one.tokens for _, one, _ in pairs), sum(two.tokens for _, _, two in pairs)),
            turned=tuple(_state_changes(state, after)),
            added=tuple(sorted(come - known)),
            removed=tuple(sorted(known - come)),
            places=tuple((id, _rank(state, id, given), _rank(after, id, supposed)) for id in about),
            by_words=by_words,
        )
        return effect, run


def _of_readers(readers: tuple[Recipient, ...], **found: Any) -> Forecast:
    kinds = Counter(reader.kind for reader in readers)
    return Forecast(loops=kinds[LOOP], paused=kinds[PAUSED], tasks=kinds[TASK], **found)


def _readers(state: ProjectState, about: tuple[str, ...]) -> tuple[Recipient, ...]:
    """Return the context recipients; if there are none, the topic of a pattern."""
    found = list_recipients(state.snapshot)
    pattern = state.snapshot.patterns.get(about[0]) if about and not found else None
    if pattern is None:
        return found
    return (Recipient("topic", pattern.id, f"{pattern.title} {pattern.description}"),)


def shown_codes(board: Scoreboard) -> Codes:
    """Return the shown state of every row as an index into `SHOWN`."""
    is_withheld = np.where(board.held, SHOWN.index(HELD), SHOWN.index(QUARANTINE))
    return np.where(board.quarantined, is_withheld, board.state_codes).astype(np.int8)


def _state_changes(state: ProjectState, after: ProjectState) -> Iterator[tuple[str, str, str]]:
    """Yield (ID, before, after) of patterns that change their shown state."""
    ids = after.board.ids
    if ids != state.board.ids:
        ids = tuple(id for id in ids if id in state.board)
    one = shown_codes(state.board)[state.board.rows_of(ids)]
    two = shown_codes(after.board)[after.board.rows_of(ids)]
    for place in np.flatnonzero(one != two).tolist():
        yield ids[place], SHOWN[one[place]], SHOWN[two[place]]


def _rank(state: ProjectState, pattern_id: str, given: list[tuple[str, ...]]) -> PatternRank:
    if pattern_id not in state.board:
        return PatternRank(0, None)
    score = state.board.score
    better = int(np.count_nonzero(score > score[state.board.row(pattern_id)]))
    return PatternRank(sum(pattern_id in ids for ids in given), better + 1)


def _merger(state: ProjectState, after: ProjectState, item: ReviewItem, answer: Answer) -> Merger | None:
    """Return the result of a merge; only `accept` keeps the subject of the question."""
    if item.kind != DUPLICATE:
        return None
    ids = (item.subject, item.other) if answer.action == "accept" else (item.other, item.subject)
    target, other = map(state.pattern, ids)
    return Merger(
        target=target,
        other=other,
        result=after.pattern(target.id),
        before=(state.assessment(target.id), state.assessment(other.id)),
        after=after.assessment(target.id),
        lineage=pattern_lineage(after, target.id),
        saved=_tokens(state, target.id, other.id) - _tokens(after, target.id),
    )


def _tokens(state: ProjectState, *pattern_ids: str) -> int:
    """Estimate the tokens of a context of these patterns, whatever their states."""
    items = [(state.pattern(id), state.assessment(id)) for id in pattern_ids]
    return count_tokens(render_context(items, state.settings.injection))
