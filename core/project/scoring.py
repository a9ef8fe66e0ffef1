"""How loops and attempts came out, and the patterns that they applied (semantics 2)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from core.learning.decay import parse_moment
from core.learning.outcomes import Outcome, OutcomeSignals
from core.records.events import Observation
from core.state.project_state import ProjectState

LOOP: Final = "loop"
ATTEMPT: Final = "attempt"
REPORTED: Final = "reported"
"""Known from the event log alone."""


class Scored(Struct, frozen=True, kw_only=True):
    """Something that has come out.

    Attributes:
        kind: `loop`, `attempt` or `reported`.
        applied: Its uses of patterns, those without a result included; not those whose marks are set aside.
    """

    work_id: str
    kind: str
    signals: OutcomeSignals
    outcome: Outcome
    applied: tuple[Observation, ...]

    @property
    def at(self) -> datetime:
        """When it came out, UTC."""
        return parse_moment(self.signals.timestamp, "timestamp")


def scored(view: ProjectState, work_ids: Iterable[str] | None = None) -> tuple[Scored, ...]:
    """These, or all, that have come out, newest first; ids as the records have them."""
    wanted = list(view.board.finished() if work_ids is None else dict.fromkeys(work_ids))
    uses = applied(view, wanted)
    found = []
    for work_id in wanted:
        came_out = view.outcome(work_id)
        if came_out is not None:
            signals, outcome = came_out
            kind = kind_of(view, work_id)
            found.append(Scored(work_id=work_id, kind=kind, signals=signals, outcome=outcome, applied=uses[work_id]))
    return tuple(sorted(found, key=lambda one: (-one.at.timestamp(), one.work_id)))


def kind_of(view: ProjectState, work_id: str) -> str:
    """Whether an id is that of a loop, of an attempt, or known from the event log at most."""
    snapshot = view.snapshot
    return LOOP if work_id in snapshot.loops else ATTEMPT if work_id in snapshot.attempts else REPORTED


def applied(view: ProjectState, work_ids: Iterable[str]) -> dict[str, tuple[Observation, ...]]:
    """The uses of patterns by each of these loops or attempts, by their ids."""
    snapshot = view.snapshot
    found: dict[str, list[Observation]] = {work_id: [] for work_id in work_ids}
    owners = {work_id: work_id for work_id in found}
    patterns: set[str] = set()
    for work_id in found:
        loop = snapshot.loops.get(work_id)
        if loop is not None:
            owners |= dict.fromkeys(loop.aliases, work_id)
            patterns |= {use.pattern_id for use in loop.injected}
    patterns |= {event.pattern_id for event in snapshot.events if event.loop_id in owners}
    for pattern_id in sorted(patterns & snapshot.patterns.keys()):
        for seen in view.observations(pattern_id):
            if seen.kind == "applied" and seen.loop_id in owners:
                found[owners[seen.loop_id]].append(seen)
    return {work_id: tuple(uses) for work_id, uses in found.items()}
