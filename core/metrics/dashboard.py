"""All metrics at one moment, for the screen, the command and exports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct

from core.learning.scoreboard import Scoreboard
from core.learning.scores import INJECTED_ONLY, Flags
from core.learning.states import STATES
from core.metrics.causes import Cause, top_causes
from core.metrics.effectiveness import Comparison, compare_injection
from core.metrics.reviewer_accuracy import ReviewerAccuracy, measure_accuracy
from core.metrics.weekly import (
    CoverageWeek,
    OpenKind,
    Trend,
    Week,
    WeekAhead,
    compute_coverage,
    compute_trend,
    count_first_half,
    count_questions,
    count_weekly,
    find_upcoming,
    list_week_starts,
)
from core.records.patterns import Maturity, Pattern, PatternType
from core.state.project_state import ProjectState

RANGES: Final = (4, 12, 52)  # numbers of weeks that the screen offers
DEFAULT_WEEKS: Final = 12


class Dashboard(Struct, frozen=True, kw_only=True):
    """Metrics of some weeks before and after a moment."""

    now: datetime
    weeks: int  # number of weeks, back and ahead
    level: float  # probability inside each interval, 0..1
    patterns: Mapping[tuple[PatternType, Maturity], int]  # number of registered patterns by type and state
    evidence: tuple[Week, ...]  # evidence by week, oldest first; the last week is the current one
    undated: int  # uses without a date, known only from totals
    trend: Trend | None  # change of the success rate; None without enough data
    iterations: Comparison  # comparison of loops with and without injected patterns, of all times
    ahead: tuple[WeekAhead, ...]  # upcoming changes by week; the first week is the current one
    coverage: tuple[CoverageWeek, ...]  # review coverage by week, as `evidence`
    open: tuple[OpenKind, ...]
    first_half: int  # number of questions, by priority, that have half of the expected impact
    causes: tuple[Cause, ...]  # failure causes of the weeks back
    accuracy: ReviewerAccuracy


def build_dashboard(view: ProjectState, by: str, weeks: int = DEFAULT_WEEKS) -> Dashboard:
    """Compute all metrics at the time of a project state.

    `by` is the name of the reviewer in the decision log; `weeks` the number of weeks back and ahead, at least 1.
    """
    snapshot, board = view.snapshot, view.board
    registry = select_registered(board, snapshot.patterns)
    starts = list_week_starts(board.now, weeks)
    evidence = count_weekly(board, registry, starts)
    types = (snapshot.patterns[id].type for id in board.ids)
    counted = zip(types, board.state_codes.tolist(), registry.tolist(), strict=True)
    patterns = Counter((kind, STATES[code]) for kind, code, is_registered in counted if is_registered)
    used = (board.use_times.kinds != INJECTED_ONLY) & registry[board.use_times.rows]
    return Dashboard(
        now=board.now,
        weeks=weeks,
        level=view.settings.interval_level,
        patterns={(kind, state): patterns[kind, state] for kind in PatternType for state in Maturity},
        evidence=evidence,
        undated=int(board.uses[registry].sum() - board.use_times.counts[used].sum()),
        trend=compute_trend(evidence, view.settings.interval_level),
        iterations=compare_injection(snapshot, view.settings),
        ahead=find_upcoming(board, registry, weeks),
        coverage=compute_coverage(board, registry, snapshot.decisions, snapshot.curation, starts),
        open=count_questions(view.queue),
        first_half=count_first_half(view.queue),
        causes=top_causes(snapshot, starts[0], board.now),
        accuracy=measure_accuracy(view, by),
    )


def select_registered(board: Scoreboard, patterns: Mapping[str, Pattern]) -> Flags:
    """Mask of registered rows; copies in other folders would count twice."""
    return np.fromiter((not patterns[id].copy_folder for id in board.ids), np.bool_, len(board.ids))
