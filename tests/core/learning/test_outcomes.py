from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.base.formatting import format_decimal
from core.base.settings import LearningSettings
from core.learning.outcomes import (
    CriterionWeight,
    FeedbackEvent,
    OutcomeSignals,
    Verdict,
    WorkReport,
    apply_weights,
    attempt_signals,
    attempt_success,
    collect_reports,
    count_errors,
    criterion_weight,
    effective_weight,
    format_duration_ms,
    loop_signals,
    loop_success,
    report_signals,
    score_outcome,
    should_deprecate_criterion,
    verdict_of,
)
from core.records.debug_sessions import DebugSession, Execution, Failure, Results
from core.records.episodes import Attempt
from core.records.events import ErrorNote, ErrorType, Event, Signals
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from tests.factories import NOW, days_ago, make_event

MINUTE_MS = 60_000


def signals(**fields: Any) -> OutcomeSignals:
    """Signals of a success in 12 minutes without errors and retries, by default."""
    values = {"duration_ms": 12 * MINUTE_MS, "error_count": 0, "retry_count": 0, "success": True, "timestamp": NOW}
    return OutcomeSignals(bead_id="bd-123.1", **{**values, **fields})


def test_age_lowers_the_score_and_leaves_the_verdict() -> None:
    outcome = score_outcome(signals(timestamp=days_ago(90).isoformat()), NOW.isoformat())
    assert (outcome.decay, outcome.decayed) == pytest.approx((0.5, 0.46))
    assert outcome.verdict is Verdict.HELPFUL
    assert score_outcome(signals(timestamp=days_ago(-400)), NOW).decay == 1.0


def test_the_reasoning_lists_each_part_with_its_value() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"retry_count": 1}, "helpful, 0.86: success 1.00, 12 min 0.60, no errors 1.00, 1 retry 0.70"),
        (
            {"success": False, "duration_ms": 62 * MINUTE_MS, "error_count": 4, "retry_count": 3},
            "harmful, 0.14: failure 0.00, 62 min 0.20, 4 errors 0.20, 3 retries 0.30",
        ),
        (
            {"success": False, "duration_ms": 850, "error_count": 1},
            "neutral, 0.52: failure 0.00, 850 ms 1.00, 1 error 0.60, no retries 1.00",
        ),
        (
            {"success": False, "partial": True, "duration_ms": 62 * MINUTE_MS},
            "neutral, 0.64: partial success 0.50, 62 min 0.20, no errors 1.00, no retries 1.00",
        ),
        (
            {"duration_ms": None, "error_count": None, "retry_count": None},
            "helpful, 0.78: success 1.00, duration, errors and retries not known",
        ),
        (
            {"error_count": None, "retry_count": None},
            "helpful, 0.78: success 1.00, 12 min 0.60, errors and retries not known",
        ),
    ]
    for fields, reasoning in rows:
        assert score_outcome(signals(**fields), NOW).reasoning == reasoning, fields


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (5 * MINUTE_MS - 0.001, "4 min 1.00"),
        (5 * MINUTE_MS, "5 min 0.60"),
        (30 * MINUTE_MS, "30 min 0.60"),
        (30 * MINUTE_MS + 0.001, "over 30 min 0.20"),
        (31 * MINUTE_MS, "31 min 0.20"),
    ],
)
def test_the_words_for_a_duration_fit_its_value(duration_ms: float, words: str) -> None:
    assert f", {words}, " in score_outcome(signals(duration_ms=duration_ms), NOW).reasoning


def test_the_duration_text_fits_any_threshold() -> None:
    tuned = LearningSettings(fast_completion_threshold_ms=270_000)
    assert ", 4 min 1.00, " in score_outcome(signals(duration_ms=260_000), NOW, tuned).reasoning
    assert ", over 4 min 0.60, " in score_outcome(signals(duration_ms=280_000), NOW, tuned).reasoning


def test_durations_are_formatted() -> None:
    rows: list[tuple[float, str]] = [
        (0, "0 ms"),
        (0.4, "0 ms"),
        (850, "850 ms"),
        (999.9, "999 ms"),
        (1000, "1 s"),
        (45_000, "45 s"),
        (59_999, "59 s"),
        (MINUTE_MS, "1 min"),
        (119 * MINUTE_MS, "119 min"),
        (120 * MINUTE_MS, "2 h"),
        (125 * MINUTE_MS, "2 h 5 min"),
        (48 * 60 * MINUTE_MS, "2 d"),
        (76 * 60 * MINUTE_MS, "3 d 4 h"),
        (1e15, "11,574,074 d 1 h"),
    ]
    for duration_ms, text in rows:
        assert format_duration_ms(duration_ms) == text, duration_ms


