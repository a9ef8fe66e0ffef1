"""Episodic memory: tasks, the attempts at them, and what was done in an attempt (1)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Final

from msgspec import Struct

from core.records.loops import Outcome

TARGETS: Final = ("file_path", "file", "path", "notebook_path", "filename")
"""Parameters of tools that name a file."""
_COMMANDS: Final = ("command", "cmd")
"""Parameters of tools that hold a shell command."""
_TELLING: Final = ("query", "url", "description")
"""Parameters that say what a tool was used on that takes neither a command nor a pattern nor a file."""
_CHANGES: Final = frozenset({"edit", "write", "multiedit", "notebookedit"})
"""Types of actions that change a file, and names of tools where no type is told."""


class TaskStatus(StrEnum):
    """(1) `task_metadata.status`; `unknown` where the metadata are missing or say something else."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether nobody works at such a task any more."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED)


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One folder of `tasks/`: its `metadata.json`; every text is untrusted.

    Attributes:
        id: The name of the folder, whatever the file says.
        criteria: When it is done.
        raw_status: The word of the file.
        current_attempt, total_attempts: As the metadata count them; the attempts that exist may be others.
        agent, loop_id: Who works at it, and in which loop; "" where it is not told. (1) has no field for either.
        file: `metadata.json`, or the file that shows that there is such a task.
    """

    id: str
    description: str = ""
    criteria: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    status: TaskStatus = TaskStatus.UNKNOWN
    raw_status: str = ""
    current_attempt: int | None = None
    total_attempts: int | None = None
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    agent: str = ""
    loop_id: str = ""
    file: str = ""


class Quality(Struct, frozen=True, array_like=True, gc=False):
    """One entry of an attempt's `quality_history`.

    Attributes:
        iteration: As a label, or None.
        quality: 0..1.
        delta: Change since the entry before, as the file has it or computed; None for the first one.
    """

    iteration: int | None
    quality: float
    delta: float | None = None

    @property
    def change(self) -> str:
        """The change in percentage points: `+15`, `-5`, `0`; "" for the first entry."""
        return "" if self.delta is None else f"{round(self.delta * 100):+d}".replace("+0", "0")


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at a task, joined from the trajectory and the files of its folder; every text is untrusted.

    Attributes:
        task_id: The name of the task's folder.
        number: From 1 up.
        outcome: Unknown while nobody has said how it came out; then `is_open`.
        plan: What was tried, in a line.
        agent: Who tried.
        iterations: How many it took, or None.
        actions, errors: How many actions its log has, and how many of these failed; None without a log.
        last_action_at: When the newest of them was.
        quality: By iteration, in the order of the file.
        final_quality, completion: 0..1, or None.
        reason: Why it ended as it did.
        worked, failed, suggestions: (1) what_worked, what_didnt_work, suggestions_for_next_time.
        file: Project-relative file that tells of it first.
    """

    task_id: str
    number: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome = Outcome.UNKNOWN
    plan: str = ""
    agent: str = ""
    iterations: int | None = None
    actions: int | None = None
    errors: int | None = None
    last_action_at: datetime | None = None
    quality: tuple[Quality, ...] = ()
    final_quality: float | None = None
    completion: float | None = None
    reason: str = ""
    worked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    file: str = ""

    @property
    def id(self) -> str:
        """The id that events and commands name it by: `task-001.2`, as for every work item."""
        return f"{self.task_id}.{self.number}"

    @property
    def last_activity(self) -> datetime | None:
        """When somebody last did anything at it, as far as its files tell."""
        return max(filter(None, (self.last_action_at, self.ended_at, self.started_at)), default=None)

    @property
    def is_open(self) -> bool:
        """Whether nobody has said how it came out: it runs, or somebody left it half finished."""
        return self.outcome is Outcome.UNKNOWN and self.ended_at is None


def by_task(attempts: Iterable[Attempt]) -> dict[str, tuple[Attempt, ...]]:
    """The attempts at each task, in the order of their numbers."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.task_id, []).append(attempt)
    return {task_id: tuple(sorted(own, key=attrgetter("number"))) for task_id, own in found.items()}


class Action(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an attempt's `actions.jsonl`; every text is untrusted.

    Attributes:
        number: From 1 up, in the order of the file.
        type: read, write, bash, grep, glob, task, edit (1), or any other word as written.
        params: Name and value as text, in the order of the file; a nested value as JSON.
        success: None where it is not told.
        output, error: What came of it.
        reasoning, expected: Why it was done, and what it was to bring.
    """

    number: int
    at: datetime | None = None
    iteration: int | None = None
    type: str = ""
    tool: str = ""
    params: tuple[tuple[str, str], ...] = ()
    success: bool | None = None
    output: str = ""
    error: str = ""
    reasoning: str = ""
    expected: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it failed: it says so, or tells an error and does not say that it succeeded."""
        return self.success is False or (self.success is None and bool(self.error))

    @property
    def target(self) -> str:
        """The file that it was done to, by any of the names that tools have for it; "" where it names none."""
        return self.param(*TARGETS)

    @property
    def command(self) -> str:
        """The shell command that it ran; "" where it ran none."""
        return self.param(*_COMMANDS)

    @property
    def about(self) -> str:
        """What it was about: a command, a pattern, a file, or what else its parameters tell best; "" without any."""
        told = self.param(*_COMMANDS, "pattern", *TARGETS, *_TELLING)
        return told or (self.params[0][1] if self.params else "")

    @property
    def changed_file(self) -> bool:
        """Whether it changed a file."""
        return not self.has_failed and (self.type or self.tool).lower() in _CHANGES

    def param(self, *names: str) -> str:
        """The first of these parameters that it has; "" if it has none."""
        params = dict(self.params)
        return next((params[name] for name in names if params.get(name)), "")


class Milestone(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of (1) `milestones`; `attempt` is None where the trajectory names it for the whole task."""

    at: datetime | None = None
    event: str = ""
    details: str = ""
    attempt: int | None = None
