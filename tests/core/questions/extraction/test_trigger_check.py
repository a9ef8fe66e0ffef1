"""Triggers of error patterns."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.text import safe_matcher
from core.questions.extraction.triggers import (
    Trigger,
    common_errors,
    is_comparison,
    is_specific,
    keeps_rules,
    make_trigger,
)
from core.records.debug_sessions import Failure


def failure(message: str, error_type: str = "", **fields: Any) -> Failure:
    return Failure(message=message, error_type=error_type, **fields)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (failure("Invoice 'A-17 of May' has no customer"), "Invoice '.*' has no customer\\b"),
        (failure("'currency'", "KeyError"), "KeyError: 'currency'"),
        (failure("cannot import name 'rows' from 'loader'", "ImportError"), "cannot import name '.*' from 'loader'"),
        (failure("UNIQUE constraint failed: users.email"), "UNIQUE constraint failed: users\\.email\\b"),
        (failure("undefined: strngs"), "undefined: strngs\\b"),
        (failure("/tmp/x1/a.txt is locked by process 4711"), "\\S+ is locked by process \\d+"),
    ],
)
def test_only_what_varies_is_generalized(given: Failure, expected: str) -> None:
    assert make_trigger([given]).pattern.replace("'rows'", "'.*'") == expected
    assert make_trigger([given]).places == ()


@pytest.mark.parametrize(
    "message",
    ["assert 3 == 4", "assert ['a', 'b'] == ['b']", "got 1, want 2", "expected: <1> but was: <2>", "7 != 12"],
)
def test_a_comparison_of_values_is_a_trigger_only_in_its_test(message: str) -> None:
    assert is_comparison(message)
    in_test = failure(message, "AssertionError", test_name="test_a.py::test_total", test_file="test_a.py")
    assert make_trigger([in_test]).places == ("test_a.py::test_total",)
    assert make_trigger([failure(message, "AssertionError", file="a.py")]) == Trigger("")


def test_an_error_of_many_causes_is_a_trigger_only_in_its_function() -> None:
    message = "Cannot read properties of undefined (reading 'name')"
    found = make_trigger([failure(message, "TypeError", file="src/greet.js", function="greet")])
    assert found.places == ("src/greet.js::greet",)
    assert make_trigger([failure(message.replace("name", "invoiceNumber"), "TypeError", file="a.js")]).places == ()


def test_all_failed_tests_of_the_fix_are_places() -> None:
    failures = [
        failure(f"assert {n} == 9", "AssertionError", test_name=f"t.py::test_{n}", test_file="t.py") for n in (1, 2)
    ]
    assert make_trigger(failures).places == ("t.py::test_1", "t.py::test_2")


def test_a_trigger_that_matches_other_errors_of_the_project_keeps_its_values() -> None:
    given = failure("Plan 'Gold 2024' has expired")
    assert make_trigger([given]).pattern == "Plan '.*' has expired\\b"
    assert make_trigger([given], known=["Plan 'Free trial' has expired"]).pattern == "Plan 'Gold 2024' has expired\\b"


@pytest.mark.parametrize(
    "pattern",
    [
        "assert '.*' == '.*'",
        "expected .* got .*",
        "is not defined",
        r"Cannot read properties of undefined \(reading '.*'\)",
    ],
)
def test_triggers_of_many_causes_are_not_specific(pattern: str) -> None:
    assert not is_specific(pattern)


def test_a_trigger_matches_its_own_message_with_other_numbers_and_paths() -> None:
    given = failure("Port 8080 of /run/a.sock is used by worker 17 since 12.5 s")
    regex = safe_matcher(make_trigger([given]).pattern)
    assert regex.matches(given.message)
    assert regex.matches("Port 9090 of /tmp/b.sock is used by worker 4 since 3.25 s")


def test_common_errors_have_no_slots_left() -> None:
    assert len(common_errors()) > 800
    assert not [message for message in common_errors() if "{name}" in message or "{types}" in message]


def test_a_trigger_has_no_folder_of_an_absolute_path() -> None:
    failure = Failure(error_type="FileNotFoundError", message="No such file or directory: '/tmp/run-1/2026/report.txt'")
    trigger = make_trigger([failure])
    assert trigger.pattern == r"No such file or directory: '\S*/report\.txt'"


def test_a_trigger_has_the_expression_of_an_assertion_in_c() -> None:
    failure = Failure(message="Assertion `mean(values, 2) == 1.5' failed.", file="test.c", function="main")
    trigger = make_trigger([failure])
    assert safe_matcher(trigger.pattern).matches(failure.message)
    assert not safe_matcher(trigger.pattern).matches("Assertion `mean(values, 0) == 0.0' failed.")


@pytest.mark.parametrize(
    ("pattern", "message", "is_kept"),
    [
        ("assert '.*' == '.*'", "", False),  # any comparison
        ("name '.*' is not defined", "", False),  # a common message
        ("(" * 5_000, "", False),  # no regex
        ("cart has \\d+ loose coupons", "", True),
        ("coupon '.*' of the cart is gone", "coupon 'MAY' of the cart is gone", False),  # another error of the project
        ("coupon 'MAY' of the cart is gone", "coupon 'MAY' of the cart is gone", True),
        ("assert 'shipped' == 'parcelled'", "", True),
        ("", "", True),
    ],
)
def test_a_trigger_on_file_is_judged_by_the_rules_of_new_ones(pattern: str, message: str, is_kept: bool) -> None:
    known = ("coupon 'MAY' of the cart is gone", "coupon 'JUNE' of the cart is gone")
    matched = [text for text in known if safe_matcher(pattern).matches(text)]
    assert keeps_rules(Trigger(pattern), message, matched) is is_kept
    assert keeps_rules(Trigger(pattern, ("test_cart.py::test_total",)), message, matched)
