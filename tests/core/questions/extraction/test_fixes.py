"""Changes that count as the fix of an error, their kinds, and the code that they add."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.settings import ExtractionSettings
from core.questions.extraction.engine import extract
from core.questions.extraction.fixes import (
    Repair,
    drop_same_fixes,
    file_language,
    find_logged_repairs,
    find_repairs,
    find_repeated_errors,
    fix_category,
    fix_description,
    has_partial_holes,
    has_reason,
    list_tools,
    make_clean_template,
    make_tags,
    make_template,
)
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Results
from core.records.episodes import Action, Attempt, Task, TaskStatus
from core.records.events import ErrorNote, ErrorType, Event
from core.records.extractions import LoggedAttempt, Material, Proposal
from core.records.loops import Iteration, Outcome
from core.records.patterns import PatternType
from tests.factories import LOOP_START, failed_step, make_known_patterns, make_material, make_step, passed_step

NULL = "TypeError: Cannot read property 'email' of null at src/auth/validate.ts:42"
TYPES = "Type 'a' is not assignable to type 'b'"


def found(given: Material) -> list[tuple[str, str, str]]:
    return [(repair.error.message, repair.description, repair.trace) for repair in find_repairs(given)]


def test_errors_fixed_one_after_the_other_unless_it_got_worse_or_they_recur() -> None:
    given = make_material(
        failed_step(1, "Ran the tests", f"5 failing: {NULL}"),
        failed_step(2, "Attempt 2: Added a null check", f"2 failing: {TYPES}"),
        passed_step(3, "Corrected the interface"),
    )
    assert found(given) == [
        ("Cannot read property 'email' of null", "Added a null check", "iteration 1 → 2"),
        (TYPES, "Corrected the interface", "iteration 2 → 3"),
    ]
    worse = make_material(
        failed_step(1, "a", "9 failing: deadlock detected"),
        failed_step(2, "Raised the limit", "11 failing: pool is exhausted"),
        passed_step(3, "Closed the connections"),
    )
    assert found(worse) == [("pool is exhausted", "Closed the connections", "iteration 2 → 3")]
    recurs = make_material(
        failed_step(1, "a", "5 failing: deadlock detected"),
        failed_step(2, "b", f"3 failing: {TYPES}"),
        failed_step(3, "c", "2 failing: deadlock detected"),
        passed_step(4, "Sorted the locks"),
    )
    assert ("deadlock detected", "Sorted the locks", "iteration 3 → 4") in found(recurs)
    assert [message for message, *_ in found(recurs)].count("deadlock detected") == 1
    refuted = passed_step(2, fix=Fix(description="Added a null check", verified=False))
    for after in (failed_step(2, "b", "4 failing"), passed_step(2), refuted):
        assert not found(make_material(failed_step(1, "a", f"5 failing: {NULL}"), after)), after


def test_one_change_that_removed_two_errors_is_one_fix() -> None:
    effect = Failure(error_type="AssertionError", message="expected 3 items, got 2")
    cause = Failure(error_type="TypeError", message="value is not a function")
    run = Execution(attempt=1, failures=(effect, cause), fix=Fix(description="Call the parser", verified=True))
    repairs = find_repairs(make_material(sessions=(DebugSession(id="dm-1", executions=(run,)),)))
    assert [one.error.message for one in drop_same_fixes(repairs)] == ["value is not a function"]


def test_the_turns_of_a_session_are_judged_as_attempts_are() -> None:
    diff = "--- {0}\n+++ {0}\n@@ -1 +1 @@\n-    return total\n+    return total or 0"
    fix = Fix(description="Done. An empty cart has no total.", diff=diff.format("cart.py"), files=("cart.py",))
    readme = replace(fix, diff=diff.format("README.md"), files=("README.md",))
    failures = (Failure(error_type="TypeError", message="unsupported operand type(s) for -: 'NoneType' and 'int'"),)
    given = make_material(*(make_step(n, fix=one, failures=failures) for n, one in ((1, fix), (2, readme))))
    assert given.loop is not None
    session = replace(given, loop=replace(given.loop, runner="claude", owner="claude"))
    (repair,) = find_repairs(session)
    assert (repair.description, repair.trace) == ("An empty cart has no total.", "iteration 1")
    assert "+    return total or 0" in repair.diff
    assert [failure.error_type for failure in repair.failures] == ["TypeError"]


def test_error_and_fix_in_one_iteration_or_in_some_without_numbers() -> None:
    both = make_step(
        1,
        failures=(Failure(error_type="TypeError", message="x is null"),),
        fix=Fix(description="Added a null check"),
        results=Results(passed=12, failed=0),
        outcome=Outcome.UNKNOWN,
    )
    assert found(make_material(both)) == [("x is null", "Added a null check", "iteration 1")]
    bare = Iteration(result=f"1 failing: {NULL}", outcome=Outcome.FAILURE)
    assert len(found(make_material(bare, Iteration(action="Added a null check", outcome=Outcome.SUCCESS)))) == 1


def session(*executions: Execution) -> DebugSession:
    return DebugSession(id="dm-1", executions=executions, agent="debugger", file_path="src/a.ts")


def run(attempt: int, *messages: str, fix: Fix | None = None, failed: int = 1) -> Execution:
    return Execution(
        attempt=attempt,
        at=LOOP_START + timedelta(minutes=attempt),
        failures=tuple(Failure(message=message) for message in messages),
        results=Results(passed=8, failed=failed),
        analysis=Analysis(category="race_condition", strategy="Take the locks in one order"),
        fix=fix,
    )


def test_debug_sessions_give_verified_fixes_and_a_later_run_decides_without_verification() -> None:
    verified = session(run(1, "deadlock detected", fix=Fix(verified=True)))
    given = Material(source_id="dm-1", sessions=(session(), verified))  # nothing has been run in the first one
    (repair,) = find_repairs(given)
    assert (repair.description, repair.cause) == ("Take the locks in one order.", "race_condition")
    assert (repair.trace, repair.agent) == ("debug session dm-1, attempt 1", "debugger")
    fix = Fix(description="Sorted the locks")
    green = session(run(1, "deadlock detected", TYPES, fix=fix), run(2, failed=0))
    (repair,) = find_repairs(Material(source_id="dm-1", sessions=(green,)))
    assert [failure.message for failure in repair.failures] == ["deadlock detected", TYPES]
    still = session(run(1, "deadlock detected", fix=Fix(verified=True)), run(2, "deadlock detected"))
    for one in (still, session(run(1, "deadlock detected", fix=fix))):
        assert not find_repairs(Material(source_id="dm-1", sessions=(one,)))


OPERANDS = Failure(
    error_type="TypeError",
    message="unsupported operand type(s) for +: 'int' and 'NoneType'",
    file="cart.py",
    function="total",
    test_name="test_gift",
)
ANALYSIS = Analysis(root_cause="total() reads line.vat, which is None", strategy="Count a missing VAT as 0 in total()")


def recorded(diff: str, file: str) -> Material:
    fix = Fix(description="Count a missing VAT as 0", diff=diff, files=(file,), verified=True)
    executions = (Execution(attempt=1, failures=(OPERANDS,), analysis=ANALYSIS, fix=fix),)
    return Material(source_id="dm-1", sessions=(DebugSession(id="dm-1", executions=executions, file_path="cart.py"),))


def test_a_recorded_session_gives_the_lesson_that_the_hooks_would_give() -> None:
    diff = "--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-    return vat\n+    return vat or 0"
    (proposal,) = extract(recorded(diff, "cart.py"), make_known_patterns(), ExtractionSettings()).proposals
    assert proposal.record["error_signature"]["error_places"] == ["cart.py::total"]
    assert proposal.record["fix_approach"]["description"] == (
        "total() reads line.vat, which is None. Count a missing VAT as 0."
    )
    assert "+    return vat or 0" in proposal.record["fix_approach"]["diff_pattern"]
    weakened = "--- a/test_cart.py\n+++ b/test_cart.py\n@@ -1,2 +1,1 @@\n def test_gift():\n-    assert total() == 1"
    assert not find_repairs(recorded(weakened, "test_cart.py"))


def test_a_logged_error_is_fixed_by_the_iteration_in_which_it_was_resolved() -> None:
    note = ErrorNote(error_type=ErrorType.VALIDATION, message="Property 'customer' is possibly null in src/a.ts")
    error = Event(id="e1", at=LOOP_START + timedelta(minutes=12), kind="error", error=note)
    resolved = Event(id="e2", at=LOOP_START + timedelta(minutes=18), kind="resolved", resolves="e1")
    given = make_material(
        failed_step(1, "a"), failed_step(2, "Guarded it"), failed_step(3, "c"), errors=(error,), resolved=(resolved,)
    )
    assert found(given) == [
        ("Property 'customer' is possibly null", "Guarded it", "error log e1, resolved; iteration 2")
    ]
    assert not found(make_material(failed_step(1, "a"), errors=(error,), resolved=(resolved,)))


def test_categories_by_code_then_cause_then_words() -> None:
    assert fix_category("x", "+ if (user == null) {\n", "logic_error", "") == "add_null_check"
    assert fix_category("Added a try", "", "missing_validation", "") == "add_type_validation"
    assert fix_category("guard before access", "", "", "x of null") == "add_null_check"
    assert fix_category("guard before access", "", "", "expected 1 to equal 2") == "other"
    assert fix_category("Imported chunk from lodash", "", "", "") == "add_import"
    assert fix_category("Bumped express to 5", "", "", "") == "update_dependency"
    assert fix_category("Extracted the parser", "", "", "") == "refactor_code_structure"


def test_descriptions_are_long_enough_and_generalised() -> None:
    message = "Cannot read property 'email' of null"
    assert fix_description("Added null check for user object", "add_null_check", message) == (
        "Add null check before property access"
    )
    description = "Return a skipped result for closed accounts"
    assert fix_description(description, "add_null_check", message) == description
    assert fix_description("guard it", "other", "x") == 'guard it, which removed the error "x"'
    for category in ("other", "add_error_handling", "add_null_check"):
        for words in ("", "x", "a\nb", "\x1b[0m"):
            assert len(fix_description(words, category, "x", "+ one = 1\n")) >= 20
    assert fix_description("", "other", "x") == "", "without words and lines it describes nothing"


def test_tags_are_language_type_and_domain() -> None:
    assert make_tags("typescript", "add_null_check", "TypeError", ("src/auth/validate.ts",)) == [
        "typescript",
        "null-safety",
        "validation",
    ]
    assert make_tags("", "other", "TimeoutError", ("src/x.ts", "Fix the login")) == ["timeouts", "auth"]


NO_ID = "TypeError: Cannot read properties of null (reading 'id') at src/user.ts:7"
OTHER = "ReferenceError: session is not defined at src/session.ts:3"


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
    return list(find_logged_repairs([logged(*done)]))


def test_an_error_then_a_change_then_a_passing_command_is_a_fix() -> None:
    (repair,) = repairs(
        {"type": "read", "tool": "Read", "success": True}, ran("npm test", NO_ID), edited(), ran("npm test")
    )
    assert repair.error.signature == r"Cannot read properties of null \(reading '.*'\)"
    assert (repair.error.error_type, repair.error.file) == ("TypeError", "src/user.ts")
    assert repair.description == "Guard against a missing user."
    assert repair.files == ("src/user.ts",)
    assert repair.diff.splitlines()[-1] == "+if (!user) return"
    assert repair.trace == "task-001, attempt 2, actions 2 → 4"
    assert (repair.at, repair.agent) == (LOOP_START + timedelta(minutes=4), "implementer")


def test_changes_without_a_passing_run_are_not_a_fix() -> None:
    for done in [
        [ran("npm test", NO_ID), ran("npm test")],  # nothing was changed
        [ran("npm test", NO_ID), edited()],  # not verified
        [ran("npm test", NO_ID), edited(), ran("npm test", OTHER)],  # it never passed
        [ran("npm test", NO_ID), edited(), ran("npm run lint")],  # another command
        [ran("npm test", NO_ID), edited(success=False), ran("npm test")],  # the change failed
        [ran("npm test", NO_ID), edited(), ran("npm test"), ran("npm test", NO_ID)],  # it came back
        [ran("npm test", NO_ID), edited(), ran("npm test"), ran("npm run e2e", NO_ID)],  # and elsewhere
        [ran("npm test", NO_ID), edited(), ran("npm test", "exit 1"), ran("npm test")],  # perhaps the same again
        [ran("pytest", NO_ID), edited(), ran("pytest tests/other.py")],  # less was looked at
        [ran("npm test", NO_ID), edited(), ran("npm test || true")],
        [ran("npm test", NO_ID), edited(), ran("npm test | tail -3")],
        [ran("npm test", NO_ID), edited(), ran("npm test", success=None)],  # no result recorded
    ]:
        assert repairs(*done) == [], done


def test_the_error_is_the_exception_in_a_traceback_or_the_message_in_the_output() -> None:
    traceback = (
        "Exit code 1\nERROR: test_guest (test_account.AccountTest.test_guest)\nTraceback (most recent call last):\n"
        "  File \"account.py\", line 2, in title\nTypeError: 'NoneType' object is not subscriptable\n"
    )
    vitest = "FAIL  src/user.test.ts\n  ● user › loads\n\n    × TypeError: Cannot read properties of null\n\n1 failed"
    for failed, error_type, message in (
        (ran("python -m unittest", traceback), "TypeError", "'NoneType' object is not subscriptable"),
        (ran("npm test", "Exit code 1", output=vitest), "TypeError", "Cannot read properties of null"),
        (
            ran("pytest", "exit 1", output="    def test():\nE   ValueError: no such plan\n"),
            "ValidationError",
            "no such plan",
        ),
    ):
        passed = failed | {"error": "", "output": "", "success": True}
        (repair,) = repairs(failed, edited(), passed)
        assert (repair.error.error_type, repair.error.message) == (error_type, message)


def test_an_error_that_recurred_with_more_words_is_not_fixed() -> None:
    first = "error TS2741: Property 'a' is missing in type 'B'."
    again = "error TS2741: Property 'a' is missing in type 'B' but required in type 'C'."
    done = [ran("tsc", first), edited(), ran("tsc"), edited(), ran("tsc", again)]
    assert repairs(*done) == []
    (repair,) = repairs(*done, edited(), ran("tsc"))
    assert repair.error.message.endswith("required in type 'C'.")


def test_consecutive_errors_have_their_own_changes() -> None:
    found = repairs(
        ran("npm test", NO_ID),
        edited(why="Guard the user"),
        ran("npm test", OTHER),
        edited(why="Import the session"),
        ran("npm test"),
    )
    assert [(repair.error.error_type, repair.description) for repair in found] == [
        ("TypeError", "Guard the user."),
        ("ReferenceError", "Import the session."),
    ]
    assert [repair.trace.rpartition(", ")[2] for repair in found] == ["actions 1 → 3", "actions 3 → 5"]


def test_the_same_error_three_times_in_one_attempt() -> None:
    three = logged(ran("npm test", NO_ID), edited(why="Try one"), ran("npm test", NO_ID), ran("npm run e2e", NO_ID))
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
    steps = ("Extend AuthConfig", "Run tsc", "Write the handler")
    assert offered(logged(outcome=Outcome.TIMEOUT, steps=steps)) == []
    failed = logged(number=1, outcome=Outcome.FAILURE, plan="Implement first", steps=("Write the handler at once",))
    won = logged(
        ran("npm test", NO_ID, number=4),
        edited(),
        ran("npm test"),
        plan="Types first, then the handler",
        steps=steps,
        iterations=3,
        worked=("The handler needed no change",),
    )
    found = {proposal.type: proposal for proposal in offered(failed, won, criteria="npm test passes")}
    approach = found[PatternType.SUCCESS]
    assert approach.trace == ("task-001, attempt 2: 3 steps of its plan",)
    assert approach.record["approach"] == {
        "description": "Types first, then the handler",
        "steps": [*steps],
        "tools_used": ["Edit", "Bash (npm test)"],
        "typical_iterations": {"average": 3.0, "minimum": 3, "maximum": 3},
    }
    assert "preconditions" not in approach.record  # criteria decide when a task is done, not where an approach fits
    assert approach.record["benefits"] == ["The handler needed no change"]
    assert [source["loop_id"] for source in found[PatternType.ERROR].record["source_loops"]] == ["task-001"]


def test_a_repeated_error_is_an_anti_pattern_with_its_fix_if_known() -> None:
    failing = [ran("npm test", NO_ID), edited(why="Restart the server")]
    (warning, *_) = [one for one in offered(logged(*failing, *failing, *failing)) if one.type is PatternType.ANTI]
    assert warning.record["failure_mode"] == "repeated_same_error"
    assert warning.record["approach_description"].startswith("Avoid: Restart the server, again and again")
    assert "better_alternative" not in warning.record
    settled = offered(logged(*failing, *failing, ran("npm test", NO_ID), edited(why="Guard the user"), ran("npm test")))
    (warning,) = [one for one in settled if one.type is PatternType.ANTI]
    assert warning.record["better_alternative"] == {"description": "Guard the user."}
    silent = [ran("npm test", NO_ID), edited(why="")]
    assert PatternType.ANTI not in {one.type for one in offered(logged(*silent, *silent, *silent))}


def test_tools_that_only_failed_are_left_out() -> None:
    assert list_tools(logged(ran("make lint", "x"), ran("ls"), edited()).actions) == ("Bash", "Edit")


ERRORS = st.sampled_from(["", "", NO_ID, OTHER, "exit 1", "\x1b]52;c;x\x07 (a|a)* broke: \ud800 'x'"])
ACTIONS = st.one_of(
    st.builds(ran, st.sampled_from(["npm test", "pytest a.py", "pytest", "x | y"]), ERRORS),
    st.builds(edited, st.text(max_size=20), st.text(max_size=20)),
)


@given(st.lists(ACTIONS, max_size=12))
def test_a_fix_is_between_a_failure_and_a_success(done: list[dict[str, Any]]) -> None:
    log = logged(*done)
    for repair in find_logged_repairs([log]):
        first, last = (int(number) for number in repair.trace.rpartition("actions ")[2].split(" → "))
        assert log.actions[first - 1].has_failed and not log.actions[last - 1].has_failed
        assert any(action.type == "edit" for action in log.actions[first : last - 1])
    offered(log)


def test_a_reason_is_more_than_a_category_and_changed_files() -> None:
    for text, expected in [
        ("Settle the error: Change src/cart.ts", False),
        ("Settle the error", False),
        ("Add the missing import: Change a.py; Change b.py", False),
        ("Handle the error, as the loop did", False),
        ('`npm test` failed with "1 failing" until stock.js changed.', False),
        ("Change " * 5_000, True),
        ("", False),
        ("Change the order of the filters", True),
        ("Handle the error: the gateway closes idle sockets", True),
        ("Add null check before property access", True),
        ("In cart.py: `a` → `b`", True),
    ]:
        assert has_reason(text) is expected, (text, expected)


UNIFIED = """\
--- a/src/cart.py
+++ b/src/cart.py
@@ -1,4 +1,6 @@
 def total(cart):
