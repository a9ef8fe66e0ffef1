"""Tasks, attempts at them, and the actions of an attempt."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Final

from msgspec import Struct

from core.records.loops import Outcome

ACTION_TYPES: Final = ("read", "write", "bash", "grep", "glob", "task", "edit")
TARGETS: Final = ("file_path", "file", "path", "notebook_path", "filename")
"""Names of tool parameters that contain a file path."""
_COMMANDS: Final = ("command", "cmd")  # Names of tool parameters that contain a shell command.
_SUBJECTS: Final = ("query", "url", "description")
"""Names of the main parameter of tools without a command, pattern or file."""
_EDITS: Final = frozenset({"edit", "write", "multiedit", "notebookedit"})
"""Action types and tool names that change a file."""


class TaskStatus(StrEnum):
    """Status of a task; `unknown` if it is missing or has another value."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the task is completed or failed."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED)


TASK_STATUSES: Final = tuple(status.value for status in TaskStatus if status is not TaskStatus.UNKNOWN)


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task: one folder of `tasks/` with its `metadata.json`; texts are untrusted.

    `id` is the name of the folder, and `raw_status` the status as written in the file. `current_attempt` and
    `total_attempts` come from the metadata and may differ from the existing attempts. `file` is `metadata.json`, or any
    other file of the task if that is missing.
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

    `delta` is the change from the file, else the computed one since the previous entry; else None.
    """

    iteration: int | None
    quality: float
    delta: float | None = None

    @property
    def change(self) -> str:
        """The change in percentage points: `+15`, `-5`, `0`; "" if it is unknown."""
        return "" if self.delta is None else f"{round(self.delta * 100):+d}".replace("+0", "0")


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt at a task, joined from the trajectory and the files of its folder.

    Every text is untrusted. `number` starts at 1. `outcome` is unknown while the attempt is open. `plan` is the
    approach in one line. `actions`, `errors` and `last_action_at` are the number of logged actions, the number of
    failed ones and the time of the newest one; None without a log. `quality` has one entry per iteration, in the order
    of the file. `final_quality` and `completion` are 0..1. `reason` explains the outcome. `worked`, `failed` and
    `suggestions` are `what_worked`, `what_didnt_work` and `suggestions_for_next_time`. `loop_id` is the loop or session
    that made it, if it is not that of the task. `file` is the first source file.
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
    loop_id: str = ""
    file: str = ""

    @property
    def id(self) -> str:
        """ID of the work item, in events and commands, such as `task-001.2`."""
        return f"{self.task_id}.{self.number}"

    @property
    def last_activity(self) -> datetime | None:
        """Newest time in the files of the attempt."""
        return max(filter(None, (self.last_action_at, self.ended_at, self.started_at)), default=None)

    @property
    def is_open(self) -> bool:
        """Whether it has neither an outcome nor an end: it runs or was abandoned."""
        return self.outcome is Outcome.UNKNOWN and self.ended_at is None


def group_by_task(attempts: Iterable[Attempt]) -> dict[str, tuple[Attempt, ...]]:
    """Group attempts by task ID, each group sorted by number."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.task_id, []).append(attempt)
    return {task_id: tuple(sorted(own, key=attrgetter("number"))) for task_id, own in found.items()}


class Action(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an attempt's `actions.jsonl`; every text is untrusted.

    `number` is the position in the file, from 1. `type` is read, write, bash, grep, glob, task, edit or another word.
    `params` has pairs of name and value in the order of the file; nested values are JSON text. `success` is None if
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
        """Whether it failed; if `success` is unknown, whether it has an error."""
        return self.success is False or (self.success is None and bool(self.error))

    @property
    def target(self) -> str:
        """Path of the file that the tool read or changed, or ""."""
        return self.param(*TARGETS)

    @property
    def command(self) -> str:
        """Shell command that the tool ran, or ""."""
        return self.param(*_COMMANDS)

    @property
    def about(self) -> str:
        """Value of the main parameter: a command, pattern, file or other; or ""."""
        main = self.param(*_COMMANDS, "pattern", *TARGETS, *_SUBJECTS)
        return main or (self.params[0][1] if self.params else "")

    @property
    def changed_file(self) -> bool:
        """Whether it succeeded in changing a file."""
        return not self.has_failed and (self.type or self.tool).lower() in _EDITS

    def param(self, *names: str) -> str:
        """Return the value of the first of these parameters that is set, or ""."""
        params = dict(self.params)
        return next((params[name] for name in names if params.get(name)), "")


class Milestone(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `milestones`; `attempt` is None for a milestone of the whole task."""

    at: datetime | None = None
    event: str = ""
    details: str = ""
    attempt: int | None = None
