"""What the log of an attempt teaches: errors with their fixes, errors that stay, an approach that worked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config.settings import ExtractionSettings
from core.extraction.engine import extract
from core.extraction.fixes import Repair, find_attempt_repairs, find_repeated_errors, list_tools
from core.records.episodes import Action, Attempt, Task, TaskStatus
from core.records.extractions import LoggedAttempt, Material, Proposal
from core.records.loops import Outcome
from core.records.patterns import PatternType
from tests.factories import LOOP_START, make_known_patterns

NULL = "TypeError: Cannot read properties of null (reading 'id') at src/user.ts:7"
OTHER = "ReferenceError: session is not defined"


def ran(command: str, error: str = "", **values: Any) -> dict[str, Any]:
    values = {"type": "bash", "tool": "Bash", "error": error, "success": not error, **values}
    return {"params": (("command", command),), **values}


def edited(new: str = "if (!user) return", why: str = "Guard against a missing user", **values: Any) -> dict[str, Any]:
    params = (("file_path", "src/user.ts"), ("old_string", "a"), ("new_string", f"a\n{new}"))
    return {"type": "edit", "tool": "Edit", "params": params, "success": True, "reasoning": why, **values}


def logged(*done: dict[str, Any], number: int = 2, outcome: Outcome = Outcome.SUCCESS, **values: Any) -> LoggedAttempt:
    actions = tuple(
        Action(**{"number": place, "at": LOOP_START + timedelta(minutes=place), "iteration": 1, **action})
        for place, action in enumerate(done, start=1)
    )
    values = {"task_id": "task-001", "number": number, "outcome": outcome, "agent": "implementer", **values}
    steps = values.pop("steps", ())
    return LoggedAttempt(attempt=Attempt(**values), actions=actions, steps=steps)


def repairs(*done: dict[str, Any]) -> list[Repair]:
    return list(find_attempt_repairs(logged(*done)))


def test_an_error_then_a_change_then_a_passing_command_is_a_fix() -> None:
    (repair,) = repairs(
        {"type": "read", "tool": "Read", "success": True}, ran("npm test", NULL), edited(), ran("npm test")
    )
    assert repair.error.signature == r"Cannot read properties of null \(reading '.*'\)"
    assert (repair.error.error_type, repair.error.file) == ("TypeError", "src/user.ts")
    assert repair.description == "Guard against a missing user"
    assert repair.files == ("src/user.ts",)
    assert repair.diff.splitlines()[-1] == "+if (!user) return"
    assert repair.trace == "task-001, attempt 2, actions 2 → 4"
    assert (repair.at, repair.agent) == (LOOP_START + timedelta(minutes=4), "implementer")


@pytest.mark.parametrize(
    "done",
    [
        [ran("npm test", NULL), ran("npm test")],  # nothing was changed
        [ran("npm test", NULL), edited()],  # not verified
        [ran("npm test", NULL), edited(), ran("npm test", OTHER)],  # it never passed
        [ran("npm test", NULL), edited(), ran("npm run lint")],  # another command
        [ran("npm test", NULL), edited(success=False), ran("npm test")],  # the change failed
        [ran("npm test", NULL), edited(), ran("npm test"), ran("npm test", NULL)],  # it came back
        [ran("npm test", NULL), edited(), ran("npm test"), ran("npm run e2e", NULL)],  # and elsewhere
        [ran("npm test", "exit 1"), edited(), ran("npm test")],  # an error without a message
        [ran("npm test", NULL), edited(), ran("npm test", "exit 1"), ran("npm test")],  # perhaps the same again
        [ran("pytest", NULL), edited(), ran("pytest tests/other.py")],  # less was looked at
        [ran("npm test", NULL), edited(), ran("npm test || true")],
        [ran("npm test", NULL), edited(), ran("npm test | tail -3")],
        [ran("npm test", NULL), edited(), ran("npm test", success=None)],  # no result recorded
    ],
)
def test_changes_without_a_passing_run_are_not_a_fix(done: list[dict[str, Any]]) -> None:
    assert repairs(*done) == []


def test_an_error_that_recurred_with_more_words_is_not_fixed() -> None:
    first = "error TS2741: Property 'a' is missing in type 'B'."
    again = "error TS2741: Property 'a' is missing in type 'B' but required in type 'C'."
    done = [ran("tsc", first), edited(), ran("tsc"), edited(), ran("tsc", again)]
    assert repairs(*done) == []
    (repair,) = repairs(*done, edited(), ran("tsc"))
    assert repair.error.message.endswith("required in type 'C'.")


def test_consecutive_errors_have_their_own_changes() -> None:
    found = repairs(
        ran("npm test", NULL),
        edited(why="Guard"),
        ran("npm test", OTHER),
        edited(why="Import the session"),
        ran("npm test"),
    )
    assert [(repair.error.error_type, repair.description) for repair in found] == [
        ("TypeError", "Guard"),
        ("ReferenceError", "Import the session"),
    ]
    assert [repair.trace.rpartition(", ")[2] for repair in found] == ["actions 1 → 5", "actions 3 → 5"]


def test_the_message_may_be_in_the_output() -> None:
    output = "FAIL  src/user.test.ts\n  ● user › loads\n\n    × TypeError: Cannot read properties of null\n\n1 failed"
    (repair,) = repairs(ran("npm test", "Exit code 1", output=output), edited(), ran("npm test"))
    assert repair.error.message == "Cannot read properties of null"
    pytest_output = "    def test():\nE   ValueError: no such plan\n"
    (repair,) = repairs(ran("pytest", "exit 1", output=pytest_output), edited(), ran("pytest"))
    assert (repair.error.error_type, repair.error.message) == ("ValidationError", "no such plan")


def test_the_same_error_three_times_in_one_attempt() -> None:
    three = logged(ran("npm test", NULL), edited(why="Try one"), ran("npm test", NULL), ran("npm run e2e", NULL))
    ((times, steps),) = find_repeated_errors(three, 3)
    assert [error.where for error in times] == [f"task-001, attempt 2, action {number}" for number in (1, 3, 4)]
    assert steps == ["Try one"]
    assert list(find_repeated_errors(three, 4)) == []


def offered(*attempts: LoggedAttempt, **values: Any) -> list[Proposal]:
    task = Task(
        id="task-001", description="Fix the login of users without a session", status=TaskStatus.COMPLETED, **values
    )
    material = Material(source_id=task.id, task=task, attempts=attempts)
    return list(extract(material, make_known_patterns(), ExtractionSettings()).proposals)


def test_a_successful_attempt_gives_its_plan_as_approach() -> None:
    failed = logged(number=1, outcome=Outcome.FAILURE, plan="Implement first", steps=("Write the handler at once",))
    won = logged(
        ran("npm test", NULL, number=4),
        edited(),
        ran("npm test"),
        plan="Types first, then the handler",
        steps=("Extend AuthConfig", "Run tsc", "Write the handler"),
        iterations=3,
        worked=("The handler needed no change",),
    )
    found = {proposal.type: proposal for proposal in offered(failed, won, criteria="npm test passes")}
    approach = found[PatternType.SUCCESS]
    assert approach.trace == ("task-001, attempt 2: 3 steps of its plan",)
    assert approach.record["approach"] == {
        "description": "Types first, then the handler",
        "steps": ["Extend AuthConfig", "Run tsc", "Write the handler"],
        "tools_used": ["Edit", "Bash (npm test)"],
        "typical_iterations": {"average": 3.0, "minimum": 3, "maximum": 3},
    }
    assert approach.record["preconditions"] == ["What decides: npm test passes"]
    assert approach.record["benefits"] == ["The handler needed no change"]
    assert [source["loop_id"] for source in found[PatternType.ERROR].record["source_loops"]] == ["task-001"]


def test_a_task_without_a_successful_attempt_gives_no_approach() -> None:
    steps = ("Extend AuthConfig", "Run tsc", "Write the handler")
    assert offered(logged(outcome=Outcome.TIMEOUT, steps=steps)) == []


def test_a_repeated_error_is_an_anti_pattern_with_its_fix_if_known() -> None:
    failing = [ran("npm test", NULL), edited(why="Restart the server")]
    (warning, *_) = [one for one in offered(logged(*failing, *failing, *failing)) if one.type is PatternType.ANTI]
    assert warning.record["failure_mode"] == "repeated_same_error"
    assert warning.record["approach_description"].startswith("Restart the server, again and again")
    assert "better_alternative" not in warning.record
    settled = offered(logged(*failing, *failing, ran("npm test", NULL), edited(why="Guard it"), ran("npm test")))
    (warning,) = [one for one in settled if one.type is PatternType.ANTI]
    assert warning.record["better_alternative"] == {"description": "Guard it"}


def test_tools_that_only_failed_are_left_out() -> None:
    assert list_tools(logged(ran("make lint", "x"), ran("ls"), edited()).actions) == ("Bash", "Edit")


ERRORS = st.sampled_from(["", "", NULL, OTHER, "exit 1", "\x1b]52;c;x\x07 (a|a)* broke: \ud800 'x'"])
ACTIONS = st.one_of(
    st.builds(ran, st.sampled_from(["npm test", "pytest a.py", "pytest", "x | y"]), ERRORS),
    st.builds(edited, st.text(max_size=20), st.text(max_size=20)),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(ACTIONS, max_size=12))
def test_a_fix_is_between_a_failure_and_a_success(done: list[dict[str, Any]]) -> None:
    log = logged(*done)
    for repair in find_attempt_repairs(log):
        first, last = (int(number) for number in repair.trace.rpartition("actions ")[2].split(" → "))
        assert log.actions[first - 1].has_failed and not log.actions[last - 1].has_failed
        assert any(action.type == "edit" for action in log.actions[first : last - 1])
    offered(log)