-    return cart.sum
+    if cart is None:
+        raise ValueError("The cart is missing")
+    return cart.sum or "0"
"""


def test_the_tested_value_the_message_and_quoted_names_become_placeholders() -> None:
    found = make_template(UNIFIED, "'NoneType' object has no attribute 'sum'")
    assert found is not None
    assert found.code == (
        'if {{variable}} is None:\n    raise ValueError("{{message}}")\nreturn {{variable}}.{{property}} or "0"\n'
    )
    assert found.placeholders == ("variable", "message", "property")
    found = make_template("+export interface User {\n+  email: string | undefined;\n+}", "Property 'email' is missing")
    assert found and "{{property}}: string | undefined;" in found.code
    imported = make_template("+import { chunk } from 'lodash';\n", "chunk is not defined")
    assert imported and imported.code == "import { {{name}} } from '{{module}}';\n"
    for diff in ["", "- gone\n", "+++ b/a.ts\n", "+\n+  \n", "+x\n" * 31, "+" + "x" * 3000]:
        assert make_template(diff, "Cannot read 'a'") is None, diff


def test_the_language_is_that_of_the_file() -> None:
    assert file_language(("src/a.tsx",)) == "typescript"
    assert file_language((), UNIFIED) == "python"
    assert file_language(("Makefile", "a.rs")) == "rust"
    assert file_language(("a.exe",), "+++ \x1b]0;x") == ""


@settings(max_examples=40)
@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_gives_a_template_or_none(code: str, message: str) -> None:
    found = make_template("\n".join(f"+{line}" for line in code.splitlines()), message)
    assert found is None or len(found.code) <= 20_000


def test_a_clean_template_has_a_placeholder_for_each_own_name_or_there_is_none() -> None:
    for added, language, expected in [
        ("    if labels is None:\n        labels = []", "python", "if {{variable}} is None:\n    {{variable}} = []\n"),
        ("    if labels is None:\n        labels = list(DEFAULTS.values())", "python", None),  # a member
        ('    if labels is None:\n        labels = ["new"]', "python", None),  # a text
        ("    return labels or []", "python", None),  # one line
        ("    if a is None:\n        return b + c", "python", None),  # too many names
        ("    if labels is None:\n        labels = []", "", None),  # unknown language
        ("import os\nos = None", "python", None),
    ]:
        diff = "-    labels.append(x)\n" + "\n".join(f"+{line}" for line in added.split("\n"))
        found = make_clean_template(diff, language)
        assert (found.code if found is not None else None) == expected, (added, language, expected)


def test_a_template_on_file_has_whole_placeholders_and_no_name_of_one_place_beside_them() -> None:
    for code, is_partial in [
        ("if {{variable}} is None:\n    {{variable}} = []\n", False),
        ("async with {{factory}}() as client:\n    yield client\n", False),  # a name of its own
        ("return {{variable}}.strip()\n", False),
        ("labels = None\n", False),  # no placeholder
        ("raise ValueError('{{message}}')\n", True),
        ("return None  # {{message}}\n", True),
        ("return load_{{name}}\n", True),
        ("from {{module}} import read_rows\n", True),
        ("{{" * 2_000, False),
    ]:
        assert has_partial_holes(code, "python") is is_partial, (code, is_partial)
