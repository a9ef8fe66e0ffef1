"""Effectiveness of patterns: the example, and samples that are too small."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from msgspec.structs import replace

from core.base.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.learning.statistics import MAX_REQUIRED
from core.records.episodes import Attempt, Task
from core.records.events import INJECTED_REFLECTION, Event
from core.records.loops import Loop, LoopStatus
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot
from core.show.metrics.effectiveness import (
    EffectivenessMetrics,
    Group,
    MeasuredBenefit,
    compare_groups,
    compare_injection,
    compare_pattern,
    compare_reflections,
    compute_benefit,
    compute_effectiveness,
    count_states,
)
from tests.factories import NOW, SETTINGS, days_ago, make_event, make_pattern, make_recorded_counts, make_use

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


def test_events_report_injections_and_failures() -> None:
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


def test_what_an_attempt_was_given_counts_for_the_session_that_made_it() -> None:
    session = Loop(id="claude:s1", runner="claude", status=LoopStatus.COMPLETED)
    snapshot = Snapshot(
        patterns={PATTERN.id: PATTERN},
        loops={session.id: session},
        tasks={"task-001": Task(id="task-001", loop_id=session.id)},
        attempts={"task-001.1": Attempt(task_id="task-001", number=1)},
        events=(make_event(1, "injected", days_ago(1), pattern_id=PATTERN.id, loop_id="task-001.1"),),
    )
    found = compute_effectiveness(snapshot, Scoreboard.build(snapshot, NOW, SETTINGS), NOW).cross_loop_benefit
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
