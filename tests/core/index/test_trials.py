"""What the experiment shows about patterns, from the events of their trials."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core.index.experiment import ExperimentReport, find_harmful, measure_experiment
from core.learning.experiments import Verdict
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, Trial, TrialKey
from core.records.loops import Loop, LoopStatus
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot
from tests.factories import NOW, make_error_pattern, make_event, make_pattern

PATTERNS = {
    id: make_error_pattern(id) for id in ("helps", "hurts")
} | {"approach": make_pattern("approach", PatternType.SUCCESS)}  # fmt: skip

KEY = TrialKey(b"k" * 32)


def measure(*events: Event, now: datetime = NOW, **records: Any) -> ExperimentReport:
    """Measure the trials of events that this user has signed."""
    return measure_experiment(make_snapshot(*map(KEY.sign, events), **records), now)


def make_snapshot(*events: Event, **records: Any) -> Snapshot:
    return Snapshot(patterns=PATTERNS, events=events, trial_key=KEY, **records)


def trial_events(pattern_id: str, rates: tuple[float, float], count: int) -> list[Event]:
    """Return the events of trials whose error returns at one rate with the pattern, and at another without it."""
    chance = random.Random(pattern_id)
    events: list[Event] = []
    for number in range(count):
        at = NOW - timedelta(hours=count - number)
        trial = Trial(task=f"t{number}@x", share=0.5, is_held_out=chance.random() < 0.5)
        returned = chance.random() < rates[trial.is_held_out] if pattern_id != "approach" else None
        outcome = replace(trial, returned=returned, steps=9 if trial.is_held_out else 4)
        names = {"pattern_id": pattern_id, "loop_id": "s"}
        events += [
            make_event(len(events), ASSIGNED, at, trial=trial, **names),
            make_event(len(events) + 1, TRIAL_OUTCOME, at, trial=outcome, success=not returned, **names),
        ]
    return [replace(event, id=f"{pattern_id}{event.id}") for event in events]


EVENTS = (
    *trial_events("helps", (0.1, 0.6), 100),
    *trial_events("hurts", (0.7, 0.1), 100),
    *trial_events("approach", (0, 0), 100),
)


def test_verdicts_of_patterns_and_of_task_success() -> None:
    found = measure(*EVENTS)
    verdicts = {one.pattern_id: one.judged.verdict for one in found.patterns}
    assert verdicts == {"helps": Verdict.HELPS, "hurts": Verdict.HURTS, "approach": Verdict.HELPS}
    assert found.success is not None and found.success.given.trials > 100
    assert found.sentence == "2 lessons helped, 1 lesson hurt (300 trials)"
    (approach,) = (one for one in found.patterns if one.pattern_id == "approach")
    assert approach.errors is None and approach.arms == ("4 steps", "9 steps")
    assert approach.steps_ratio is not None and approach.steps_ratio[0] == pytest.approx(4 / 9)
    snapshot = make_snapshot(*map(KEY.sign, EVENTS))
    assert [one.pattern_id for one in find_harmful(snapshot, NOW)] == ["hurts"]


def test_a_trial_counts_once_in_the_arm_of_its_first_assignment() -> None:
    first, outcome = EVENTS[:2]
    assert first.trial is not None and outcome.trial is not None
    other_arm = replace(first.trial, is_held_out=not first.trial.is_held_out)
    minute = timedelta(minutes=1)
    again = [replace(one, id=f"{one.id}2", at=one.at + minute, trial=other_arm) for one in (first, outcome)]
    other_outcome = replace(outcome.trial, returned=not outcome.trial.returned)
    other = replace(outcome, id="twice", at=outcome.at + minute, trial=other_outcome)
    for events in ((first, *again, outcome, other), (first, outcome, *again, other)):
        (found,) = measure(*events).patterns
        assert found.given + found.held_out == 1 and found.open == 0 and found.errors is not None
        arm = found.errors.held_out if first.trial.is_held_out else found.errors.given
        assert (arm.trials, arm.total) == (1, float(bool(outcome.trial.returned)))


def test_a_task_with_an_unknown_result_counts_as_one_without_success() -> None:
    events = [replace(event, success=None) if event.kind == TRIAL_OUTCOME else event for event in EVENTS[:2]]
    success = measure(*events).success
    assert success is not None
    assert (success.given.trials + success.held_out.trials, success.given.total + success.held_out.total) == (1, 0)


def test_a_stopped_experiment_keeps_its_verdicts_and_asks_for_no_further_tasks() -> None:
    events = (*EVENTS[:400], *trial_events("approach", (0, 0), 4))
    snapshot = make_snapshot(*map(KEY.sign, events))
    running, stopped = (
        measure_experiment(snapshot, NOW, is_running=is_running).patterns for is_running in (True, False)
    )
    assert [one.verdict for one in stopped[:2]] == [one.verdict for one in running[:2]] == ["helps", "hurts"]
    assert "more task" in running[2].verdict and "more task" not in stopped[2].verdict
    assert "4 trials" in stopped[2].verdict


def test_trials_that_this_user_did_not_sign_are_only_counted_as_such() -> None:
    for key in (TrialKey(), TrialKey(b"of another user")):
        forged = [key.sign(event) for event in EVENTS]
        found = measure_experiment(make_snapshot(*forged), NOW)
        assert not found.patterns and found.success is None and found.not_counted == 300, key
        assert not find_harmful(make_snapshot(*forged), NOW), key
        assert not measure_experiment(Snapshot(patterns=PATTERNS, events=forged), NOW).patterns, "without a secret"


def _change_trial(**fields: Any) -> Callable[[Event], Event]:
    return lambda event: replace(event, id="new", trial=replace(event.trial, **fields)) if event.trial else event


def _change(**fields: Any) -> Callable[[Event], Event]:
    return lambda event: replace(event, **{"id": "new", **fields})


def test_a_copy_of_a_signed_event_with_one_change_does_not_count() -> None:
    rows: list[Callable[[Event], Event]] = [
        _change_trial(is_held_out=True),
        _change_trial(share=0.1),
        _change_trial(task="another@x"),
        _change_trial(returned=True),
        _change(pattern_id="hurts"),
        _change(loop_id="another session"),
        _change(at=NOW - timedelta(days=200)),
        _change(success=False),
        _change(kind=ASSIGNED),
    ]
    for change in rows:
        given = next(one for one in EVENTS if one.trial and not one.trial.is_held_out and one.trial.returned is False)
        assigned = replace(given, id="first", kind=ASSIGNED, success=None)
        own = KEY.sign(assigned), KEY.sign(given)
        before = measure_experiment(make_snapshot(*own), NOW)
        assert before.trials == 1, change
        for events in ((*own, *map(change, own)), (*map(change, own), *own)):
            after = measure_experiment(make_snapshot(*events), NOW)
            assert (after.patterns, after.success) == (before.patterns, before.success)


def test_trials_count_with_their_assignment_until_now_in_any_order_of_the_lines() -> None:
    assert not measure(*EVENTS[1:2]).patterns, "an outcome without an assignment"
    assert measure(*reversed(EVENTS)) == measure(*EVENTS)
    found = measure(*EVENTS, now=EVENTS[20].at)
    assert found.trials == 33 and found.not_counted == 0
    read = [msgspec.json.decode(msgspec.json.encode(KEY.sign(event)), type=Event) for event in EVENTS[:2]]
    assert measure_experiment(make_snapshot(*read), NOW).trials == 1, "a code is valid after it was written and read"


def test_a_loop_counts_in_task_success_when_it_has_ended() -> None:
    for status, trials in ((LoopStatus.COMPLETED, 1), (LoopStatus.RUNNING, 0)):
        event = replace(EVENTS[0], loop_id="ralph-a")
        loops = {"ralph-a": Loop(id="ralph-a", status=status)}
        found = measure(event, loops=loops)
        assert found.patterns[0].open == 1 - trials, status
        assert (found.success.given.trials + found.success.held_out.trials if found.success else 0) == trials, status