def test_invalid_signals_are_named() -> None:
    rows: list[tuple[str, Any]] = [
        ("duration_ms", float("nan")),
        ("duration_ms", float("inf")),
        ("duration_ms", -1),
        ("duration_ms", True),
        ("error_count", -1),
        ("error_count", True),
        ("error_count", 1.5),
        ("retry_count", -1),
        ("retry_count", "2"),
        ("timestamp", "yesterday"),
        ("timestamp", None),
        ("success", 1),
    ]
    for field, value in rows:
        with pytest.raises(BadInput, match=rf"{field} must be .*, not "):
            signals(**{field: value})


def test_weights_count_relative_to_their_sum() -> None:
    doubled = LearningSettings(success_weight=0.8, duration_weight=0.4, errors_weight=0.4, retries_weight=0.4)
    assert score_outcome(signals(), NOW, doubled).raw == pytest.approx(score_outcome(signals(), NOW).raw)


_DURATIONS = st.floats(0, 1e10)
_COUNTS = st.integers(0, 10)


@given(st.booleans(), st.none() | _DURATIONS, st.none() | _COUNTS, st.none() | _COUNTS)
def test_the_score_is_a_share_and_the_verdict_agrees_with_it(
    success: bool, duration: float | None, errors: int | None, retries: int | None
) -> None:
    values = signals(success=success, duration_ms=duration, error_count=errors, retry_count=retries)
    outcome = score_outcome(values, NOW)
    assert 0.0 <= outcome.decayed <= outcome.raw <= 1.0
    assert all(0.0 <= value <= 1.0 for value in outcome.parts.values())
    assert outcome.verdict is verdict_of(outcome.raw)
    assert outcome.reasoning.startswith(f"{outcome.verdict}, {format_decimal(outcome.raw)}: ")


@given(st.booleans(), *([st.tuples(_DURATIONS, _DURATIONS)] + [st.tuples(_COUNTS, _COUNTS)] * 2))
def test_more_trouble_never_raises_the_score(
    success: bool, durations: tuple[float, float], errors: tuple[int, int], retries: tuple[int, int]
) -> None:
    better, worse = (
        score_outcome(signals(success=success, duration_ms=a, error_count=b, retry_count=c), NOW).raw
        for a, b, c in zip(sorted(durations), sorted(errors), sorted(retries), strict=True)
    )
    assert worse <= better


def feedback(type: str, age: float = 0, raw_value: float = 1.0, **fields: Any) -> FeedbackEvent:
    values = {"criterion": "type_safe", "timestamp": days_ago(age), **fields}
    return FeedbackEvent(type=type, raw_value=raw_value, **values)


def counted(helpful: int, harmful: int, weight: float = 0.85) -> CriterionWeight:
    return CriterionWeight(criterion="type_safe", weight=weight, helpful_count=helpful, harmful_count=harmful)


def test_the_weight_is_the_helpful_share_of_decayed_feedback() -> None:
    weight = criterion_weight([feedback("helpful", 90), feedback("harmful", 180), feedback("helpful", 0, 0.5)], NOW)
    assert (weight.helpful, weight.harmful) == pytest.approx((1.0, 0.25))
    assert weight.weight == pytest.approx(0.8)
    assert (weight.helpful_count, weight.harmful_count) == (2, 1)
    assert (weight.criterion, weight.half_life_days, weight.no_data) == ("type_safe", 90, False)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [feedback("neutral")],
        [feedback("harmful", raw_value=0)],
        [feedback("helpful", 700_000), feedback("harmful", 700_000)],  # 2^-7778: less than any float
    ],
)
def test_a_criterion_without_feedback_has_weight_one(events: list[FeedbackEvent]) -> None:
    weight = criterion_weight(events, NOW)
    assert (weight.weight, weight.no_data) == (1.0, True)


def test_the_newest_helpful_or_harmful_event_validates_a_criterion() -> None:
    events = [feedback("helpful", 30), feedback("helpful", 10), feedback("neutral", 0)]
    assert criterion_weight(events, NOW).last_validated == days_ago(10)
    assert criterion_weight([*events, feedback("harmful", 1)], NOW).last_validated == days_ago(1)
    assert criterion_weight(events[2:], NOW).last_validated is None


