"""Past tasks like a given one, and what was learned in them (1) learning_application on_similar_task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from core.records.episodes import Task, TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.retrieval.embedding import task_text
from core.retrieval.embeddings import ComparableWork, Embeddings, PastTask
from core.retrieval.vectors import SAME, UNRELATED
from core.retrieval.words import content_words

SEMANTIC: Final = "meaning"
WORDS: Final = "words"
SIMILAR: Final = 0.35
"""Score from which on two tasks are called similar: of pairs that say the same in other words 13 of 15 have it by
meaning and 5 by words, of 420 unrelated ones 1 and none."""
MAX_TASKS: Final = 5
MAX_LEARNINGS: Final = 5
"""Learnings that are told of one task."""
_OUTCOMES: Final = {TaskStatus.COMPLETED: Outcome.SUCCESS, TaskStatus.FAILED: Outcome.FAILURE}


class TaskLearning(NamedTuple):
    """What was learned in one attempt, or in a task of the cross-task memory, which has none. Untrusted."""

    attempt: int | None
    text: str


@dataclass(frozen=True, slots=True)
class SimilarTask:
    """A past task and how much it is like the one that was asked about.

    Attributes:
        score: 0..1. By meaning: the cosine, from `UNRELATED` as 0 to `SAME` as 1. By words: the share of the words
            of both tasks that they have in common, rare ones counting more.
        matched_by: `meaning` or `words`, for a task that has no vector yet.
        outcome: Unknown while it goes on.
        learnings: Most useful first: of a successful attempt before those of others, of the newest attempt before
            earlier ones. Drafted ones only where nobody has written any.
    """

    task_id: str
    description: str
    score: float
    matched_by: str
    outcome: Outcome
    learnings: tuple[TaskLearning, ...]


def collect_past_tasks(snapshot: Snapshot) -> Mapping[str, PastTask]:
    """The tasks of both memories by id; the episodic one tells more where both know a task."""
    return {**snapshot.memory_tasks, **snapshot.tasks}


def embeddable_work(snapshot: Snapshot) -> Mapping[str, ComparableWork]:
    """All that gets a vector to be compared by meaning: the past tasks, and the loops that learned something."""
    learned = {reflection.loop_id for reflection in snapshot.reflections.values()}
    loops = {id: loop for id, loop in snapshot.loops.items() if id in learned}
    return {**loops, **collect_past_tasks(snapshot)}


def find_similar_tasks(
    asked: str | PastTask,
    snapshot: Snapshot,
    embeddings: Embeddings[ComparableWork] | None = None,
    limit: int = MAX_TASKS,
) -> tuple[SimilarTask, ...]:
    """The past tasks that are most like a task or a text, best first; never the task itself.

    Args:
        asked: A task, or its description.
        snapshot: Where to look.
        embeddings: What tasks mean; None: only words are compared.
        limit: At most so many.
    """
    text, own = (asked, "") if isinstance(asked, str) else (task_text(asked), asked.id)
    tasks = {id: task for id, task in collect_past_tasks(snapshot).items() if id != own}
    found = _by_meaning(text, tasks, embeddings)
    found |= _by_words(text, {id: task for id, task in tasks.items() if id not in found})
    near = [(id, *hit) for id, hit in found.items() if hit[0] >= SIMILAR]
    near = sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]
    learned = _learnings(snapshot, [id for id, *_ in near])
    return tuple(
        SimilarTask(id, tasks[id].description, score, how, _outcome(tasks[id]), learned[id]) for id, score, how in near
    )


def _by_meaning(
    text: str, tasks: Mapping[str, PastTask], embeddings: Embeddings[ComparableWork] | None
) -> dict[str, tuple[float, str]]:
    ids = tuple(tasks)
    close = embeddings.closeness(text, ids, tasks) if embeddings is not None and text else None
    if close is None:
        return {}
    scores = np.clip((close.astype(np.float64) - UNRELATED) / (SAME - UNRELATED), 0.0, 1.0)
    return {id: (score, SEMANTIC) for id, score in zip(ids, scores.tolist(), strict=True) if not math.isnan(score)}


def _by_words(text: str, tasks: Mapping[str, PastTask]) -> dict[str, tuple[float, str]]:
    """The cosine of two sets of words, each by its idf `log(1 + tasks / tasks that hold it)`."""
    asked = content_words(text)
    words = {id: content_words(task_text(task)) for id, task in tasks.items()} if asked else {}
    holding = Counter(word for held in words.values() for word in held)
    squares = {word: math.log1p(len(words) / max(holding[word], 1)) ** 2 for word in asked | holding.keys()}
    length = math.sqrt(math.fsum(squares[word] for word in asked))
    found = {}
    for id, held in words.items():
        if common := asked & held:
            other = math.sqrt(math.fsum(squares[word] for word in held))
            found[id] = (min(math.fsum(squares[word] for word in common) / (length * other), 1.0), WORDS)
    return found


def _outcome(task: PastTask) -> Outcome:
    return _OUTCOMES.get(task.status, Outcome.UNKNOWN) if isinstance(task, Task) else task.outcome


def _learnings(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[TaskLearning, ...]]:
    """Of each of these tasks, in the order of their use."""
    told: dict[str, list[Reflection]] = {id: [] for id in ids}
    for reflection in snapshot.reflections.values():
        if reflection.learning and reflection.teaches and not reflection.superseded and reflection.task_id in told:
            told[reflection.task_id].append(reflection)
    return {id: tuple(_in_order(id, reflections, snapshot))[:MAX_LEARNINGS] for id, reflections in told.items()}


def _in_order(task_id: str, reflections: Sequence[Reflection], snapshot: Snapshot) -> Iterator[TaskLearning]:
    def rank(reflection: Reflection) -> tuple[bool, int]:
        attempt = snapshot.attempts.get(f"{task_id}.{reflection.attempt}")
        outcome = attempt.outcome if attempt else reflection.outcome
        return outcome is not Outcome.SUCCESS, -(reflection.attempt or 0)

    told: set[str] = set()
    written = [reflection for reflection in reflections if not reflection.draft]
    for reflection in sorted(written or reflections, key=rank):
        if reflection.learning not in told:
            told.add(reflection.learning)
            yield TaskLearning(reflection.attempt, reflection.learning)
    memory = snapshot.memory_tasks.get(task_id)
    yield from (TaskLearning(None, text) for text in (memory.learnings if memory else ()) if text not in told)
