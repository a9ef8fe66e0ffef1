"""Fixes in the log of an attempt, and the net change of several edits."""

from __future__ import annotations

from typing import Any

from core.questions.extraction.attempt_fixes import (
    MAX_DIFF_LINES,
    AttemptFix,
    find_fixes,
    find_net_changes,
    find_weakening_changes,
)
from core.records.episodes import Action, Attempt
from core.records.extractions import LoggedAttempt
from core.records.loops import Outcome
from core.tasks.changes import compare_texts, format_hunks

NULL = "TypeError: cart is null at src/cart.ts:3"


def ran(command: str, error: str = "", **fields: Any) -> dict[str, Any]:
    params = (("command", command),)
    return {"type": "bash", "tool": "Bash", "params": params, "error": error, "success": not error} | fields


def edited(file: str, old: str, new: str, why: str = "") -> dict[str, Any]:
    output = format_hunks(compare_texts(file, old, new))
    params = (("file_path", file),)
    return {"type": "edit", "tool": "Edit", "params": params, "output": output, "success": True, "reasoning": why}


def attempt_log(*done: dict[str, Any], reason: str = "") -> LoggedAttempt:
    actions = tuple(Action(number=number, **one) for number, one in enumerate(done, 1))
    attempt = Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS, reason=reason)
    return LoggedAttempt(attempt=attempt, actions=actions)


def fixes(*done: dict[str, Any], reason: str = "") -> list[AttemptFix]:
    return find_fixes(attempt_log(*done, reason=reason), "/project")


EDIT = edited("src/cart.ts", "a\nx = cart.id\nb\n", "a\nx = cart?.id\nb\n", "A guest has no cart.")


def test_any_command_that_failed_and_passed_after_an_edit_is_a_check() -> None:
    checks = ("npm test", "node --test", "sh test.sh", "./run_checks", "python test_x.py", "make", "gcc a.c && ./a.out")
    for command in checks:
        (fix,) = fixes(ran(command, NULL), EDIT, ran(command))
        assert (fix.description, fix.first.number, fix.last.number) == ("A guest has no cart.", 1, 3), command
        assert fix.diff == "@@ src/cart.ts @@\n a\n-x = cart.id\n+x = cart?.id\n b", "one line around the changed ones"
    (fix,) = fixes(ran("./check", "Exit code 1"), EDIT, ran("./check"))
    assert fix.failures[0].message == "`./check` failed"


def test_options_do_not_make_another_command_but_another_target_or_environment_does() -> None:
    for first, second in (
        ("sh test.sh", "bash test.sh"),
        ("./test.sh", "sh test.sh"),
        ("cd app && python check.py", "python check.py -v"),
        ("python check.py 2>&1 | tail -20", "python check.py"),
        ("python check.py", "timeout 60 python check.py"),
    ):
        assert len(fixes(ran(first, NULL), EDIT, ran(second))) == 1, (first, second)
    for second in ("python other.py", "DEBUG=1 python check.py", "node check.py", "python check.py b.txt"):
        assert fixes(ran("python check.py", NULL), EDIT, ran(second)) == [], second


def test_a_narrower_run_counts_if_it_has_the_failed_tests_or_the_output_names_its_files() -> None:
    output = "_____ test_a _____\nE   ValueError: cart is empty\nFAILED tests/test_cart.py::test_a - ValueError: cart\n"
    failed = ran("pytest", "Exit code 1", output=output)
    assert len(fixes(failed, EDIT, ran("pytest tests/test_cart.py"))) == 1
    assert fixes(failed, EDIT, ran("pytest tests/test_user.py")) == []
    output = "SyntaxError: x has no y\nnot ok 1 - /project/web/cart.test.js"
    failed = ran("cd web && node --test", "Exit code 1", output=output)
    assert len(fixes(failed, EDIT, ran("cd web && node --test cart.test.js"))) == 1
    assert fixes(failed, EDIT, ran("cd web && node --test user.test.js")) == []


