"""Which change counts as the fix of which error."""

from __future__ import annotations

from datetime import timedelta

from core.extraction.fix_kinds import fix_category, fix_description, make_tags
from core.extraction.fixes import find_repairs
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Results
from core.records.events import ErrorNote, ErrorType, Event
from core.records.extractions import Material
from core.records.loops import Iteration, Outcome
from tests.factories import LOOP_START, failed_step, make_material, make_step, passed_step

NULL = "TypeError: Cannot read property 'email' of null at src/auth/validate.ts:42"
TYPES = "Type 'a' is not assignable to type 'b'"


def found(given: Material) -> list[tuple[str, str, str]]:
    return [(repair.error.message, repair.description, repair.trace) for repair in find_repairs(given)]


def test_errors_fixed_one_after_the_other() -> None:
    given = make_material(
        failed_step(1, "Ran the tests", f"5 failing: {NULL}"),
        failed_step(2, "Attempt 2: Added a null check", f"2 failing: {TYPES}"),
        passed_step(3, "Corrected the interface"),
    )
    assert found(given) == [
        ("Cannot read property 'email' of null", "Added a null check", "iteration 1 → 2"),
        (TYPES, "Corrected the interface", "iteration 2 → 3"),
    ]


def test_a_change_that_made_it_worse_is_not_a_fix() -> None:
    given = make_material(
        failed_step(1, "a", "9 failing: deadlock detected"),
        failed_step(2, "Raised the limit", "11 failing: pool is exhausted"),
        passed_step(3, "Closed the connections"),
    )
    assert found(given) == [("pool is exhausted", "Closed the connections", "iteration 2 → 3")]


def test_an_error_that_recurs_was_not_fixed_before() -> None:
    given = make_material(
        failed_step(1, "a", "5 failing: deadlock detected"),
        failed_step(2, "b", f"3 failing: {TYPES}"),
        failed_step(3, "c", "2 failing: deadlock detected"),
        passed_step(4, "Sorted the locks"),
    )
    assert ("deadlock detected", "Sorted the locks", "iteration 3 → 4") in found(given)
    assert [message for message, *_ in found(given)].count("deadlock detected") == 1


def test_a_fix_needs_passing_tests_and_a_described_action() -> None:
    assert not found(make_material(failed_step(1, "a", f"5 failing: {NULL}"), failed_step(2, "b", "4 failing")))
    assert not found(make_material(failed_step(1, "a", f"5 failing: {NULL}"), passed_step(2)))
    refuted = passed_step(2, fix=Fix(description="Added a null check", verified=False))
    assert not found(make_material(failed_step(1, "a", f"5 failing: {NULL}"), refuted))


def test_error_and_fix_in_one_iteration() -> None:
    both = make_step(
        1,
        failures=(Failure(error_type="TypeError", message="x is null"),),
        fix=Fix(description="Added a null check"),
        results=Results(passed=12, failed=0),
        outcome=Outcome.UNKNOWN,
    )
    assert found(make_material(both)) == [("x is null", "Added a null check", "iteration 1")]


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


def test_debug_sessions_give_verified_fixes() -> None:
    verified = session(run(1, "deadlock detected", fix=Fix(verified=True)))
    given = Material(source_id="dm-1", sessions=(session(), verified))  # nothing has been run in the first one
    (repair,) = find_repairs(given)
    assert (repair.description, repair.cause) == ("Take the locks in one order", "race_condition")
    assert (repair.trace, repair.agent) == ("debug session dm-1, attempt 1", "debugger")


def test_a_later_run_decides_without_verification() -> None:
    fix = Fix(description="Sorted the locks")
    green = session(run(1, "deadlock detected", TYPES, fix=fix), run(2, failed=0))
    assert len(find_repairs(Material(source_id="dm-1", sessions=(green,)))) == 2
    still = session(run(1, "deadlock detected", fix=Fix(verified=True)), run(2, "deadlock detected"))
    assert not find_repairs(Material(source_id="dm-1", sessions=(still,)))
    last = session(run(1, "deadlock detected", fix=fix))
    assert not find_repairs(Material(source_id="dm-1", sessions=(last,)))


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
    assert fix_description("guard it", "other", "x") == "Settle the error: guard it"
    for category in ("other", "add_error_handling", "add_null_check"):
        for words in ("", "x", "a\nb", "\x1b[0m"):
            assert len(fix_description(words, category, "x")) >= 20


def test_tags_are_language_type_and_domain() -> None:
    assert make_tags("typescript", "add_null_check", "TypeError", ("src/auth/validate.ts",)) == [
        "typescript",
        "null-safety",
        "validation",
    ]
    assert make_tags("", "other", "TimeoutError", ("src/x.ts", "Fix the login")) == ["timeouts", "auth"]


def test_iterations_without_numbers_or_times() -> None:
    bare = Iteration(result=f"1 failing: {NULL}", outcome=Outcome.FAILURE)
    assert len(find_repairs(make_material(bare, Iteration(action="Added a null check", outcome=Outcome.SUCCESS)))) == 1
