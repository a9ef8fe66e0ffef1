"""Material of an extraction, and the patterns proposed from it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from core.records.debug_sessions import DebugSession
from core.records.episodes import Action, Attempt, Task
from core.records.events import Event
from core.records.loops import Iteration, Loop
from core.records.patterns import PatternType
from core.records.reflections import Reflection

_MAX_REASONS: Final = 4
ALL_TYPES: Final = frozenset(PatternType)


class Proposal(Struct, frozen=True, kw_only=True):
    """One proposed pattern.

    `slug` is the middle part of its future ID: lower-case letters, digits, hyphens. `record` is a pattern record
    without an ID, which it gets when it is accepted. `trace` is the origin of each part, for people: `iteration 1 → 2`.
    `duplicate_of` is the similar pattern (0..1 by `similarity`) of which this is a further use; "" for a new pattern.
    `refused` is why it is not extracted; "" if it is. `known_as` is the pattern that was extracted from this loop
    before. `failures` is the number of failed attempts at the same in the loop.
    """

    type: PatternType
    slug: str
    record: dict[str, Any]
    trace: tuple[str, ...] = ()
    duplicate_of: str = ""
    similarity: float = 0.0
    refused: str = ""
    known_as: str = ""
    failures: int = 0

    @property
    def headline(self) -> str:
        """A one-line summary; untrusted."""
        record = self.record
        if self.type is PatternType.ERROR:
            signature, fix = record["error_signature"], record["fix_approach"]
            return f"{signature['error_type']}: {signature['error_pattern']} → {fix['description']}"
        if self.type is PatternType.SUCCESS:
            return f"{record['task_category']}: {record['approach']['description']}"
        if self.type is PatternType.ANTI:
            return f"{record['failure_mode']}: {record['approach_description']}"
        return f"{record['language']}: {record['description']}"


class Extraction(Struct, frozen=True, kw_only=True):
    """All proposals of one loop, task or debug session.

    `missing` are the reasons why some types have no proposal.
    """

    source_id: str
    proposals: tuple[Proposal, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def new(self) -> tuple[Proposal, ...]:
        """Proposals of new patterns."""
        return tuple(one for one in self.proposals if not one.refused and not one.duplicate_of)

    @property
    def merges(self) -> tuple[Proposal, ...]:
        """Further uses of existing patterns."""
        return tuple(one for one in self.proposals if not one.refused and one.duplicate_of)

    @property
    def refused(self) -> tuple[Proposal, ...]:
        """Refused proposals."""
        return tuple(one for one in self.proposals if one.refused)

    @property
    def why_nothing(self) -> str:
        """Why nothing is extracted, in one line with pattern IDs; "" if something is."""
        if self.new or self.merges:
            return ""
        reasons = list(dict.fromkeys(one.refused for one in self.proposals)) or list(self.missing)
        more = f"; and {len(reasons) - _MAX_REASONS} more reasons" if len(reasons) > _MAX_REASONS else ""
        return "; ".join(reasons[:_MAX_REASONS]) + more


class LoggedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt at a task with the steps of its plan and its actions.

    The actions are in the order of the log; only the newest ones of a long log.
    """

    attempt: Attempt
    steps: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


class Material(Struct, frozen=True, kw_only=True):
    """Everything known about one loop, task or debug session, `source_id`.

    `loop` is the loop, or that of the task or session; None if unknown. `task` is the task, or that of the session;
    None for a loop, which may have several. `iterations` are merged from all files of the loop. Attempts, sessions and
    recorded errors are oldest first, reflections newest first. `resolved` are the events that resolved some of these
    errors. `agent` requested the extraction.
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
