"""The input of an extraction: everything known about one loop, task or debug session."""

from __future__ import annotations

from msgspec import Struct

from core.records.debug_sessions import DebugSession
from core.records.episodes import Action, Attempt, Task
from core.records.events import Event
from core.records.loops import Iteration, Loop
from core.records.reflections import Reflection


class LoggedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt at a task with its plan and actions.

    Attributes:
        steps: Steps of its plan.
        actions: In the order of the log; only the newest ones of a long log.
    """

    attempt: Attempt
    steps: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


class Material(Struct, frozen=True, kw_only=True):
    """Everything known about one loop, task or debug session.

    Attributes:
        source_id: ID of the loop, task or session.
        loop: The loop, or the loop of the task or session; None if unknown.
        task: The task, or the task of the session; None for a loop, which may have several.
        iterations: Merged from all files of the loop; else empty.
        attempts: At the tasks of the loop, or at the task, oldest first.
        sessions: Of the loop or task, oldest first.
        reflections: Of the loop or task, newest first.
        errors: Recorded errors, oldest first.
        resolved: Events that resolved some of these errors.
        agent: The agent that requested the extraction; "" without one.
    """

    source_id: str
    loop: Loop | None = None
    task: Task | None = None
    iterations: tuple[Iteration, ...] = ()
    attempts: tuple[LoggedAttempt, ...] = ()
    sessions: tuple[DebugSession, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    errors: tuple[Event, ...] = ()
    resolved: tuple[Event, ...] = ()
    agent: str = ""

    @property
    def loop_id(self) -> str:
        """The source of extracted patterns: the loop, else the task, else the session."""
        return self.loop.id if self.loop else self.task.id if self.task else self.source_id

    @property
    def goal(self) -> str:
        """The task to be done; untrusted, may be empty."""
        return (self.loop.task if self.loop else "") or (self.task.description if self.task else "")

    @property
    def criteria(self) -> tuple[str, ...]:
        """Completion criteria; untrusted."""
        if self.loop is not None:
            return self.loop.criteria
        return (self.task.criteria,) if self.task is not None and self.task.criteria else ()
