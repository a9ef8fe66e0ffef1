"""Outcomes of work items and applied patterns; see docs/scoring.md#outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.learning.outcomes import Outcome, OutcomeSignals
from core.learning.states import parse_moment
from core.records.events import Observation

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

LOOP: Final = "loop"
ATTEMPT: Final = "attempt"
REPORTED: Final = "reported"  # only known from the event log


class ScoredWork(Struct, frozen=True, kw_only=True):
    """Finished loop or attempt with its outcome and uses of patterns."""

    work_id: str
    kind: str  # `loop`, `attempt` or `reported`
    signals: OutcomeSignals
    outcome: Outcome
    applied: tuple[Observation, ...]  # its uses of patterns, with or without a result, except discarded reports

    @property
    def at(self) -> datetime:
        """Time at which it finished, UTC."""
        return parse_moment(self.signals.timestamp, "timestamp")


def find_scored_work(state: ProjectState, work_ids: Iterable[str] | None = None) -> tuple[ScoredWork, ...]:
    """Return the finished loops and attempts of these (None: of all), newest first."""
    wanted = list(state.board.finished() if work_ids is None else dict.fromkeys(work_ids))
    uses = find_pattern_uses(state, wanted)
    found = []
    for work_id in wanted:
        result = state.board.outcome(work_id)
        if result is not None:
            signals, outcome = result
            kind = classify_work(state, work_id)
            found.append(
                ScoredWork(work_id=work_id, kind=kind, signals=signals, outcome=outcome, applied=uses[work_id])
            )
    return tuple(sorted(found, key=lambda one: (-one.at.timestamp(), one.work_id)))


def classify_work(state: ProjectState, work_id: str) -> str:
    """Return the kind of a work item: loop, attempt, or only in the event log."""
    snapshot = state.snapshot
    return LOOP if work_id in snapshot.loops else ATTEMPT if work_id in snapshot.attempts else REPORTED


def find_pattern_uses(state: ProjectState, work_ids: Iterable[str]) -> dict[str, tuple[Observation, ...]]:
    """Return the uses of patterns by work item."""
    snapshot = state.snapshot
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
        for use in state.board.observations(pattern_id):
            if use.kind == "applied" and use.loop_id in owners:
                found[owners[use.loop_id]].append(use)
    return {work_id: tuple(uses) for work_id, uses in found.items()}