def test_an_unknown_result_or_a_run_without_an_edit_before_it_proves_nothing() -> None:
    assert fixes(ran("npm test", NULL), EDIT, ran("npm test", success=None)) == []
    assert fixes(ran("npm test", NULL), EDIT, ran("npm test | tail -3", output="done")) == []
    assert len(fixes(ran("npm test", NULL), EDIT, ran("npm test | tail -3", output="Tests: 3 passed, 3 total"))) == 1
    assert fixes(ran("npm test", NULL), ran("npm test")) == []
    assert fixes(ran("npm test", NULL), EDIT, ran("npm test", NULL), ran("npm test")) == []


def test_one_fix_of_several_commands_is_one_record() -> None:
    found = fixes(ran("npm test", NULL), ran("npm run lint", "error: x"), EDIT, ran("npm test"), ran("npm run lint"))
    assert [fix.first.command for fix in found] == ["npm test"]


def test_a_wrong_first_edit_is_left_out_with_its_words() -> None:
    wrong = edited("src/cart.ts", "x = cart.id\n", "x = cart!.id\n", "The type is wrong here.")
    right = edited("src/cart.ts", "x = cart!.id\n", "x = cart?.id\n", "Guests have no cart at all.")
    (fix,) = fixes(ran("npm test", NULL), wrong, ran("npm test", NULL), right, ran("npm test"))
    assert fix.description == "Guests have no cart at all."
    assert fix.diff == "@@ src/cart.ts @@\n-x = cart.id\n+x = cart?.id"


def test_two_errors_of_which_one_remains_are_two_fixes() -> None:
    both = "src/cart.ts(3,1): error TS2304: Cannot find name 'carts'.\nsrc/user.ts(9,1): error TS2339: No 'idd'."
    one = "src/user.ts(9,1): error TS2339: No 'idd'."
    user = edited("src/user.ts", "u.idd\n", "u.id\n", "The property of a user is id.")
    found = fixes(ran("tsc", both), EDIT, ran("tsc", one), user, ran("tsc"))
    assert [(fix.failures[0].message[:6], fix.files) for fix in found] == [
        ("TS2304", ("src/cart.ts",)),
        ("TS2339", ("src/user.ts",)),
    ]


def test_an_error_that_the_first_edit_caused_belongs_to_the_same_fix() -> None:
    typo = edited("src/cart.ts", "x = cart.id\n", "x = crat?.id\n", "A guest has no cart.")
    right = edited("src/cart.ts", "x = crat?.id\n", "x = cart?.id\n", "A typo in the name of the variable.")
    (fix,) = fixes(
        ran("npm test", NULL),
        typo,
        ran("npm test", "ReferenceError: crat is not defined at src/cart.ts:3"),
        right,
        ran("npm test"),
    )
    assert fix.failures[0].message == "cart is null"
    assert "crat" not in fix.diff


def test_without_words_the_change_is_described() -> None:
    silent = EDIT | {"reasoning": ""}
    (fix,) = fixes(ran("npm test", NULL), silent, ran("npm test"), reason="Done. All tests pass.")
    assert fix.description == "In src/cart.ts: `x = cart.id` → `x = cart?.id`"
    (fix,) = fixes(ran("npm test", NULL), silent, ran("npm test"), reason="Guests have no cart. All tests pass.")
    assert fix.description == "Guests have no cart."


def test_the_lines_near_the_error_are_chosen_from_a_large_change() -> None:
    old = [f"line {n}" for n in range(100)]
    new = [f"LINE {n}" if n % 10 == 0 else line for n, line in enumerate(old)]
    large = edited("src/other.ts", "\n".join(old), "\n".join(new))
    (fix,) = fixes(ran("npm test", NULL), large, EDIT, ran("npm test"))
    assert "+x = cart?.id" in fix.diff
    assert sum(line[0] in "+-" for line in fix.diff.splitlines()) <= MAX_DIFF_LINES


def test_an_edit_by_a_shell_command_is_an_edit() -> None:
    edit = ran("sed -i 's/cart.id/cart?.id/' src/cart.ts") | {"reasoning": "A guest has no cart."}
    (fix,) = fixes(ran("npm test", NULL), edit, ran("npm test"))
    assert (fix.description, fix.diff) == ("A guest has no cart.", "@@ src/cart.ts @@\n-cart.id\n+cart?.id")


