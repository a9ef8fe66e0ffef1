"""Counts of tests in the summaries of test runners."""

from __future__ import annotations

import pytest

from core.records.debug_sessions import Results
from core.sources.adapters.command_output import parse_results

UNITTEST = "E.\n======\nERROR: test_gift (test_cart.Cart.test_gift)\n------\nRan 2 tests in 0.007s\n\n{}\n"
NODE = """\
{0} tests 2
{0} suites 0
{0} pass 1
{0} fail 1
{0} cancelled 0
{0} skipped 0
{0} todo 0
{0} duration_ms 51.8

\u2716 failing tests:

test at greet.test.js:8:1
\u2716 a guest is greeted (0.9ms)
  TypeError: Cannot read properties of undefined (reading 'name')
"""
CARGO = "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured\ntest result: FAILED. 1 passed; 2 failed; 0 ignored"
JEST = "Test Suites: 1 failed, 1 total\nTests:       2 failed, 5 passed, 7 total\nSnapshots:   0 total\nTime: 1 s"


@pytest.mark.parametrize(
    ("output", "results"),
    [
        ("...F\n===== 1 failed, 30 passed in 2.1s =====\n", Results(passed=30, failed=1)),
        ("\x1b[32m12 passed\x1b[0m, 2 skipped", Results(passed=12, skipped=2)),
        ("2 passed, 1 error in 0.1s", Results(passed=2, errors=1)),
        (UNITTEST.format("FAILED (errors=1)"), Results(total=2, passed=1, failed=0, errors=1)),
        (UNITTEST.format("FAILED (failures=1, skipped=1)"), Results(total=2, passed=0, failed=1, skipped=1)),
        (UNITTEST.format("OK"), Results(total=2, passed=2, failed=0)),
        (NODE.format("#"), Results(total=2, passed=1, failed=1)),
        (NODE.format("\u2139"), Results(total=2, passed=1, failed=1)),
        (JEST, Results(total=7, passed=5, failed=2)),
        (" Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n", Results(total=2, passed=1, failed=1)),
        (CARGO, Results(passed=5, failed=2, skipped=1)),
        ("  1 passing (4ms)\n  2 failing\n\n  1) adds VAT:\n", Results(passed=1, failed=2)),
        (" 1 pass\n 1 fail\n 2 expect() calls\nRan 2 tests across 1 file.", Results(passed=1, failed=1)),
        ("--- FAIL: TestTotal (0.00s)\n--- PASS: TestNet (0.00s)\nFAIL\n", Results(passed=1, failed=1)),
        ("--- FAIL: TestTotal (0.00s)\nFAIL\tshop\t0.1s\n", Results(failed=1)),
        ("[ERROR] Tests run: 3, Failures: 1, Errors: 1, Skipped: 0", Results(total=3, passed=1, failed=1, errors=1)),
        ("3 tests completed, 1 failed", Results(total=3, passed=2, failed=1)),
        ("3 examples, 1 failure, 1 pending", Results(total=3, passed=1, failed=1, skipped=1)),
        ("3 runs, 3 assertions, 1 failures, 0 errors, 0 skips", Results(total=3, passed=2, failed=1, errors=0)),
        ("Tests: 3, Assertions: 3, Failures: 1.", Results(total=3, passed=2, failed=1)),
        ("OK (3 tests, 4 assertions)", Results(total=3, passed=3, failed=0)),
        ("Failed!  - Failed:     1, Passed:     2, Total:     3", Results(total=3, passed=2, failed=1)),
        ("FAILED | 1 passed | 1 failed (3ms)", Results(passed=1, failed=1)),
        ("50% tests passed, 1 tests failed out of 2", Results(total=2, passed=1, failed=1)),
        ("# pass 3\n# fail 0\n  3 passing", Results(passed=3)),
    ],
)
def test_the_summary_of_a_test_runner_is_counted(output: str, results: Results) -> None:
    assert parse_results(output) == results


def test_an_output_without_a_summary_has_no_results() -> None:
    assert parse_results("built in 3 s") is None
