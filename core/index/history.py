"""Explain the state of a pattern, and build its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.learning.explanation import Explanation, LineageEvent, build_lineage, explain_state
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.index.project_state import ProjectState


def explain_pattern(state: ProjectState, pattern_id: str) -> Explanation:
    """Explain rule by rule and event by event why the pattern has its state."""
    pattern = state.pattern(pattern_id)
    assessment, observations = state.assessment(pattern.id), state.board.all_results(pattern.id)
    is_invertible, team = pattern.type is not PatternType.ANTI, state.board.team_sums(pattern.id)
    return explain_state(assessment, observations, state.now, state.settings, invertible=is_invertible, team=team)


def pattern_lineage(state: ProjectState, pattern_id: str) -> tuple[LineageEvent, ...]:
    snapshot, observations = state.snapshot, state.board.observations(pattern_id)
    return build_lineage(state.pattern(pattern_id), observations, snapshot.decisions, snapshot.loops)
