"""Whether a lesson was followed, and with which result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.questions.extraction.following import judge
from core.questions.extraction.recorded_work import ActionLog, RecordedWork, make_turn_actions
from core.records.debug_sessions import Failure, Fix
from core.records.episodes import Action
from core.records.loops import Iteration, Outcome
from core.records.patterns import Pattern
from tests.factories import NOW, make_pattern

RED = "TypeError: total is None"
LESSON = make_pattern(
    error_pattern=r"total is None", diff_pattern="-    return total\n+    return total or ZERO_AMOUNT"
)


def fails(message: str = RED) -> dict[str, Any]:
    return {"type": "bash", "params": (("command", "pytest"),), "success": False, "error": message}


def edits(new: str, old: str = "    return total") -> dict[str, Any]:
    return {"type": "edit", "params": (("file_path", "cart.py"), ("old_string", old), ("new_string", new))}


PASSES: dict[str, Any] = {"type": "bash", "params": (("command", "pytest"),), "success": True}
FOLLOWS = edits("    return total or ZERO_AMOUNT")
OTHER = edits("    return max(total, 0)")


def result(*fields: dict[str, Any], given_at: int = 0, outcome: Outcome, lesson: Pattern = LESSON) -> bool | None:
    """Return the result of the lesson; each action is one minute after the previous one."""
    actions = [
        Action(**{"number": number, "at": NOW + timedelta(minutes=number), "success": True, **one})
        for number, one in enumerate(fields, 1)
    ]
    return judge(lesson, RecordedWork(ActionLog(actions), NOW + timedelta(minutes=given_at), outcome)).has_worked


@pytest.mark.parametrize(
    ("actions", "outcome", "expected"),
    [
        ([fails(), FOLLOWS, PASSES], Outcome.SUCCESS, True),
        ([fails(), FOLLOWS, fails()], Outcome.FAILURE, False),
        ([fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([fails(), OTHER, fails()], Outcome.FAILURE, None),
        ([fails(), fails()], Outcome.FAILURE, None),
        ([fails(), FOLLOWS], Outcome.FAILURE, None),
        ([fails(), FOLLOWS, fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([FOLLOWS, fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([fails("KeyError: 'vat'"), FOLLOWS, PASSES], Outcome.SUCCESS, None),
    ],
    ids=[
        "solved",
        "returned",
        "another fix",
        "another fix failed",
        "gave up",
        "not tried",
        "replaced",
        "before",
        "other",
    ],
)
def test_a_lesson_has_a_result_if_an_edit_follows_it(
    actions: list[dict[str, Any]], outcome: Outcome, expected: bool | None
) -> None:
    assert result(*actions, outcome=outcome) is expected


@pytest.mark.parametrize(("test", "expected"), [("test_total", True), ("test_cart", None)])
def test_a_lesson_that_is_limited_to_a_test_has_a_result_only_there(test: str, expected: bool | None) -> None:
    lesson = replace(LESSON, places=("tests/test_cart.py::test_total",), error_message=RED)
    summary = f"=== short test summary info ===\nFAILED tests/test_cart.py::{test} - {RED}\n1 failed in 0.1s"
    assert result(fails(summary), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, lesson=lesson) is expected


def test_a_lesson_without_a_trigger_has_a_result_if_its_error_occurs_word_for_word() -> None:
    lesson = replace(LESSON, error_pattern="", error_message="KeyError: 'count'")
    for message, expected in (("KeyError: 'count'", True), ("KeyError: 'counts'", None)):
        assert result(fails(message), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, lesson=lesson) is expected, message


def test_an_edit_before_the_lesson_was_given_does_not_follow_it() -> None:
    assert result(fails(), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, given_at=1) is True
    assert result(fails(), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, given_at=3) is None


@pytest.mark.parametrize(
    ("line", "expected"), [("return total or ZERO_AMOUNT", True), ("return maximum(lines)", False), ("", None)]
)
def test_a_loop_is_judged_by_what_its_iterations_record(line: str, expected: bool | None) -> None:
    diff = f"--- cart.py\n+++ cart.py\n@@ -1 +1 @@\n-return total\n+{line}" if line else ""
    turns = (
        Iteration(number=1, at=NOW, failures=(Failure(error_type="TypeError", message="total is None"),)),
        Iteration(number=2, at=NOW, outcome=Outcome.SUCCESS, fix=Fix(diff=diff), files=("cart.py",)),
    )
    actions = [action for turn in turns for action in make_turn_actions(turn)]
    found = judge(LESSON, RecordedWork(ActionLog(actions), NOW - timedelta(hours=1), Outcome.SUCCESS))
    assert found.is_followed is expected
    assert found.action == (0 if expected is None else 2), "the number of the iteration"
