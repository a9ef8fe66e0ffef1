"""Past tasks as texts of patterns that worked (docs/retrieval.md#past-tasks)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from core.retrieval.embeddings import Closeness, Floats, scale_closeness, task_text
from core.retrieval.relevance import (
    MAX_PAST,
    RELEVANCE_PARTS,
    TYPES,
    WEIGHTS,
    PatternIndex,
    Rows,
    count_similarity,
    index_rows,
    measure_relevance,
)
from core.retrieval.task import TaskProfile, analyse_task, content_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.learning.scoreboard import Scoreboard
    from core.records.loops import Loop
    from core.records.patterns import Pattern, PatternType

    _Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of tasks, and rows of their patterns in an index

MAX_TASKS: Final = 2000  # tasks of the newest loops in which a pattern worked
MAX_PER_PATTERN: Final = 8  # newest different tasks of one pattern

MAX_LEARNED: Final = 100  # newest past tasks that are fitted to
MIN_TASKS: Final = 30  # with fewer past tasks, or of fewer patterns, the default weights remain
MIN_PATTERNS: Final = 10
LARGEST_CHANGE: Final = 2.0  # a part counts at most twice and at least half as much as by default, before scaling
_PRIOR: Final = 10.0  # strength with which the default weights hold, as a multiple of squared log factors
_SHARPNESS: Final = 20.0  # log odds for each 1.0 of relevance
_COMPETITORS: Final = 20  # patterns that a pattern that worked is compared with
_STEPS: Final = (0.4, 0.2, 0.1, 0.05, 0.025)  # sizes of the changes that are tried
_ROUNDS: Final = 20  # most rounds of each size
_PARTS: Final = tuple(name for name in RELEVANCE_PARTS if name != "meaning")
_DEFAULT: Final = np.array([[WEIGHTS[kind].get(name, 0.0) for name in _PARTS] for kind in TYPES])


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
    """Data for the similarity, per index of patterns; a dry run's is freed with it."""

    patterns: weakref.ref[PatternIndex]
    squares: Floats  # squared length of each task
    pairs: _Pairs


@dataclass(frozen=True)
class PastTasks:
    """Immutable tasks of loops in which patterns worked, newest first."""

    tasks: Sequence[SuccessfulTask] = ()
    _for_index: list[_ForIndex] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, tasks: Iterable[SuccessfulTask]) -> PastTasks:
        """Choose the newest different tasks of each pattern; `tasks` are newest first."""
        chosen: list[SuccessfulTask] = []
        seen: dict[str, set[frozenset[str]]] = {}
        for task in tasks:
            kept = []
            for pattern_id in task.pattern_ids if task.words else ():
                word_sets = seen.setdefault(pattern_id, set())
                if task.words not in word_sets and len(word_sets) < MAX_PER_PATTERN:
                    word_sets.add(task.words)
                    kept.append(pattern_id)
            if kept:
                chosen.append(task if len(kept) == len(task.pattern_ids) else task._replace(pattern_ids=tuple(kept)))
            if len(chosen) == MAX_TASKS:
                break
        return cls(tuple(chosen))

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
        prepared = next((one for one in tuple(self._for_index) if one.patterns() is index), None) or self._prepare(
            index
        )
        similar = self._similar_by_words(profile, index, prepared)
        if closeness is not None:
            similar = np.maximum(similar, scale_closeness(closeness))
        if without is not None:
            similar[without] = 0.0
        nearest = np.zeros(len(index.ids))
        tasks, patterns = prepared.pairs
        np.maximum.at(nearest, patterns, similar[tasks])
        return nearest

    def _similar_by_words(self, profile: TaskProfile, index: PatternIndex, prepared: _ForIndex) -> Floats:
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
        similar: Floats = np.minimum(shared / np.sqrt(np.maximum(prepared.squares * asked, 1e-12)), 1.0)
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
    if loop_id in board.inputs.ignored:
        return ()
    uses = board.inputs.loop_patterns(loop_id).uses
    pattern_ids = tuple(sorted({use.pattern_id for use in uses if use.kind != "injected" and use.success}))
    return pattern_ids if len(pattern_ids) <= board.settings.learning.max_marks else ()


class WordWeights(NamedTuple):
    """Weights of the parts for patterns without a vector."""

    by_type: Mapping[PatternType, Mapping[str, float]] = WEIGHTS  # each row sums to 1
    tasks: int = 0  # past tasks that the weights were fitted to; 0 for the default weights


