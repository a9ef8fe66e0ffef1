from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

from core.learning.experiments import (
    MOST_MINUTES,
    Coin,
    Experiment,
    Tally,
    TrialResult,
    Verdict,
    compare_arms,
    describe_verdict,
    ratio_of_lengths,
    required_trials,
    scale_length,
    tally_trials,
    text_key,
    why_always_given,
)
from core.records.decisions import Pin
from core.records.events import ASSIGNED, Trial
from core.records.patterns import DECOMPOSITION_TAG, Maturity, PatternType
from tests.experiment_simulator import (
    capital_paths,
    differences,
    share_ever_above,
    simulate,
    trials_of,
)
from tests.factories import NOW, make_assessment, make_event, make_pattern, make_pin

YEAR = 365  # trials with a look after each one
FOUND = [  # rates without and with the lesson, trials of a test that looks once by share
    (0.5, 0.1, {0.5: 34, 0.2: 67, 0.1: 128}),
    (0.5, 0.2, {0.5: 72, 0.2: 127, 0.1: 234}),
    (0.6, 0.8, {0.5: 157, 0.2: 275, 0.1: 506}),
    (0.7, 0.8, {0.5: 581, 0.2: 982, 0.1: 1788}),
]


def test_trials_of_a_test_that_looks_once() -> None:
    for held_out, given, by_share in FOUND:
        assert {share: required_trials(held_out, given, share) for share in by_share} == by_share


def test_at_most_5_percent_false_alarms_in_a_year_of_daily_looking() -> None:
    falling = np.linspace(0.8, 0.1, YEAR)  # the agents become better, whatever the lesson does
    for share in (0.5, 0.1):
        for rate in (0.05, 0.3, 0.8, falling):
            years = simulate(rate, rate, share, trials=YEAR, years=1000, seed=11)
            assert share_ever_above(capital_paths(years)) <= 0.05, (share, rate)


@pytest.mark.slow
def test_power_with_twice_the_trials_of_a_test_that_looks_once() -> None:
    for held_out, given, by_share in FOUND:
        for share, once in by_share.items():
            years = simulate(held_out, given, share, trials=2 * once, years=500, seed=5)
            assert share_ever_above(capital_paths(years)) >= 0.77, (held_out, given, share)  # 0.80 less two errors


def test_interval_contains_the_truth_at_all_looks() -> None:
    for held_out, given in ((0.5, 0.1), (0.3, 0.4), (0.1, 0.1)):
        for share in (0.5, 0.1):
            years = simulate(held_out, given, share, trials=YEAR, years=1000, seed=3)
            assert share_ever_above(capital_paths(years, given - held_out)) <= 0.05, (held_out, given, share)


def test_estimate_is_unbiased_at_a_fixed_time() -> None:
    for share in (0.5, 0.1):
        years = simulate(0.5, 0.2, share, trials=200, years=4000)
        assert np.nanmean(differences(years, 200)) == pytest.approx(-0.3, abs=0.01)


def test_the_product_computes_what_the_simulator_does() -> None:
    for share in (0.5, 0.2):
        years = simulate(0.4, 0.25, share, trials=120, years=8, seed=8)
        capital = capital_paths(years)[:, -1]
        harm = capital_paths(years, signs=(1,))[:, -1]
        for row in range(8):
            result = compare_arms(tally_trials(trials_of(years, row)))
            assert (result.low > 0 or result.high < 0) == (capital[row] >= 20)
            assert result.harm_e_value == pytest.approx(harm[row])
            assert result.difference == pytest.approx(differences(years, 120)[row])
            assert result.difference is not None
            assert -1 <= result.low <= result.difference <= result.high <= 1
            inside = np.linspace(result.low + 0.01, result.high - 0.01, 9)
            assert all(capital_paths(years, candidate)[row, -1] < 20 for candidate in inside)


def test_verdicts() -> None:
    cases = [
        (0.6, 0.1, 150, False, Verdict.HELPS),
        (0.1, 0.6, 150, False, Verdict.HURTS),
        (0.1, 0.6, 150, True, Verdict.HELPS),
        (0.05, 0.05, 900, False, Verdict.NO_DIFFERENCE),
        (0.4, 0.3, 40, False, Verdict.UNDECIDED),
    ]
    for held_out, given, trials, is_higher_better, verdict in cases:
        result = compare_arms(
            tally_trials(trials_of(simulate(held_out, given, 0.5, trials=trials, years=1), 0)),
            is_higher_better=is_higher_better,
        )
        assert result.verdict is verdict
        assert (result.needed > 0) == (verdict is Verdict.UNDECIDED)


