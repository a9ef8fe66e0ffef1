"""Patterns that hooks hold out by chance: what is logged, what is given, and what is recorded afterwards."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.agents.hooks import answer
from core.agents.hooks.events import digest
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Promote
from core.index.experiment import find_experiment, set_share
from core.learning.experiments import Experiment
from core.project.project import Project
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, SimulatedAgent

PROMPT = "Fix the TypeError in the account page"
FIX = "user?.name"  # in the text of the lesson


@pytest.fixture
def learned(agent: SimulatedAgent, home: Path) -> SimulatedAgent:
    """A project with one lesson of an earlier session, and an experiment that holds out half."""
    agent.prompt(PROMPT)
    agent.fix_and_stop()
    set_share(0.5)
    return agent


def opened(agent: SimulatedAgent) -> Project:
    project = Project(agent.project, Settings(), by="ada", clock=lambda: agent.at)
    project.load()
    return project


def events_of(agent: SimulatedAgent, *kinds: str) -> list[Event]:
    return [event for event in opened(agent).view.snapshot.events if event.kind in kinds]


def prompt_of_arm(agent: SimulatedAgent, *, is_held_out: bool) -> str:
    """Return a prompt whose coin gives all lessons, or holds all of them out."""
    project = opened(agent)
    experiment = project.view.experiment
    assert experiment is not None
    for number in range(1_000):
        text = f"{PROMPT} {'again ' * (number % 7)}in case {number}"
        task = experiment.key_of_task(text, agent.at)
        if all(experiment.holds_out(task, id) is is_held_out for id in project.view.snapshot.patterns):
            return text
    raise AssertionError


def later_session(agent: SimulatedAgent, session: str = "s2") -> SimulatedAgent:
    return SimulatedAgent(agent.project, session, at=agent.at)


def test_a_held_out_lesson_is_given_neither_at_the_prompt_nor_at_the_error(learned: SimulatedAgent) -> None:
    text = prompt_of_arm(learned, is_held_out=True)
    later = later_session(learned)
    assert FIX not in later.prompt(text)
    assert later.tool(FAILING) == ""
    assert "task-001" not in later.record.context, "the learnings of its session are held out, too"
    (event,) = events_of(later, ASSIGNED)
    assert event.trial is not None
    assert (event.trial.is_held_out, event.trial.share, event.loop_id) == (True, 0.5, "claude:s2")
    assert not [one for one in events_of(later, "injected") if one.at > learned.at]
    assert opened(later).view.loop_patterns("claude:s2").held_out == (event.pattern_id,)


@pytest.mark.parametrize("is_held_out", [False, True])
def test_the_outcome_of_both_arms_is_recorded_once(learned: SimulatedAgent, is_held_out: bool) -> None:
    later = later_session(learned)
    later.prompt(prompt_of_arm(learned, is_held_out=is_held_out))
    for fields in (FAILING, EDIT, PASSING):
        later.tool(fields)
    later.send("Stop")
    later.send("SessionEnd", reason="exit")
    (assigned,), (event,) = events_of(later, ASSIGNED), events_of(later, TRIAL_OUTCOME)
    assert assigned.trial is not None and (assigned.trial.is_held_out, assigned.trial.share) == (is_held_out, 0.5)
    assert event.trial is not None and event.trial.is_held_out is is_held_out
    assert (event.trial.returned, event.success, event.trial.steps, event.trial.crossed) == (True, True, 3, False)
    assert not later.record.trials


def test_a_session_that_a_repository_brings_has_no_outcome(learned: SimulatedAgent) -> None:
    later = later_session(learned)
    later.prompt(prompt_of_arm(learned, is_held_out=False))
    key = later.record.trial
    forged = later_session(later, "forged")
    forged.prompt("Look at the failing tests")
    forged.tool(FAILING)
    file = learned.project.sessions / f"{digest('forged')}.json"
    record = json.loads(file.read_bytes())
    assert record["id"] == "forged"
    file.write_text(json.dumps({**record, "trials": {record["task"]: [key, "0" * 32]}}))
    forged.send("SessionEnd", reason="exit")
    assert not events_of(forged, TRIAL_OUTCOME) and not forged.record.trials
    later.tool(EDIT)
    later.send("SessionEnd", reason="exit")
    assert len(events_of(later, TRIAL_OUTCOME)) == 1


def test_an_error_that_does_not_occur_has_not_returned_with_or_without_a_proven_outcome(
    learned: SimulatedAgent,
) -> None:
    later = later_session(learned)
    later.prompt(prompt_of_arm(learned, is_held_out=True))
    later.tool(EDIT)
    later.send("SessionEnd", reason="exit")
    (event,) = events_of(later, TRIAL_OUTCOME)
    assert event.trial is not None and (event.success, event.trial.returned) == (None, False)
    other = later_session(later, "s3")
    other.prompt(prompt_of_arm(learned, is_held_out=False))
    other.tool(EDIT)
    other.tool(PASSING)
    other.send("Stop")
    (*_, event) = events_of(other, TRIAL_OUTCOME)
    assert event.trial is not None and (event.success, event.trial.returned) == (True, False)


def test_a_retry_and_further_prompts_of_the_task_have_the_same_arm_and_no_second_assignment(
    learned: SimulatedAgent,
) -> None:
    text = prompt_of_arm(learned, is_held_out=True)
    later = later_session(learned)
    later.prompt(text)
    later.tool(FAILING)
    assert FIX not in later.prompt("The TypeError is still there, null again")
    later.send("SessionEnd", reason="exit")
    retry = later_session(later, "s3")
    assert FIX not in retry.prompt(f"  {text.upper()} ")
    assert len(events_of(retry, ASSIGNED)) == 1


@pytest.mark.parametrize(("session", "is_held_out"), [("s2", True), ("s3", False)])
def test_two_hooks_at_once_get_one_assignment(learned: SimulatedAgent, session: str, is_held_out: bool) -> None:
    text = prompt_of_arm(learned, is_held_out=is_held_out)
    later, other = later_session(learned), later_session(learned, session)
    contexts = []
    later.meanwhile = lambda: contexts.append(other.prompt(text) if session != later.session else other.tool(FAILING))
    contexts.append(later.prompt(text))
    assert any(FIX in one for one in contexts) is not is_held_out
    (event,) = events_of(later, ASSIGNED)
    assert event.trial is not None and event.trial.is_held_out is is_held_out


def test_two_hooks_of_a_session_at_midnight_follow_one_coin(learned: SimulatedAgent) -> None:
    learned.at = learned.at.replace(hour=23, minute=59, second=19)
    experiment = opened(learned).view.experiment
    assert experiment is not None
    patterns, days = opened(learned).view.snapshot.patterns, (learned.at, learned.at + timedelta(minutes=1))
    text = next(  # whose lessons are given on one day and held out on the next
        text
        for number in range(1_000)
        if (text := f"{PROMPT} in case {number}")
        and [{experiment.holds_out(experiment.key_of_task(text, day), id) for id in patterns} for day in days]
        == [{False}, {True}]
    )
    early, late = later_session(learned), SimulatedAgent(learned.project, "s2", at=days[1])
    contexts: list[str] = []
    is_ready, is_done = threading.Event(), threading.Event()
    hook = threading.Thread(target=lambda: contexts.append(late.tool(FAILING)))

    def start_late_hook() -> None:
        hook.start()
        assert is_ready.wait(60)

    def wait_for_early_hook() -> None:
        is_ready.set()
        assert is_done.wait(60)

    # Both have found what they give before either gives it; the earlier one gives it first.
    early.meanwhile, late.meanwhile = start_late_hook, wait_for_early_hook
    contexts.append(early.prompt(text))
    is_done.set()
    hook.join()
    contexts.append(late.tool(EDIT))
    (event,) = events_of(late, ASSIGNED)
    assert event.trial is not None
    assert any(FIX in context for context in contexts) is not event.trial.is_held_out


def test_the_assignment_is_logged_before_the_agent_gets_anything(
    learned: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = later_session(learned)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(answer.HookAnswer, "_send", die)
        later.prompt(prompt_of_arm(learned, is_held_out=False))
    assert len(events_of(later, ASSIGNED)) == 1


def test_what_a_person_promoted_is_always_given(learned: SimulatedAgent) -> None:
    text = prompt_of_arm(learned, is_held_out=True)
    project = opened(learned)
    for id in project.view.snapshot.patterns:
        project.decide(Promote(id))
    later = later_session(learned)
    assert FIX in later.prompt(text)
    assert not events_of(later, ASSIGNED)


def test_without_an_experiment_nothing_is_logged(learned: SimulatedAgent) -> None:
    set_share(None)
    later = later_session(learned)
    assert FIX in later.prompt(PROMPT)
    later.fix_and_stop()
    assert not events_of(later, ASSIGNED, TRIAL_OUTCOME) and not later.record.trial


def test_a_project_can_forbid_the_experiment(project: ProjectPaths, home: Path) -> None:
    set_share(0.2)
    settings = Settings()
    assert isinstance(find_experiment(project, settings), Experiment)
    forbidden = replace(settings, injection=replace(settings.injection, allow_experiment=False))
    assert find_experiment(project, forbidden) is None
