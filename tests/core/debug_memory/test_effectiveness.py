"""How often fixes held, over all sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.debug_memory.index import FixCounts, FixResults
from core.records.debug_sessions import Execution, Fix, Results
from tests.factories import make_lesson, make_run, make_session

NULL = "null_undefined_access"
CHANGED = Fix(description="Guarded")
GREEN = Execution(results=Results(total=1, passed=1, failed=0))
RED = Execution(results=Results(total=1, passed=0, failed=1))


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((make_run(fix=CHANGED), GREEN), True),
        ((make_run(fix=CHANGED), RED), False),
        ((make_run(fix=CHANGED), make_run()), False),
        ((make_run(fix=CHANGED), make_run(failures=())), False),
        ((make_run(fix=CHANGED), Execution()), None),
        ((make_run(fixed=False), GREEN), False),
        ((make_run(fixed=True), RED), True),
    ],
)
def test_unverified_fix_is_judged_by_the_next_run(runs: tuple[Execution, ...], expected: bool | None) -> None:
    assert make_session("s", *runs, status="in_progress").verdicts == (expected, None)


def test_fix_is_not_judged_by_another_failure() -> None:
    other = make_run(failures=(replace(make_run().failures[0], test_name="u"),))
    assert make_session("s", make_run(fix=CHANGED), other, status="in_progress").verdicts == (None, None)


@pytest.mark.parametrize(
    ("status", "expected"), [("passed", True), ("failed", False), ("escalated", False), ("in_progress", None)]
)
def test_last_fix_is_judged_by_the_session_status(status: str, expected: bool | None) -> None:
    assert make_session("s", make_run(fix=CHANGED), status=status).verdicts == (expected,)
    assert make_session("s", make_run(), status=status).verdicts == (None,)


def test_failed_sessions_without_a_pattern_count_for_the_usual_one() -> None:
    held = make_session("held", make_run(category=NULL, fixed=True), lessons=(make_lesson("guard"),))
    failed = [make_session(f"failed-{number}", make_run(category=NULL, fixed=False)) for number in range(3)]
    results = FixResults([held, *failed])
    assert results.of_pattern(NULL, "guard") == results.of_cause(NULL) == FixCounts(passed=1, failed=3)
    assert results.effectiveness(make_lesson("guard")) == 0.25
    assert results.of_pattern(NULL, "guard").text == "worked in 1 of 4 (25 %)"


def test_session_with_another_pattern_does_not_count() -> None:
    usual = [
        make_session(f"s{number}", make_run(category=NULL, fixed=True), lessons=(make_lesson("guard"),))
        for number in (1, 2)
    ]
    other = make_session("other", make_run(category=NULL, fixed=False), lessons=(make_lesson("optional"),))
    unnamed = make_session("unnamed", make_run(category=NULL, fixed=False))
    results = FixResults([*usual, other, unnamed])
    assert results.of_pattern(NULL, "guard") == FixCounts(passed=2, failed=1)
    assert results.of_pattern(NULL, "optional") == FixCounts(failed=1)
    assert results.of_cause(NULL) == FixCounts(passed=2, failed=2)


def test_recorded_effectiveness_is_used_without_known_results() -> None:
    results = FixResults([make_session("s", make_run(category=NULL), lessons=(make_lesson(effectiveness=0.8),))])
    assert results.effectiveness(make_lesson(effectiveness=0.8)) == 0.8
    assert (results.of_pattern(NULL, "p").text, FixCounts().rate) == ("", None)
