"""Errors parsed from fields and from free text, and triggers of error patterns."""

from __future__ import annotations

from typing import Any

from core.base.text import safe_matcher
from core.questions.extraction.triggers import (
    Trigger,
    classify_error_type,
    common_errors,
    count_failing,
    extract_message,
    find_errors,
    is_comparison,
    is_specific,
    keeps_rules,
    make_trigger,
    parse_error,
)
from core.records.debug_sessions import Failure, Results
from tests.factories import failed_step, passed_step


def test_messages_in_results() -> None:
    for result, message in [
        ("1 failing: Timeout of 5000ms exceeded", "Timeout of 5000ms exceeded"),
        ("payments: 41 passing, 1 failing: refund without key", "refund without key"),
        ("199 passed, 1 failed in the third round: deadlock detected", "deadlock detected"),
        ("e2e: 1 failing: jwt not active (clock of the partner is 3 s ahead)", "jwt not active"),
        ("1 failing: read null (reading 'a')", "read null (reading 'a')"),
        ("KeyError: 'user'", "KeyError: 'user'"),
        ("17 failing", ""),
        ("p95 2.9 s, database at its connection limit", ""),
        ("31 passing", ""),
    ]:
        assert extract_message(result) == message, (result, message)


def test_errors_of_an_iteration_come_from_its_fields_or_else_from_its_result_text() -> None:
    (error,) = find_errors(failed_step(2, result="1 failing: TypeError: x is null at src/auth/validate.ts:42"))
    assert (error.error_type, error.message, error.file) == ("TypeError", "x is null", "src/auth/validate.ts")
    assert (error.where, error.iteration) == ("iteration 2", 2)
    iteration = failed_step(2, result="1 failing: something else", failures=(Failure(message="deadlock detected"),))
    assert [error.message for error in find_errors(iteration)] == ["deadlock detected"]
    assert not list(find_errors(passed_step(3, result="1 failing: not really")))
    assert parse_error(Failure(error_type="TypeError"), "", None, None) is None


def test_error_types_of_the_schema() -> None:
    for name, message, expected in [
        ("TypeError", "x", "TypeError"),
        ("AttributeError", "x", "TypeError"),
        ("NetworkError", "connection refused", "Other"),
        ("SocketTimeoutException", "", "TimeoutError"),
        ("", "expected 401 to equal 200", "AssertionError"),
        ("", "Type 'a' is not assignable to type 'b'", "TypeError"),
        ("", "jwt expired", "Other"),
        ("__proto__", "\x1b[0m", "Other"),
    ]:
        assert classify_error_type(name, message) == expected, (name, message, expected)


def test_failing_tests_are_counted() -> None:
    assert count_failing(failed_step(1, result="38 failing")) == 38
    assert count_failing(failed_step(1, result="9 of 200 failed: x")) == 9
    assert count_failing(failed_step(1, result="214 errors in 38 files")) == 214
    assert count_failing(failed_step(1, results=Results(failed=3), result="5 failing")) == 3
    assert count_failing(failed_step(1, result="slow")) is None
    assert count_failing(passed_step(1)) == 0


def failure(message: str, error_type: str = "", **fields: Any) -> Failure:
    return Failure(message=message, error_type=error_type, **fields)


def test_only_what_varies_is_generalized() -> None:
    for given, expected in [
        (failure("Invoice 'A-17 of May' has no customer"), "Invoice '.*' has no customer\\b"),
        (failure("'currency'", "KeyError"), "KeyError: 'currency'"),
        (failure("cannot import name 'rows' from 'loader'", "ImportError"), "cannot import name '.*' from 'loader'"),
        (failure("UNIQUE constraint failed: users.email"), "UNIQUE constraint failed: users\\.email\\b"),
        (failure("undefined: strngs"), "undefined: strngs\\b"),
        (failure("/tmp/x1/a.txt is locked by process 4711"), "\\S+ is locked by process \\d+"),
    ]:
        assert make_trigger([given]).pattern.replace("'rows'", "'.*'") == expected, (given, expected)
        assert make_trigger([given]).places == (), (given, expected)


