"""What a log proves, which run covers an earlier one, reasons of agents, and drafts of reflections."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.records.episodes import Action, Attempt, Quality
from core.records.loops import Outcome
from core.sources.episodes import Actions
from core.tasks.changes import Hunk
from core.tasks.log_summary import (
    MAX_FAILURES,
    MAX_MISSED,
    MAX_SUMMARIZED,
    ActionCommand,
    parse_command,
    summarize_log,
    summarize_newest,
)
from core.tasks.reasons import describe_hunks, find_reason, split_reason
from core.tasks.reflections import AttemptWork, draft_completion, draft_reflection


def act(type_: str, result: str, success: bool | None = True, error: str = "") -> Action:
    name = "command" if type_ == "bash" else "file_path"
    return Action(number=1, type=type_, params=((name, result),), success=success, error=error)


def test_outcome_is_determined_only_by_proof_in_the_log() -> None:
    rows: list[tuple[tuple[Action, ...], Outcome]] = [
        ((act("bash", "npm test"),), Outcome.SUCCESS),
        ((act("bash", "npm test", False), act("bash", "npm test")), Outcome.SUCCESS),
        ((act("bash", "pytest -q"), act("read", "a.py", False)), Outcome.SUCCESS),
        ((act("bash", "npx tsc --noEmit", False), act("bash", "ls")), Outcome.FAILURE),
        ((act("bash", "npm test"), act("edit", "a.ts")), Outcome.UNKNOWN),
        ((act("bash", "npm test", False), act("edit", "a.ts")), Outcome.UNKNOWN),
        ((act("edit", "a.ts"), act("bash", "rm x", False)), Outcome.FAILURE),
        ((act("bash", "npm test", None, "boom"),), Outcome.FAILURE),
        ((act("bash", "npm test", None),), Outcome.UNKNOWN),
        ((act("bash", "ls"), act("edit", "a.ts")), Outcome.UNKNOWN),
        ((act("bash", "sh t.sh", False), act("edit", "a.sh"), act("bash", "bash t.sh")), Outcome.SUCCESS),
        ((act("bash", "./t.py", False), act("edit", "a.py"), act("bash", "./t.py", False)), Outcome.FAILURE),
        ((act("bash", "sh t.sh", False), act("bash", "sh t.sh")), Outcome.UNKNOWN),
        ((act("bash", "sh t.sh", False), act("edit", "a.sh"), act("bash", "sh other.sh")), Outcome.UNKNOWN),
        ((act("bash", "cat a.sh", False), act("edit", "a.sh"), act("bash", "cat a.sh")), Outcome.UNKNOWN),
        ((), Outcome.UNKNOWN),
    ]
    for actions, outcome in rows:
        assert summarize_log(actions).outcome is outcome, actions


def test_errors_that_differ_only_in_numbers_are_one_failure() -> None:
    found = summarize_log([act("bash", "npm test", False, f"{n} failing\nstack {n}") for n in (3, 2)])
    assert [(one.message, one.times, one.solved) for one in found.failures] == [("3 failing", 2, False)]
    assert (found.actions, found.errors) == (2, 2)


def test_most_informative_line_of_an_error_is_used() -> None:
    for error, output, message in (
        ("TypeError: x\n  at a.ts", "y", "TypeError: x"),
        ("Exit code 2\n> app@1.0 test\n\nmake: no rule\nmore", "", "make: no rule"),
        ("Traceback (most recent call last):\n  File 'a.py'\nimpl.KeyError: 'k'\n", "", "impl.KeyError: 'k'"),
        (
            "Exit code 1\n> jest\nPASS a.test.ts\nFAIL b.test.ts\n  ● login › refuses\n    at b.ts",
            "",
            "● login › refuses",
        ),
        ("Exit code 1\n== test session starts ==\n> assert a == 4\nE       assert 3 == 4\n", "", "assert 3 == 4"),
        ("Exit code 101\n  Compiling x v0.1\nerror[E0308]: mismatched\n", "", "error[E0308]: mismatched"),
        ("Exit code 1\n/src/a.ts\n  12:5  error  unused\n", "", "12:5 error unused"),
        ("", "1 passed\ngcc: no input files\n", "gcc: no input files"),
        ("Exit code 1", "", "Exit code 1"),
        ("", "", "no message"),
    ):
        action = replace(act("bash", "make", False, error), output=output)
        assert summarize_log([action]).failures[0].message == message, error


def test_returning_failure_is_not_solved() -> None:
    red, green = act("bash", "make", False, "boom"), act("bash", "make")
    assert summarize_log([red, green]).failures[0].solved
    assert not summarize_log([red, green, red]).failures[0].solved


def test_successful_run_solves_all_failures_that_it_covers() -> None:
    red = [act("bash", f"pytest tests/{folder}/{n}.py", False, "boom") for n in range(30) for folder in "ab"]
    green = act("bash", "pytest tests")
    assert all(one.solved for one in summarize_log([*red, green]).failures)
    assert all(one.solved for one in summarize_log([*red, act("bash", "pytest .")]).failures)
    found = summarize_log([*red[::2], act("bash", "pytest tests/a", False, "other")])
    assert [one.replaced for one in found.failures] == [True] * 30 + [False]


def test_failure_lists_files_changed_after_it() -> None:
    red, green = act("bash", "make", False, "boom"), act("bash", "make")
    edits = [act("edit", file) for file in ("a", "b", "a", "c")]
    assert summarize_log([edits[0], red, *edits[1:], green, act("edit", "d")]).failures[0].changed == ("b", "a", "c")
    assert summarize_log([*edits[:3], red, edits[3]]).failures[0].changed == ("c",)


def test_log_with_many_distinct_failures_is_summarized_in_linear_time() -> None:
    commands = [f"npm test {n}" for n in range(3_000)]
    actions = [act("bash", command, n % 3 == 0, "" if n % 3 == 0 else "boom") for n, command in enumerate(commands)]
    with mock.patch.object(ActionCommand, "covers", autospec=True, side_effect=ActionCommand.covers) as compared:
        found = summarize_log(actions)
    assert (found.actions, found.errors, len(found.failures)) == (3_000, 2_000, MAX_FAILURES)
    assert compared.call_count <= (1_000 + MAX_FAILURES) * (MAX_MISSED + 1)


def test_of_a_long_log_the_newest_actions_are_summarized_and_all_are_counted(tmp_path: Path) -> None:
    file = ".aiwg/ralph/tasks/task-001/attempts/001/actions.jsonl"
    (tmp_path / file).parent.mkdir(parents=True)
    failed, looked, passed = (
        json.dumps({"type": "bash", "params": {"command": command}, "success": success}) + "\n"
        for command, success in (("pytest", False), ("ls", True), ("pytest", True))
    )
    (tmp_path / file).write_text(failed * 3 + looked * MAX_SUMMARIZED + passed)
    log = summarize_newest(Actions(ProjectPaths(tmp_path), file))
    assert (log.actions, log.errors, log.outcome) == (MAX_SUMMARIZED + 4, 3, Outcome.SUCCESS)
    assert log.failures == ()


def test_later_run_covers_an_earlier_run_of_the_same_or_less() -> None:
    rows: list[tuple[str, str, bool]] = [
        ("pytest tests/a.py::test_x -q", "pytest tests/a.py", True),
        ("pytest tests/a.py", "python -m pytest -q", True),
        (".venv/bin/python -m pytest tests/a.py", "/usr/bin/python3.12 -m pytest", True),
        ("cd app && npx vitest run src/a.test.ts", "npx vitest run src", True),
        ("CI=1 npm test", "npm test 2>&1", True),
        ("pytest tests/a.py", "pytest .", True),
        ("go test ./core/a", "go test ./...", True),
        ("pytest tests/ab.py", "pytest tests/a", False),
        ("npm test", "npm run test", False),
        ("pytest tests/a.py", "pytest -k fast", False),
        ("pytest", "pytest --lf", False),
        ("grep pytest README", "pytest", False),
        ("npm install", "npm install left-pad", False),
        ("npm install", "npm  install", True),
        ("sh test.sh", "bash test.sh", True),
        ("./test.sh", "sh test.sh -v", True),
        ("python check.py | tail -20", "cd app && timeout 60 python check.py 2>&1", True),
        ("gcc a.c -o a && ./a", "gcc -Wall a.c -o a && ./a", True),
        ("make && ./a", "make && ./b", False),
        ("python check.py", "python other.py", False),
        ("python check.py a", "python check.py b", False),
        ("DEBUG=1 python check.py", "python check.py", False),
    ]
    for earlier, later, covers in rows:
        one, other = (parse_command(Action(number=1, params=(("command", text),))) for text in (earlier, later))
        assert other.covers(one) is covers, earlier


def test_other_tools_are_covered_only_with_equal_parameters() -> None:
    one, other = (Action(number=1, tool="Fetch", params=(("url", url),)) for url in ("a", "b"))
    assert parse_command(one).covers(parse_command(one)) and not parse_command(one).covers(parse_command(other))


def test_announcements_greetings_and_reports_of_success_are_left_out() -> None:
    for text in (
        "All tests pass.",
        "Done! All 3 tests pass now.",
        "I'll run the tests to see the failure.",
        "Let me look at the code first.",
        "Now let me fix it.",
        "Perfect! The build is green.",
        "Great, everything works now.",
        "Let me check the other file.",
        "Running the suite again.",
        "Now I'll update the file.",
        "Let me know if you need anything else.",
        "Fix the bug in app.py.",
    ):
        assert split_reason(text) == [], text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Found it. The index starts at 1, but the slice expects 0.",
            "The index starts at 1, but the slice expects 0.",
        ),
        ("**Fix:** `load` must be awaited.\n\nAll tests pass.", "`load` must be awaited."),
        ("I see the issue: the cache is never cleared between runs.", "The cache is never cleared between runs."),
        ("The default is shared by all calls. Both tests pass.", "The default is shared by all calls."),
        ("Prices are cents now, so the sum is exact and all tests pass.", "Prices are cents now, so the sum is exact."),
    ],
)
def test_the_reason_remains(text: str, expected: str) -> None:
    assert find_reason([text]) == expected


def test_at_most_two_sentences_are_taken_and_code_blocks_are_left_out() -> None:
    text = "One cause is here.\n```python\nx = 1\n```\nAnother cause is there. A third one follows."
    assert find_reason([text]) == "One cause is here. Another cause is there."


def test_a_short_reason_gets_a_sentence_of_the_next_text() -> None:
    assert find_reason(["Only a typo.", "The member is called height."]) == "Only a typo. The member is called height."
    assert find_reason(["The member is called height.", "Something else."]) == "The member is called height."
    assert find_reason(["", "All tests pass."]) == ""


def test_secrets_and_hidden_characters_are_not_taken() -> None:
    found = find_reason(["The token ghp_0123456789abcdefghijABCDEFGHIJ012345 was \u202eused for the login."])
    assert "ghp_0123456789" not in found and "\u202e" not in found


def test_a_change_without_words_is_described_by_its_code() -> None:
    hunk = Hunk("a.py", 3, 3, ('-    x = line.get("vat")', '+    x = line.get("vat", 0)'))
    assert describe_hunks([hunk]) == 'In a.py: `x = line.get("vat")` → `x = line.get("vat", 0)`'
    assert describe_hunks([Hunk("a.py", 1, 1, ("+import os",))]) == "In a.py: add `import os`"
    assert describe_hunks([Hunk("a.py", 1, 1, ("-import os",))]) == "In a.py: remove `import os`"
    assert describe_hunks([]) == ""


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
    fields = "timestamp attempt_id observation analysis learning action_items triggered_by reflection_type"
    assert list(draft)[:8] == fields.split()


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
