"""Commands that check something, and reports that decide where no exit code does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.base.shell_commands import command_result, hides_result, is_read_only, is_test_run, read_report

FAILED = {
    "pytest": "F.\nFAILED tests/test_cart.py::test_total - assert 1 == 2\n1 failed, 1 passed in 0.03s",
    "pytest, only the count": "F.                                      [100%]\n1 failed, 1 passed in 0.12s",
    "pytest, with lines": "===== 1 failed, 12 passed, 1 warning in 61.20s (0:01:01) =====",
    "pytest, collection": "ERROR tests/test_cart.py - ImportError: no\n1 error in 0.1s",
    "unittest": "FAIL: test_total (test_cart.Cart)\nRan 3 tests in 0.001s\n\nFAILED (failures=1)",
    "Jest": "FAIL src/cart.test.ts\nTest Suites: 1 failed, 2 total\nTests:       1 failed, 4 passed, 5 total",
    "Vitest": " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 8 passed (9)",
    "Mocha": "  2 passing (8ms)\n  1 failing\n\n  1) cart total:",
    "Node": "ℹ tests 2\nℹ pass 1\nℹ fail 1\nℹ cancelled 0",
    "TAP": "TAP version 13\nok 1 - sum\nnot ok 2 - total\n# pass 1\n# fail 1",
    "Go": "--- FAIL: TestTotal (0.00s)\n    cart_test.go:9: got 1\nFAIL\nFAIL\texample.com/cart\t0.002s\nFAIL",
    "Go, build": "# example.com/cart\n./cart.go:7:9: undefined: discount",
    "Cargo": "test cart::total ... FAILED\n\ntest result: FAILED. 3 passed; 1 failed; 0 ignored",
    "rustc": "error[E0308]: mismatched types\n --> src/main.rs:4:5",
    "tsc": "src/cart.ts(4,10): error TS2322: Type 'string' is not assignable to type 'number'.",
    "tsc, pretty": "src/cart.ts:4:10 - error TS2322: no\n\nFound 1 error in src/cart.ts:4",
    "mypy": "cart.py:3: error: no  [return-value]\nFound 1 error in 1 file (checked 2 source files)",
    "ruff": "F821 Undefined name `cart`\nFound 2 errors.",
    "pyright": "cart.py:3:5 - error: no\n2 errors, 0 warnings, 0 informations",
    "ESLint": "✖ 3 problems (1 error, 2 warnings)",
    "flake8": "src/cart.py:4:80: E501 line too long",
    "gcc": "cart.c:4:12: error: 'struct cart' has no member named 'sum'",
    "javac": "Cart.java:3: error: ';' expected\n1 error",
    "make": "cc -c cart.c\nmake: *** [Makefile:2: cart.o] Error 1",
    "Maven": "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE",
    "Gradle": "BUILD FAILED in 3s",
    ".NET": "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3",
    "RSpec": "3 examples, 1 failure",
    "minitest": "4 runs, 5 assertions, 0 failures, 1 errors, 0 skips",
    "PHPUnit": "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.",
    "CTest": "50% tests passed, 1 tests failed out of 2",
    "Deno": "FAILED | 1 passed | 1 failed (8ms)",
    "npm": "npm error code ELIFECYCLE\nnpm error errno 1",
    "Python": "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'vat'",
    "Node, uncaught": "TypeError: x is not a function\n    at a.js:1:1\n\nNode.js v20.11.0",
    "Rust, panic": "thread 'main' panicked at src/main.rs:2:5:",
    "shell": "bash: line 1: pytset: command not found",
    "with colours": "\x1b[31m1 failed\x1b[0m, \x1b[32m1 passed\x1b[0m in 0.12s",
}
PASSED = {
    "pytest": "..                                      [100%]\n2 passed in 0.02s",
    "pytest, with lines": "======== 1 skipped, 12 passed, 1 warning in 1.20s ========",
    "pytest, expected failures": "3 passed, 1 xfailed in 0.10s",
    "unittest": "...\nRan 3 tests in 0.001s\n\nOK (skipped=1)",
    "Jest": "PASS src/cart.test.ts\nTest Suites: 1 passed, 1 total\nTests:       1 skipped, 4 passed, 5 total",
    "Vitest": " Test Files  1 passed (1)\n      Tests  8 passed (8)",
    "Mocha": "  3 passing (8ms)",
    "Node": "ℹ tests 2\nℹ pass 2\nℹ fail 0",
    "TAP": "ok 1 - sum\nnot ok 2 - later # TODO write it\n# pass 2\n# fail 0",
    "Go": "ok  \texample.com/cart\t0.002s",
    "Go, cached": "ok  \texample.com/cart\t(cached)",
    "Cargo": "test result: ok. 4 passed; 0 failed; 0 ignored",
    "cargo build": "   Compiling cart v0.1.0\n    Finished `dev` profile [unoptimized] target(s) in 0.50s",
    "mypy": "Success: no issues found in 3 source files",
    "ruff": "All checks passed!",
    "ruff, fixed": "Found 2 errors (2 fixed, 0 remaining).",
    "pyright": "0 errors, 0 warnings, 0 informations",
    "ESLint": "✖ 2 problems (0 errors, 2 warnings)",
    "Maven": "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
    "Gradle": "BUILD SUCCESSFUL in 3s",
    ".NET": "Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total:     2",
    "RSpec": "3 examples, 0 failures",
    "minitest": "4 runs, 5 assertions, 0 failures, 0 errors, 0 skips",
    "PHPUnit": "OK (3 tests, 3 assertions)",
    "CTest": "100% tests passed, 0 tests failed out of 2",
    "Deno": "ok | 2 passed | 0 failed (8ms)",
}
UNKNOWN = [
    "",
    "done",
    "Checked 12 files",
    "no tests ran in 0.01s",
    "the errors of the last release are fixed",
    "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
    "total: 12\nfailed logins: 3",
]


def test_reports_show_failure_and_success_and_other_output_proves_nothing() -> None:
    for expected, outputs in ((False, FAILED), (True, PASSED), (None, {output: output for output in UNKNOWN})):
        for runner, output in outputs.items():
            assert read_report(output) is expected, runner
    assert read_report(f"{FAILED['ruff']}\n{PASSED['pytest']}") is False


def test_a_printed_exit_code_decides_if_the_command_prints_one() -> None:
    for printed, expected in (("exit: 1", False), ("EXIT CODE=0", True), ("0", True), ("2", False)):
        assert read_report(f"ran\n{printed}", 'sh test.sh; echo "exit: $?"') is expected, printed
        assert read_report(f"ran\n{printed}", "sh test.sh") is None, printed


def test_pipes_and_lists_hide_the_result_of_a_program() -> None:
    hidden = ("npm test | tail -5", "pytest || true", "pytest; echo done", "a\nb", "pytest 2>&1 | tee log", "serve &")
    shown = ("pytest -q", "cd a && pytest", "pytest 2>&1", "pytest -k 'a or b; c | d'", 'echo "a; b"', "make;")
    more = ("pytest &> log", "set -o pipefail && pytest | tail")
    assert [hides_result(command) for command in (*hidden, *shown, *more)] == [True] * 6 + [False] * 8


def test_a_test_run_and_a_command_that_only_reads_are_recognized() -> None:
    tests = (
        "pytest -q",
        "cd shop && uv run pytest tests",
        "npm test",
        "npm run test:unit",
        "go test ./...",
        "make check",
    )
    others = ("ruff check .", "pytest | tail -5", "pytest || true", "npm run build", "ls", "")
    assert [is_test_run(command) for command in (*tests, *others)] == [True] * 6 + [False] * 6
    assert is_read_only("cd shop && cat a | grep b") and not is_read_only("cat a > b")


def test_the_report_decides_unless_the_exit_code_of_the_check_is_known() -> None:
    assert command_result("pytest", FAILED["pytest"], True) is True
    assert command_result("pytest", PASSED["pytest"], False) is False
    for command, has_succeeded in (("pytest", None), ("pytest | tail -3", True), ("pytest; true", True)):
        assert command_result(command, FAILED["pytest"], has_succeeded) is False
        assert command_result(command, PASSED["pytest"], has_succeeded) is True
        assert command_result(command, "printed something", has_succeeded) is None
    assert command_result("cat test.log | grep failed", FAILED["pytest"], True) is True, "it only reads"
    assert command_result("cat test.log", FAILED["pytest"], None) is None


@given(st.text(alphabet="\n 01:=.,-|()#FAILEDerropasdtn\t", max_size=500) | st.text(max_size=500))
def test_any_output_is_read(output: str) -> None:
    assert read_report(output * 50) in (True, False, None)
