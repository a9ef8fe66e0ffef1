"""Whether a lesson was followed, with which result, and how often that is right for labelled sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec.structs import replace

from core.questions.extraction.following import Judgement, judge
from core.questions.extraction.recorded_work import ActionLog, RecordedWork, make_turn_actions
from core.records.debug_sessions import Failure, Fix
from core.records.episodes import Action
from core.records.loops import Iteration, Outcome
from core.records.patterns import Pattern, PatternType
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


def test_a_lesson_has_a_result_if_an_edit_follows_it() -> None:
    rows: list[tuple[list[dict[str, Any]], Outcome, bool | None]] = [
        ([fails(), FOLLOWS, PASSES], Outcome.SUCCESS, True),
        ([fails(), FOLLOWS, fails()], Outcome.FAILURE, False),
        ([fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([fails(), OTHER, fails()], Outcome.FAILURE, None),
        ([fails(), fails()], Outcome.FAILURE, None),
        ([fails(), FOLLOWS], Outcome.FAILURE, None),
        ([fails(), FOLLOWS, fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([FOLLOWS, fails(), OTHER, PASSES], Outcome.SUCCESS, None),
        ([fails("KeyError: 'vat'"), FOLLOWS, PASSES], Outcome.SUCCESS, None),
    ]
    for actions, outcome, expected in rows:
        assert result(*actions, outcome=outcome) is expected, actions


def test_a_lesson_that_is_limited_to_a_test_has_a_result_only_there() -> None:
    for test, expected in [("test_total", True), ("test_cart", None)]:
        lesson = replace(LESSON, places=("tests/test_cart.py::test_total",), error_message=RED)
        summary = f"=== short test summary info ===\nFAILED tests/test_cart.py::{test} - {RED}\n1 failed in 0.1s"
        assert result(fails(summary), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, lesson=lesson) is expected, (
            test,
            expected,
        )


def test_a_lesson_without_a_trigger_has_a_result_if_its_error_occurs_word_for_word() -> None:
    lesson = replace(LESSON, error_pattern="", error_message="KeyError: 'count'")
    for message, expected in (("KeyError: 'count'", True), ("KeyError: 'counts'", None)):
        assert result(fails(message), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, lesson=lesson) is expected, message


def test_an_edit_before_the_lesson_was_given_does_not_follow_it() -> None:
    assert result(fails(), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, given_at=1) is True
    assert result(fails(), FOLLOWS, PASSES, outcome=Outcome.SUCCESS, given_at=3) is None


def test_a_loop_is_judged_by_what_its_iterations_record() -> None:
    for line, expected in [("return total or ZERO_AMOUNT", True), ("return maximum(lines)", False), ("", None)]:
        diff = f"--- cart.py\n+++ cart.py\n@@ -1 +1 @@\n-return total\n+{line}" if line else ""
        turns = (
            Iteration(number=1, at=NOW, failures=(Failure(error_type="TypeError", message="total is None"),)),
            Iteration(number=2, at=NOW, outcome=Outcome.SUCCESS, fix=Fix(diff=diff), files=("cart.py",)),
        )
        actions = [action for turn in turns for action in make_turn_actions(turn)]
        found = judge(LESSON, RecordedWork(ActionLog(actions), NOW - timedelta(hours=1), Outcome.SUCCESS))
        assert found.is_followed is expected, (line, expected)
        assert found.action == (0 if expected is None else 2), "the number of the iteration"


_FILE: Final = Path(__file__).with_name("followed_sessions.yaml")
SESSIONS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_WORDS: Final = {True: "followed", False: "not", None: "unclear"}


def read_lesson(lesson: Mapping[str, Any]) -> Pattern:
    return make_pattern(
        type=PatternType(lesson["type"]),
        title=lesson.get("text", ""),
        description=lesson.get("text", ""),
        error_pattern=lesson.get("trigger", ""),
        error_message=lesson.get("message", ""),
        diff_pattern=lesson.get("diff", ""),
        template_code=lesson.get("code", ""),
        template_language=lesson.get("language", ""),
        better_alternative=lesson.get("better", ""),
        steps=tuple(lesson.get("steps", ())),
        tools=tuple(lesson.get("tools", ())),
    )


def read_action(number: int, action: Mapping[str, Any]) -> Action:
    """Return an action as the hooks log it; each is one minute after the previous one."""
    at = NOW + timedelta(minutes=number)
    if "run" in action:
        failed = action.get("fails", "")
        return Action(
            number=number,
            at=at,
            type="bash",
            tool="Bash",
            params=(("command", action["run"]),),
            success=not failed,
            error=failed,
            output=action.get("prints", ""),
        )
    if "read" in action:
        params, output = (("file_path", action["read"]),), action.get("shows", "")
        return Action(number=number, at=at, type="read", tool="Read", params=params, success=True, output=output)
    texts = {"old_string": action.get("old"), "new_string": action.get("new"), "content": action.get("content")}
    fields = {"file_path": action.get("edit") or action["write"], **{key: text for key, text in texts.items() if text}}
    kind = "write" if "write" in action else "edit"
    return Action(number=number, at=at, type=kind, tool=kind.title(), params=tuple(fields.items()), success=True)


def judge_session(session: Mapping[str, Any]) -> Judgement:
    actions = [read_action(number, one) for number, one in enumerate(session["actions"], 1)]
    given_at = NOW + timedelta(minutes=session.get("given", 0), seconds=30)
    work = RecordedWork(ActionLog(actions), given_at, Outcome(session.get("outcome", "success")))
    return judge(read_lesson(session["lesson"]), work)


def measure(sessions: Sequence[Mapping[str, Any]], word: str) -> tuple[int, int, int]:
    """Return how many sessions have a label, how many were judged so, and how many of these rightly."""
    judged = {session["id"]: _WORDS[judge_session(session).is_followed] for session in sessions}
    labelled = [session["id"] for session in sessions if session["label"] == word]
    claimed = [id for id, found in judged.items() if found == word]
    return len(labelled), len(claimed), len({*labelled} & {*claimed})


def test_verdicts_agree_with_the_labels() -> None:
    for word in ["followed", "not"]:
        for part in SESSIONS:
            labelled, claimed, right = measure(SESSIONS[part], word)
            assert right >= 0.95 * claimed, f"precision {right}/{claimed}"
            assert right >= 0.6 * labelled, f"recall {right}/{labelled}"


def test_the_evidence_is_the_action_that_shows_it() -> None:
    for session in (one for part in SESSIONS.values() for one in part if "evidence" in one):
        found = judge_session(session)
        if found.is_followed is not None:
            assert found.action == session["evidence"], session["id"]
