"""Past tasks in which patterns worked, as further texts of them (docs/retrieval.md#past-tasks)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from core.retrieval.embedding import task_text
from core.retrieval.embeddings import Closeness, Floats, scale_closeness
from core.retrieval.postings import Rows, index_rows
from core.retrieval.task import TaskProfile, content_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.learning.scoreboard import Scoreboard
    from core.records.loops import Loop
    from core.records.snapshot import Snapshot
    from core.retrieval.index import PatternIndex

    _Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of tasks, and rows of their patterns in an index

MAX_TASKS: Final = 2000  # tasks of the newest loops in which a pattern worked
MAX_PER_PATTERN: Final = 8  # newest different tasks of one pattern


class SuccessfulTask(NamedTuple):
    """Task of a loop, and the patterns that worked in it."""

    loop_id: str
    task: str  # the task itself; untrusted
    text: str  # the task with its criteria and tags, see `task_text`
    pattern_ids: tuple[str, ...]
    words: frozenset[str]  # content words of the text

    @classmethod
    def of(cls, loop: Loop, pattern_ids: tuple[str, ...]) -> SuccessfulTask:
        text = task_text(loop) if pattern_ids else ""
        return cls(loop.id, loop.task, text, pattern_ids, frozenset(content_words(text)))


class _ForIndex(NamedTuple):
    """What the similarity needs of one index of patterns; that of a dry run is freed with it."""

    patterns: weakref.ref[PatternIndex]
    squares: Floats  # squared length of each task
    pairs: _Pairs


@dataclass(frozen=True)
class PastTasks:
    """Immutable tasks of loops in which patterns worked, newest first."""

    tasks: Sequence[SuccessfulTask] = ()
    _for_index: list[_ForIndex] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def collect(cls, snapshot: Snapshot, board: Scoreboard) -> PastTasks:
        """Return the past tasks of all loops; `board` has the scores of the snapshot."""
        return cls.of(SuccessfulTask.of(loop, find_worked(id, board)) for id, loop in snapshot.loops.items())

    @classmethod
    def of(cls, tasks: Iterable[SuccessfulTask]) -> PastTasks:
        """Choose the newest different tasks of each pattern; `tasks` are newest first."""
        found: list[SuccessfulTask] = []
        seen: dict[str, set[frozenset[str]]] = {}
        for task in tasks:
            kept = []
            for pattern_id in task.pattern_ids if task.words else ():
                known = seen.setdefault(pattern_id, set())
                if task.words not in known and len(known) < MAX_PER_PATTERN:
                    known.add(task.words)
                    kept.append(pattern_id)
            if kept:
                found.append(task if len(kept) == len(task.pattern_ids) else task._replace(pattern_ids=tuple(kept)))
            if len(found) == MAX_TASKS:
                break
        return cls(tuple(found))

    @cached_property
    def loop_ids(self) -> tuple[str, ...]:
        return tuple(task.loop_id for task in self.tasks)

    @cached_property
    def _rows_of(self) -> Mapping[str, Rows]:
        """Rows of the tasks that contain each word."""
        return index_rows(task.words for task in self.tasks)

    def has_same(self, other: PastTasks) -> bool:
        """Return whether `other` is known to have the same tasks."""
        return self is other

    def similarity(
        self, profile: TaskProfile, index: PatternIndex, closeness: Closeness | None = None, without: int | None = None
    ) -> Floats:
        """Return the similarity (0..1) of a task with the nearest task of each pattern.

        `closeness` is the cosine of the task with each of `loop_ids`, NaN where unknown. `without` leaves out one task.
        """
        known = next((one for one in tuple(self._for_index) if one.patterns() is index), None) or self._prepare(index)
        similar = self._similar_by_words(profile, index, known)
        if closeness is not None:
            similar = np.maximum(similar, scale_closeness(closeness))
        if without is not None:
            similar[without] = 0.0
        found = np.zeros(len(index.ids))
        tasks, patterns = known.pairs
        np.maximum.at(found, patterns, similar[tasks])
        return found

    def _similar_by_words(self, profile: TaskProfile, index: PatternIndex, known: _ForIndex) -> Floats:
        """Return the cosine of words; a long text is not similar to every task.

        Words count by their rarity in patterns, so that no past task changes what another one adds.
        """
        shared, asked = np.zeros(len(self.tasks)), 0.0
        rarity = index.rarities(profile.words)
        for word in sorted(profile.words):  # sorted, so that every process gets the same sums
            weight = rarity[word] ** 2
            asked += weight
            if (rows := self._rows_of.get(word)) is not None:
                shared[rows] += weight
        similar: Floats = np.minimum(shared / np.sqrt(np.maximum(known.squares * asked, 1e-12)), 1.0)
        return similar

    def _prepare(self, index: PatternIndex) -> _ForIndex:
        words = sorted(self._rows_of)
        rarity = index.rarities(words)
        weights = np.repeat([rarity[word] ** 2 for word in words], [len(self._rows_of[word]) for word in words])
        places = np.concatenate([np.empty(0, np.int32), *(self._rows_of[word] for word in words)])
        squares = np.bincount(places, weights, minlength=len(self.tasks)).astype(np.float64)
        self._for_index[:] = [_ForIndex(weakref.ref(index), squares, self._find_pairs(index.rows))]
        return self._for_index[0]

    def _find_pairs(self, rows: Mapping[str, int]) -> _Pairs:
        pairs = [
            (number, row)
            for number, task in enumerate(self.tasks)
            for id in task.pattern_ids
            if (row := rows.get(id)) is not None
        ]
        tasks, patterns = np.array(pairs, np.int64).reshape(-1, 2).T
        return tasks, patterns


def find_worked(loop_id: str, board: Scoreboard) -> tuple[str, ...]:
    """Return the patterns that worked in a loop; none for a suspicious number."""
    if board.has_ignored_reports(loop_id):
        return ()
    uses = board.loop_patterns(loop_id).uses
    found = tuple(sorted({use.pattern_id for use in uses if use.kind != "injected" and use.success}))
    return found if len(found) <= board.settings.learning.max_marks else ()
