"""What the experiment shows about patterns, from the events of their trials."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core.learning.experiments import Verdict
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, Trial
from core.records.loops import Loop, LoopStatus
from core.records.origins import ForeignRecords
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot
from core.state.trials import find_harmful, measure_experiment
from tests.factories import NOW, make_error_pattern, make_event, make_pattern

PATTERNS = {
    id: make_error_pattern(id) for id in ("helps", "hurts")
} | {"approach": make_pattern("approach", PatternType.SUCCESS)}  # fmt: skip


def trial_events(pattern_id: str, rates: tuple[float, float], count: int) -> list[Event]:
    """Return the events of trials whose error returns at one rate with the pattern, and at another without it."""
    chance = random.Random(pattern_id)
    events: list[Event] = []
    for number in range(count):
        at = NOW + timedelta(hours=number)
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
    found = measure_experiment(Snapshot(patterns=PATTERNS, events=EVENTS))
    verdicts = {one.pattern_id: one.judged.verdict for one in found.patterns}
    assert verdicts == {"helps": Verdict.HELPS, "hurts": Verdict.HURTS, "approach": Verdict.HELPS}
    assert found.success is not None and found.success.given.trials > 100
    assert found.sentence == "2 lessons helped, 1 lesson hurt (300 trials)"
    (approach,) = (one for one in found.patterns if one.pattern_id == "approach")
    assert approach.errors is None and approach.arms == ("4 steps", "9 steps")
    assert approach.steps_ratio is not None and approach.steps_ratio[0] == pytest.approx(4 / 9)
    assert [one.pattern_id for one in find_harmful(Snapshot(patterns=PATTERNS, events=EVENTS))] == ["hurts"]


def test_a_trial_counts_once_in_the_arm_of_its_first_assignment() -> None:
    first, outcome = EVENTS[:2]
    assert first.trial is not None and outcome.trial is not None
    other_arm = replace(first.trial, is_held_out=not first.trial.is_held_out)
    again = [replace(first, id="again", trial=other_arm), replace(outcome, id="later", trial=other_arm)]
    other = replace(outcome, id="twice", trial=replace(outcome.trial, returned=not outcome.trial.returned))
    for events in ((first, *again, outcome, other), (first, outcome, *again, other)):
        (found,) = measure_experiment(Snapshot(patterns=PATTERNS, events=events)).patterns
        assert found.given + found.held_out == 1 and found.open == 0 and found.errors is not None
        arm = found.errors.held_out if first.trial.is_held_out else found.errors.given
        assert (arm.trials, arm.total) == (1, float(bool(outcome.trial.returned)))


def test_a_task_with_an_unknown_result_counts_as_one_without_success() -> None:
    events = [replace(event, success=None) if event.kind == TRIAL_OUTCOME else event for event in EVENTS[:2]]
    success = measure_experiment(Snapshot(patterns=PATTERNS, events=events)).success
    assert success is not None
    assert (success.given.trials + success.held_out.trials, success.given.total + success.held_out.total) == (1, 0)


def test_a_stopped_experiment_keeps_its_verdicts_and_asks_for_no_further_tasks() -> None:
    patterns, events = PATTERNS, (*EVENTS[:400], *trial_events("approach", (0, 0), 4))
    running, stopped = (
        measure_experiment(Snapshot(patterns=patterns, events=events), is_running=is_running).patterns
        for is_running in (True, False)
    )
    assert [one.verdict for one in stopped[:2]] == [one.verdict for one in running[:2]] == ["helps", "hurts"]
    assert "more task" in running[2].verdict and "more task" not in stopped[2].verdict
    assert "4 trials" in stopped[2].verdict


def test_an_outcome_without_an_assignment_and_events_from_elsewhere_do_not_count() -> None:
    assert not measure_experiment(Snapshot(patterns=PATTERNS, events=EVENTS[1:2])).patterns
    foreign = ForeignRecords(is_own_event=lambda event: event.pattern_id != "hurts")
    found = measure_experiment(Snapshot(patterns=PATTERNS, events=EVENTS, foreign=foreign))
    assert {one.pattern_id for one in found.patterns} == {"helps", "approach"}


@pytest.mark.parametrize(("status", "trials"), [(LoopStatus.COMPLETED, 1), (LoopStatus.RUNNING, 0)])
def test_a_loop_counts_in_task_success_when_it_has_ended(status: LoopStatus, trials: int) -> None:
    event = replace(EVENTS[0], loop_id="ralph-a")
    loops = {"ralph-a": Loop(id="ralph-a", status=status)}
    found = measure_experiment(Snapshot(patterns=PATTERNS, events=(event,), loops=loops))
    assert found.patterns[0].open == 1 - trials
    assert (found.success.given.trials + found.success.held_out.trials if found.success else 0) == trials