class _Choices(NamedTuple):
    """The pattern that worked (column 0) and competitors, per use in a past task."""

    parts: Floats  # parts with their default weights, shape (uses, patterns, parts)
    past: Floats  # similarity of the nearest other past task as it counts, shape (uses, patterns)
    kinds: NDArray[np.int8]  # types of the patterns

    def loss(self, logs: Floats) -> float:
        """Return the surprise at what worked plus the distance from default weights."""
        factors = np.exp(logs)
        own = np.minimum(self.parts @ factors / (_DEFAULT @ factors)[self.kinds], 1.0)
        odds = (own + np.clip(self.past - own, 0.0, MAX_PAST)) * _SHARPNESS
        highest = odds.max(axis=1, keepdims=True)
        surprise = np.log(np.exp(odds - highest).sum(axis=1)) + highest[:, 0] - odds[:, 0]
        return float(surprise.sum() + _PRIOR * (logs @ logs))


class FitInputs(NamedTuple):
    """Data to fit weights to: the newest past tasks, and patterns that worked then."""

    past: PastTasks
    worked: Mapping[str, Pattern]

    @classmethod
    def of(cls, past: PastTasks, patterns: Mapping[str, Pattern]) -> FitInputs | None:
        """Return what to fit to; None if there are too few tasks or patterns."""
        newest = past.tasks[:MAX_LEARNED]
        ids = sorted({id for task in newest for id in task.pattern_ids})
        worked = {id: patterns[id] for id in ids if id in patterns}
        return cls(PastTasks(newest), worked) if len(newest) >= MIN_TASKS and len(worked) >= MIN_PATTERNS else None

    @property
    def texts(self) -> tuple[object, ...]:
        return tuple((id, one.type, one.content_hash, one.tags) for id, one in self.worked.items())

    @property
    def digest(self) -> bytes:
        """32 bytes that differ if other weights may be fitted."""
        tasks = [(task.task, task.text, task.pattern_ids) for task in self.past.tasks]
        return sha256(repr((tasks, self.texts)).encode("utf-8", "surrogatepass")).digest()

    def fit(self) -> WordWeights:
        """Fit the weights; takes up to a second."""
        return fit_weights(self.past, self.worked)


def fit_weights(past: PastTasks, worked: Mapping[str, Pattern]) -> WordWeights:
    """Fit the weights so that patterns that worked likely rank before others.

    `worked` are the patterns of the tasks. The result is the same in every process.
    """
    choices = _compare(past, worked)
    logs = np.zeros(len(_PARTS))
    least, limit = choices.loss(logs), float(np.log(LARGEST_CHANGE))
    for size in _STEPS:
        for _ in range(_ROUNDS):
            before = least
            for part, step in product(range(len(_PARTS)), (size, -size)):
                tried = logs.copy()
                tried[part] = np.clip(tried[part] + step, -limit, limit)
                if (loss := choices.loss(tried)) < least - 1e-9:
                    least, logs = loss, tried
            if least == before:
                break
    table = _DEFAULT * np.exp(logs)
    table /= table.sum(axis=1, keepdims=True)
    rows = (dict(zip(_PARTS, row, strict=True)) for row in table.tolist())
    by_type = {kind: {name: row[name] for name in WEIGHTS[kind]} for kind, row in zip(TYPES, rows, strict=True)}
    return WordWeights(by_type, len(past.tasks))


def _compare(past: PastTasks, worked: Mapping[str, Pattern]) -> _Choices:
    """Compare patterns that worked with the top ranks by the default weights."""
    index = PatternIndex.build(worked)
    rows: list[list[int]] = []
    all_parts, all_past = [], []
    for number, task in enumerate(past.tasks):
        profile = analyse_task(task.task)
        similar = count_similarity(past.similarity(profile, index, without=number))
        relevance = measure_relevance(profile, index, worked)
        parts = np.zeros((len(index.ids), len(_PARTS)))
        parts[relevance.rows] = np.stack([relevance.parts[name] for name in _PARTS], axis=1)
        parts *= _DEFAULT[index.types]
        own = parts.sum(axis=1)
        order = np.argsort(-(own + np.clip(similar - own, 0.0, MAX_PAST)), kind="stable").tolist()
        good = [index.rows[id] for id in task.pattern_ids if id in index.rows]
        others = [row for row in order if row not in good][:_COMPETITORS]
        for row in good:
            rows.append([row, *others])
            all_parts.append(parts[rows[-1]])
            all_past.append(similar[rows[-1]])
    width = min(map(len, rows))
    return _Choices(
        np.stack([parts[:width] for parts in all_parts]),
        np.stack([similar[:width] for similar in all_past]),
        index.types[np.array([row[:width] for row in rows])],
    )
