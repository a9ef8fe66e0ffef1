"""Tasks, attempts at them, and the actions of an attempt."""

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
"""Parameters of tools with a shell command."""
_SUBJECTS: Final = ("query", "url", "description")
"""Parameters with the subject of a tool without a command, pattern or file."""
_EDITS: Final = frozenset({"edit", "write", "multiedit", "notebookedit"})
"""Types of actions (or names of tools) that change a file."""


class TaskStatus(StrEnum):
    """Status of a task; `unknown` without metadata or for any other word."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the task is finished."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED)


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One folder of `tasks/` with its `metadata.json`; every text is untrusted.

    `id` is the name of the folder, `raw_status` the status as written. `current_attempt` and `total_attempts` are as in
    the metadata; the existing attempts may differ. `file` is `metadata.json`, or another file that shows that the task
    exists.
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
    """One entry of an attempt's `quality_history`; `quality` is 0..1.

    `delta` is the change since the previous entry, from the file or computed; None for the first one.
    """

    iteration: int | None
    quality: float
    delta: float | None = None

    @property
    def change(self) -> str:
        """The change in percentage points: `+15`, `-5`, `0`; "" for the first entry."""
        return "" if self.delta is None else f"{round(self.delta * 100):+d}".replace("+0", "0")


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at a task, joined from the trajectory and the files of its folder.

    Every text is untrusted. `number` is from 1; `outcome` is unknown while it is open; `plan` is the approach in one
    line. `actions` and `errors` are the numbers of actions and of failed ones in its log, `last_action_at` the time of
    the newest; None without a log. `quality` is by iteration, in the order of the file; `final_quality` and
    `completion` are 0..1. `reason` explains the outcome. `worked`, `failed` and `suggestions` are `what_worked`,
    `what_didnt_work` and `suggestions_for_next_time`. `file` is the first file about it.
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
        """ID as a work item, in events and commands: `task-001.2`."""
        return f"{self.task_id}.{self.number}"

    @property
    def last_activity(self) -> datetime | None:
        """Newest time in its files."""
        return max(filter(None, (self.last_action_at, self.ended_at, self.started_at)), default=None)

    @property
    def is_open(self) -> bool:
        """Whether it has no outcome and no end: it runs, or was abandoned."""
        return self.outcome is Outcome.UNKNOWN and self.ended_at is None


def by_task(attempts: Iterable[Attempt]) -> dict[str, tuple[Attempt, ...]]:
    """The attempts at each task, in the order of their numbers."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.task_id, []).append(attempt)
    return {task_id: tuple(sorted(own, key=attrgetter("number"))) for task_id, own in found.items()}


class Action(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an attempt's `actions.jsonl`; every text is untrusted.

    `number` is from 1, in the order of the file. `type` is read, write, bash, grep, glob, task, edit, or any other
    word. `params` are names and values as text, in the order of the file; a nested value is JSON. `success` is None if
    unknown.
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
        """Whether it failed: `success` is false, or there is an error and no `success`."""
        return self.success is False or (self.success is None and bool(self.error))

    @property
    def target(self) -> str:
        """The file that it used, from any of the usual parameters; "" without one."""
        return self.param(*TARGETS)

    @property
    def command(self) -> str:
        """The shell command that it ran; "" without one."""
        return self.param(*_COMMANDS)

    @property
    def about(self) -> str:
        """Its main parameter: a command, a pattern, a file or another one; else ""."""
        main = self.param(*_COMMANDS, "pattern", *TARGETS, *_SUBJECTS)
        return main or (self.params[0][1] if self.params else "")

    @property
    def changed_file(self) -> bool:
        """Whether it changed a file."""
        return not self.has_failed and (self.type or self.tool).lower() in _EDITS

    def param(self, *names: str) -> str:
        """The first existing one of these parameters; "" without any."""
        params = dict(self.params)
        return next((params[name] for name in names if params.get(name)), "")


class Milestone(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of `milestones`; `attempt` is None for a milestone of the whole task."""

    at: datetime | None = None
    event: str = ""
    details: str = ""
    attempt: int | None = None
