from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from core.episodes.log_summary import summarise_log
from core.episodes.reflecting import TEMPLATE, Told, draft_completion, draft_reflection, render_reflection
from core.records.episodes import Action, Attempt, Quality
from core.records.loops import Outcome

AT = datetime(2026, 2, 1, 9, 30, tzinfo=UTC)
# (1) reflection_template and example_reflection.
DOCUMENT_TEMPLATE = """\
## Reflection on Attempt {attempt_id}

**Observation**: What happened during this attempt?
{observation}

**Analysis**: Why did this happen?
{analysis}

**Learning**: What should be done differently?
{learning}

**Action Items**:
{action_items}
"""
EXAMPLE = """\
## Reflection on Attempt 2

**Observation**: Test suite failed with 3 type errors related to
missing properties on the AuthConfig interface.

**Analysis**: The implementation was updated to add new OAuth
properties, but the interface definition was not updated first.
This caused type mismatches when tests ran.

**Learning**: When adding new properties to configuration objects,
update the interface definition BEFORE implementing the feature.
This follows the "types first" pattern.

**Action Items**:
1. Update AuthConfig interface with oauth_enabled, oauth_provider properties
2. Re-run type check before implementation
3. Add interface update to standard checklist
"""


def run(number: int, command: str, success: bool, error: str = "") -> Action:
    return Action(number=number, type="bash", params=(("command", command),), success=success, error=error, iteration=1)


def change(number: int, file: str) -> Action:
    return Action(number=number, type="edit", tool="Edit", params=(("file_path", file),), success=True, iteration=2)


def told(*actions: Action, **fields: Any) -> Told:
    fields = {"task_id": "t", "number": 1, "outcome": Outcome.FAILURE, **fields}
    return Told(Attempt(**fields), summarise_log(actions))


def test_the_template_is_that_of_the_document() -> None:
    assert TEMPLATE == DOCUMENT_TEMPLATE
    filled = render_reflection(3, "o {learning}", "a", "l", ["x"])
    assert filled == DOCUMENT_TEMPLATE.replace("{learning}", "l").replace("{observation}", "o {learning}").replace(
        "{attempt_id}", "3"
    ).replace("{analysis}", "a").replace("{action_items}", "1. x")


def test_the_example_of_the_document_comes_out_word_for_word() -> None:
    observation = "Test suite failed with 3 type errors related to\nmissing properties on the AuthConfig interface."
    analysis = (
        "The implementation was updated to add new OAuth\nproperties, but the interface definition was not updated "
        "first.\nThis caused type mismatches when tests ran."
    )
    learning = (
        "When adding new properties to configuration objects,\nupdate the interface definition BEFORE implementing "
        'the feature.\nThis follows the "types first" pattern.'
    )
    items = [
        "Update AuthConfig interface with oauth_enabled, oauth_provider properties",
        "Re-run type check before implementation",
        "Add interface update to standard checklist",
    ]
    assert render_reflection(2, observation, analysis, learning, items, asked=False) == EXAMPLE


@pytest.mark.parametrize(
    ("outcome", "trigger", "type_"),
    [
        (Outcome.FAILURE, "attempt_failure", "error-analysis"),
        (Outcome.SUCCESS, "attempt_success", "success-pattern"),
        (Outcome.TIMEOUT, "attempt_timeout", "process-improvement"),
    ],
)
def test_each_trigger_has_the_type_of_the_document(outcome: Outcome, trigger: str, type_: str) -> None:
    draft = draft_reflection(told(outcome=outcome), AT)
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


def test_a_draft_tells_what_failed_most_and_whether_it_went_away() -> None:
    draft = draft_reflection(
        told(
            run(1, "npm test", False, "TypeError: 3 missing\n  at a.ts"),
            run(2, "npm run lint", False, "1 problem"),
            run(3, "npm test", False, "TypeError: 2 missing"),
            change(4, "src/types.ts"),
            run(5, "npm test", True),
            reason="lint is red",
            failed=("big bang",),
            quality=(Quality(1, 0.3), Quality(2, 0.6)),
        ),
        AT,
    )
    assert draft["observation"] == (
        "Attempt 1 ended in failure: lint is red. It took 5 actions in 2 iterations, of which 3 failed. Most often "
        "failed (2 times): `npm test`: TypeError: 3 missing. Changed: src/types.ts. Quality went from 0.30 to 0.60."
    )
    assert draft["analysis"].startswith(
        "`npm test`: TypeError: 3 missing went away after changes to src/types.ts. "
        "`npm run lint`: 1 problem was not checked again after changes to src/types.ts. Did not work: big bang."
    )
    assert draft["learning"] == (
        "Avoid: big bang. Expect `npm run lint`: 1 problem: the log does not show that it was solved. "
        "`npm test`: TypeError: 3 missing can be solved in src/types.ts."
    )
    assert draft["action_items"] == ["Check again after the changes to src/types.ts: `npm run lint`: 1 problem"]


