"""Everything that the place Metrics, the command and its exports tell, worked out at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct

from core.learning.score_arrays import Flags
from core.learning.scoreboard import Scoreboard
from core.learning.states import STATES
from core.learning.use_times import SHOWN
from core.metrics.causes import Cause, top_causes
from core.metrics.effectiveness import Comparison, injection_effect
from core.metrics.review_coverage import JudgedWeek, Open, first_half, judged_weekly, open_questions
from core.metrics.reviewer_accuracy import Mirror, mirror
from core.metrics.upcoming import WeekAhead, coming
from core.metrics.weekly import Trend, Week, trend_of, week_starts, weekly
from core.records.patterns import Maturity, Pattern, PatternType
from core.state.project_state import ProjectState

RANGES: Final = (4, 12, 52)
"""How many weeks can be looked at in the place."""
USUAL: Final = 12
"""Weeks, where nobody says."""


class Dashboard(Struct, frozen=True, kw_only=True):
    """The metrics of one moment, over some weeks; never changed.

    Attributes:
        now: The moment.
        weeks: How many weeks back and ahead.
        level: Probability inside every interval, 0..1.
        patterns: How many patterns the registry has, by type and state.
        evidence: The running week and those before it, oldest first.
        undated: Uses of which only sums tell, so that they are in no week.
        trend: Whether success rises or falls in these weeks; None where that can't be asked.
        iterations: Loops with and without injected patterns, of all times.
        ahead: The running week and those after it.
        judged: As `evidence`.
        open: Open questions by kind.
        first_half: How many questions, the most worth deciding first, hold half of what is at stake.
        causes: Of these weeks.
        mirror: How the verdicts of the one who looks have held.
    """

    now: datetime
    weeks: int
    level: float
    patterns: Mapping[tuple[PatternType, Maturity], int]
    evidence: tuple[Week, ...]
    undated: int
    trend: Trend | None
    iterations: Comparison
    ahead: tuple[WeekAhead, ...]
    judged: tuple[JudgedWeek, ...]
    open: tuple[Open, ...]
    first_half: int
    causes: tuple[Cause, ...]
    mirror: Mirror


def metrics_of(view: ProjectState, by: str, weeks: int = USUAL) -> Dashboard:
    """The metrics as of the view's moment.

    Args:
        by: Who looks, as the ledger names them.
        weeks: How many back and ahead, from 1 up.
    """
    snapshot, board = view.snapshot, view.board
    registry = registry_rows(board, snapshot.patterns)
    starts = week_starts(board.now, weeks)
    evidence = weekly(board, registry, starts)
    return Dashboard(
        now=board.now,
        weeks=weeks,
        level=view.settings.interval_level,
        patterns=_by_type_and_state(board, snapshot.patterns),
        evidence=evidence,
        undated=_undated(board, registry),
        trend=trend_of(evidence, view.settings.interval_level),
        iterations=injection_effect(snapshot, view.settings),
        ahead=coming(board, registry, weeks),
        judged=judged_weekly(board, registry, snapshot.decisions, snapshot.curation, starts),
        open=open_questions(view.queue),
        first_half=first_half(view.queue),
        causes=top_causes(snapshot, starts[0], board.now),
        mirror=mirror(view, by),
    )


def registry_rows(board: Scoreboard, patterns: Mapping[str, Pattern]) -> Flags:
    """Which rows of the board are of the registry: what only a mirror knows would count twice."""
    return np.fromiter((not patterns[id].copy_folder for id in board.ids), np.bool_, len(board.ids))


def _by_type_and_state(board: Scoreboard, patterns: Mapping[str, Pattern]) -> dict[tuple[PatternType, Maturity], int]:
    codes = board.state_codes.tolist()
    counts = Counter(
        (patterns[id].type, code) for id, code in zip(board.ids, codes, strict=True) if not patterns[id].copy_folder
    )
    return {(kind, state): counts[kind, STATES.index(state)] for kind in PatternType for state in Maturity}


def _undated(board: Scoreboard, registry: Flags) -> int:
    dated = board.dated
    used = (dated.kinds != SHOWN) & registry[dated.rows]
    return int(board.uses[registry].sum() - dated.counts[used].sum())
