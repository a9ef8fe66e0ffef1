"""Inverted index of learnings (docs/retrieval.md#reflections)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.records.episodes import Task, TaskStatus
from core.records.loops import Loop, LoopStatus, Outcome
from core.retrieval.embeddings import ComparableWork, task_text

if TYPE_CHECKING:
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
