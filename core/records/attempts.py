"""Attempts at a task, as episodic memory tells of them (1)."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from core.records.loops import Outcome


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a task's `trajectory.json`.

    Attributes:
        task_id: The name of the task's folder.
        number: From 1 up.
        plan: What was tried; untrusted.
        iterations: How many it took, or None.
        file: Project-relative file that tells of it.
    """

    task_id: str
    number: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome = Outcome.UNKNOWN
    plan: str = ""
    iterations: int | None = None
    file: str = ""

    @property
    def id(self) -> str:
        """The id that events and commands name it by: `task-001.2`, in the manner of the beads of (2)."""
        return f"{self.task_id}.{self.number}"
