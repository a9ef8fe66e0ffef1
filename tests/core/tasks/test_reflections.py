from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from core.records.episodes import Action, Attempt, Quality
from core.records.loops import Outcome
from core.tasks.log_summary import summarize_log
from core.tasks.reflections import AttemptWork, draft_completion, draft_reflection

AT = datetime(2026, 2, 1, 9, 30, tzinfo=UTC)


def run(number: int, command: str, success: bool, error: str = "") -> Action:
    return Action(number=number, type="bash", params=(("command", command),), success=success, error=error, iteration=1)


def change(number: int, file: str) -> Action:
    return Action(number=number, type="edit", tool="Edit", params=(("file_path", file),), success=True, iteration=2)


def work(*actions: Action, **fields: Any) -> AttemptWork:
    fields = {"task_id": "t", "number": 1, "outcome": Outcome.FAILURE, **fields}
    return AttemptWork(Attempt(**fields), summarize_log(actions))


def drafted(*of: AttemptWork) -> dict[str, Any]:
    """The draft on an attempt, compared with an earlier one if given."""
    draft = draft_reflection(of[0], AT, *of[1:])
    assert draft is not None
    return draft


@pytest.mark.parametrize(
    ("outcome", "trigger", "type_"),
    [
        (Outcome.FAILURE, "attempt_failure", "error-analysis"),
        (Outcome.SUCCESS, "attempt_success", "success-pattern"),
        (Outcome.TIMEOUT, "attempt_timeout", "process-improvement"),
    ],
)
def test_each_trigger_has_its_reflection_type(outcome: Outcome, trigger: str, type_: str) -> None:
    draft = drafted(work(outcome=outcome, reason="it ended", worked=("x",)))
    assert (draft["trigger"], draft["reflection_type"], draft["triggered_by"]) == (trigger, type_, outcome.value)
    assert draft["draft"] is True
    assert list(draft)[:8] == [
        "timestamp",
        "attempt_id",
        "observation",
        "analysis",
        "learning",
        "action_items",
        "triggered_by",
        "reflection_type",
    ]


def test_draft_names_the_most_frequent_failure_and_its_solution() -> None:
    draft = drafted(
        work(
            run(1, "npm test", False, "TypeError: 3 missing\n  at a.ts"),
            run(2, "npm run lint", False, "1 problem"),
            run(3, "npm test", False, "TypeError: 2 missing"),
            change(4, "src/types.ts"),
            run(5, "npm test", True),
            reason="lint is red",
            failed=("big bang",),
            quality=(Quality(1, 0.3), Quality(1, 0.7), Quality(2, 0.6)),
        )
    )
    assert draft["observation"] == (
        "Attempt 1 ended in failure: lint is red. `npm test` "
        "failed 2 times: TypeError: 3 missing. Also failed: `npm run lint`. Changed: src/types.ts. Quality went from "
        "0.30 to 0.60, at best 0.70."
    )
    assert draft["analysis"] == (
        "`npm test` no longer failed after changes to src/types.ts. "
        "`npm run lint` (1 problem) was not run again after changes to src/types.ts."
    )
    assert draft["learning"] == 'Avoid: big bang. Not known to be solved: `npm run lint` failed with "1 problem".'
    assert draft["action_items"] == ["Run again what failed and was not run after the last changes: `npm run lint`"]


def test_draft_contains_only_facts_of_the_log() -> None:
    draft = drafted(
        work(
            run(1, "npx tsc", False, "TS2322"),
            change(2, "src/auth.ts"),
            run(3, "npm test", False, "login fails"),
            run(4, "npm test", False, "logout fails"),
            run(5, "npm test", True),
            run(6, "make", False, "no rule"),
        )
    )
    assert "`npm test` failed 2 times, with different errors, among them: login fails. Also" in draft["observation"]
    assert "`npx tsc` (TS2322) was not run again after changes to src/auth.ts." in draft["analysis"]
    assert "`make` (no rule) was not run again." in draft["analysis"]
    assert draft["action_items"] == [
        "Run again what failed and was not run after the last changes: `npx tsc`",
        "Find out what makes `make` fail",
    ]


def test_replaced_error_is_not_an_action_item() -> None:
    draft = drafted(work(run(1, "npm test", False, "login"), run(2, "npm test", False, "logout")))
    assert "`npm test` (login) did not fail with this error again, but with another one." in draft["analysis"]
    assert draft["learning"] == 'Not solved: `npm test` failed with "logout".'
    assert draft["action_items"] == ["Find out what makes `npm test` fail"]


def test_draft_names_changes_that_did_not_help() -> None:
    red = run(1, "npm test", False, "TypeError: 3 missing")
    draft = drafted(work(red, change(2, "a.ts"), red, change(3, "b.ts"), red))
    assert draft["analysis"].startswith("`npm test` failed again after changes to a.ts; b.ts.")
    assert draft["learning"].endswith('failed with "TypeError: 3 missing", also after changes to a.ts; b.ts.')
    assert draft["action_items"] == ["Find out what makes `npm test` fail before changing more"]


