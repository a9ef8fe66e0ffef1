"""The coin of the experiment, and what it never holds out."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from core.learning.assignment import Coin, Experiment, text_key, why_always_given
from core.records.decisions import Pin
from core.records.events import ASSIGNED, Trial
from core.records.patterns import DECOMPOSITION_TAG, Maturity, PatternType
from tests.factories import NOW, make_assessment, make_event, make_pattern, make_pin

EXPERIMENT = Experiment(0.2, b"s" * 32)


def test_the_coin_is_the_same_in_another_process_and_holds_out_the_share() -> None:
    ids = [f"pat-{number}" for number in range(5_000)]
    held = [id for id in ids if EXPERIMENT.holds_out("task@2026-11-20", id)]
    assert len(held) / len(ids) == pytest.approx(0.2, abs=0.02)
    code = (
        "from core.learning.assignment import Experiment; e = Experiment(0.2, b's' * 32);"
        "print(*(f'pat-{n}' for n in reversed(range(5_000)) if e.holds_out('task@2026-11-20', f'pat-{n}')))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(other.stdout.split()) == sorted(held)


def test_secrets_tasks_and_patterns_have_coins_of_their_own() -> None:
    cases = [(secret, task, id) for secret in (b"a" * 32, b"b" * 32) for task in "xyz" for id in map(str, range(300))]
    held = {case for case in cases if Experiment(0.5, case[0]).holds_out(*case[1:])}
    for place in range(3):
        for value in {case[place] for case in cases if place < 2}:
            own = [case for case in cases if case[place] == value]
            assert len(held.intersection(own)) / len(own) == pytest.approx(0.5, abs=0.08)


def test_a_larger_share_holds_out_what_a_smaller_one_does() -> None:
    held = [{id for id in map(str, range(500)) if Experiment(share, b"s").holds_out("t", id)} for share in (0.1, 0.5)]
    assert held[0] < held[1]


def test_the_same_words_within_a_day_are_the_same_task() -> None:
    first = EXPERIMENT.key_of_task("Fix the  login\n", NOW)
    assert "login" not in first
    event = make_event(1, ASSIGNED, NOW, trial=Trial(task=first, share=0.2))
    later = NOW + timedelta(hours=23)
    assert EXPERIMENT.key_of_task("fix THE login", later, [event]) == first
    after = NOW + timedelta(hours=25)
    assert EXPERIMENT.key_of_task("fix the login", after, [event]) != first
    assert (
        text_key(first)
        == text_key(EXPERIMENT.key_of_task("fix the login", after))
        != text_key(EXPERIMENT.key_of_task("fix the logout", NOW))
    )


@pytest.mark.parametrize(
    ("fields", "pin"),
    [
        ({}, make_pin(Maturity.PROVEN, NOW)),
        ({"tags": ("always",)}, None),
        ({"category": "security"}, None),
        ({"tags": ("Safety",)}, None),
        ({"type": PatternType.SUCCESS, "tags": (DECOMPOSITION_TAG,)}, None),
    ],
)
def test_some_patterns_are_always_given(fields: dict[str, object], pin: Pin | None) -> None:
    pattern, assessment = make_pattern(**fields), make_assessment(pin=pin)  # type: ignore[arg-type]
    assert why_always_given(pattern, assessment)
    assert not Coin(Experiment(1.0, b""), "t").assign_all([(pattern, assessment)])
    assert Coin(Experiment(1.0, b""), "t").assign_all([(make_pattern(), make_assessment())])[0].is_held_out


def test_a_call_of_an_unknown_task_gets_nothing_that_one_of_the_tasks_must_not_get() -> None:
    tasks = ("a", "b", "c")
    for number in range(100):
        item = make_pattern(f"pat-{number}"), make_assessment()
        (found,) = Coin(EXPERIMENT, tasks[0], tasks[1:]).assign_all([item])
        assert found.is_held_out is any(EXPERIMENT.holds_out(task, item[0].id) for task in tasks)
