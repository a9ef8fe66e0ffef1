"""Input of an extraction, and the patterns that it proposes."""

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
    """Proposed pattern, or proposed further use of an existing pattern.

    `slug` is the middle part of its future ID: lower-case letters, digits, hyphens. `record` is the pattern record; it
    gets its ID when the proposal is accepted. `trace` describes the origin of each part, such as `iteration 1 → 2`.
    `duplicate_of` is the ID of the existing pattern that this is a further use of, with `similarity` 0..1; "" for a new
    pattern. `refused` is the reason why nothing is extracted, or "". `known_as` is the ID of the pattern that was
    extracted from the same place before, or "". `failures` counts the failed tries in the loop before the fix.
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
            error = signature.get("error_message") or f"{signature['error_type']}: {signature['error_pattern']}"
            return f"{error} → {fix['description']}"
        if self.type is PatternType.SUCCESS:
            return f"{record['task_category']}: {record['approach']['description']}"
        if self.type is PatternType.ANTI:
            return f"{record['failure_mode']}: {record['approach_description']}"
        return f"{record['language']}: {record['description']}"


class Extraction(Struct, frozen=True, kw_only=True):
    """Proposals from one source, and why some types are `missing`.

    `about` is a short name of a source whose ID people cannot read, else "".
    """

    source_id: str
    about: str = ""
    proposals: tuple[Proposal, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def new(self) -> tuple[Proposal, ...]:
        """Accepted proposals of new patterns."""
        return tuple(one for one in self.proposals if not one.refused and not one.duplicate_of)

    @property
    def has_checked_fix(self) -> bool:
        """Whether a new pattern has a fix's diff after which the failed check passed."""
        return any(one.record.get("fix_approach", {}).get("diff_pattern") for one in self.new)

    @property
    def merges(self) -> tuple[Proposal, ...]:
        """Accepted proposals of further uses of existing patterns."""
        return tuple(one for one in self.proposals if not one.refused and one.duplicate_of)

    @property
    def refused(self) -> tuple[Proposal, ...]:
        """Proposals that are not extracted, each with its reason."""
        return tuple(one for one in self.proposals if one.refused)

    @property
    def why_nothing(self) -> str:
        """Reasons why nothing is extracted, in one line; "" if something is."""
        if self.new or self.merges:
            return ""
        reasons = list(dict.fromkeys(one.refused for one in self.proposals)) or list(self.missing)
        left = len(reasons) - _MAX_REASONS
        more = "" if left <= 0 else "; and 1 more reason" if left == 1 else f"; and {left} more reasons"
        return "; ".join(reasons[:_MAX_REASONS]) + more


class LoggedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt with the steps of its plan and its actions in log order.

    For a long log, `actions` contains only the newest actions.
    """

    attempt: Attempt
    steps: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


class Material(Struct, frozen=True, kw_only=True):
    """Everything known about the source of an extraction.

    `source_id` is the ID of a loop, task or debug session. `loop` is this loop, or the loop of the task or session, if
    known. `task` is this task, or the task of the session; None for a loop, which may have several. `iterations` are
    merged from all files of the loop. Attempts, sessions and errors are oldest first, reflections newest first.
    `resolved` are the events that resolve errors. `agent` is the agent that requested the extraction. `root` is the
    project folder.
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
    root: str = ""

    @property
    def loop_id(self) -> str:
        """ID of the loop if known, otherwise of the task or session."""
        return self.loop.id if self.loop else self.task.id if self.task else self.source_id

    @property
    def own_ids(self) -> frozenset[str]:
        """IDs by which patterns may name this work: loop, sessions, tasks, attempts.

        An attempt is a source of a pattern that it applied.
        """
        attempts = (id for logged in self.attempts for id in (logged.attempt.task_id, logged.attempt.id))
        return frozenset((self.loop_id, *(self.loop.aliases if self.loop else ()), *attempts))

    @property
    def goal(self) -> str:
        """Description of the work to be done; untrusted, may be empty."""
        return (self.loop.task if self.loop else "") or (self.task.description if self.task else "")

    @property
    def task_text(self) -> str:
        """The goal as a text of a pattern; "" if it is the prompt of a runner's loop."""
        return "" if self.loop is not None and self.loop.runner else self.goal

    @property
    def criteria(self) -> tuple[str, ...]:
        """Completion criteria; untrusted."""
        if self.loop is not None:
            return self.loop.criteria
        return (self.task.criteria,) if self.task is not None and self.task.criteria else ()
