from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.records.episodes import Action
from core.records.loops import Outcome
from core.sources.episodes import Actions
from core.tasks.log_summary import (
    MAX_FAILURES,
    MAX_MISSED,
    MAX_SUMMARIZED,
    ActionCommand,
    summarize_log,
    summarize_newest,
)


def act(type_: str, result: str, success: bool | None = True, error: str = "") -> Action:
    name = "command" if type_ == "bash" else "file_path"
    return Action(number=1, type=type_, params=((name, result),), success=success, error=error)


@pytest.mark.parametrize(
    ("actions", "outcome"),
    [
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
    ],
)
def test_outcome_is_determined_only_by_proof_in_the_log(actions: tuple[Action, ...], outcome: Outcome) -> None:
    assert summarize_log(actions).outcome is outcome


def test_errors_that_differ_only_in_numbers_are_one_failure() -> None:
    found = summarize_log([act("bash", "npm test", False, f"{n} failing\nstack {n}") for n in (3, 2)])
    assert [(one.message, one.times, one.solved) for one in found.failures] == [("3 failing", 2, False)]
    assert (found.actions, found.errors) == (2, 2)


@pytest.mark.parametrize(
    ("error", "output", "message"),
    [
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
    ],
)
def test_most_informative_line_of_an_error_is_used(error: str, output: str, message: str) -> None:
    action = replace(act("bash", "make", False, error), output=output)
    assert summarize_log([action]).failures[0].message == message


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
