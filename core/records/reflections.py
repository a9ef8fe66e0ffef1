"""Reflections, and tasks of the cross-task memory."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from core.records.loops import Outcome

TRIGGERS: Final = ("failure", "success", "timeout", "manual")  # values of `triggered_by`
MIN_LOOPS: Final = 2
"""Minimum number of loops, or tasks without a known loop, that recorded a learning for it to be recurring."""
REFLECTION_TYPES: Final = ("error-analysis", "success-pattern", "process-improvement")


class Reflection(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A reflection of an agent (docs/file-formats.md#reflections).

    It is about one iteration or attempt. `id` is derived from loop or task, iteration and normalized text. `shape` is
    its format: `episodic`, `memory-manager`, `cross-task`, `hook`, `reflexion`, `analytics`, `best-output` or `state`.
    `file` and `pointer` locate the copy that is used; `also_in` are the files with other copies. `attempt` and
    `iteration` are labels. `at` is its time; if `at_approximate` is set, the time of its parent or the file's mtime.

    `kind` is error_analysis, strategy_change, success_pattern, constraint_discovery, process_improvement or "".
    `trigger` is failure, success, timeout, manual or "". `effectiveness` is helpful, neutral, unhelpful or "". `draft`
    means that ralphdeck made it from the log of an attempt and no agent has replaced it. `drafted_at` is the time of
    the draft that this reflection replaces, if that had a learning. `superseded` means that a later reflection of the
    same kind on the same attempt replaces it in plans and summaries.
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
    def has_learning(self) -> bool:
        """Whether it is written by an agent, or drafted with a learning."""
        return bool(self.learning) or not self.draft

    @property
    def text(self) -> str:
        """Learning, or if empty, the analysis or observation (of a draft: reversed)."""
        second, third = (self.observation, self.analysis) if self.draft else (self.analysis, self.observation)
        return self.learning or second or third


class MemoryTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of the cross-task memory (docs/file-formats.md#cross-task-memory)."""

    id: str
    description: str = ""
    task_type: str = ""
    at: datetime | None = None
    outcome: Outcome = Outcome.UNKNOWN
    iterations: int | None = None
    quality: float | None = None  # 0..1
    learnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    file: str = ""
    indexed: bool = False  # Whether `task-index.json` lists it.
