"""Kills and full disks in the middle of an experiment lose nothing, and both arms stay as the coin decided."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks import answer, background
from core.base.user_settings import read_user_settings, user_settings_file
from core.index.experiment import set_share
from core.records.events import ASSIGNED, Event
from core.sources.events import read_events
from core.trust.experiment_secret import read_secret, secret_file, trial_key
from tests.core.agents.hooks.agents import SimulatedAgent, make_project
from tests.core.agents.hooks.test_experiment import FIX, PROMPT, prompt_of_arm
from tests.core.cli.conftest import home
from tests.endurance.writing import commands

__all__ = ["home"]
ROOT = Path(__file__).parents[2]
MOST_CALLS = 400
pytestmark = [pytest.mark.crash, pytest.mark.slow]


class Worker:
    """Answers hook events in child processes."""

    def __init__(self, project: Path, process: subprocess.Popen[str]) -> None:
        self.project = project
        self._saved = project.with_name("saved")
        shutil.copytree(project, self._saved)
        self._process = process

    def reset(self) -> None:
        shutil.rmtree(self.project)
        shutil.copytree(self._saved, self.project)

    def run(self, prompt: str, **fault: int) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        given = {"session": "s2", "prompt": prompt, "kill_before": 0, "full_from": 0, **fault}
        print(json.dumps(given), file=self._process.stdin, flush=True)
        answered: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answered


@pytest.fixture
def agent(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedAgent:
    """A project with one lesson, and an experiment that holds out half."""
    made = SimulatedAgent(make_project(tmp_path / "project"))
    monkeypatch.setattr(answer, "start_background", lambda paths: background.run(paths, made.at))
    made.prompt(PROMPT)
    made.fix_and_stop()
    set_share(0.5)
    return made


@pytest.fixture
def worker(agent: SimulatedAgent) -> Iterator[Worker]:
    command = [sys.executable, "-m", "tests.crash.hook_worker", str(agent.project.project)]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Worker(agent.project.project, process)
        assert process.stdin
        process.stdin.close()


def assignments(agent: SimulatedAgent) -> list[Event]:
    """Return the user's own assignments in the event log, whose lines must all be whole."""
    events, findings = read_events("", agent.project.events.read_bytes())
    assert not findings
    key = trial_key(agent.project.project)
    return [event for event in events if event.kind == ASSIGNED and key.is_own(event)]


@pytest.mark.parametrize(("fault", "step"), [("kill_before", 17), ("full_from", 17)])
def test_a_hook_that_is_stopped_while_it_assigns_leaves_one_assignment_and_loses_no_context(
    worker: Worker, agent: SimulatedAgent, fault: str, step: int
) -> None:
    prompt = prompt_of_arm(agent, is_held_out=False)
    for call in range(1, MOST_CALLS, step):
        worker.reset()
        stopped = worker.run(prompt, **{fault: call})
        again = worker.run(prompt)
        (event,) = assignments(agent)
        assert event.trial is not None and not event.trial.is_held_out
        assert again["code"] == 0 and FIX in stopped["context"] + again["context"], f"{fault} {call}"
        if stopped["code"] == 0:
            return
    raise AssertionError("the hook never ended without a fault")


def test_what_is_held_out_stays_so_after_a_kill(worker: Worker, agent: SimulatedAgent) -> None:
    prompt = prompt_of_arm(agent, is_held_out=True)
    for call in range(10, MOST_CALLS, 31):
        worker.reset()
        stopped = worker.run(prompt, kill_before=call)
        again = worker.run(prompt)
        assert len(assignments(agent)) == 1 and FIX not in stopped["context"] + again["context"], call
        if stopped["code"] == 0:
            return
    raise AssertionError("the hook never ended without a fault")


@pytest.mark.parametrize("fault", ["kill_before", "full_from"])
@pytest.mark.parametrize(("words", "share"), [("start --share 0.3", 0.3), ("stop", None), ("", 0.5)])
def test_a_command_that_is_stopped_leaves_whole_settings_and_a_whole_secret(
    agent: SimulatedAgent, home: Path, words: str, share: float | None, fault: str
) -> None:
    before = user_settings_file().read_bytes()
    with commands(home) as runner:
        for call in range(1, MOST_CALLS):
            user_settings_file().write_bytes(before)
            secret_file().unlink(missing_ok=True)
            folder = ["--project", str(agent.project.project)] if not words else []
            stopped = runner.run(["experiment", *words.split(), *folder], **{fault: call})
            settings = read_user_settings()
            assert not settings.findings and settings.decisions.names, "nothing else is lost"
            assert settings.experiment.share in (0.5, share)
            assert not secret_file().exists() or read_secret()
            if not stopped.reached:
                assert (stopped.code, settings.experiment.share) == (0, share), stopped.output
                return
    raise AssertionError("the command never ended without a fault")
