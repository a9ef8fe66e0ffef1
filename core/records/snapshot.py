"""What readers of the library get: immutable snapshots, and deltas that say what changed between two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import CurationState, Decision
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.findings import Finding
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask, Reflection

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    # A mapping proxy has no hash before Python 3.12, so a dataclass refuses it as a plain default.
    return _NOTHING


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is known at one moment. Never changed after it is made; share it between threads freely.

    Attributes:
        number: Grows by one with every change.
        patterns: By id: the registry's patterns and those that exist only in a mirror.
        loops: By id, newest start first.
        reflections: By id, newest first.
        memory_tasks: By id (cross-task memory).
        tasks: Of the episodic memory, by id.
        attempts: At these tasks, by id.
        debug_sessions: Of the debug memory, by id.
        escalations: The newest call for a person, by debug session.
        events: The event log, oldest first, without what came of decisions that were taken back.
        withdrawn: That, oldest first: it counts for nothing, but did as long as the decisions stood.
        decisions: The ledger, oldest first; `curation` is what they amount to.
        findings: What is wrong, ordered by file.
        unreadable: Project-relative files whose last good value is kept, with since when.
        complete: False while the first load still runs.
    """

    number: int = 0
    patterns: Mapping[str, Pattern] = field(default_factory=_nothing)
    loops: Mapping[str, Loop] = field(default_factory=_nothing)
    reflections: Mapping[str, Reflection] = field(default_factory=_nothing)
    memory_tasks: Mapping[str, MemoryTask] = field(default_factory=_nothing)
    tasks: Mapping[str, Task] = field(default_factory=_nothing)
    attempts: Mapping[str, Attempt] = field(default_factory=_nothing)
    debug_sessions: Mapping[str, DebugSession] = field(default_factory=_nothing)
    escalations: Mapping[str, Escalation] = field(default_factory=_nothing)
    events: tuple[Event, ...] = ()
    withdrawn: tuple[Event, ...] = ()
    decisions: tuple[Decision, ...] = ()
    curation: CurationState = field(default_factory=CurationState)
    findings: tuple[Finding, ...] = ()
    unreadable: Mapping[str, datetime] = field(default_factory=_nothing)
    complete: bool = False

    def loop_called(self, name: str) -> Loop | None:
        """The loop with this id, else the first one that has it for another of its ids; None if there is none."""
        named = (loop for loop in self.loops.values() if name in loop.aliases)
        return self.loops.get(name) or next(named, None)


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed from one snapshot to the next; ids were added, changed or removed."""

    patterns: frozenset[str] = frozenset()
    loops: frozenset[str] = frozenset()
    reflections: frozenset[str] = frozenset()
    memory_tasks: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    attempts: frozenset[str] = frozenset()
    debug_sessions: frozenset[str] = frozenset()
    escalations: frozenset[str] = frozenset()
    events: bool = False
    decisions: bool = False
    findings: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.patterns
            or self.loops
            or self.reflections
            or self.memory_tasks
            or self.tasks
            or self.attempts
            or self.debug_sessions
            or self.escalations
            or self.events
            or self.decisions
            or self.findings
        )

    def __or__(self, other: Delta) -> Delta:
        """Both changes as one."""
        return Delta(
            self.patterns | other.patterns,
            self.loops | other.loops,
            self.reflections | other.reflections,
            self.memory_tasks | other.memory_tasks,
            self.tasks | other.tasks,
            self.attempts | other.attempts,
            self.debug_sessions | other.debug_sessions,
            self.escalations | other.escalations,
            self.events or other.events,
            self.decisions or other.decisions,
            self.findings or other.findings,
        )