def test_an_error_that_names_what_an_edit_added_belongs_to_the_same_fix() -> None:
    first = edited("src/cart.ts", "x = cart.id\n", "x = idOf(cart)\n", "The cart may be missing.")
    second = edited("src/cart.ts", "y = 1\n", "const idOf = (c) => c?.id\ny = 1\n", "The helper must be defined here.")
    other = "ReferenceError: idOf is not defined at src/cart.ts:9"
    (fix,) = fixes(ran("npm test", NULL), first, ran("npm test", other), second, ran("npm test"))
    assert fix.description == "The cart may be missing. The helper must be defined here."


def test_an_error_that_came_to_light_after_another_one_was_removed_is_a_fix_of_its_own() -> None:
    old, between, new = (
        "n = row['count'] * cost",
        "n = row.get('count', 1) * cost",
        "n = row.get('count', 1) * parse(cost)",
    )
    first = edited("cart.py", old, between, "A row without a count is one piece.")
    second = edited("cart.py", between, new, "The cost is a text.")
    hidden = "TypeError: can't multiply sequence by non-int of type 'float'"
    found = fixes(ran("pytest", "KeyError: 'count'"), first, ran("pytest", hidden), second, ran("pytest"))
    assert [(fix.failures[0].error_type, fix.description, fix.last.number) for fix in found] == [
        ("KeyError", "A row without a count is one piece.", 3),
        ("TypeError", "The cost is a text.", 5),
    ]
    assert "parse" not in found[0].diff


COMMA = "ValueError: could not convert string to float: '1,5'"
COUNT = "KeyError: 'count'"
PARSED = edited("cart.py", "return float(text)", "return float(text.replace(',', '.'))", "float() needs a point.")
COUNTED = edited("cart.py", "row['count']", "row.get('count', 1)", "A row without a count is one piece.")


def failed_tests(*errors: str) -> dict[str, Any]:
    named = (f"FAILED test_cart.py::test_{error[:3].lower()} - {error}" for error in errors)
    summary = ["=== short test summary info ===", *named, f"{len(errors)} failed, 3 passed in 0.1s"]
    return ran("pytest", "Exit code 1", output="\n".join(summary))


def test_a_failed_test_that_passes_after_an_edit_was_fixed_even_if_others_still_fail() -> None:
    end = "The prices are parsed; one test still fails."
    (fix,) = fixes(failed_tests(COMMA, COUNT), PARSED, failed_tests(COUNT), reason=end)
    assert [one.error_type for one in fix.failures] == ["ValueError"]
    assert (fix.description, fix.last.number) == ("float() needs a point.", 3)


def test_of_two_failed_tests_each_gets_the_edit_after_which_it_passed() -> None:
    for errors in ((COMMA, COUNT), (COUNT, COMMA)):
        found = fixes(failed_tests(*errors), PARSED, failed_tests(COUNT), COUNTED, ran("pytest"))
        assert [(fix.failures[0].error_type, fix.description) for fix in found] == [
            ("ValueError", "float() needs a point."),
            ("KeyError", "A row without a count is one piece."),
        ]


def test_a_failed_test_was_not_fixed_if_another_one_fails_now_or_it_fails_again() -> None:
    both, other = failed_tests(COMMA, COUNT), failed_tests("IndexError: list index out of range")
    for after in ([other], [failed_tests(COUNT), failed_tests(COMMA)], [failed_tests(COUNT) | {"output": "1 failed"}]):
        assert fixes(both, PARSED, *after) == []


def test_an_edit_that_reverts_an_earlier_one_is_not_a_fix() -> None:
    tried = edited("src/cart.ts", "x = cart?.id\n", "x = cart.id\n")
    assert fixes(ran("npm test"), tried, ran("npm test", NULL), EDIT, ran("npm test")) == []
    restored = ran("git checkout -- src/cart.ts", reasoning="The test needs the check after all.")
    assert fixes(ran("npm test"), tried, ran("npm test", NULL), restored, ran("npm test")) == []


