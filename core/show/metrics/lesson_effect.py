"""Do lessons help: fixing steps with and without one, best and worst patterns.

docs/metrics.md#do-lessons-help describes the method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct

from core.base.pattern_titles import pattern_title
from core.base.steps import group_pairs
from core.base.text import plural
from core.index.experiment import NO_EXPERIMENT, ExperimentReport, measure_experiment
from core.learning.statistics import MAX_REQUIRED
from core.records.debug_sessions import PASSED
from core.records.patterns import Pattern, PatternType
from core.retrieval.relevance import matches_failure
from core.show.metrics.effectiveness import Comparison, Group, LoopCounts, compare_groups, compare_injection

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.learning.evidence_inputs import EvidenceInputs
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Ints
    from core.records.debug_sessions import DebugSession
    from core.records.snapshot import Snapshot

MAX_LISTED: Final = 5  # best patterns, and worst ones
_MAX_SESSIONS: Final = 2_000  # newest debug sessions that are compared, each in about 0.2 ms
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class PatternResult(Struct, frozen=True, kw_only=True):
    """Results of one pattern, with the interval of its success rate, 0..1."""

    pattern_id: str
    name: str  # its title: untrusted
    worked: int
    results: int
    low: float
    high: float
    is_given: bool  # whether agents still get it

    @property
    def score(self) -> str:
        """Successes and results, such as `9 of 12`."""
        return f"{self.worked:,} of {self.results:,}"


class Measure(Enum):
    """What is compared: the words of the sentence about it."""

    STEPS = "step", "Known errors", "case", "session with a known error", "sessions with a known error"
    ITERATIONS = "iteration", "Sessions with lessons", "session", "completed session", "completed sessions"

    def __init__(self, unit: str, subject: str, case: str, wanted: str, wanted_several: str) -> None:
        self.unit = unit
        self.subject = subject
        self.case = case
        self.wanted = wanted  # what gives a further case
        self.wanted_several = wanted_several


class LessonEffect(Struct, frozen=True, kw_only=True):
    """Answer to "Do lessons help?"; a negative `comparison` difference is better."""

    comparison: Comparison
    measure: Measure
    best: tuple[PatternResult, ...]  # most certain success first
    worst: tuple[PatternResult, ...]  # those that agents still get first, then most certain failure first
    least: int  # number of results that a pattern needs for a verdict
    undecided: int  # number of patterns with fewer results, but at least one
    experiment: ExperimentReport = NO_EXPERIMENT  # what holding lessons out by chance showed

    @property
    def missing(self) -> int:
        """Estimated further cases until the comparison is conclusive; 0 if it is."""
        enough = self.comparison.needed + min(self.comparison.loops)
        return sum(max(enough - count, 0) for count in self.comparison.loops) if self.comparison.needed else 0

    @property
    def sentence(self) -> str:
        """Answer in one sentence, without an average until the comparison is conclusive."""
        return self._describe(has_counts=True)

    @property
    def short_sentence(self) -> str:
        """The answer without the numbers of cases."""
        return self._describe(has_counts=False)

    def _describe(self, *, has_counts: bool) -> str:
        found, measure = self.comparison, self.measure
        having, lacking = found.loops
        if found.having is None or found.lacking is None or not found.is_conclusive:
            so_far = f" ({having:,} with and {lacking:,} without a lesson so far)" if having and has_counts else ""
            if found.needed > MAX_REQUIRED:
                return f"No difference can be seen{so_far}"
            missing = plural(self.missing, f"more {measure.wanted}", f"more {measure.wanted_several}")
            return f"Can't tell yet: about {missing}{so_far}"
        verb = "took" if found.having < found.lacking else "took longer with lessons:"
        averages = f"{found.having:.1f} {measure.unit}s instead of {found.lacking:.1f}"
        cases = f"{having:,} and {plural(lacking, measure.case)}; a real difference is likely"
        return f"{measure.subject} {verb} {averages} ({cases if has_counts else 'likely real'})"


def measure_lesson_effect(
    snapshot: Snapshot,
    board: Scoreboard,
    settings: Settings,
    loops: LoopCounts | None = None,
    *,
    is_running: bool = True,
) -> LessonEffect:
    """Compare work with and without lessons, and list the best and worst patterns.

    `loops` are those of the snapshot; `is_running` is whether the experiment goes on. Iterations of loops are compared
    only if no known error has both kinds of cases.
    """
    comparison, measure = compare_steps(snapshot, board.inputs, settings), Measure.STEPS
    if not comparison.groups:
        by_loops = compare_injection(snapshot, settings, loops)
        if by_loops.groups:
            comparison, measure = by_loops, Measure.ITERATIONS
    best, worst, undecided = rank_patterns(snapshot, board, settings)
    return LessonEffect(
        comparison=comparison,
        measure=measure,
        best=best,
        worst=worst,
        least=settings.extraction.min_usage_count_for_evaluation,
        undecided=undecided,
        experiment=measure_experiment(snapshot, board.now, is_running=is_running),
    )


class RankedPatterns(NamedTuple):
    """Best and worst patterns, and the number of patterns that have too few results."""

    best: tuple[PatternResult, ...]
    worst: tuple[PatternResult, ...]
    undecided: int


class _Case(NamedTuple):
    """One debug session that fixed a known error."""

    session_id: str
    pattern_id: str
    had_lesson: bool
    steps: int


def compare_steps(snapshot: Snapshot, inputs: EvidenceInputs, settings: Settings) -> Comparison:
    """Compare the steps to fix an error with and without its lesson, by the pattern.

    A case is one of the newest debug sessions that ended with passing checks. Its steps are the runs that failed with
    the error. It had the lesson if the error pattern was injected into its loop or attempt before the session ended. It
    had none if the pattern was found in it.
    """
    fixed = (one for one in snapshot.debug_sessions.values() if one.status == PASSED and one.newest_failing is not None)
    newest = nlargest(_MAX_SESSIONS, fixed, key=lambda session: (session.changed_at or _LONG_AGO, session.id))
    cases = [case for session in newest for case in _find_cases(session, inputs, snapshot.patterns)]
    frequency = Counter(case.pattern_id for case in cases)
    # Two patterns may describe one error: a session counts once, for the pattern with most sessions.
    by_session = group_pairs((case.session_id, case) for case in cases)
    counted = [
        max(own, key=lambda case: (case.had_lesson, frequency[case.pattern_id], case)) for own in by_session.values()
    ]
    groups = group_pairs((case.pattern_id, case) for case in counted)
    return compare_groups(
        (
            Group(
                pattern_id,
                tuple(case.steps for case in own if case.had_lesson),
                tuple(case.steps for case in own if not case.had_lesson),
            )
            for pattern_id, own in groups.items()
        ),
        settings,
    )


def _find_cases(session: DebugSession, inputs: EvidenceInputs, patterns: Mapping[str, Pattern]) -> Iterator[_Case]:
    for pattern_id, had_lesson in _list_lessons(session, inputs).items():
        pattern = patterns.get(pattern_id)
        if pattern is not None and pattern.type is PatternType.ERROR:
            steps = sum(any(matches_failure(pattern, one) for one in run.failures) for run in session.executions)
            if steps:
                yield _Case(session.id, pattern_id, had_lesson, steps)


def _list_lessons(session: DebugSession, inputs: EvidenceInputs) -> dict[str, bool]:
    """Return patterns that a session's work was given (True) or found itself (False)."""
    owner, end = inputs.names.session_owner(session), session.changed_at
    if not owner:
        return {}
    loop = inputs.snapshot.loops.get(owner)
    found = dict.fromkeys((one.pattern_id for one in loop.extracted), False) if loop is not None else {}
    given = [use.pattern_id for use in loop.injected] if loop is not None else []
    # Hooks extract from the task when its attempt has ended, and give patterns to the attempt.
    for name in {*inputs.names.names_of(owner), session.task_id} - {""}:
        for event in inputs.about_work(name):
            if event.kind == "extracted":
                found.setdefault(event.pattern_id, False)
            elif event.kind == "injected" and (end is None or event.at <= end):
                given.append(event.pattern_id)
    return found | dict.fromkeys(given, True)


