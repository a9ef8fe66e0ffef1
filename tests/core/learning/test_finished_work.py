"""Outcome signals of loops and attempts from files and the event log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.learning.outcomes import (
    OutcomeSignals,
    WorkReport,
    attempt_signals,
    attempt_success,
    collect_reports,
    count_errors,
    loop_signals,
    loop_success,
    report_signals,
)
from core.records.debug_sessions import DebugSession, Execution, Failure, Results
from core.records.episodes import Attempt
from core.records.events import ErrorNote, ErrorType, Event, Signals
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from tests.factories import NOW, make_event

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


@pytest.mark.parametrize(
    ("status", "success"),
    [
        (LoopStatus.COMPLETED, True),
        (LoopStatus.FAILED, False),
        (LoopStatus.LIMIT, False),
        (LoopStatus.PARTIAL, False),
        (LoopStatus.ABORTED, None),
        (LoopStatus.CRASHED, None),
        (LoopStatus.RUNNING, None),
        (LoopStatus.PAUSED, None),
        (LoopStatus.UNKNOWN, None),
    ],
)
def test_only_an_end_with_a_result_is_an_outcome(status: LoopStatus, success: bool | None) -> None:
    found = loop_signals(loop(status), NOTHING)
    assert (found.success if found else None) is success


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
