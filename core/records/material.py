"""What a loop, a task or a debug session left behind, all that extraction looks at (0) 1_analyze_loop_history."""

from __future__ import annotations

from msgspec import Struct

from core.records.debug_sessions import DebugSession
from core.records.episodes import Action, Attempt, Task
from core.records.events import Event
from core.records.loops import Iteration, Loop
from core.records.reflections import Reflection


class LoggedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt at a task with what was planned and done.

    Attributes:
        steps: Of its plan.
        actions: In the order of the log, the newest ones where there are too many.
    """

    attempt: Attempt
    steps: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


class Material(Struct, frozen=True, kw_only=True):
    """Everything that is known of one loop, of one task, or of one debug session.

    Attributes:
        source_id: The id of the loop, task or session that was asked for.
        loop: The loop; of a task or session the one that it belongs to, None where that is not known.
        task: The task; of a session the one that it belongs to. None for a loop, which may have several.
        iterations: Merged from all of the loop's files; empty for anything else.
        attempts: At the tasks that record the loop, or at the task, oldest first.
        sessions: Of the loop or task, oldest first.
        reflections: Of the loop or task, newest first.
        errors: Of the error log of (2), oldest first.
        resolved: The events that settled some of these.
        agent: The agent that asks for the extraction; "" if none does.
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
        """What a pattern names as its source: the loop, else the task, else the session."""
        return self.loop.id if self.loop else self.task.id if self.task else self.source_id

    @property
    def goal(self) -> str:
        """What was to be done; untrusted, may be empty."""
        return (self.loop.task if self.loop else "") or (self.task.description if self.task else "")

    @property
    def criteria(self) -> tuple[str, ...]:
        """When it is done, one or many; untrusted."""
        if self.loop is not None:
            return self.loop.criteria
        return (self.task.criteria,) if self.task is not None and self.task.criteria else ()
