from __future__ import annotations

import pytest

from core.learning.error_counts import count_errors
from core.records.debug_sessions import DebugSession, Execution, Failure, Results
from core.records.loops import Iteration, Outcome

NULL = "Cannot read property 'email' of null"
LATE = "request timed out"


def iteration(*messages: str, outcome: Outcome = Outcome.UNKNOWN) -> Iteration:
    return Iteration(outcome=outcome, failures=tuple(Failure(message=message) for message in messages))


def run(*failed: str, message: str = "null", count: int | None = None) -> Execution:
    results = None if count is None else Results(failed=count)
    return Execution(failures=tuple(Failure(test_name=name, message=message) for name in failed), results=results)


def session(*runs: Execution) -> DebugSession:
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
    assert count_errors([NULL], twice, [session(run("a", message=NULL))]) == 2
    assert count_errors([NULL] * 3, twice, []) == 3


def test_one_error_named_in_two_fields_of_an_iteration_counts_once() -> None:
    failure = Failure(error_type="TypeError", message=NULL, file="a.ts", line=4)
    assert count_errors([], [Iteration(failures=(failure, failure))], []) == 1
    elsewhere = Failure(error_type="TypeError", message=NULL, file="b.ts", line=9)
    assert count_errors([], [Iteration(failures=(failure, elsewhere))], []) == 2


def test_the_same_failure_in_several_runs_of_a_session_is_one_error() -> None:
    first, second = session(run("a", "b"), run("a"), run(count=0)), session(run("a", "c"))
    assert count_errors([], [], [first]) == 2
    assert count_errors([], [], [first, second]) == 3


def test_a_run_that_counts_more_failures_than_it_lists_counts_with_that_number() -> None:
    assert count_errors([LATE], [], [session(run("a", count=7))]) == 7


def test_without_any_result_the_number_is_unknown() -> None:
    assert count_errors([], [], []) is None
    assert count_errors([], [Iteration(number=1)], [session(run())]) is None
    assert count_errors([], [], [session(run(count=0))]) == 0
    assert count_errors([], [iteration(outcome=Outcome.SUCCESS)], []) == 0
