"""Find the loop of each task, and similar past tasks with their learnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.records.episodes import Task, TaskStatus
from core.records.loops import Outcome
from core.retrieval.task import content_words

if TYPE_CHECKING:
    from core.records.loops import Loop
    from core.records.reflections import MemoryTask, Reflection
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import ComparableWork, Embeddings, PastTask


MAX_COMPARED: Final = 4_096  # number of characters of a description that are compared; tasks store at most this
BY_METADATA: Final = "named in the metadata"
BY_TAG: Final = "an id of the loop as a tag"
BY_ID: Final = "an id of the loop as its own"
BY_DESCRIPTION: Final = "the same description, as no other loop has"


class LoopLink(NamedTuple):
    """Link of a task to its loop; `how` is one of the `BY_` constants."""

    task_id: str
    loop_id: str
    how: str


class Coverage(Struct, frozen=True, kw_only=True):
    """IDs of loops by the memory that contains them."""

    tracked: tuple[str, ...] = ()  # in the task memory
    remembered: tuple[str, ...] = ()  # only in the cross-task memory
    missing: tuple[str, ...] = ()  # in neither

    @property
    def loops(self) -> int:
        return len(self.tracked) + len(self.remembered) + len(self.missing)

    @property
    def share(self) -> float | None:
        """Share of loops in the task memory, 0..1; None if there are no loops."""
        return len(self.tracked) / self.loops if self.loops else None


class LoopNames:
    def __init__(self, loops: Iterable[Loop]) -> None:
        self._loops = tuple(loops)

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """Loop IDs by ID and by unambiguous alias; an ID takes precedence."""
        found = _unambiguous((alias, loop.id) for loop in self._loops for alias in loop.aliases)
        return found | {loop.id: loop.id for loop in self._loops}

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return _unambiguous((_normalize(loop.task), loop.id) for loop in self._loops)

    def find(self, name: str) -> str:
        """Return the ID of the loop with this ID or unambiguous alias; "" without one."""
        return self._ids.get(name, "") if name else ""

    def link(self, task: Task | MemoryTask) -> LoopLink | None:
        """Return the link to the loop of a task; None if it is unknown or ambiguous."""
        named = self._ids.get(task.loop_id) if isinstance(task, Task) else None
        if named is not None:
            return LoopLink(task.id, named, BY_METADATA)
        tagged = {self._ids[tag] for tag in task.tags if tag in self._ids}
        if len(tagged) == 1:
            return LoopLink(task.id, tagged.pop(), BY_TAG)
        if task.id in self._ids:
            return LoopLink(task.id, self._ids[task.id], BY_ID)
        same = self._texts.get(_normalize(task.description))
        return None if same is None else LoopLink(task.id, same, BY_DESCRIPTION)


def link_tasks(tasks: Mapping[str, Task], loops: Mapping[str, Loop]) -> dict[str, LoopLink]:
    names = LoopNames(loops.values())
    return {id: link for id, task in tasks.items() if (link := names.link(task)) is not None}


def measure_coverage(
    tasks: Mapping[str, Task], memory_tasks: Mapping[str, MemoryTask], loops: Mapping[str, Loop]
) -> Coverage:
    """Determine which loops are in which memory; keep the order of `loops`."""
    names = LoopNames(loops.values())
    tracked = {link.loop_id for task in tasks.values() if (link := names.link(task)) is not None}
    remembered = {link.loop_id for task in memory_tasks.values() if (link := names.link(task)) is not None} - tracked
    recorded = tracked | remembered
    return Coverage(
        tracked=tuple(id for id in loops if id in tracked),
        remembered=tuple(id for id in loops if id in remembered),
        missing=tuple(id for id in loops if id not in recorded),
    )


def _normalize(text: str) -> str:
    """Normalize case, spaces and the final full stop of a description."""
    return " ".join(text[:MAX_COMPARED].split()).casefold().rstrip(" .")


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    shared = {""}
    for name, loop_id in pairs:
        if found.setdefault(name, loop_id) != loop_id:
            shared.add(name)
    return {name: loop_id for name, loop_id in found.items() if name not in shared}


# Similar tasks

SEMANTIC: Final = "meaning"
WORDS: Final = "words"
SIMILAR: Final = 0.35
"""Minimum score. Of 15 similar pairs, 13 reach it by embeddings and 5 by words; of 420 unrelated pairs, 1 and 0."""
MAX_TASKS: Final = 5
MAX_LEARNINGS: Final = 5  # maximum number of learnings per task
_OUTCOMES: Final = {TaskStatus.COMPLETED: Outcome.SUCCESS, TaskStatus.FAILED: Outcome.FAILURE}


class TaskLearning(NamedTuple):
    """Untrusted learning of an attempt; `attempt` is None for a task without any."""

    attempt: int | None
    text: str


class SimilarTask(Struct, frozen=True):
    """A past task with its similarity to the query."""

    task_id: str
    description: str
    score: float  # 0..1; see `_by_embeddings` and `_by_words`
    matched_by: str  # `SEMANTIC`, or `WORDS` for a task without a vector
    outcome: Outcome  # unknown while the task is running
    learnings: tuple[TaskLearning, ...]  # from successes first, then newest first; drafts only if there are no others


def collect_past_tasks(snapshot: Snapshot) -> Mapping[str, PastTask]:
    """Return the tasks of both memories by ID; the task memory takes precedence."""
    return {**snapshot.memory_tasks, **snapshot.tasks}


def embeddable_work(snapshot: Snapshot) -> Mapping[str, ComparableWork]:
    """Records to embed by ID: past tasks, loops with reflections or applied patterns."""
    # Imported on use: it needs numpy.
    from core.retrieval.past_tasks import MAX_TASKS as MAX_PAST_TASKS

    learned = {reflection.loop_id for reflection in snapshot.reflections.values()}
    reported = {event.loop_id for event in snapshot.events if event.pattern_id and event.success}
    applied = (id for id, loop in snapshot.loops.items() if id in reported or any(use.applied for use in loop.injected))
    learned.update(islice(applied, MAX_PAST_TASKS))
    loops = {id: loop for id, loop in snapshot.loops.items() if id in learned}
    return {**loops, **collect_past_tasks(snapshot)}


def find_similar_tasks(
    query: str | PastTask,
    snapshot: Snapshot,
    embeddings: Embeddings[ComparableWork] | None = None,
    limit: int = MAX_TASKS,
) -> tuple[SimilarTask, ...]:
    """Find the past tasks that are most similar to a task or description, best first."""
    from core.retrieval.embeddings import task_text

    text, own = (query, "") if isinstance(query, str) else (task_text(query), query.id)
    tasks = {id: task for id, task in collect_past_tasks(snapshot).items() if id != own}
    found = _by_embeddings(text, tasks, embeddings)
    found |= _by_words(text, {id: task for id, task in tasks.items() if id not in found})
    near = [(id, *hit) for id, hit in found.items() if hit[0] >= SIMILAR]
    near = sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]
    learned: dict[str, list[Reflection]] = {id: [] for id, *_ in near}
    for reflection in snapshot.reflections.values():
        if (
            reflection.learning
            and reflection.has_learning
            and not reflection.superseded
            and reflection.task_id in learned
        ):
            learned[reflection.task_id].append(reflection)
    return tuple(
        SimilarTask(
            id,
            tasks[id].description,
            score,
            how,
            _outcome(tasks[id]),
            tuple(_rank_learnings(id, learned[id], snapshot))[:MAX_LEARNINGS],
        )
        for id, score, how in near
    )


def _by_embeddings(
    text: str, tasks: Mapping[str, PastTask], embeddings: Embeddings[ComparableWork] | None
) -> dict[str, tuple[float, str]]:
    """Score by the cosine of embeddings; `UNRELATED` is scaled to 0, `SAME` to 1."""
    import numpy as np

    from core.retrieval.embeddings import SAME, UNRELATED

    ids = tuple(tasks)
    close = embeddings.closeness(text, ids, tasks) if embeddings is not None and text else None
    if close is None:
        return {}
    scores = np.clip((close.astype(np.float64) - UNRELATED) / (SAME - UNRELATED), 0.0, 1.0)
    return {id: (score, SEMANTIC) for id, score in zip(ids, scores.tolist(), strict=True) if not math.isnan(score)}


def _by_words(text: str, tasks: Mapping[str, PastTask]) -> dict[str, tuple[float, str]]:
    """Score by cosine of word sets, with idf weights `log(1 + tasks / with_word)`."""
    from core.retrieval.embeddings import task_text

    query = content_words(text)
    words = {id: content_words(task_text(task)) for id, task in tasks.items()} if query else {}
    frequencies = Counter(word for task_words in words.values() for word in task_words)
    squares = {word: math.log1p(len(words) / max(frequencies[word], 1)) ** 2 for word in query | frequencies.keys()}
    length = math.sqrt(math.fsum(squares[word] for word in query))
    found = {}
    for id, task_words in words.items():
        if common := query & task_words:
            other = math.sqrt(math.fsum(squares[word] for word in task_words))
            found[id] = (min(math.fsum(squares[word] for word in common) / (length * other), 1.0), WORDS)
    return found


def _outcome(task: PastTask) -> Outcome:
    return _OUTCOMES.get(task.status, Outcome.UNKNOWN) if isinstance(task, Task) else task.outcome


def _rank_learnings(task_id: str, reflections: Sequence[Reflection], snapshot: Snapshot) -> Iterator[TaskLearning]:
    def rank(reflection: Reflection) -> tuple[bool, int]:
        attempt = snapshot.attempts.get(f"{task_id}.{reflection.attempt}")
        outcome = attempt.outcome if attempt else reflection.outcome
        return outcome is not Outcome.SUCCESS, -(reflection.attempt or 0)

    found: set[str] = set()
    written = [reflection for reflection in reflections if not reflection.draft]
    for reflection in sorted(written or reflections, key=rank):
        if reflection.learning not in found:
            found.add(reflection.learning)
            yield TaskLearning(reflection.attempt, reflection.learning)
    memory = snapshot.memory_tasks.get(task_id)
    yield from (TaskLearning(None, text) for text in (memory.learnings if memory else ()) if text not in found)
