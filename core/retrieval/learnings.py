"""Inverted index of learnings (docs/retrieval.md#reflections)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from core.records.episodes import Task, TaskStatus
from core.records.loops import Loop, LoopStatus, Outcome
from core.retrieval.embeddings import Closeness, ComparableWork, Floats, scale_closeness, task_text
from core.retrieval.index import Postings, Rows, index_rows
from core.retrieval.task import TaskProfile, content_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.records.snapshot import Snapshot

_NUMBER: Final = "#"  # precedes the number of a key learning in its ID; IDs of reflections contain none
_MEMORY: Final = "memory/"  # prefix of the source of all key learnings of a task of the cross-task memory
_BY_STATUS: Final = {TaskStatus.COMPLETED: Outcome.SUCCESS, TaskStatus.FAILED: Outcome.FAILURE}
_BY_LOOP_STATUS: Final = {
    LoopStatus.COMPLETED: Outcome.SUCCESS,
    LoopStatus.PARTIAL: Outcome.PARTIAL,
    LoopStatus.FAILED: Outcome.FAILURE,
    LoopStatus.CRASHED: Outcome.FAILURE,
    LoopStatus.LIMIT: Outcome.TIMEOUT,
}

WEIGHTS: Final[Mapping[str, float]] = {"task": 0.7, "learning": 0.3}
"""Weights of the parts. `task`: similarity of the tasks. `learning`: share of the task's rare words in the learning."""
UNTITLED_WEIGHTS: Final[Mapping[str, float]] = {"task": 0.0, "learning": 0.6}  # if the task is unknown
MAX_MATCHES: Final = 200  # most relevant learnings returned for a task
_MAX_TIED: Final = 5_000  # learnings with the relevance of the last match that are ordered by ID
_FLOOR: Final = 0.05  # lowest relevance of a match
_MAX_COMPARED: Final = 200  # tasks whose words are compared exactly, by the number of shared rare words
_SALIENT_WORDS: Final = 8  # number of rare words of a task that give full coverage


class Learning(Struct, frozen=True, kw_only=True, gc=False):
    """Learning of a task or loop; all texts are untrusted."""

    id: str  # ID of the reflection; `<task>#<number>` for a key learning of the cross-task memory
    text: str  # the learning, one or more lines
    source: str  # ID of the loop, else of the task
    title: str = ""  # description of the task, "" if unknown
    outcome: Outcome = Outcome.UNKNOWN  # outcome of the attempt, else of the task or loop, else of the reflection
    effectiveness: str = ""  # recorded effect of the reflection: helpful, neutral, unhelpful or ""
    at: datetime | None = None
    draft: bool = False  # whether it was only drafted from a log


def is_key_learning(learning_id: str) -> bool:
    """Return whether a learning is a key learning of the cross-task memory."""
    return _NUMBER in learning_id


def memory_source(task_id: str) -> str:
    """Return the source of all key learnings of a task of the cross-task memory."""
    return f"{_MEMORY}{task_id}"


