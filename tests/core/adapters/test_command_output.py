"""Test results and errors in the output of commands."""

from __future__ import annotations

import pytest

from core.adapters.command_output import MAX_ERROR, find_error, parse_results
from core.records.debug_sessions import Results


@pytest.mark.parametrize(
    ("output", "results"),
    [
        ("...F\n===== 1 failed, 30 passed in 2.1s =====\n", Results(passed=30, failed=1)),
        ("\x1b[32m12 passed\x1b[0m, 2 skipped", Results(passed=12, skipped=2)),
        ("Tests:       2 failed, 5 passed, 7 total", Results(passed=5, failed=2)),
        ("test result: ok. 4 passed; 0 failed; 0 ignored", Results(passed=4, failed=0)),
        ("# pass 3\n# fail 0\n  3 passing", Results(passed=3)),
    ],
)
def test_the_summary_of_a_test_runner_is_counted(output: str, results: Results) -> None:
    assert parse_results(output) == results


def test_an_output_without_a_summary_has_no_results() -> None:
    assert parse_results("built in 3 s") is None


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("E   AssertionError: 1.0 != 1.1\n1 failed", "AssertionError: 1.0 != 1.1"),
        ("Traceback\n  File x\nshop.money.RoundingError: no quantum\n", "shop.money.RoundingError: no quantum"),
        ("error[E0382]: use of moved value", "error[E0382]: use of moved value"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("nothing\nspecial\n", "special"),
        ("", ""),
    ],
)
def test_the_most_specific_line_is_the_error(output: str, error: str) -> None:
    assert find_error(output) == error


def test_an_error_has_a_limited_length() -> None:
    assert len(find_error("ValueError: " + "x" * 100_000)) == MAX_ERROR