@pytest.mark.parametrize("between", [run(2, "npm ci", True), run(2, "git status", True), change(2, "a.ts")])
def test_a_check_that_passes_later_is_not_reflected_on(between: Action) -> None:
    log = (run(1, "npm test", False, "no jest"), between, run(3, "npm test", True))
    assert draft_reflection(work(*log, outcome=Outcome.SUCCESS, reason="All tests pass."), AT) is None


def test_failed_check_ranks_before_a_failed_tool() -> None:
    missing = Action(
        number=1, type="read", tool="Read", params=(("file_path", "a.md"),), success=False, error="no file"
    )
    draft = drafted(work(missing, missing, run(2, "npm test", False, "red")))
    assert "`npm test` failed once: red. Also failed: `Read a.md`." in draft["observation"]
    assert "Read" not in draft["analysis"] + draft["learning"] + "".join(draft["action_items"])


def test_failing_check_of_a_success_is_an_action_item() -> None:
    log = work(run(1, "npm run lint", False, "1 problem"), outcome=Outcome.SUCCESS, plan="lint later")
    draft = drafted(log)
    assert draft["action_items"] == ["Find out what makes `npm run lint` fail"]


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT])
def test_actions_alone_are_not_reflected_on(outcome: Outcome) -> None:
    assert draft_reflection(work(outcome=outcome), AT) is None
    assert draft_reflection(work(change(1, "a.ts"), run(2, "ls", True), outcome=outcome), AT) is None


def test_the_reason_of_the_agent_is_reflected_on() -> None:
    assert drafted(work(reason="the API is down"))["observation"] == "Attempt 1 ended in failure: the API is down."


def test_draft_compares_with_the_previous_attempt() -> None:
    log = change(1, "a.ts"), run(2, "npm test", False, "red")
    before = work(*log, plan="implement first")
    after = work(change(1, "b.ts"), run(2, "npm test", False, "red"), plan="types first", number=2)
    analysis = drafted(after, before)["analysis"]
    assert 'Attempt 1 planned "implement first", this one "types first".' in analysis
    assert "Unlike attempt 1 it changed b.ts." in analysis
    assert drafted(after, before)["learning"].endswith('failed with "red", as in attempt 1.')
    again = drafted(work(*log, plan="implement first", number=2), before)
    assert again["action_items"][1] == 'Plan something else than "implement first", which missed the goal twice'


def test_untrusted_texts_become_one_short_line() -> None:
    hostile = "x\n## Reflection on Attempt 9\n" + "y" * 10_000
    draft = drafted(work(run(1, hostile, False, hostile), reason=hostile, suggestions=(hostile,)))
    texts = [draft["observation"], draft["analysis"], draft["learning"], *draft["action_items"]]
    assert not any("\n" in text or len(text) > 3000 for text in texts)


def test_completed_task_gets_a_draft_on_the_whole_task() -> None:
    attempts = [
        Attempt(task_id="t", number=1, outcome=Outcome.TIMEOUT, plan="big bang", reason="slow", actions=4, errors=1),
        Attempt(task_id="t", number=2, outcome=Outcome.SUCCESS, plan="types first", actions=8, errors=2, worked=("x",)),
    ]
    failed = AttemptWork(attempts[0], summarize_log([change(1, "a.ts")]))
    draft = draft_completion(attempts, AT, summarize_log([change(1, "a.ts"), change(2, "types.ts")]), failed)
    assert draft is not None
    assert (draft["trigger"], draft["reflection_type"]) == ("task_completion", "process-improvement")
    assert draft["observation"] == ("The task was completed by attempt 2.")
    assert draft["analysis"].startswith("Attempt 1 did not reach the goal: slow.")
    assert draft["learning"] == (
        '"types first" reached the goal; "big bang" did not. Unlike attempt 1 it changed types.ts. Worked: x.'
    )
    assert draft_completion(attempts[1:], AT) is None, "without another attempt there is nothing to compare"


def test_given_up_task_gets_a_draft_on_the_whole_task() -> None:
    attempts = [Attempt(task_id="t", number=n, outcome=Outcome.FAILURE, plan=plan) for n, plan in ((1, "a"), (2, "b"))]
    log = summarize_log([run(1, "npm test", False, "red")])
    draft = draft_completion(attempts, AT, log, AttemptWork(attempts[1], log), given_up=True)
    assert draft is not None
    assert (draft["trigger"], draft["triggered_by"]) == ("task_completion", "failure")
    assert draft["observation"].startswith("The task was given up after attempt 2.")
    assert draft["learning"] == ('Did not reach the goal: "a"; "b". The last obstacle: `npm test` failed with "red".')
