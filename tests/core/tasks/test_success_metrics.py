"""Success metrics of the task memory, and whether reflections improve retries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.learning.outcomes import WorkReport, collect_reports
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.loops import Loop, Outcome
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.tasks.success_metrics import (
    READ_LATENCY_SECONDS,
    TARGET_IMPROVEMENT,
    AttemptGroup,
    GroupComparison,
    RetryImprovement,
    compare_attempt_groups,
    format_points,
    measure_audit_trail,
    measure_improvement,
    measure_latency,
    measure_success,
)

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
EXAMPLES = ProjectPaths(Path(__file__).parents[2] / "trees/spec-examples")


def attempt(number: int, **fields: Any) -> Attempt:
    return Attempt(
        **{"task_id": "t", "number": number, "outcome": Outcome.SUCCESS, "actions": 2, "errors": 0, **fields}
    )


def reflection(number: int) -> Reflection:
    return Reflection(id=f"r{number}", shape="episodic", file="f", task_id="t", attempt=number)


def test_example_of_the_documentation() -> None:
    snapshot = Index(EXAMPLES, Settings(), clock=lambda: NOW, is_kept=False).load()
    found = measure_success(snapshot, {"task-001": 0.002, "task-002": 0.001}, NOW, Settings())
    assert (found.audit.ended, found.audit.complete, found.audit.met) == (3, 3, True)
    assert (found.latency.tasks, found.latency.slowest_task, found.latency.met) == (2, "task-001", True)
    assert (found.covers, found.improves) == (False, None)
    assert found.coverage.tracked == ()  # its tasks name no loop
    improvement = measure_improvement(snapshot.attempts.values(), snapshot.reflections.values(), {}, SETTINGS)
    assert counts(improvement) == [(0, 1), (1, 1), (0, 0)]
    assert improvement.against_first.difference == 0.5
    assert improvement.against_first.verdict == "not enough data: about 2 more attempts per group"
    assert improvement.against_unreflected.verdict == "not enough data: about 3 more attempts per group"
    nothing = measure_success(Snapshot(), {}, NOW, Settings())
    assert (nothing.covers, nothing.latency.met, nothing.improves, nothing.audit.met) == (None, None, None, None)
    latency = measure_latency({"a": 0.001, "b": READ_LATENCY_SECONDS, "c": 0.002})
    assert (latency.met, latency.slowest_task, latency.median) == (False, "b", 0.002)


def test_incomplete_attempts_are_listed_by_id() -> None:
    found = measure_audit_trail(
        [
            attempt(1),
            attempt(2, actions=0),
            attempt(3, errors=None),  # only claimed by the metadata: there is no log
            attempt(4, outcome=Outcome.UNKNOWN, ended_at=NOW),
            attempt(5),
            attempt(6, outcome=Outcome.UNKNOWN),  # open
        ],
        map(reflection, (1, 2, 3, 4)),
    )
    assert (found.ended, found.complete, found.met) == (5, 1, False)
    assert found.without_actions == ("t.2", "t.3")
    assert (found.without_outcome, found.without_reflection) == (("t.4",), ("t.5",))


@pytest.mark.parametrize(("ids", "covers"), [(("a", "b"), True), (("a",), False)])
def test_coverage_goal_needs_all_loops(ids: tuple[str, ...], covers: bool) -> None:
    snapshot = Snapshot(
        loops={id: Loop(id=id) for id in "ab"}, tasks={id: Task(id=f"task-{id}", loop_id=id) for id in ids}
    )
    assert measure_success(snapshot, {}, NOW, Settings()).covers is covers


def test_open_attempts_are_listed_by_state() -> None:
    asleep, awake = NOW - timedelta(days=1), NOW - timedelta(minutes=1)
    attempts = [
        attempt(1, task_id="a", outcome=Outcome.UNKNOWN, started_at=asleep),
        attempt(1, task_id="b", outcome=Outcome.UNKNOWN, started_at=awake),
    ]
    found = measure_success(Snapshot(attempts={one.id: one for one in attempts}), {}, NOW, Settings())
    assert (found.running, found.paused, found.left) == (("b.1",), (), ("a.1",))


SETTINGS = Settings()


def hour(number: float) -> datetime:
    return NOW + timedelta(hours=number)


def timed_attempt(number: int, outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> Attempt:
    return Attempt(**{"task_id": "t", "number": number, "outcome": outcome, "started_at": hour(number), **fields})


def timed_reflection(number: int, at: datetime | None, **fields: Any) -> Reflection:
    return Reflection(
        **{"id": f"r{number}", "shape": "episodic", "file": "f", "task_id": "t", "at": at, **fields}, attempt=number
    )


def improved(*attempts: Attempt, reflections: tuple[Reflection, ...] = (), **reports: WorkReport) -> RetryImprovement:
    result = {id.replace("_", "."): report for id, report in reports.items()}
    return measure_improvement(attempts, reflections, result, SETTINGS)


def counts(found: RetryImprovement) -> list[tuple[int, int]]:
    return [(group.successes, group.failures) for group in (found.first, found.reflected, found.unreflected)]


@pytest.mark.parametrize(
    ("written", "reflected"),
    [
        (timed_reflection(1, hour(1.9)), True),
        (timed_reflection(1, hour(2)), True),
        (timed_reflection(1, hour(2.1)), False),  # the retry had begun
        (timed_reflection(1, hour(9), at_approximate=True), True),  # only the numbers decide
        (timed_reflection(1, None), True),
        (timed_reflection(2, hour(1)), False),  # on the retry itself
        (timed_reflection(1, hour(1), task_id="other"), False),
        (timed_reflection(1, hour(9), drafted_at=hour(1.5)), True),  # replaced a draft that existed
        (timed_reflection(1, hour(1.5), draft=True, learning="Avoid: x."), True),
        (timed_reflection(1, hour(1.5), draft=True, learning=""), False),
    ],
)
def test_retry_has_reflections_if_one_existed_before_it_started(written: Reflection, reflected: bool) -> None:
    found = improved(timed_attempt(1, Outcome.FAILURE), timed_attempt(2), reflections=(written,))
    assert counts(found) == [(0, 1), *([(1, 0), (0, 0)] if reflected else [(0, 0), (1, 0)])]


def test_attempts_without_outcome_are_listed_separately() -> None:
    found = improved(
        timed_attempt(1, Outcome.UNKNOWN),
        timed_attempt(2, Outcome.UNKNOWN, ended_at=NOW),
        timed_attempt(3, Outcome.PARTIAL),
        timed_attempt(4, Outcome.TIMEOUT),
    )
    assert (found.open, found.unclear) == (("t.1",), ("t.2", "t.3"))
    assert counts(found) == [(0, 0), (0, 0), (0, 1)]
    first = improved(timed_attempt(0, Outcome.FAILURE), timed_attempt(1), timed_attempt(2, task_id="u"))
    assert counts(first) == [(0, 1), (0, 0), (2, 0)], "attempt 0 is the first one"


def test_report_on_an_attempt_overrides_its_files() -> None:
    failed = Event(id="e1", at=NOW, kind="outcome", loop_id="t.1", success=False)
    found = measure_improvement([timed_attempt(1)], (), collect_reports([failed]), SETTINGS)
    assert counts(found)[0] == (0, 1)


def group(successes: int, failures: int) -> AttemptGroup:
    return AttemptGroup.of(successes, failures, SETTINGS.interval_level)


def test_small_difference_gives_the_number_of_missing_attempts() -> None:
    clear = compare_attempt_groups(group(45, 5), group(20, 30), SETTINGS)
    assert clear.is_conclusive and clear.verdict == "+50 percentage points"
    assert clear.relative == pytest.approx(1.25)
    assert clear.reaches(TARGET_IMPROVEMENT) is True
    small = compare_attempt_groups(group(11, 9), group(9, 11), SETTINGS)
    assert not small.is_conclusive and small.reaches(TARGET_IMPROVEMENT) is None
    # Each group needs about 2 * .25 * (1.645 + .842)² / .1² = 309; 20 are there.
    assert small.needed == pytest.approx(289, abs=3)
    assert small.verdict == f"not enough data: about {small.needed} more attempts per group"
    some = compare_attempt_groups(group(160, 40), group(110, 90), SETTINGS)
    assert some.is_conclusive and some.reaches(TARGET_IMPROVEMENT) is None
    equal = compare_attempt_groups(group(5, 5), group(5, 5), SETTINGS)
    assert equal.verdict == "not enough data: more than 10,000 more attempts per group"
    assert compare_attempt_groups(group(1, 0), group(0, 1), SETTINGS).relative is None, "there was no success"
    assert GroupComparison(having=AttemptGroup(), lacking=AttemptGroup()).relative is None
    worse = compare_attempt_groups(group(5, 45), group(45, 5), SETTINGS)
    assert worse.is_conclusive and worse.reaches(TARGET_IMPROVEMENT) is False


def test_percentage_points_are_rounded_away_from_zero() -> None:
    assert [format_points(one) for one in (0.125, -0.125, -0.001, 1.0)] == ["+13", "-13", "0", "+100"]


sizes = st.integers(0, 60)


@given(sizes, sizes, sizes, sizes)
def test_intervals_contain_the_observed_rates(good: int, bad: int, other_good: int, other_bad: int) -> None:
    one, other = group(good, bad), group(other_good, other_bad)
    for each in (one, other):
        assert 0 <= each.low <= each.high <= 1
        assert each.rate is None or each.low <= each.rate <= each.high
    found, turned = compare_attempt_groups(one, other, SETTINGS), compare_attempt_groups(other, one, SETTINGS)
    if found.low is None or found.high is None or turned.high is None or found.difference is None:
        assert min(one.attempts, other.attempts) < 3 and found.needed > 0 and not found.is_conclusive
        return
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.low == pytest.approx(-turned.high)
    assert found.is_conclusive == (found.low > 0 or found.high < 0)


outcomes = st.sampled_from(Outcome)
some_attempts = st.lists(
    st.builds(
        Attempt,
        task_id=st.sampled_from("ab"),
        number=st.integers(1, 4),
        outcome=outcomes,
        started_at=st.none() | st.integers(0, 9).map(hour),
        ended_at=st.none() | st.just(NOW),
    )
)
some_reflections = st.lists(
    st.builds(
        Reflection,
        id=st.just("r"),
        shape=st.just("episodic"),
        file=st.just("f"),
        task_id=st.sampled_from(["a", "b", ""]),
        attempt=st.none() | st.integers(1, 4),
        at=st.none() | st.integers(0, 9).map(hour),
    )
)


@given(some_attempts, some_reflections)
def test_every_attempt_is_counted_once(attempts: list[Attempt], reflections: list[Reflection]) -> None:
    found = measure_improvement(attempts, reflections, {}, SETTINGS)
    kinds = (found.first, found.reflected, found.unreflected)
    assert sum(kind.attempts for kind in kinds) + len(found.open) + len(found.unclear) == len(attempts)
    without = measure_improvement(attempts, (), {}, SETTINGS)
    assert without.reflected.attempts == 0 and without.first == found.first
    assert without.unreflected.attempts == found.reflected.attempts + found.unreflected.attempts
