"""Reflections, cross-task memory, and lessons written by agents and runners."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
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


LESSON_ID: Final = "lesson:"  # prefix of lesson IDs


class LessonKind(StrEnum):
    """What a lesson is about; decides the type of the pattern that it can become."""

    APPROACH = "approach"  # what worked, or how to work: a success pattern
    WARNING = "warning"  # what to avoid: an anti-pattern
    FIX = "fix"  # an error and what fixed it: an error pattern
    FACT = "fact"  # a fact about the project or a person, shown but not offered as a pattern


class Lesson(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One lesson in a file of an agent or runner; all its texts are untrusted.

    `id` is `lesson:` and a hash of the adapter and the text (`core.sources.adapters.lessons.lesson_id`). `trigger` is
    the situation in which it applies, for warnings and fixes. `runner` is the name of the adapter. `file` is
    project-relative, or begins with `~/` below the home folder, and `line` counts from 1. `loop_id` is the loop or
    session in which it was learned; "" if unknown. `loaded` is set if the agent adds the file to its context by itself.
    `uses` is how often the agent cited it, None if unknown.
    """

    id: str
    runner: str
    text: str
    kind: LessonKind
    file: str
    line: int = 1
    title: str = ""
    trigger: str = ""
    why: str = ""
    at: datetime | None = None
    loop_id: str = ""
    outcome: Outcome = Outcome.UNKNOWN  # of the work in which it was learned
    loaded: bool = False
    uses: int | None = None


class LessonState(StrEnum):
    """What was decided about a lesson."""

    OPEN = "open"  # not decided
    ACCEPTED = "accepted"  # a person made a pattern of it
    REJECTED = "rejected"  # a person rejected it
    KNOWN = "known"  # not decided; a pattern says the same


class JoinedLesson(Struct, frozen=True, kw_only=True, gc=False):
    """Lessons that say the same, wherever they are written down.

    `places` are all of them; the first one is asked about, and its ID is that of all. `patterns` are the IDs of the
    patterns that were made of an accepted lesson, or of the most similar one to a known lesson. `contradicts` are the
    IDs of approved patterns, and `disagrees_with` those of other joined lessons, that demand the opposite.
    """

    places: tuple[Lesson, ...]
    state: LessonState = LessonState.OPEN
    patterns: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    disagrees_with: tuple[str, ...] = ()

    @property
    def lesson(self) -> Lesson:
        return self.places[0]

    @property
    def id(self) -> str:
        return self.lesson.id

    @property
    def at(self) -> datetime | None:
        """When it was written last; None if unknown."""
        return max((place.at for place in self.places if place.at is not None), default=None)

    @property
    def is_loaded(self) -> bool:
        """Whether an agent adds it to its context by itself."""
        return any(place.loaded for place in self.places)

    @property
    def is_contradicted(self) -> bool:
        """Whether an approved pattern or another lesson demands the opposite."""
        return bool(self.contradicts or self.disagrees_with)

    @property
    def uses(self) -> int | None:
        """How often agents cited it; None if unknown."""
        known = [place.uses for place in self.places if place.uses is not None]
        return sum(known) if known else None

    @property
    def runners(self) -> tuple[str, ...]:
        """The adapters whose files contain it."""
        return tuple(dict.fromkeys(place.runner for place in self.places))
