"""Immutable snapshots of a project, and deltas between two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.records.decisions import CurationState, Decision
from core.records.events import NO_TRIAL_KEY, TrialKey
from core.records.team import NO_TEAM, TeamEvidence

if TYPE_CHECKING:
    from core.records.debug_sessions import (
        DebugSession,
        Escalation,
    )
    from core.records.episodes import (
        Attempt,
        Task,
    )
    from core.records.events import (
        Event,
    )
    from core.records.findings import (
        Finding,
    )
    from core.records.instructions import (
        InstructionFile,
    )
    from core.records.loops import (
        Loop,
    )
    from core.records.patterns import (
        Pattern,
    )
    from core.records.reflections import (
        Lesson,
        MemoryTask,
        Reflection,
    )


def _all_events(_event: Event) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ForeignRecords:
    """IDs of `patterns` whose file numbers do not count, and which events are own.

    `arrived` are those of them that came from elsewhere after the project was trusted, and that the user has not
    accepted; the others do not count because of the user's own settings.
    """

    patterns: frozenset[str] = frozenset()
    arrived: frozenset[str] = frozenset()
    is_own_event: Callable[[Event], bool] = field(default=_all_events, compare=False)


NOTHING_FOREIGN: Final = ForeignRecords()


UNCHECKED: Final = "The files are still being checked; decide when the check ends"
"""Why nothing is decided or recorded on records that were kept from the last run."""
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def _mapping() -> Any:
    # A mapping proxy is not hashable before Python 3.12, so a dataclass refuses it as a plain default.
    return field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All records of a project at one moment; may be shared between threads.

    Mappings are by ID. `number` increases by one with every change. `patterns` contains the registry, and patterns of
    other folders that the registry does not contain. Loops and reflections are newest first; loops include those of
    other runners (docs/adapters.md). `escalations` contains the newest escalation of each debug session. `events` is
    the event log, oldest first, without events of undone decisions, which are in `withdrawn`. `curation` is the result
    of all `decisions`, which are oldest first. `foreign` are records that came from elsewhere later. `trial_key`
    recognises the user's own trials. `team` has the sums of the uses in the team's other projects. `findings` are
    sorted by file. `unreadable` contains project-relative files that cannot be read now, each with the time of its last
    good content, which is used. `complete` is False until the first load has finished. `as_of` is the time of records
    that were kept from the last run and are not checked yet, else None.
    """

    number: int = 0
    patterns: Mapping[str, Pattern] = _mapping()
    loops: Mapping[str, Loop] = _mapping()
    reflections: Mapping[str, Reflection] = _mapping()
    memory_tasks: Mapping[str, MemoryTask] = _mapping()
    tasks: Mapping[str, Task] = _mapping()
    attempts: Mapping[str, Attempt] = _mapping()
    debug_sessions: Mapping[str, DebugSession] = _mapping()
    escalations: Mapping[str, Escalation] = _mapping()
    lessons: Mapping[str, Lesson] = _mapping()
    instructions: Mapping[str, InstructionFile] = _mapping()
    events: Sequence[Event] = ()
    withdrawn: tuple[Event, ...] = ()
    decisions: tuple[Decision, ...] = ()
    curation: CurationState = field(default_factory=CurationState)
    foreign: ForeignRecords = NOTHING_FOREIGN
    trial_key: TrialKey = NO_TRIAL_KEY
    team: TeamEvidence = NO_TEAM
    findings: tuple[Finding, ...] = ()
    unreadable: Mapping[str, datetime] = _mapping()
    complete: bool = False
    as_of: datetime | None = None

    @property
    def is_partial(self) -> bool:
        """Whether records are missing because the project is opened for the first time."""
        return not self.complete and self.as_of is None

    def with_changes(self, **changes: Any) -> Snapshot:
        """Return the same records with other values of some fields."""
        return replace(self, **changes)

    def find_loop(self, name: str) -> Loop | None:
        """Return the loop with this ID, or the first one with this alias, or None."""
        aliased = (loop for loop in self.loops.values() if name in loop.aliases)
        return self.loops.get(name) or next(aliased, None)


class Delta(Struct, frozen=True):
    """IDs of records that were added, changed or removed between two snapshots."""

    patterns: frozenset[str] = frozenset()
    loops: frozenset[str] = frozenset()
    reflections: frozenset[str] = frozenset()
    memory_tasks: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    attempts: frozenset[str] = frozenset()
    debug_sessions: frozenset[str] = frozenset()
    escalations: frozenset[str] = frozenset()
    lessons: frozenset[str] = frozenset()
    instructions: frozenset[str] = frozenset()
    team: frozenset[str] = frozenset()  # IDs of patterns with other sums of the team
    events: bool = False
    decisions: bool = False
    findings: bool = False

    @property
    def affects_scores(self) -> bool:
        """Whether the state or score of a pattern may have changed."""
        return bool(self.patterns or self.loops or self.events or self.decisions or self.team)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)

    def __or__(self, other: Delta) -> Delta:
        return Delta(*(getattr(self, name) | getattr(other, name) for name in self.__struct_fields__))
