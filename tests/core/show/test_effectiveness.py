"""Effectiveness of patterns, pruning, accuracy of reviewers, and whether lessons help."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from msgspec.structs import replace

from core.base.settings import PruningSettings, Settings
from core.index.project_state import ProjectState
from core.learning.scoreboard import Scoreboard
from core.learning.statistics import MAX_REQUIRED
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.decisions import CurationState, Decision, InversionVerdict, UnreviewedText, Verb
from core.records.episodes import Attempt, Task
from core.records.events import INJECTED_REFLECTION, Event
from core.records.loops import ExtractedPattern, Loop, LoopStatus
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Snapshot
from core.show.metrics.effectiveness import (
    MIN_FOLLOWED,
    EffectivenessMetrics,
    Group,
    MeasuredBenefit,
    PruneRule,
    Pruning,
    compare_groups,
    compare_injection,
    compare_pattern,
    compare_reflections,
    compute_benefit,
    compute_effectiveness,
    count_states,
    measure_accuracy,
    select_prunable,
)
from core.show.metrics.lesson_effect import LessonEffect, Measure, measure_lesson_effect
from tests.core.project.test_as_of import view_of
from tests.factories import (
    NOW,
    SETTINGS,
    days_ago,
    make_board,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_source,
    make_use,
)

DOCUMENT = {
    "total_patterns": 47,
    "patterns_by_type": {"error_patterns": 24, "success_patterns": 15, "anti_patterns": 5, "code_templates": 3},
    "pattern_usage_stats": {
        "total_applications": 156,
        "successful_applications": 142,
        "failed_applications": 14,
        "overall_success_rate": 0.91,
    },
    "cross_loop_benefit": {
        "loops_with_pattern_injection": 23,
        "loops_without_pattern_injection": 8,
        "average_iterations_with": 3.2,
        "average_iterations_without": 5.1,
        "improvement_percentage": 37.3,
    },
    "last_updated": "2026-02-02T20:00:00Z",
}
"""Example of the pattern file format."""
PATTERN = make_pattern(recorded_counts=make_recorded_counts(3, 1))


def loop(
    number: int, iteration: int | None, injected: bool = False, pattern_id: str = PATTERN.id, **fields: object
) -> Loop:
    defaults = {
        "id": f"ralph-{number}",
        "status": LoopStatus.COMPLETED,
        "task": "Fix the crash",
        "iteration": iteration,
        "injected": (make_use(pattern_id, True),) if injected else (),
    }
    return Loop(**{**defaults, **fields})  # type: ignore[arg-type]


def known(*loops: Loop, events: tuple[Event, ...] = ()) -> Snapshot:
    return Snapshot(patterns={PATTERN.id: PATTERN}, loops={one.id: one for one in loops}, events=events)


def board_of(snapshot: Snapshot) -> Scoreboard:
    return Scoreboard.build(snapshot, NOW, SETTINGS)


def test_example_metrics_round_trip() -> None:
    assert to_builtins(convert(DOCUMENT, EffectivenessMetrics)) == DOCUMENT
    assert to_builtins(compute_benefit(23, 8, 3.2, 5.1)) == DOCUMENT["cross_loop_benefit"]


def test_metrics_are_those_of_the_evidence() -> None:
    anti = make_pattern("pat-anti-early-001", PatternType.ANTI, recorded_counts=make_recorded_counts(2, 0))
    mirrored = make_pattern(
        "pat-error-mirrored-001", copy_folder=".aiwg/ralph/memory/patterns", recorded_counts=make_recorded_counts(9, 0)
    )
    snapshot = Snapshot(
        patterns={one.id: one for one in (PATTERN, anti, mirrored)},
        loops={
            one.id: one
            for one in (
                loop(1, 3, injected=True),
                loop(2, 4, injected=True),
                loop(3, 5),
                loop(4, 40, status=LoopStatus.LIMIT),
                loop(5, None),
            )
        },
    )
    board = board_of(snapshot)
    found = to_builtins(compute_effectiveness(snapshot, board, NOW))
    assert found["total_patterns"] == 2
    assert found["patterns_by_type"] == {
        "error_patterns": 1,
        "success_patterns": 0,
        "anti_patterns": 1,
        "code_templates": 0,
    }
    assert found["pattern_usage_stats"] == {
        "total_applications": 6,
        "successful_applications": 5,
        "failed_applications": 1,
        "overall_success_rate": 0.83,
    }
    assert found["cross_loop_benefit"] == {
        "loops_with_pattern_injection": 2,
        "loops_without_pattern_injection": 3,
        "average_iterations_with": 3.5,
        "average_iterations_without": 5.0,
        "improvement_percentage": 30.0,
        "completed_loops_with": 2,
        "completed_loops_without": 1,  # of one completed loop the iterations are unknown
        "failed_loops_with": 0,
        "failed_loops_without": 1,
        "average_iterations_failed_with": None,
        "average_iterations_failed_without": 40.0,
    }
    assert count_states(snapshot, board) == {"candidate": 1, "established": 1, "proven": 0, "deprecated": 0}


def test_events_report_injections_and_failures_also_of_the_attempts_of_a_session() -> None:
    events = (
        make_event(1, "injected", days_ago(1), loop_id="other-name"),
        make_event(2, "outcome", days_ago(1), pattern_id="", loop_id="ralph-2", success=False),
    )
    snapshot = known(loop(1, 3, aliases=("other-name",)), loop(2, 9), loop(3, 5), events=events)
    found = compute_effectiveness(snapshot, board_of(snapshot), NOW).cross_loop_benefit
    assert (found.loops_with_pattern_injection, found.loops_without_pattern_injection) == (1, 2)
    assert (found.average_iterations_with, found.average_iterations_without) == (3.0, 5.0)
    assert isinstance(found, MeasuredBenefit)
    assert (found.failed_loops_without, found.average_iterations_failed_without) == (1, 9.0)
    given = (make_event(1, "injected", days_ago(1), pattern_id=PATTERN.id, loop_id="task-001.1"),)
    session = Loop(id="claude:s1", runner="claude", status=LoopStatus.COMPLETED)
    tasks = {"task-001": Task(id="task-001", loop_id=session.id)}
    attempts = {"task-001.1": Attempt(task_id="task-001", number=1)}
    snapshot = known(session, events=given).with_changes(tasks=tasks, attempts=attempts)
    found = compute_effectiveness(snapshot, board_of(snapshot), NOW).cross_loop_benefit
    assert (found.loops_with_pattern_injection, found.loops_without_pattern_injection) == (1, 0)


def test_the_uses_of_an_inverted_pattern_count_once() -> None:
    inverted = replace(PATTERN, type=PatternType.ANTI, id="pat-anti-sample-001", inverted_from=PATTERN.id)
    events = [make_event(n, "applied", days_ago(9), loop_id=f"loop-{n}", success=n < 2) for n in range(5)]
    events = [replace(event, pattern_id=PATTERN.id) for event in events]
    snapshot = Snapshot(patterns={one.id: one for one in (PATTERN, inverted)}, events=tuple(events))
    board = board_of(snapshot)
    before = compute_effectiveness(known(events=tuple(events)), board_of(known(events=tuple(events))), NOW)
    assert board.results(inverted.id) == board.results(PATTERN.id)[::-1]
    assert compute_effectiveness(snapshot, board, NOW).pattern_usage_stats == before.pattern_usage_stats


def test_unknown_metrics_are_none() -> None:
    snapshot = Snapshot()
    found = compute_effectiveness(snapshot, board_of(snapshot), NOW)
    assert found.pattern_usage_stats.overall_success_rate is None
    assert found.cross_loop_benefit.improvement_percentage is None
    assert compare_injection(snapshot, SETTINGS).verdict == "not enough data: about 3 more sessions per group"


def test_loops_with_reflections_are_compared_with_others() -> None:
    loops = [loop(n, 3 + n % 2) for n in range(6)] + [loop(10 + n, 8 + n % 2) for n in range(6)]
    events = tuple(
        make_event(n, INJECTED_REFLECTION, days_ago(1), pattern_id="", loop_id=loops[n].id, reflection_id="refl-1")
        for n in range(6)
    )
    snapshot = known(*loops, events=events)
    found = compare_reflections(snapshot, SETTINGS)
    assert found.loops == (6, 6)
    assert found.is_conclusive and found.difference == pytest.approx(-5.0)
    compute_benefit = compute_effectiveness(snapshot, board_of(snapshot), NOW).cross_loop_benefit
    assert compute_benefit.loops_with_pattern_injection == 0


def test_loops_are_compared_within_a_category() -> None:
    hard, easy = "Migrate the database to Postgres", "Document the login"
    loops = [
        *(loop(n, 9 + n % 2, injected=True, task=hard) for n in range(8)),
        *(loop(10 + n, 11 + n % 2, task=hard) for n in range(3)),
        *(loop(20 + n, 2 + n % 2, injected=True, task=easy) for n in range(2)),
        *(loop(30 + n, 4 + n % 2, task=easy) for n in range(9)),
        loop(99, 50, task="Zzz"),
    ]
    snapshot = known(*loops)
    plain = compute_effectiveness(snapshot, board_of(snapshot), NOW).cross_loop_benefit
    assert plain.improvement_percentage is not None and plain.improvement_percentage < 20
    found = compare_injection(snapshot, SETTINGS)
    assert [(group.category, len(group.having), len(group.lacking)) for group in found.groups] == [
        ("documentation", 2, 9),
        ("migration", 8, 3),
    ]
    assert found.is_conclusive and found.difference == pytest.approx(-1.9, abs=0.2)
    assert found.low is not None and found.difference is not None and found.high is not None
    assert found.low < found.difference < found.high < 0


def test_an_inconclusive_comparison_names_the_number_of_loops_needed() -> None:
    found = compare_groups([Group("debugging", (2, 6, 3, 7, 4), (3, 8, 4, 7, 5))], SETTINGS)
    assert not found.is_conclusive
    # Two samples of this size show one iteration at a variance of 4.3 with 80 % at a level of 90 %.
    assert found.difference == pytest.approx(-1.0)
    assert found.verdict == "not enough data: about 49 more sessions per group"
    same = compare_groups([Group("", (2, 6, 3), (2, 6, 3))], SETTINGS)
    assert same.needed > MAX_REQUIRED and same.verdict == "not enough data: more than 10,000 more sessions per group"


def test_one_pattern_is_compared_with_loops_without_any() -> None:
    loops = [
        *(loop(n, 3, injected=True) for n in range(3)),
        *(loop(10 + n, 5) for n in range(3)),
        *(loop(20 + n, 1, injected=True, pattern_id="pat-error-other-002") for n in range(5)),
    ]
    snapshot = known(*loops)
    assert compare_pattern(snapshot, board_of(snapshot), PATTERN.id, SETTINGS).verdict == "-2.0 iterations"


counts = st.lists(st.integers(1, 60), max_size=5).map(tuple)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(["", "testing", "debugging"]), counts, counts), max_size=3))
def test_the_interval_contains_the_difference_and_is_antisymmetric(
    groups: list[tuple[str, tuple[int, ...], tuple[int, ...]]],
) -> None:
    found = compare_groups([Group(*group) for group in groups], SETTINGS)
    turned = compare_groups([Group(name, lacking, having) for name, having, lacking in groups], SETTINGS)
    assert (found.needed, found.is_conclusive) == (turned.needed, turned.is_conclusive)
    assert found.is_conclusive or found.needed > 0
    if found.low is None or found.high is None:
        return
    assert found.difference is not None and turned.difference is not None
    assert found.low < found.difference < found.high
    assert math.isclose(found.difference, -turned.difference, abs_tol=1e-9)
    assert found.is_conclusive == (found.low > 0 or found.high < 0)
    surer = compare_groups([Group(*group) for group in groups], Settings(interval_level=0.99))
    assert surer.low is not None and surer.low < found.low


ID = "pat-error-sample-001"
POLICY = PruningSettings()


def pruned(pattern: Pattern, curation: CurationState | None = None, policy: PruningSettings = POLICY) -> list[Pruning]:
    curation = curation or CurationState()
    snapshot = Snapshot(patterns={pattern.id: pattern}, curation=curation)
    return list(select_prunable(snapshot, make_board(pattern, curation=curation), policy))


def failing(**fields: Any) -> Pattern:
    """A pattern below the rate of the policy, but not bad enough for inversion."""
    return make_pattern(**{"recorded_counts": make_recorded_counts(9, 11), "last_used": days_ago(1), **fields})


def test_a_low_rate_of_enough_uses_is_pruned_with_a_reason() -> None:
    (found,) = pruned(failing())
    assert found.rules == (PruneRule.RATE,)
    assert found.reason == "45% of 20 uses succeeded, below 50%"
    assert (found.rate, found.uses) == (0.45, 20)
    for good, bad, goes in ((1, 1, False), (5, 5, False), (4, 5, True), (0, 2, False)):
        assert bool(pruned(failing(recorded_counts=make_recorded_counts(good, bad)))) is goes, (good, bad)
    assert not pruned(failing(), policy=PruningSettings(min_success_rate=0.4))
    assert not pruned(failing(), policy=PruningSettings(min_usage_count=21))
    assert pruned(failing(), policy=PruningSettings(min_usage_count=20))
    assert not pruned(failing(recorded_counts=make_recorded_counts(2, 18))), "inversion comes before pruning"
    assert not pruned(failing(copy_folder=".aiwg/ralph/memory"))
    anti: dict[str, Any] = {"id": "pat-anti-sample-001", "type": PatternType.ANTI}
    assert pruned(failing(**anti))[0].rules == (PruneRule.RATE,), "the avoided approach works"
    assert not pruned(failing(recorded_counts=make_recorded_counts(19, 1), **anti))


def test_age_counts_from_the_last_activity() -> None:
    rows: list[tuple[dict[str, Any], bool]] = [
        ({"last_used": days_ago(90)}, False),
        ({"last_used": days_ago(91)}, True),
        ({"last_used": days_ago(1), "first_discovered": days_ago(900)}, False),
        ({"source_loops": (make_source("ralph-a", days_ago(200)), make_source("ralph-b", days_ago(2)))}, False),
        ({"source_loops": (make_source("ralph-a", days_ago(200)),)}, True),
        ({"first_discovered": days_ago(200)}, True),
        ({}, False),
    ]
    for fields, goes in rows:
        rules = [found.rules for found in pruned(make_pattern(**fields))]
        assert rules == ([(PruneRule.UNUSED,)] if goes else []), fields
    assert pruned(make_pattern(last_used=days_ago(8)), policy=PruningSettings(max_age_days=7))


def arrived(kind: str, blocks: bool, reviewed: frozenset[str] = frozenset()) -> CurationState:
    return CurationState(
        arrivals={ID: UnreviewedText(kind=kind, at=NOW, by="ada", decision_id="d1", blocks=blocks, reviewed=reviewed)}
    )


def test_decided_and_pending_patterns_are_not_pruned() -> None:
    rejected = InversionVerdict(verdict="rejected", at=NOW, failures=11)
    rows: list[tuple[CurationState, bool]] = [
        (CurationState(pins={ID: make_pin(Maturity.PROVEN, NOW)}), False),
        (CurationState(pins={ID: make_pin(Maturity.DEPRECATED, NOW)}), False),
        (CurationState(pins={ID: make_pin(Maturity.PROVEN, NOW, content_hash="another text")}), False),
        (arrived("import", True), False),
        (arrived("import", True, frozenset({"seen"})), True),
        (arrived("extraction", False), True),
        (CurationState(inversions={ID: rejected}), False),
    ]
    for curation, goes in rows:
        assert bool(pruned(failing(last_used=days_ago(400)), curation)) is goes, curation


def decision(number: int, verb: Verb, subject: str, when: datetime, by: str = "ana") -> Decision:
    return Decision(id=f"d{number:04d}", at=when, by=by, verb=verb, subject=subject)


def results(pattern_id: str, good: int, bad: int, days: float = 5) -> list[Event]:
    """Make results of different loops, all at the same time."""
    return [
        Event(
            id=f"{pattern_id} {days} {number}",
            at=days_ago(days),
            kind="applied",
            pattern_id=pattern_id,
            loop_id=f"{pattern_id} {days} {number}",
            success=number < good,
        )
        for number in range(good + bad)
    ]


def history(good: int, bad: int, verb: Verb = Verb.PROMOTE) -> ProjectState:
    """Project with `good` decisions that later results confirm and `bad` ones that they refute."""
    events: list[Event] = []
    decisions = []
    for number in range(good + bad):
        fine = (number < good) is (verb is Verb.PROMOTE)
        events += results(f"p{number}", 3 if fine else 1, 0 if fine else 2)
        decisions.append(decision(number, verb, f"p{number}", days_ago(9)))
    patterns = [make_pattern(f"p{number}") for number in range(good + bad)]
    return view_of(*patterns, events=tuple(events), decisions=tuple(decisions))


def test_a_rate_needs_thirty_followed_decisions_of_a_kind() -> None:
    few = measure_accuracy(history(20, 9), "ana").promotions
    assert (few.made, few.followed, few.held, few.missing, few.rate, few.low) == (29, 29, 20, 1, None, None)
    enough = measure_accuracy(history(20, 10), "ana").promotions
    assert (enough.followed, enough.missing) == (MIN_FOLLOWED, 0)
    assert enough.rate is not None and enough.low is not None and enough.high is not None
    assert enough.low < enough.rate < enough.high
    found = measure_accuracy(history(2, 1, Verb.DEPRECATE), "ana")
    assert (found.deprecations.followed, found.deprecations.held, found.promotions.made) == (3, 2, 0)


def test_only_counting_decisions_in_effect_count_until_the_next() -> None:
    events = (*results("p", 3, 0, days=7), *results("p", 0, 3, days=3))
    decisions = (
        decision(1, Verb.PROMOTE, "p", days_ago(8)),
        decision(2, Verb.RESET, "p", days_ago(5), by="dana"),
        decision(3, Verb.PROMOTE, "p", days_ago(4), by="dana"),
        decision(4, Verb.PROMOTE, "p", NOW),
        decision(5, Verb.PROMOTE, "gone", days_ago(8)),
    )
    view = view_of(make_pattern("p"), events=events, decisions=decisions)
    own, other = measure_accuracy(view, "ana").promotions, measure_accuracy(view, "dana").promotions
    assert (own.made, own.followed, own.held) == (3, 1, 1)
    assert (other.made, other.followed, other.held) == (1, 1, 0)


TYPO = make_pattern("pat-typo", error_pattern="no attribute", description="Spell it right")
NULL = make_pattern("pat-null", error_pattern="NoneType", description="Check for None")
MESSAGES = {TYPO.id: "module has no attribute x", NULL.id: "'NoneType' object"}


def session(number: int, pattern_id: str, steps: int, status: str = "passed") -> DebugSession:
    """A session of the loop with this number: its runs fail with the error, then pass."""
    failing = Execution(at=days_ago(1), failures=(Failure(message=MESSAGES[pattern_id]),))
    runs = (*[failing] * steps, Execution(at=days_ago(1)))
    return DebugSession(id=f"s{number}", status=status, executions=runs, loop_id=f"loop-{number}")


def work(number: int, pattern_id: str, had_lesson: bool) -> Loop:
    if had_lesson:
        return Loop(id=f"loop-{number}", injected=(make_use(pattern_id, None, applied=False),))
    return Loop(id=f"loop-{number}", extracted=(ExtractedPattern(pattern_id=pattern_id),))


def measure(
    cases: Iterable[tuple[str, bool, int]],
    *others: Loop,
    patterns: tuple[Pattern, ...] = (TYPO, NULL),
    events: tuple[Event, ...] = (),
    sessions: tuple[DebugSession, ...] = (),
) -> LessonEffect:
    """Measure cases of (pattern, had its lesson, steps), and other records."""
    numbered = list(enumerate(cases))
    loops = (*(work(number, id, had) for number, (id, had, _) in numbered), *others)
    every = (*(session(number, id, steps) for number, (id, _, steps) in numbered), *sessions)
    snapshot = Snapshot(
        patterns={one.id: one for one in patterns},
        loops={one.id: one for one in loops},
        debug_sessions={one.id: one for one in every},
        events=events,
    )
    return measure_lesson_effect(snapshot, Scoreboard.build(snapshot, NOW, SETTINGS), SETTINGS)


CLEAR = [
    *[(TYPO.id, True, 1)] * 4,
    *[(TYPO.id, False, 3), (TYPO.id, False, 4)],
    *[(NULL.id, True, 2)] * 4,
    *[(NULL.id, False, 5)] * 2,
]


def test_a_clear_difference_is_answered_with_averages_and_cases() -> None:
    found = measure(CLEAR)
    assert found.sentence == "Known errors took 1.5 steps instead of 4.2 (8 and 4 cases; a real difference is likely)"
    assert found.missing == 0
    worse = measure([(id, not had, steps) for id, had, steps in CLEAR])
    assert worse.sentence.startswith("Known errors took longer with lessons: 4.2 steps instead of 1.5")
    failed = session(20, TYPO.id, 7, "failed")
    assert measure(CLEAR, work(20, TYPO.id, True), sessions=(failed,)).comparison.loops == (8, 4)
    twin = make_pattern("pat-a-twin", error_pattern="attribute")
    extra = Event(id="e", at=days_ago(2), kind="injected", pattern_id=twin.id, loop_id="loop-0")
    twice = measure(CLEAR, patterns=(TYPO, NULL, twin), events=(extra,))
    assert twice.comparison.loops == (8, 4), "two patterns for one error count its session once"


def test_errors_are_compared_only_with_the_same_error() -> None:
    """The harder error had lessons only: it must not make lessons look slow."""
    found = measure([*CLEAR[:6], *[(NULL.id, True, 9)] * 5])
    assert [group.category for group in found.comparison.groups] == [TYPO.id]
    assert found.comparison.having == 1


def test_too_few_cases_give_no_average_but_the_number_that_is_missing() -> None:
    found = measure([(TYPO.id, True, 1), (TYPO.id, True, 1), (TYPO.id, False, 9)])
    assert found.missing == 3  # one with a lesson and two without
    assert found.sentence.startswith("Can't tell yet: about 3 more sessions with a known error")
    assert "9" not in found.sentence
    found = measure([])
    assert found.sentence == "Can't tell yet: about 6 more sessions with a known error"
    assert (found.best, found.worst) == ((), ())


def test_a_lesson_that_came_after_the_session_does_not_count_as_given() -> None:
    def given(number: int, when: float) -> Event:
        return Event(id=f"e{number}", at=days_ago(when), kind="injected", pattern_id=TYPO.id, loop_id=f"loop-{number}")

    cases = [(TYPO.id, False, 3)] * 4
    assert measure(cases, events=(given(0, 2), given(1, 0.5))).comparison.loops == (1, 3)


def test_loops_are_compared_where_no_known_error_can_be() -> None:
    def ended(number: int, iterations: int, *uses: str) -> Loop:
        injected = tuple(make_use(id, True) for id in uses)
        return Loop(
            id=f"l{number}", status=LoopStatus.COMPLETED, task="Fix it", iteration=iterations, injected=injected
        )

    loops = [ended(number, 2, TYPO.id) for number in range(4)] + [ended(10 + number, 6) for number in range(4)]
    found = measure([], *loops)
    assert found.measure is Measure.ITERATIONS
    assert found.sentence == (
        "Sessions with lessons took 2.0 iterations instead of 6.0 (4 and 4 sessions; a real difference is likely)"
    )


def pattern(name: str, good: int, bad: int, type: PatternType = PatternType.SUCCESS) -> Pattern:
    return make_pattern(name, type, title=f"Title {name}", recorded_counts=make_recorded_counts(good, bad))


def test_best_and_worst_patterns_are_those_with_the_most_certain_results() -> None:
    known = (pattern("a", 3, 0), pattern("b", 30, 1), pattern("c", 2, 0), pattern("d", 1, 9), pattern("e", 2, 1))
    found = measure([], patterns=known)
    assert [(one.pattern_id, one.score) for one in found.best] == [("b", "30 of 31"), ("a", "3 of 3")]
    assert [one.pattern_id for one in found.worst] == ["d", "e"]
    assert found.undecided == 1
    assert all(one.low <= one.worked / one.results <= one.high for one in (*found.best, *found.worst))


def test_patterns_that_agents_still_get_are_the_first_of_the_worst() -> None:
    known = (pattern("bad", 1, 9), pattern("pinned", 3, 2))
    curation = CurationState(pins={"pinned": make_pin(Maturity.PROVEN, days_ago(1))})
    snapshot = Snapshot(patterns={one.id: one for one in known}, curation=curation)
    found = measure_lesson_effect(snapshot, Scoreboard.build(snapshot, NOW, SETTINGS), SETTINGS)
    assert [(one.pattern_id, one.is_given) for one in found.worst] == [("pinned", True), ("bad", False)]