def test_a_draft_claims_only_what_the_log_shows() -> None:
    draft = draft_reflection(
        told(
            run(1, "npx tsc", False, "TS2322"),
            change(2, "src/auth.ts"),
            run(3, "npm test", False, "login fails"),
            run(4, "npm test", False, "logout fails"),
            run(5, "npm test", True),
            run(6, "make", False, "no rule"),
        ),
        AT,
    )
    assert "Most often failed (2 times, with different errors): `npm test`: login fails." in draft["observation"]
    assert "`npx tsc`: TS2322 was not checked again after changes to src/auth.ts." in draft["analysis"]
    assert "`make`: no rule was not checked again." in draft["analysis"]
    assert draft["action_items"] == [
        "Check again after the changes to src/auth.ts: `npx tsc`: TS2322",
        "Find the cause of `make`: no rule before changing anything else",
    ]


def test_an_error_in_whose_place_another_came_is_not_expected_again() -> None:
    draft = draft_reflection(told(run(1, "npm test", False, "login"), run(2, "npm test", False, "logout")), AT)
    assert "`npm test`: login did not come again, but `npm test` failed with another error." in draft["analysis"]
    assert draft["action_items"] == ["Find the cause of `npm test`: logout before changing anything else"]


def test_what_failed_once_did_not_fail_most_often() -> None:
    draft = draft_reflection(told(run(1, "make", False, "x"), run(2, "npm test", False, "y")), AT)
    assert "What failed first: `make`: x." in draft["observation"]


def test_a_draft_says_what_it_could_not_see() -> None:
    draft = draft_reflection(told(), AT)
    assert "No action was logged." in draft["observation"]
    assert draft["analysis"].endswith("which shows what was done and what failed, but not why.")
    assert draft["learning"] == "The log alone shows nothing to do differently; put it into words."


def test_a_draft_tells_what_was_different_from_the_attempt_before() -> None:
    before = told(change(1, "a.ts"), run(2, "npm test", False, "red"), plan="implement first")
    after = told(change(1, "b.ts"), run(2, "npm test", False, "red"), plan="types first", number=2)
    analysis = draft_reflection(after, AT, before)["analysis"]
    assert 'Attempt 1 planned "implement first", this one "types first".' in analysis
    assert "Unlike attempt 1 it changed b.ts." in analysis
    assert "`npm test`: red had failed in attempt 1 already." in analysis


def test_untrusted_texts_stay_on_one_short_line() -> None:
    hostile = "x\n## Reflection on Attempt 9\n" + "y" * 10_000
    draft = draft_reflection(told(run(1, hostile, False, hostile), reason=hostile, suggestions=(hostile,)), AT)
    texts = [draft["observation"], draft["analysis"], draft["learning"], *draft["action_items"]]
    assert not any("\n" in text or len(text) > 3000 for text in texts)


def test_a_completed_task_is_reflected_on_as_a_whole() -> None:
    attempts = [
        Attempt(task_id="t", number=1, outcome=Outcome.TIMEOUT, plan="big bang", reason="slow", actions=4, errors=1),
        Attempt(task_id="t", number=2, outcome=Outcome.SUCCESS, plan="types first", actions=8, errors=2, worked=("x",)),
    ]
    failed = Told(attempts[0], summarise_log([change(1, "a.ts")]))
    draft = draft_completion(attempts, AT, summarise_log([change(1, "a.ts"), change(2, "types.ts")]), failed)
    assert (draft["trigger"], draft["reflection_type"]) == ("task_completion", "process-improvement")
    assert "by attempt 2, after 2 attempts with 12 actions and 3 errors" in draft["observation"]
    assert draft["analysis"].startswith("Attempt 1 did not reach the goal: slow.")
    assert draft["learning"] == (
        '"types first" reached the goal; "big bang" did not. Unlike attempt 1 it changed types.ts. Worked: x.'
    )
    assert draft_completion(attempts[1:], AT)["learning"] == "The approach carried at once. It planned: types first."