def rank_patterns(snapshot: Snapshot, board: Scoreboard, settings: Settings) -> RankedPatterns:
    """List patterns with the most certain results, if enough for a verdict.

    A pattern is one of the worst if the rules deprecate a pattern with its share of failures.
    """
    good, bad = board.successes, board.failures
    low, high = board.interval
    has_verdict = good + bad >= settings.extraction.min_usage_count_for_evaluation
    is_failing = bad > (settings.maturity.deprecation_threshold + settings.maturity.ratio_tolerance) * (good + bad)
    best, worst = np.flatnonzero(has_verdict & ~is_failing), np.flatnonzero(has_verdict & is_failing)
    return RankedPatterns(
        _first_results(snapshot, board, best[np.argsort(-low[best], kind="stable")]),
        _first_results(snapshot, board, worst[np.lexsort((high[worst], ~board.injectable[worst]))]),
        int((~has_verdict & (good + bad > 0)).sum()),
    )


def _first_results(snapshot: Snapshot, board: Scoreboard, rows: Ints) -> tuple[PatternResult, ...]:
    """Return the results of the first registered patterns; only these are read."""
    ids = (board.ids[row] for row in rows.tolist())
    patterns = (pattern for id in ids if not (pattern := snapshot.patterns[id]).copy_folder)
    return tuple(_result(pattern, board) for pattern in islice(patterns, MAX_LISTED))


def _result(pattern: Pattern, board: Scoreboard) -> PatternResult:
    row = board.row(pattern.id)
    worked = int(board.successes[row])
    low, high = (float(end[row]) for end in board.interval)
    results = worked + int(board.failures[row])
    return PatternResult(
        pattern_id=pattern.id,
        name=pattern_title(pattern),
        worked=worked,
        results=results,
        low=low,
        high=high,
        is_given=bool(board.injectable[row]),
    )
