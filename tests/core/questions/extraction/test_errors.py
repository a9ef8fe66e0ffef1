"""Errors parsed from fields and from free text."""

from __future__ import annotations

import pytest

from core.questions.extraction.triggers import (
    classify_error_type,
    count_failing,
    extract_message,
    find_errors,
    parse_error,
)
from core.records.debug_sessions import Failure, Results
from tests.factories import failed_step, passed_step


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("1 failing: Timeout of 5000ms exceeded", "Timeout of 5000ms exceeded"),
        ("payments: 41 passing, 1 failing: refund without key", "refund without key"),
        ("199 passed, 1 failed in the third round: deadlock detected", "deadlock detected"),
        ("e2e: 1 failing: jwt not active (clock of the partner is 3 s ahead)", "jwt not active"),
        ("1 failing: read null (reading 'a')", "read null (reading 'a')"),
        ("KeyError: 'user'", "KeyError: 'user'"),
        ("17 failing", ""),
        ("p95 2.9 s, database at its connection limit", ""),
        ("31 passing", ""),
    ],
)
def test_messages_in_results(result: str, message: str) -> None:
    assert extract_message(result) == message


def test_error_text_is_split_into_name_message_and_location() -> None:
    (error,) = find_errors(failed_step(2, result="1 failing: TypeError: x is null at src/auth/validate.ts:42"))
    assert (error.error_type, error.message, error.file) == ("TypeError", "x is null", "src/auth/validate.ts")
    assert (error.where, error.iteration) == ("iteration 2", 2)


def test_fields_have_priority_over_the_result_text() -> None:
    iteration = failed_step(2, result="1 failing: something else", failures=(Failure(message="deadlock detected"),))
    assert [error.message for error in find_errors(iteration)] == ["deadlock detected"]
    assert not list(find_errors(passed_step(3, result="1 failing: not really")))


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("TypeError", "x", "TypeError"),
        ("AttributeError", "x", "TypeError"),
        ("NetworkError", "connection refused", "Other"),
        ("SocketTimeoutException", "", "TimeoutError"),
        ("", "expected 401 to equal 200", "AssertionError"),
        ("", "Type 'a' is not assignable to type 'b'", "TypeError"),
        ("", "jwt expired", "Other"),
        ("__proto__", "\x1b[0m", "Other"),
    ],
)
def test_error_types_of_the_schema(name: str, message: str, expected: str) -> None:
    assert classify_error_type(name, message) == expected


def test_failing_tests_are_counted() -> None:
    assert count_failing(failed_step(1, result="38 failing")) == 38
    assert count_failing(failed_step(1, result="9 of 200 failed: x")) == 9
    assert count_failing(failed_step(1, result="214 errors in 38 files")) == 214
    assert count_failing(failed_step(1, results=Results(failed=3), result="5 failing")) == 3
    assert count_failing(failed_step(1, result="slow")) is None
    assert count_failing(passed_step(1)) == 0


def test_a_failure_without_message_is_not_an_error() -> None:
    assert parse_error(Failure(error_type="TypeError"), "", None, None) is None
