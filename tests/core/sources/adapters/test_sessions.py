"""Turns of an agent's session, the output of its commands, and loops of headless sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.base.shell_commands import MAX_ERROR, find_error, parse_results
from core.records.debug_sessions import Failure, Results
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Usage
from core.sources.adapters.sessions import BareLoops, Turn, join_sessions, make_iteration, note_command

CHECK = "pytest -q"


def failed_turn() -> Turn:
    turn = Turn(prompt="Make the tests pass")
    turn.add_text("I run the tests.")
    turn.add_tool("bash")
    note_command(turn, CHECK, 1, "E   KeyError: 'vat'\n1 failed", "")
    return turn


def description(turn: Turn) -> str:
    turn.add_tool("bash")
    note_command(turn, CHECK, 0, "1 passed", "")
    turn.add_text("All tests pass.")
    fix = make_iteration(1, turn).fix
    assert fix is not None
    return fix.description


def test_the_text_before_the_last_edit_describes_the_fix() -> None:
    turn = failed_turn()
    for text in ("A default helps.", "Exempt lines have no rate."):
        turn.add_text(text)
        turn.add_tool("edit", is_change=True)
    assert description(turn) == "Exempt lines have no rate."


def test_words_before_another_call_do_not_describe_the_fix() -> None:
    turn = failed_turn()
    turn.add_text("I look at the module.")
    turn.add_tool("read")
    turn.add_tool("edit", is_change=True)
    assert description(turn) == "All tests pass."


NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


def run(number: int, **values: Any) -> Loop:
    started = NOW + timedelta(minutes=10 * number)
    known: dict[str, Any] = {
        "task": "Do the next story",
        "cwd": "/p",
        "tags": ("headless",),
        "status": LoopStatus.COMPLETED,
        "raw_status": "task_complete",
        "end_reason": "task_complete",
        "liveness": Liveness.ENDED,
        "started_at": started,
        "last_activity": started + timedelta(minutes=5),
        "session_ids": (str(number),),
        "usage": Usage(input=10),
    }
    return Loop(id=f"codex:{number}", runner="codex", owner="codex", **{**known, **values})


def test_runs_of_one_prompt_are_one_loop_that_waits_for_the_next_run() -> None:
    (loop,) = BareLoops().join([run(2), run(0), run(1)], NOW + timedelta(minutes=26))
    assert (loop.id, loop.aliases, loop.iteration) == ("codex:0", ("codex:1", "codex:2"), 3)
    assert (loop.session_ids, loop.usage.input) == (("0", "1", "2"), 30)
    assert (loop.status, loop.end_reason) == (LoopStatus.RUNNING, "")
    (loop,) = BareLoops().join([run(0), run(1), run(2)], NOW + timedelta(hours=1))
    assert loop.status is LoopStatus.UNKNOWN


def test_two_runs_other_folders_and_sessions_of_a_person_are_not_a_loop() -> None:
    others = [run(2, cwd="/other"), run(3, task="Another prompt"), run(4, tags=("interactive",)), run(5, parent="x")]
    loops = [run(0), run(1), *others]
    assert {loop.id for loop in BareLoops().join(loops, NOW)} == {loop.id for loop in loops}


def test_an_unchanged_loop_is_the_same_object() -> None:
    bare, later = BareLoops(), NOW + timedelta(hours=1)
    first, second = (next(bare.join([run(0), run(1), run(2)], later)) for _ in range(2))
    assert first is second


def test_each_session_is_an_iteration_with_all_its_failures() -> None:
    sessions = [
        LoopDetails(
            loop_id="codex:1",
            iterations=tuple(Iteration(number=n, failures=(Failure(message=f"{id} {n}"),)) for n in (1, 2)),
        )
        for id in ("first", "second")
    ]
    joined = join_sessions(run(0), sessions)
    assert [(one.number, [found.message for found in one.failures]) for one in joined.iterations] == [
        (1, ["first 1", "first 2"]),
        (2, ["second 1", "second 2"]),
    ]


def test_the_most_specific_line_is_the_error() -> None:
    for output, error in (
        ("E   AssertionError: 1.0 != 1.1\n1 failed", "AssertionError: 1.0 != 1.1"),
        ("Traceback\n  File x\nshop.money.RoundingError: no quantum\n", "shop.money.RoundingError: no quantum"),
        ("error[E0382]: use of moved value", "error[E0382]: use of moved value"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("nothing\nspecial\n", "special"),
        ("", ""),
    ):
        assert find_error(output) == error, output


def test_an_error_has_a_limited_length() -> None:
    assert len(find_error("ValueError: " + "x" * 100_000)) == MAX_ERROR


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