def test_without_trials_the_planned_number_is_shown() -> None:
    empty = compare_arms(Tally())
    assert (empty.difference, empty.low, empty.high) == (None, -1, 1)
    assert describe_verdict(empty) == "can't tell yet (about 150 more tasks)"


def test_patterns_with_unlike_errors_are_compared_within_each_pattern() -> None:
    def trial(task: int, pattern: str, is_given: bool, outcome: float) -> TrialResult:
        return TrialResult(
            task=f"{pattern}{task}", pattern=pattern, share=0.5, is_held_out=not is_given, outcome=outcome
        )

    hard = [trial(task, "hard", task % 10 > 0, 1) for task in range(100)]  # mostly given, always returns
    easy = [trial(task, "easy", task % 10 == 0, 0) for task in range(100)]  # mostly held out, never returns
    result = compare_arms(tally_trials([trial for pair in zip(hard, easy, strict=True) for trial in pair]))
    assert result.difference == 0
    assert result.given.rate == pytest.approx(0.9)


def test_trials_of_one_task_are_one_observation() -> None:
    def tasks(copies: int) -> Tally:
        random = np.random.default_rng(4)
        return tally_trials(
            TrialResult(
                task=f"t{task}", pattern=f"p{copy}", share=0.5, is_held_out=not is_given, outcome=float(not is_given)
            )
            for task, is_given in enumerate((random.random(30) < 0.5).tolist())
            for copy in range(copies)
        )

    one, four = compare_arms(tasks(1)), compare_arms(tasks(4))
    assert four.high == pytest.approx(one.high)
    assert four.given.trials == 4 * one.given.trials


def test_tallies_of_projects_add_up() -> None:
    years = simulate(0.6, 0.2, 0.5, trials=40, years=2)
    first, second = (tally_trials(trials_of(years, row)) for row in (0, 1))
    both = compare_arms(first + second)
    assert both.given.trials == compare_arms(first).given.trials + compare_arms(second).given.trials
    assert both.high - both.low < compare_arms(first).high - compare_arms(first).low


def test_impossible_trials_are_left_out() -> None:
    wrong = [(0.0, 1.0), (1.0, 1.0), (float("nan"), 0.0), (0.5, 2.0), (0.5, float("nan"))]
    assert not tally_trials(
        TrialResult(task=f"{share} {outcome}", pattern="p", share=share, is_held_out=False, outcome=outcome)
        for share, outcome in wrong
    )


def test_ratio_of_minutes() -> None:
    random = np.random.default_rng(2)
    trials = []
    for task in range(300):
        is_given = bool(random.random() < 0.5)
        minutes = float(random.lognormal(np.log(10 if is_given else 20), 0.5))
        outcome = scale_length(minutes, MOST_MINUTES)
        trials.append(TrialResult(task=f"t{task}", pattern="p", share=0.5, is_held_out=not is_given, outcome=outcome))
    result = compare_arms(tally_trials(trials))
    assert result.difference is not None
    assert ratio_of_lengths(result.difference, MOST_MINUTES) == pytest.approx(0.5, abs=0.1)
    assert ratio_of_lengths(result.high, MOST_MINUTES) < 1
    assert scale_length(None, MOST_MINUTES) == scale_length(10 * MOST_MINUTES, MOST_MINUTES) == 1
    assert scale_length(0, MOST_MINUTES) == 0


EXPERIMENT = Experiment(0.2, b"s" * 32)


def test_the_coin_is_the_same_in_another_process_and_holds_out_the_share() -> None:
    ids = [f"pat-{number}" for number in range(5_000)]
    held = [id for id in ids if EXPERIMENT.holds_out("task@2026-11-20", id)]
    assert len(held) / len(ids) == pytest.approx(0.2, abs=0.02)
    code = (
        "from core.learning.experiments import Experiment; e = Experiment(0.2, b's' * 32);"
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
