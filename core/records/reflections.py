"""Reflections: seven shapes on disk, one record here (formats C9)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from core.records.loops import Outcome

NOTHING_LEARNED: Final = "The log alone shows nothing to do differently; put it into words."
NOTHING_LEARNED_IN_ALL: Final = "The log alone shows nothing to do differently in such a task; put it into words."
"""What stands for the learning of a draft that has none, on an attempt and on a task."""


class Reflection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent says it learned from one iteration or attempt.

    Attributes:
        id: Stable: derived from loop or task, iteration and normalised text.
        shape: Which of the shapes it was read from: `episodic` (001 jsonl), `memory-manager`, `cross-task`, `hook`,
            `reflexion`, `analytics`, `best-output`, `state`.
        file, pointer: Where the kept copy stands; `also_in` names the files that repeat it.
        loop_id, task_id: "" where the shape has none.
        attempt, iteration: Labels, or None.
        at: Time of the reflection; `at_approximate` when it is the parent's time or the file's mtime.
        kind: error_analysis, strategy_change, success_pattern, constraint_discovery, process_improvement or "".
        trigger: failure, success, timeout, manual or "".
        effectiveness: helpful, neutral, unhelpful or "".
        draft: Whether it was only drafted from the log of an attempt, and nobody has put it into words yet.
        drafted_at: When the draft was written that it says better; None if there was none that taught anything.
        superseded: Whether a later one on the same attempt, of the same kind, says what was learned: that one counts in
            plans and summaries, this one is history.
    """

    id: str
    shape: str
    file: str
    pointer: str = ""
    loop_id: str = ""
    task_id: str = ""
    attempt: int | None = None
    iteration: int | None = None
    at: datetime | None = None
    at_approximate: bool = False
    kind: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    trigger: str = ""
    observation: str = ""
    analysis: str = ""
    learning: str = ""
    actions: tuple[str, ...] = ()
    effectiveness: str = ""
    also_in: tuple[str, ...] = ()
    draft: bool = False
    drafted_at: datetime | None = None
    superseded: bool = False

    @property
    def teaches(self) -> bool:
        """Whether anybody can learn from it: not from a draft that has found nothing."""
        return not (self.draft and self.learning in ("", NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL))

    @property
    def text(self) -> str:
        """The one line that says most: learning, else analysis, else observation, of a draft the other way round."""
        first, then = (self.observation, self.analysis) if self.draft else (self.analysis, self.observation)
        return self.learning or first or then


class MemoryTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of the cross-task memory: `memory/tasks/<uuid>.json` joined with `task-index.json` (formats C19)."""

    id: str
    description: str = ""
    task_type: str = ""
    at: datetime | None = None
    outcome: Outcome = Outcome.UNKNOWN
    iterations: int | None = None
    quality: float | None = None
    """0..1"""
    learnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    file: str = ""
    indexed: bool = False
    """Whether `task-index.json` lists it."""