def test_a_comparison_of_values_is_a_trigger_only_in_its_test() -> None:
    for message in [
        "assert 3 == 4",
        "assert ['a', 'b'] == ['b']",
        "got 1, want 2",
        "expected: <1> but was: <2>",
        "7 != 12",
    ]:
        assert is_comparison(message), message
        in_test = failure(message, "AssertionError", test_name="test_a.py::test_total", test_file="test_a.py")
        assert make_trigger([in_test]).places == ("test_a.py::test_total",), message
        assert make_trigger([failure(message, "AssertionError", file="a.py")]) == Trigger(""), message


def test_an_error_of_many_causes_is_a_trigger_only_in_its_function_or_failed_tests() -> None:
    message = "Cannot read properties of undefined (reading 'name')"
    found = make_trigger([failure(message, "TypeError", file="src/greet.js", function="greet")])
    assert found.places == ("src/greet.js::greet",)
    assert make_trigger([failure(message.replace("name", "invoiceNumber"), "TypeError", file="a.js")]).places == ()
    failures = [
        failure(f"assert {n} == 9", "AssertionError", test_name=f"t.py::test_{n}", test_file="t.py") for n in (1, 2)
    ]
    assert make_trigger(failures).places == ("t.py::test_1", "t.py::test_2")


def test_a_trigger_that_matches_other_errors_of_the_project_keeps_its_values() -> None:
    given = failure("Plan 'Gold 2024' has expired")
    assert make_trigger([given]).pattern == "Plan '.*' has expired\\b"
    assert make_trigger([given], known=["Plan 'Free trial' has expired"]).pattern == "Plan 'Gold 2024' has expired\\b"


def test_triggers_of_many_causes_are_not_specific() -> None:
    for pattern in [
        "assert '.*' == '.*'",
        "expected .* got .*",
        "is not defined",
        r"Cannot read properties of undefined \(reading '.*'\)",
    ]:
        assert not is_specific(pattern), pattern


def test_a_trigger_matches_its_own_message_with_other_numbers_and_folders_but_not_another_expression() -> None:
    given = failure("Port 8080 of /run/a.sock is used by worker 17 since 12.5 s")
    regex = safe_matcher(make_trigger([given]).pattern)
    assert regex.matches(given.message)
    assert regex.matches("Port 9090 of /tmp/b.sock is used by worker 4 since 3.25 s")
    missing = failure("No such file or directory: '/tmp/run-1/2026/report.txt'", "FileNotFoundError")
    assert make_trigger([missing]).pattern == r"No such file or directory: '\S*/report\.txt'"
    in_c = failure("Assertion `mean(values, 2) == 1.5' failed.", file="test.c", function="main")
    regex = safe_matcher(make_trigger([in_c]).pattern)
    assert regex.matches(in_c.message)
    assert not regex.matches("Assertion `mean(values, 0) == 0.0' failed.")


def test_common_errors_have_no_slots_left() -> None:
    assert len(common_errors()) > 800
    assert not [message for message in common_errors() if "{name}" in message or "{types}" in message]


def test_a_trigger_on_file_is_judged_by_the_rules_of_new_ones() -> None:
    for pattern, message, is_kept in [
        ("assert '.*' == '.*'", "", False),  # any comparison
        ("name '.*' is not defined", "", False),  # a common message
        ("(" * 5_000, "", False),  # no regex
        ("cart has \\d+ loose coupons", "", True),
        ("coupon '.*' of the cart is gone", "coupon 'MAY' of the cart is gone", False),  # another error of the project
        ("coupon 'MAY' of the cart is gone", "coupon 'MAY' of the cart is gone", True),
        ("assert 'shipped' == 'parcelled'", "", True),
        ("", "", True),
    ]:
        known = ("coupon 'MAY' of the cart is gone", "coupon 'JUNE' of the cart is gone")
        matched = [text for text in known if safe_matcher(pattern).matches(text)]
        assert keeps_rules(Trigger(pattern), message, matched) is is_kept, (pattern, message, is_kept)
        assert keeps_rules(Trigger(pattern, ("test_cart.py::test_total",)), message, matched), (
            pattern,
            message,
            is_kept,
        )
