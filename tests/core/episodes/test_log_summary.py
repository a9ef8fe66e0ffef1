from __future__ import annotations

import pytest

from core.episodes.log_summary import summarise_log
from core.records.episodes import Action
from core.records.loops import Outcome


def act(type_: str, told: str, success: bool | None = True, error: str = "") -> Action:
    name = "command" if type_ == "bash" else "file_path"
    return Action(number=1, type=type_, params=((name, told),), success=success, error=error)


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
        ((), Outcome.UNKNOWN),
    ],
)
def test_only_what_the_log_proves_is_an_outcome(actions: tuple[Action, ...], outcome: Outcome) -> None:
    assert summarise_log(actions).outcome is outcome


def test_the_same_error_with_other_numbers_is_one() -> None:
    found = summarise_log([act("bash", "npm test", False, f"{n} failing\nstack {n}") for n in (3, 2)])
    assert [(one.message, one.times, one.solved) for one in found.failures] == [("3 failing", 2, False)]
    assert (found.actions, found.errors) == (2, 2)


def test_a_failure_that_comes_back_is_not_solved() -> None:
    red, green = act("bash", "make", False, "boom"), act("bash", "make")
    assert summarise_log([red, green]).failures[0].solved
    assert not summarise_log([red, green, red]).failures[0].solved
