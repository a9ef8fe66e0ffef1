"""Loops and tasks whose contexts a decision can change."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from core.base.prompt_text import NO_BLOCKS
from core.index.contexts import may_change_context, task_context, task_relevance
from core.records.loops import LoopStatus
from core.retrieval.embeddings import is_available

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.retrieval.injection import InjectedContext
    from core.retrieval.relevance import Relevance

LOOP: Final = "loop"
PAUSED: Final = "paused"
TASK: Final = "task"
MAX_LOOPS: Final = 20  # Maximum number of running loops, and of paused ones, whose contexts are compared, newest first.
MAX_TASKS: Final = 20  # Maximum number of past tasks whose contexts are compared, newest first.
_RESUMABLE: Final = frozenset({LoopStatus.PAUSED, LoopStatus.WAITING})
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Recipient:
    """A loop or task that would get a context.

    `kind` is `loop` (running), `paused` (gets its context when it resumes), `task` (a finished loop, or a task of the
    task memory) or `topic` (the text of the pattern itself, if there is no loop or task). `task` is untrusted.
    """

    kind: Literal["loop", "paused", "task", "topic"]
    id: str
    task: str


def list_recipients(snapshot: Snapshot) -> tuple[Recipient, ...]:
    """Return running loops, paused loops, then past tasks; each newest first."""
    loops = [loop for loop in snapshot.loops.values() if loop.task]
    running = [Recipient(LOOP, loop.id, loop.task) for loop in loops if loop.is_running]
    paused = [Recipient(PAUSED, loop.id, loop.task) for loop in loops if loop.status in _RESUMABLE]
    newest: dict[str, tuple[datetime, str]] = {}  # by text: a task and the sessions that worked on it are one
    for at, id, task in _past(snapshot):
        newest[task] = max((at, id), newest.get(task, (at, id)))
    last = heapq.nlargest(MAX_TASKS, newest.items(), key=operator.itemgetter(1))
    return (*running[:MAX_LOOPS], *paused[:MAX_LOOPS], *(Recipient(TASK, id, task) for task, (_, id) in last))


def _past(snapshot: Snapshot) -> Iterator[tuple[datetime, str, str]]:
    """Yield (time, ID, task) of past tasks."""
    for loop in snapshot.loops.values():
        if loop.task and loop.status.ended:
            at = loop.ended_at or loop.last_activity or loop.started_at or _LONG_AGO
            yield at, loop.id, loop.task
    for task in snapshot.tasks.values():
        if task.description:
            at = task.completed_at or task.updated_at or task.created_at or _LONG_AGO
            yield at, task.id, task.description


class ContextCache:
    """Caches the contexts of tasks; not thread-safe.

    Relevance depends only on texts and vectors, so it is computed once for all states that share them.
    """

    def __init__(self) -> None:
        self._token = NO_BLOCKS.choose_token()  # one for all, so that contexts with the same texts are equal
        self._vectors: list[object] = []
        self._relevant: dict[str, Relevance] = {}
        self._view: ProjectState | None = None
        self._given: dict[str, InjectedContext] = {}

    def current_context(self, view: ProjectState, task: str) -> InjectedContext:
        """Return the context of a task; cached until the state or the vectors change."""
        self._base_on(view)
        context = self._given.get(task)
        if context is None:
            if task not in self._relevant:
                self._relevant[task] = task_relevance(view, task)
            context = self._given[task] = task_context(view, self._relevant[task], self._token)
        return context

    def dry_run_context(
        self, view: ProjectState, task: str, *, same: bool, changed: NDArray[np.int64] | None
    ) -> InjectedContext:
        """Return the context in a dry run; call `current_context` for the task before.

        `same` is whether the texts equal the real state's, `changed` the result of `find_changed_rows`.
        """
        relevance, before = self._relevant[task], self._view
        assert before is not None
        if same and changed is not None:
            context = self._given[task]
            if not may_change_context(before, view, relevance, context, changed):
                return context
        if same:
            return task_context(view, relevance, self._token)
        same_learnings = view.learnings.has_same(before.learnings) and view.task_embeddings is before.task_embeddings
        relevance_now = task_relevance(view, task, relevance.learnings if same_learnings else None)
        return task_context(view, relevance_now, self._token)

    def _base_on(self, view: ProjectState) -> None:
        sources = (view.embeddings, view.task_embeddings)
        vectors = [one.vectors if one is not None and is_available() else None for one in sources]
        same_vectors = len(self._vectors) == len(vectors) and all(map(operator.is_, vectors, self._vectors))
        if view is self._view and same_vectors:
            return
        last = self._view
        is_same = last is not None and same_vectors and view.learnings.has_same(last.learnings)
        if last is None or not (is_same and same_texts(last, view)):
            self._relevant = {}
        self._view, self._vectors, self._given = view, [*vectors], {}


def find_changed_rows(before: ProjectState, after: ProjectState) -> NDArray[np.int64] | None:
    """Return index rows of changed patterns; None if other changes affect contexts.

    The texts are the same in both states.
    """
    changed = before.board.changed_patterns(after.board)
    curation = before.snapshot.curation, after.snapshot.curation
    if changed is None or curation[0].approved_texts != curation[1].approved_texts:
        return None
    records, rows = after.snapshot.patterns, before.index.rows
    changed |= {id for id, pattern in before.snapshot.patterns.items() if records.get(id) is not pattern}
    return np.array(sorted(rows[id] for id in changed if id in rows), np.int64)


def same_texts(one: ProjectState, other: ProjectState) -> bool:
    """Whether relevance to tasks is the same in both states."""
    before, after = one.snapshot.patterns, other.snapshot.patterns
    if not one.past_tasks.has_same(other.past_tasks):
        return False
    if before is after:
        return True
    if len(before) != len(after) or one.index.ids != other.index.ids:
        return False
    return all(
        pattern is before.get(id) or _text_of(pattern) == _text_of(before.get(id)) for id, pattern in after.items()
    )


def _text_of(pattern: Pattern | None) -> tuple[object, ...]:
    return (pattern.type, pattern.content_hash, pattern.tags) if pattern is not None else ()
