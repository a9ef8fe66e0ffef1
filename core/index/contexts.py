"""Prepare the context that is injected for a task; see docs/scoring.md."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from core.base.prompt_text import NO_BLOCKS
from core.index.anchors import find_doubtful
from core.index.experiment import draw_coin
from core.index.project_state import ledger_error
from core.index.texts import Texts
from core.records.snapshot import Snapshot
from core.retrieval.embeddings import task_text
from core.retrieval.injection import (
    NO_STRATEGIES,
    InjectedContext,
    Injection,
    Ranking,
    Strategies,
    best_rank,
    choose_strategies,
    prepare_context,
    prepare_injection,
)
from core.retrieval.reflections import ChosenReflection, ReflectionChoice
from core.retrieval.relevance import Relevance, measure_relevance
from core.retrieval.task import TaskProfile, analyse_task

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from core.base.settings import InjectionSettings, Settings
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.learning.experiments import Coin
    from core.retrieval.embeddings import Closeness, ComparableWork, Embeddings, Floats, PastTask
    from core.retrieval.reflections import LearningMatch


def prepare_task_injection(
    state: ProjectState,
    task: str,
    settings: InjectionSettings | None = None,
    category: str = "",
    decomposition: bool | None = None,
    token: str = "",
    coin: Coin | None = None,
) -> Injection:
    """Return what a loop with this task would get, and what is left out.

    `settings` replace those of the project if not None, `category` the recognised one if not "". `decomposition` is
    whether it is a decomposition task; None recognises it by its text. `token` is for the fences (see `Blocks`); "" for
    a new one, as every delivered context has. `coin` is that of the task in the experiment, None for that of its text.
    """
    profile = _profile(task, category, decomposition)
    found = _choose(state, _measure(state, profile), settings)
    return prepare_injection(profile, *found, token, coin or draw_coin(state, task))


def prepare_delivery(
    state: ProjectState,
    task: str,
    settings: InjectionSettings | None = None,
    category: str = "",
    decomposition: bool | None = None,
    coin: Coin | None = None,
) -> InjectedContext:
    """Return `prepare_task_injection` without left-out items, many times as fast."""
    found = _measure(state, _profile(task, category, decomposition), defers_regexes=True)
    return prepare_context(*_choose(state, found, settings), coin=coin or draw_coin(state, task))


def _profile(task: str, category: str, decomposition: bool | None) -> TaskProfile:
    """Return what is recognised in a task, or given."""
    profile = analyse_task(task)
    if category:
        profile = msgspec.structs.replace(profile, category=category)
    if decomposition is not None:
        profile = msgspec.structs.replace(profile, decomposition=decomposition)
    return profile


def task_relevance(state: ProjectState, task: str, learnings: tuple[LearningMatch, ...] | None = None) -> Relevance:
    """Measure the relevance of patterns and learnings to a task, but not its parts.

    Ignores states. `learnings` are those that fit the task, if they are known.
    """
    return _measure(state, analyse_task(task), learnings).without_parts()


def _measure(
    state: ProjectState,
    profile: TaskProfile,
    learnings: tuple[LearningMatch, ...] | None = None,
    *,
    defers_regexes: bool = False,
) -> Relevance:
    """Measure relevance as `measure_relevance`; finds `learnings` if not given."""
    index, patterns, embeddings = state.index, state.snapshot.patterns, state.embeddings
    close = embeddings.closeness(profile.text, index.ids, patterns) if embeddings else None
    past, weights = _past_similarity(state, profile), state.word_weights.by_type
    found = measure_relevance(profile, index, patterns, close, past, weights, defers_regexes=defers_regexes)
    if learnings is None:
        learnings = state.learnings.find_matches(profile, _learning_closeness(state, profile))
    return replace(found, learnings=learnings, decomposition=profile.decomposition)


def task_context(
    state: ProjectState, found: Relevance, token: str = "", settings: InjectionSettings | None = None
) -> InjectedContext:
    """Return the context for a task as if nothing were held out by chance.

    `settings` are as for `prepare_task_injection`.
    """
    return prepare_context(*_choose(state, found, settings), token)


def _choose(
    state: ProjectState, found: Relevance, settings: InjectionSettings | None
) -> tuple[Ranking, ReflectionChoice, Strategies]:
    """Return the ranked patterns, learnings and strategies to choose a context from."""
    ranking = _rank(state, found, _effective(state, settings))
    reflections = _choose_reflections(state, found.learnings, ranking.settings)
    return ranking, reflections, choose_strategies(ranking) if found.decomposition else NO_STRATEGIES


def _rank(state: ProjectState, found: Relevance, settings: InjectionSettings) -> Ranking:
    stale = find_doubtful(state.stale, state.snapshot.curation)
    return Ranking(found, state.index, state.snapshot.patterns, state.board, settings, stale)


def may_change_context(
    before: ProjectState, after: ProjectState, found: Relevance, given: InjectedContext, changed: NDArray[np.int64]
) -> bool:
    """Return whether changed patterns may change a context; texts are the same.

    `given` is the context before. `changed` are the rows of changed patterns in the index. A pattern that ranks below
    those that were considered, before and after, changes nothing.
    """
    relevant, settings = found.only(changed), _effective(before, None)
    if found.decomposition or settings != _effective(after, None):
        return True
    if not len(relevant.rows):
        return False
    ranks = (best_rank(_rank(one, relevant, settings)) for one in (before, after))
    return any(rank >= given.least for rank in ranks if rank > -math.inf)


def held_reflections_in_steps(state: ProjectState, task: str) -> Steps[tuple[ChosenReflection, ...]]:
    """Find held reflections a task would get if approved, best first, in 3 steps."""
    profile = analyse_task(task)
    close = _learning_closeness(state, profile)
    yield
    matches = state.learnings.find_matches(profile, close)
    yield
    return _choose_reflections(state, matches, _effective(state, None)).held


def find_similar_reflections(
    task: PastTask, snapshot: Snapshot, settings: Settings, now: datetime, embeddings: Embeddings[ComparableWork]
) -> tuple[ChosenReflection, ...]:
    """Find learnings of other work, best first; without vectors, compares words."""
    others = Snapshot(
        reflections={id: one for id, one in snapshot.reflections.items() if one.task_id != task.id},
        memory_tasks={id: one for id, one in snapshot.memory_tasks.items() if id != task.id},
        loops=snapshot.loops,
        tasks=snapshot.tasks,
        attempts=snapshot.attempts,
    )
    index = Texts(others).learnings
    close = embeddings.closeness(task_text(task), index.work_keys, index.works)
    matches = index.find_matches(analyse_task(task.description), close)
    half_life, orders = settings.learning.half_life_days, settings.scan.holds_other_texts
    return ReflectionChoice(matches, settings.injection, now, half_life, orders=orders).finish(NO_BLOCKS)[1].chosen


def _learning_closeness(state: ProjectState, profile: TaskProfile) -> Closeness | None:
    index, embeddings = state.learnings, state.task_embeddings
    return embeddings.closeness(profile.text, index.work_keys, index.works) if embeddings is not None else None


def _choose_reflections(
    state: ProjectState, matches: tuple[LearningMatch, ...], settings: InjectionSettings
) -> ReflectionChoice:
    half_life, orders = state.settings.learning.half_life_days, state.settings.scan.holds_other_texts
    approved, used = state.snapshot.curation.approves_text, state.board.used_scripts
    return ReflectionChoice(
        matches, settings, state.now, half_life, orders=orders, approved=approved, used_scripts=used
    )


def _effective(state: ProjectState, settings: InjectionSettings | None) -> InjectionSettings:
    """Return the settings, switched off while the decision log cannot be read."""
    settings = settings or state.settings.injection
    return msgspec.structs.replace(settings, enabled=False) if ledger_error(state) else settings


def _past_similarity(state: ProjectState, profile: TaskProfile) -> Floats | None:
    past, embeddings = state.past_tasks, state.task_embeddings
    if not past.tasks:
        return None
    close = embeddings.closeness(profile.text, past.loop_ids, state.snapshot.loops) if embeddings else None
    return past.similarity(profile, state.index, close)