def test_an_edit_is_a_fix_only_if_it_is_related_to_the_error() -> None:
    test, readme = (
        edited("src/cart.test.ts", "a\n", "b\n"),
        edited("README.md", "port 80\n", "port 81\n", "It is 81 now."),
    )
    (fix,) = fixes(ran("npm test", NULL), readme, test, EDIT, ran("npm test"))
    assert "README" not in fix.diff and "cart.test.ts" not in fix.diff, "beside changes of code"
    assert fixes(ran("npm test", NULL), readme, ran("npm test")) == []
    for command in ("markdownlint README.md", "npm run docs"):
        assert len(fixes(ran(command, "README.md:3 MD009 Trailing spaces"), readme, ran(command))) == 1
    missing = "ModuleNotFoundError: No module named 'requests'"
    installed = ran("pip install requests")
    assert fixes(ran("python check.py", missing), installed, EDIT, ran("python check.py")) == []
    error = "connect ECONNREFUSED 10.0.0.7:5432"
    assert fixes(ran("npm test", error), EDIT, ran("npm test")) == []
    port = edited("src/db.ts", "port: 5432\n", "port: 5433\n", "The database listens on another port.")
    assert len(fixes(ran("npm test", error), port, ran("npm test"))) == 1
    assert len(fixes(ran("npm test", f"{error}\n    at load (src/cart.ts:3:5)"), EDIT, ran("npm test"))) == 1


def test_a_test_that_was_weakened_is_not_a_fix() -> None:
    test = edited("src/cart.test.ts", "expect(f()).toBe(5);\n", "expect(f()).toBeDefined();\n", "It need not be 5.")
    log = attempt_log(ran("npm test", NULL), test, ran("npm test"))
    assert find_fixes(log) == []
    (weakened,) = find_weakening_changes(log)
    assert (weakened.weakening, weakened.files) == ("weakened", ("src/cart.test.ts",))
    assert "+expect(f()).toBeDefined();" in weakened.diff


FIRST = """def page(items, page, size):
    start = page * size
    return items[start : start + size]


def other():
    pass
"""


def edit(before: str, after: str, file: str = "a.py") -> Action:
    diff = format_hunks(compare_texts(file, before, after))
    return Action(number=1, type="edit", tool="Edit", params=(("file_path", file),), success=True, output=diff)


def pair(old: str, new: str) -> Action:
    params = (("file_path", "a.py"), ("old_string", old), ("new_string", new))
    return Action(number=1, type="edit", tool="Edit", params=params, success=True)


def changed(*edits: Action) -> list[str]:
    return [line for hunk in find_net_changes(edits) for line in hunk.lines if line[0] in "+-"]


def test_the_net_change_has_what_differs_after_all_edits() -> None:
    wrong = FIRST.replace("items[start :", "items[start - 1 :")
    right = FIRST.replace("page * size", "(page - 1) * size")
    replaced = ["-    start = page * size", "+    start = (page - 1) * size"]
    assert changed(edit(FIRST, wrong), edit(wrong, right)) == replaced
    assert changed(edit(FIRST, wrong), edit(wrong, FIRST)) == [], "they cancel each other"
    longer = "import os\nimport sys\n" + FIRST
    last = longer.replace("pass", "return os.sep")
    assert changed(edit(FIRST, longer), edit(longer, last)) == [
        "+import os",
        "+import sys",
        "-    pass",
        "+    return os.sep",
    ], "line numbers that earlier edits moved are followed"
    assert changed(edit("x = 1\n", "x = 2\n", "a.py"), edit("x = 1\n", "x = 3\n", "b.py")) == [
        *("-x = 1", "+x = 2", "-x = 1", "+x = 3")
    ]
    assert changed(edit("", "x = 1\n")) == ["+x = 1"]


def test_edits_without_line_numbers_are_joined_by_their_texts() -> None:
    assert changed(pair("x = 1", "x = 2"), pair("x = 2", "x = 3")) == ["-x = 1", "+x = 3"]
    assert changed(pair("x = 1", "x = 2"), pair("y = 0\nx = 2", "y = 5\nx = 1")) == ["-y = 0", "+y = 5"]