def list_needs(source: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return what the learnings of a source depend on besides it: `task/<id>`, `loop/<id>`, `attempt/<id>`."""
    if source.startswith(_MEMORY):
        return (f"task/{source.removeprefix(_MEMORY)}",)
    reflection = snapshot.reflections.get(source)
    if reflection is None:
        return ()
    task_id, loop_id = reflection.task_id, reflection.loop_id
    of_task = (f"task/{task_id}", f"attempt/{task_id}.{reflection.attempt}") if task_id else ()
    return (*of_task, f"loop/{loop_id}") if loop_id else of_task


def iterate_learnings(source: str, snapshot: Snapshot) -> Iterator[tuple[Learning, str]]:
    """Yield (learning, key of its task or loop) of a source; nothing if removed."""
    if source.startswith(_MEMORY):
        memory = snapshot.memory_tasks.get(source.removeprefix(_MEMORY))
        for number, text in enumerate(memory.learnings if memory is not None else (), 1):
            if memory is not None and text.strip():
                learning = Learning(
                    id=f"{memory.id}{_NUMBER}{number}",
                    text=text,
                    source=memory.id,
                    title=memory.description,
                    outcome=memory.outcome,
                    at=memory.at,
                )
                yield learning, f"task/{memory.id}"
        return
    reflection = snapshot.reflections.get(source)
    if reflection is None or reflection.superseded or not reflection.has_learning or not reflection.text.strip():
        return
    task_id, loop_id = reflection.task_id, reflection.loop_id
    known = task_id in snapshot.tasks or task_id in snapshot.memory_tasks
    key = f"task/{task_id}" if known or not loop_id else f"loop/{loop_id}"
    work = find_work(key, snapshot)
    attempt = snapshot.attempts.get(f"{task_id}.{reflection.attempt}")
    outcomes = (attempt.outcome if attempt is not None else Outcome.UNKNOWN, work_outcome(work), reflection.outcome)
    learning = Learning(
        id=reflection.id,
        text=reflection.text,
        source=loop_id or task_id or reflection.file,
        title=work_title(work),
        outcome=next((one for one in outcomes if one is not Outcome.UNKNOWN), Outcome.UNKNOWN),
        effectiveness=reflection.effectiveness,
        at=reflection.at,
        draft=reflection.draft,
    )
    yield learning, key


def find_work(key: str, snapshot: Snapshot) -> ComparableWork | None:
    """Return the task or loop with a key; None if unknown or without a description."""
    kind, _, id = key.partition("/")
    work: ComparableWork | None = snapshot.loops.get(id)
    if kind == "task":
        work = snapshot.tasks.get(id) or snapshot.memory_tasks.get(id)
    return work if work is not None and work_title(work).strip() else None


def work_title(work: ComparableWork | None) -> str:
    if work is None:
        return ""
    return work.task if isinstance(work, Loop) else work.description


def work_outcome(work: ComparableWork | None) -> Outcome:
    if isinstance(work, Loop):
        is_certain = work.success is not None or work.status is not LoopStatus.COMPLETED
        return _BY_LOOP_STATUS.get(work.status, Outcome.UNKNOWN) if is_certain else Outcome.UNKNOWN
    if isinstance(work, Task):
        return _BY_STATUS.get(work.status, Outcome.UNKNOWN)
    return work.outcome if work is not None else Outcome.UNKNOWN


def describe_work(work: ComparableWork | None) -> tuple[str, Outcome]:
    """Return the fields of a task or loop that its learnings depend on."""
    return ("", Outcome.UNKNOWN) if work is None else (task_text(work), work_outcome(work))


class LearningMatch(Struct, frozen=True, kw_only=True, gc=False):
    """Learning that fits a task."""

    learning: Learning
    relevance: float  # 0..1, the weighted sum of the parts
    task: float  # similarity of the tasks, 0..1
    words: float  # share of the task's rare words that the learning contains, 0..1
    is_semantic: bool  # whether `task` compares vectors, not words

    @property
    def parts(self) -> dict[str, float]:
        """Contribution of each part to the relevance."""
        weights = WEIGHTS if self.learning.title else UNTITLED_WEIGHTS
        return {"task": self.task * weights["task"], "learning": self.words * weights["learning"]}


@dataclass(frozen=True)
class LearningIndex:
    """Learnings with what they are compared by, in memory or in the tables of `core.index.learnings`."""

    works: Mapping[str, ComparableWork]  # by key: `task/<id>` or `loop/<id>`; those with a description
    work_keys: Sequence[str]  # key of each row of tasks and loops, "" for a row that is not used
    is_known: NDArray[np.bool_]  # whether each task or loop has a description
    words_of_works: Sequence[Iterable[str]]  # content words of each task or loop
    work_words: Postings[str]  # rows of tasks and loops by content word
    learnings: Sequence[Learning | None]  # learnings by row, None for a row that is not used
    is_live: NDArray[np.bool_]  # whether each row is used
    work_of: Rows  # row of the task or loop of each learning
    words: Postings[str]  # rows of learnings by content word

    @classmethod
    def build(cls, snapshot: Snapshot) -> LearningIndex:
        """Index all learnings; takes about 30 us each."""
        works: dict[str, ComparableWork | None] = {}
        rows_of_works: dict[str, int] = {}
        learnings: list[Learning] = []
        work_of = array("i")
        for source in (*snapshot.reflections, *map(memory_source, snapshot.memory_tasks)):
            for learning, key in iterate_learnings(source, snapshot):
                if key not in works:
                    works[key] = find_work(key, snapshot)
                learnings.append(learning)
                work_of.append(rows_of_works.setdefault(key, len(rows_of_works)))
        words_of_works = [content_words(task_text(work)) if work is not None else set() for work in works.values()]
        return cls(
            works={key: work for key, work in works.items() if work is not None},
            work_keys=tuple(works),
            is_known=np.array([work is not None for work in works.values()], np.bool_),
            words_of_works=words_of_works,
            work_words=index_rows(words_of_works),
            learnings=tuple(learnings),
            is_live=np.ones(len(learnings), np.bool_),
            work_of=np.array(work_of, np.int32),
            words=index_rows(content_words(one.text) for one in learnings),
        )

    def has_same(self, other: LearningIndex) -> bool:
        """Return whether `other` is known to have the same learnings."""
        return self.learnings is other.learnings

    def find(self, learning_id: str) -> Learning | None:
        """Return the learning with an ID, or None."""
        return next((one for one in self.learnings if one is not None and one.id == learning_id), None)

    def find_matches(self, profile: TaskProfile, closeness: Closeness | None = None) -> tuple[LearningMatch, ...]:
        """Return the learnings that fit a task, best first; at most `MAX_MATCHES`.

        `closeness` is the cosine of the task with each of `work_keys`, NaN where unknown; None compares words only.
        """
        if not self.learnings:
            return ()
        is_semantic = np.zeros(len(self.work_keys), np.bool_)
        similar = np.zeros(len(self.work_keys))
        if closeness is not None:
            is_semantic = ~np.isnan(closeness)
            similar = scale_closeness(closeness)
        for row, score in self._similar_by_words(profile.words):
            if not is_semantic[row]:
                similar[row] = score
        covered = self._covered(profile.words)
        task = similar[self.work_of]
        titled = self.is_known[self.work_of]
        relevance = np.where(
            titled, WEIGHTS["task"] * task + WEIGHTS["learning"] * covered, UNTITLED_WEIGHTS["learning"] * covered
        )
        rows = np.flatnonzero((relevance >= _FLOOR) & self.is_live)
        if len(rows) > MAX_MATCHES:
            least = np.partition(relevance[rows], -MAX_MATCHES)[-MAX_MATCHES]
            rows = rows[relevance[rows] >= least][:_MAX_TIED]
        found = [
            LearningMatch(
                learning=learning,
                relevance=float(relevance[row]),
                task=float(task[row]) if titled[row] else 0.0,
                words=float(covered[row]),
                is_semantic=bool(is_semantic[self.work_of[row]]),
            )
            for row in rows.tolist()
            if (learning := self.learnings[row]) is not None
        ]
        return tuple(sorted(found, key=lambda one: (-one.relevance, one.learning.id))[:MAX_MATCHES])

    @cached_property
    def _live_works(self) -> NDArray[np.bool_]:
        """Mask of the tasks and loops with a learning, which count for a word's rarity."""
        live = np.zeros(len(self.work_keys), np.bool_)
        live[self.work_of[self.is_live]] = True
        return live

    def _similar_by_words(self, asked: frozenset[str]) -> Iterator[tuple[int, float]]:
        """Yield (row, cosine) of tasks and loops that share words, weighted by rarity."""
        live = self._live_works
        size = int(np.count_nonzero(live))
        squares: dict[str, float] = {}

        def square(word: str) -> float:
            if word not in squares:
                squares[word] = math.log1p(size / max(_count(self.work_words.get(word), live), 1)) ** 2
            return squares[word]

        shared = np.zeros(len(self.work_keys))
        for word in sorted(asked):  # sorted, so that every process gets the same sums
            if (holding := self.work_words.get(word)) is not None:
                shared[holding] += square(word)
        rows = np.flatnonzero(shared * live)
        if len(rows) > _MAX_COMPARED:
            rows = rows[np.argsort(-shared[rows], kind="stable")[:_MAX_COMPARED]]
        length = math.sqrt(math.fsum(map(square, asked)))
        for row in rows.tolist():
            other = math.sqrt(math.fsum(map(square, self.words_of_works[row])))
            yield row, min(float(shared[row]) / (length * other), 1.0)

    def _covered(self, asked: frozenset[str]) -> Floats:
        """Return the share of the task's rare words that each learning contains."""
        part = np.zeros(len(self.learnings))
        size = int(np.count_nonzero(self.is_live))
        weights = []
        for word in sorted(asked):
            rows = self.words.get(word)
            weights.append(math.log1p(size / max(_count(rows, self.is_live), 1)))
            if rows is not None:
                part[rows] += weights[-1]
        full = math.fsum(sorted(weights, reverse=True)[:_SALIENT_WORDS])
        return np.minimum(part / full, 1.0) if full else part


def _count(rows: Rows | None, live: NDArray[np.bool_]) -> int:
    """Return the number of rows that are live."""
    return 0 if rows is None else int(np.count_nonzero(live[rows]))