def test_a_future_event_counts_as_now() -> None:
    weight = criterion_weight([feedback("helpful", -400), feedback("harmful", 90)], NOW)
    assert weight.last_validated == NOW
    assert weight.weight == pytest.approx(2 / 3)


def test_events_of_two_criteria_are_refused() -> None:
    with pytest.raises(BadInput, match="criterion must be the same in all events, not 'type_safe' and 'fast'"):
        criterion_weight([feedback("helpful"), feedback("helpful", criterion="fast")], NOW)


def test_a_deprecated_criterion_has_no_effect_and_keeps_its_weight() -> None:
    assert (effective_weight(counted(12, 3)), effective_weight(counted(2, 1))) == (0.85, 0.0)
    assert counted(2, 1).weight == 0.85


def test_deprecation_follows_the_settings() -> None:
    assert should_deprecate_criterion(counted(0, 1), LearningSettings(min_feedback_for_adjustment=1))
    assert not should_deprecate_criterion(counted(0, 0), LearningSettings(min_feedback_for_adjustment=0))
    # .1 + .2 is a little more than .3, and 3 of 10 a little less than that.
    assert not should_deprecate_criterion(counted(7, 3), LearningSettings(max_harmful_ratio=0.3 - 1e-12))


def test_scores_are_weighted_by_criterion() -> None:
    weights = {"a": counted(9, 1, 0.5), "b": counted(0, 5), "unused": counted(1, 0)}
    weighted = apply_weights({"a": 0.8, "b": 1.0, "c": 0.4}, weights)
    assert weighted.weights == {"a": 0.5, "b": 0.0, "c": 1.0}
    assert weighted.scores == {"a": pytest.approx(0.4), "b": 0.0, "c": 0.4}
    assert weighted.total == pytest.approx(0.8 / 1.5)


def test_without_a_weighted_criterion_there_is_no_score() -> None:
    assert apply_weights({"b": 1.0}, {"b": counted(0, 5)}).total is None
    assert apply_weights({}, {}).total is None


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), True])
def test_an_invalid_score_is_named(score: float) -> None:
    with pytest.raises(BadInput, match="score of 'fast' must be a number from 0 to 1, not"):
        apply_weights({"fast": score}, {})


@pytest.mark.parametrize(
    ("field", "value"),
    [("type", "great"), ("type", None), ("timestamp", "soon"), ("raw_value", 1.01), ("raw_value", float("nan"))],
)
def test_invalid_feedback_is_named(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"{field} must be .*, not "):
        feedback(**{"type": "helpful", field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("weight", 1.5), ("helpful_count", -1), ("harmful_count", 0.5), ("half_life_days", 0), ("harmful", float("inf"))],
)
def test_an_invalid_weight_is_named(field: str, value: Any) -> None:
    values = {"criterion": "x", "weight": 0.5, "helpful_count": 1, "harmful_count": 1, field: value}
    with pytest.raises(BadInput, match=f"{field} must be .*, not "):
        CriterionWeight(**values)


_EVENTS = st.lists(
    st.builds(feedback, st.sampled_from(["helpful", "harmful", "neutral"]), st.floats(-30, 3000), st.floats(0, 1)),
    max_size=12,
)


