"""Whether a lesson was applied in an attempt, and with which result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.episodes.log_summary import summarize_log
from core.hooks.lesson_results import find_result, follows_fix
from core.records.episodes import Action
from core.records.loops import Outcome
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
    failures = summarize_log(actions).failures
    return find_result(lesson, NOW + timedelta(minutes=given_at), actions, failures, outcome)


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
    ("lesson", "old", "new", "follows"),
    [
        ({"diff_pattern": "-x = a - b\n+x = a + b"}, "y = a - b", "y = a + b", False),
        ({"diff_pattern": "-x = a - b\n+x = a + b"}, "x = a - b", "x = a  +  b", True),
        ({"diff_pattern": "-x = user.name\n+x = user?.name"}, "y = page.name", "y = page?.name", True),
        ({"template_code": "if {{name}} is None:\n    raise MissingValue"}, "pass", "raise MissingValue(x)", True),
        ({"template_code": "if {{name}} is None:\n    return"}, "pass", "if order is None:\n    pass", False),
        ({"description": "Use Decimal for amounts"}, "float(x)", "Decimal(x)", True),
        ({"description": "Use Decimal for amounts"}, "float(x)", "round(x)", False),
        ({}, "a", "b", False),
    ],
)
def test_an_edit_follows_a_fix_with_its_line_or_a_distinctive_word(
    lesson: dict[str, Any], old: str, new: str, follows: bool
) -> None:
    assert follows_fix(make_pattern(**lesson), Action(number=1, **edits(new, old))) is follows