@given(_EVENTS, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(events: list[FeedbackEvent], random: Any) -> None:
    shuffled = random.sample(events, len(events))
    assert criterion_weight(shuffled, NOW) == criterion_weight(events, NOW)


@given(_EVENTS, st.floats(0, 3000), st.floats(0, 1))
def test_one_more_helpful_event_never_lowers_a_weight(
    events: list[FeedbackEvent], age: float, raw_value: float
) -> None:
    before = criterion_weight(events, NOW)
    after = criterion_weight([*events, feedback("helpful", age, raw_value)], NOW)
    assert after.weight >= before.weight - 1e-12
    assert 0.1 <= after.weight <= 1.0


NULL = "Cannot read property 'email' of null"
LATE = "request timed out"

NOTHING = WorkReport()
FAILED = Iteration(outcome=Outcome.FAILURE)
PASSED = Iteration(outcome=Outcome.SUCCESS, files=("src/a.ts",))


def loop(status: LoopStatus = LoopStatus.COMPLETED, *iterations: Iteration, **fields: Any) -> Loop:
    fields = {"started_at": NOW - timedelta(minutes=12), "ended_at": NOW, **fields}
    return Loop(id="x", status=status, iterations=iterations, **fields)


def require(signals: OutcomeSignals | None) -> OutcomeSignals:
    assert signals is not None
    return signals


def test_a_loop_gives_duration_errors_and_retries() -> None:
    found = require(loop_signals(loop(LoopStatus.COMPLETED, FAILED, FAILED, PASSED), NOTHING))
    assert (found.success, found.duration_ms, found.error_count, found.retry_count) == (True, 720_000, 2, 2)
    assert (found.timestamp, found.files_touched) == (NOW, ("src/a.ts",))


def test_a_failed_last_iteration_is_an_error_but_not_a_retry() -> None:
    found = require(loop_signals(loop(LoopStatus.FAILED, PASSED, FAILED), NOTHING))
    assert (found.success, found.error_count, found.retry_count) == (False, 1, 0)


def test_only_an_end_with_a_result_is_an_outcome() -> None:
    rows: list[tuple[LoopStatus, bool | None]] = [
        (LoopStatus.COMPLETED, True),
        (LoopStatus.FAILED, False),
        (LoopStatus.LIMIT, False),
        (LoopStatus.PARTIAL, False),
        (LoopStatus.ABORTED, None),
        (LoopStatus.CRASHED, None),
        (LoopStatus.RUNNING, None),
        (LoopStatus.PAUSED, None),
        (LoopStatus.UNKNOWN, None),
    ]
    for status, success in rows:
        found = loop_signals(loop(status), NOTHING)
        assert (found.success if found else None) is success, status


@pytest.mark.parametrize("status", LoopStatus)
@pytest.mark.parametrize("reported", [None, True, False])
@pytest.mark.parametrize("is_dated", [True, False])
def test_the_result_of_a_loop_is_that_of_its_signals(status: LoopStatus, reported: bool | None, is_dated: bool) -> None:
    work = loop(status) if is_dated else loop(status, started_at=None, ended_at=None)
    event = make_event(0, "outcome", NOW, pattern_id="", loop_id="x", success=reported)
    report = NOTHING if reported is None else collect_reports([event])["x"]
    signals = loop_signals(work, report)
    expected = signals.success if signals is not None and not signals.partial else None
    assert loop_success(work, report) is expected


def test_unknown_values_stay_unknown() -> None:
    found = require(loop_signals(loop(LoopStatus.COMPLETED, Iteration(number=1), started_at=None), NOTHING))
    assert (found.duration_ms, found.error_count, found.retry_count) == (None, None, None)
    backwards = require(loop_signals(loop(started_at=NOW + timedelta(hours=1)), NOTHING))
    assert backwards.duration_ms is None
    inferred = require(loop_signals(loop(started_at=NOW, ended_approximate=True), NOTHING))
    assert inferred.duration_ms is None


def error(number: int, bead: str = "x") -> Event:
    return make_event(
        number, "error", NOW, pattern_id="", loop_id=bead, error=ErrorNote(error_type=ErrorType.TIMEOUT, message="late")
    )


def outcome(number: int, success: bool | None, minutes: float = 0, **signals: Any) -> Event:
    at = NOW + timedelta(minutes=minutes)
    return make_event(
        number,
        "outcome",
        at,
        pattern_id="",
        loop_id="x",
        success=success,
        signals=Signals(**signals) if signals else None,
    )


def test_the_error_log_has_priority_over_failed_iterations() -> None:
    report = collect_reports([error(1), error(2), error(3), error(4, "another")])["x"]
    assert require(loop_signals(loop(LoopStatus.COMPLETED, FAILED, PASSED), report)).error_count == 3
    one = collect_reports([error(1)])["x"]
    assert require(loop_signals(loop(LoopStatus.COMPLETED, FAILED, FAILED, PASSED), one)).error_count == 1


def test_a_report_has_priority_over_files_field_by_field() -> None:
    report = collect_reports([outcome(1, False, error_count=7, strategy="by feature")])["x"]
    found = require(loop_signals(loop(LoopStatus.COMPLETED, FAILED, PASSED), report))
    assert (found.success, found.error_count, found.retry_count) == (False, 7, 1)
    assert (found.duration_ms, found.strategy) == (720_000, "by feature")


def test_the_newest_report_counts_field_by_field_in_any_order() -> None:
    first = outcome(1, False, error_count=4, strategy="by layer")
    last = outcome(2, True, minutes=1, error_count=0)
    for events in ([first, last], [last, first]):
        found = require(loop_signals(loop(LoopStatus.RUNNING), collect_reports(events)["x"]))
        assert (found.success, found.error_count, found.strategy) == (True, 0, "by layer")
    silent = outcome(3, None, minutes=2, retry_count=1)
    found = require(report_signals("bd-1", collect_reports([first, last, silent])["x"]))
    assert (found.success, found.retry_count, found.timestamp) == (True, 1, silent.at)


def test_the_last_written_of_two_simultaneous_reports_counts() -> None:
    assert require(report_signals("bd-1", collect_reports([outcome(2, True), outcome(1, False)])["x"])).success is False


def test_a_later_report_keeps_the_end_of_the_loop() -> None:
    report = collect_reports([outcome(1, True, minutes=90 * 24 * 60)])["x"]
    assert require(loop_signals(loop(), report)).timestamp == NOW
    assert require(loop_signals(loop(LoopStatus.RUNNING, ended_at=None), report)).timestamp == NOW + timedelta(days=90)


def test_an_outcome_of_a_pattern_is_not_an_outcome_of_the_loop() -> None:
    assert collect_reports([make_event(1, "outcome", NOW, loop_id="x", success=True)]) == {}


def test_the_retries_of_an_attempt_are_those_before_it() -> None:
    attempt = Attempt(
        task_id="task-001", number=3, started_at=NOW - timedelta(minutes=26), ended_at=NOW, outcome=Outcome.TIMEOUT
    )
    found = require(attempt_signals(attempt, NOTHING))
    assert (found.bead_id, found.success, found.retry_count) == ("task-001.3", False, 2)
    assert found.duration_ms == 26 * 60_000


def test_a_partial_success_has_its_own_value() -> None:
    attempt = Attempt(task_id="t", number=1, ended_at=NOW, outcome=Outcome.PARTIAL)
    for found in (loop_signals(loop(LoopStatus.PARTIAL), NOTHING), attempt_signals(attempt, NOTHING)):
        assert (require(found).success, require(found).partial) == (False, True)
    assert not require(loop_signals(loop(LoopStatus.FAILED), NOTHING)).partial
    report = collect_reports([outcome(1, True)])["x"]
    found = loop_signals(loop(LoopStatus.PARTIAL), report)
    assert (require(found).success, require(found).partial) == (True, False)


def session(*messages: str) -> DebugSession:
    return DebugSession(id="s", executions=(Execution(failures=tuple(Failure(message=text) for text in messages)),))


def test_the_errors_of_debug_sessions_count() -> None:
    two = (session("null"), session("null", "late"))
    attempt = Attempt(task_id="x", number=1, ended_at=NOW, outcome=Outcome.SUCCESS)
    assert require(loop_signals(loop(), NOTHING, two)).error_count == 2
    assert require(attempt_signals(attempt, NOTHING, two)).error_count == 2
    assert require(loop_signals(loop(LoopStatus.COMPLETED, FAILED, PASSED), NOTHING, two)).error_count == 2
    logged = Attempt(task_id="x", number=1, ended_at=NOW, outcome=Outcome.SUCCESS, errors=0)
    assert require(attempt_signals(logged, NOTHING, two)).error_count == 2


def test_an_iteration_that_records_an_error_and_no_success_is_a_retry() -> None:
    erred = Iteration(failures=(Failure(error_type="TypeError", message="x is null"),))
    found = require(loop_signals(loop(LoopStatus.COMPLETED, erred, erred, PASSED), NOTHING))
    assert (found.error_count, found.retry_count) == (2, 2)
    fixed_at_once = Iteration(outcome=Outcome.SUCCESS, failures=erred.failures)
    found = require(loop_signals(loop(LoopStatus.COMPLETED, fixed_at_once, PASSED), NOTHING))
    assert (found.error_count, found.retry_count) == (1, 0)


def test_the_error_log_has_priority_over_failed_actions() -> None:
    attempt = Attempt(task_id="x", number=1, ended_at=NOW, outcome=Outcome.SUCCESS, errors=4)
    assert require(attempt_signals(attempt, NOTHING)).error_count == 4
    assert require(attempt_signals(attempt, collect_reports([error(1)])["x"])).error_count == 1


def test_the_newest_report_decides_whether_an_attempt_succeeded() -> None:
    attempt = Attempt(task_id="x", number=1, outcome=Outcome.SUCCESS)
    assert attempt_success(attempt, NOTHING) is True
    assert attempt_success(attempt, collect_reports([outcome(1, False)])["x"]) is False
    assert attempt_success(Attempt(task_id="x", number=1, outcome=Outcome.PARTIAL), NOTHING) is None


def test_work_of_another_tool_needs_a_result() -> None:
    assert report_signals("bd-1", collect_reports([outcome(1, None, error_count=1)])["x"]) is None
    assert report_signals("bd-1", WorkReport(errors=("late",) * 3)) is None
    assert require(report_signals("bd-1", collect_reports([outcome(1, True), error(2)])["x"])).error_count == 1


def iteration(*messages: str, outcome: Outcome = Outcome.UNKNOWN) -> Iteration:
    return Iteration(outcome=outcome, failures=tuple(Failure(message=message) for message in messages))


def run(*failed: str, message: str = "null", count: int | None = None) -> Execution:
    results = None if count is None else Results(failed=count)
    return Execution(failures=tuple(Failure(test_name=name, message=message) for name in failed), results=results)


def session_of(*runs: Execution) -> DebugSession:
    return DebugSession(id="s", executions=runs)


def test_each_error_of_each_iteration_counts() -> None:
    assert count_errors([], [iteration(NULL, LATE), iteration(NULL), iteration(outcome=Outcome.SUCCESS)], []) == 3


def test_a_failed_iteration_without_errors_counts_as_one_error() -> None:
    failed = iteration(outcome=Outcome.FAILURE)
    assert count_errors([], [failed, iteration(NULL, LATE), iteration(outcome=Outcome.SUCCESS)], []) == 3
    assert count_errors([NULL], [failed, failed], []) == 1


@pytest.mark.parametrize(
    "logged",
    [
        NULL,
        f"TypeError: {NULL}",
        f"Uncaught TypeError: {NULL} at src/auth/validate.ts:42",
        f"{NULL.upper()}  (src/auth/validate.ts:42:7)",
        f"TypeError: {NULL}\n    at validate (src/auth/validate.ts:42)",
    ],
)
def test_an_error_in_the_log_and_in_an_iteration_counts_once(logged: str) -> None:
    assert count_errors([logged], [iteration(NULL)], []) == 1
    assert count_errors([logged, LATE], [iteration(NULL)], []) == 2


def test_messages_that_differ_only_in_a_file_without_line_are_two_errors() -> None:
    assert count_errors(["Type error in src/auth.ts"], [iteration("Type error in src/session.ts")], []) == 2


def test_an_error_counts_as_often_as_the_record_that_has_it_most_often() -> None:
    twice = [iteration(NULL), iteration(NULL)]
    assert count_errors([NULL], twice, [session_of(run("a", message=NULL))]) == 2
    assert count_errors([NULL] * 3, twice, []) == 3


def test_one_error_named_in_two_fields_of_an_iteration_counts_once() -> None:
    failure = Failure(error_type="TypeError", message=NULL, file="a.ts", line=4)
    assert count_errors([], [Iteration(failures=(failure, failure))], []) == 1
    elsewhere = Failure(error_type="TypeError", message=NULL, file="b.ts", line=9)
    assert count_errors([], [Iteration(failures=(failure, elsewhere))], []) == 2


def test_the_same_failure_in_several_runs_of_a_session_is_one_error() -> None:
    first, second = session_of(run("a", "b"), run("a"), run(count=0)), session_of(run("a", "c"))
    assert count_errors([], [], [first]) == 2
    assert count_errors([], [], [first, second]) == 3


def test_a_run_that_counts_more_failures_than_it_lists_counts_with_that_number() -> None:
    assert count_errors([LATE], [], [session_of(run("a", count=7))]) == 7


def test_without_any_result_the_number_is_unknown() -> None:
    assert count_errors([], [], []) is None
    assert count_errors([], [Iteration(number=1)], [session_of(run())]) is None
    assert count_errors([], [], [session_of(run(count=0))]) == 0
    assert count_errors([], [iteration(outcome=Outcome.SUCCESS)], []) == 0
