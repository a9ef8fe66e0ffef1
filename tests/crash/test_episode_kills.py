"""SIGKILL in the middle of the agent protocol: repeating the call gives the tree that an undisturbed call gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.loops import Outcome
from tests.crash.episode_worker import STEPS, TASK
from tests.factories import make_episodes, read_project_json, read_tree

ROOT = Path(__file__).parents[2]
STARTS = (1, 5, 7, 8, 10)
COMPLETE = 3


class Worker:
    """Makes steps in child processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def step(self, project: Path, number: int, kill_before: int = 0) -> bool:
        """Make a step; False if the child was killed."""
        assert self._process.stdin and self._process.stdout
        print(project, number, kill_before, file=self._process.stdin, flush=True)
        output = self._process.stdout.readline().strip()
        assert output in ("done", "dead")
        return output == "done"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    command = [sys.executable, "-m", "tests.crash.episode_worker"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Worker(process)
        assert process.stdin
        process.stdin.close()


def check_reads(project: Path) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    snapshot = Index(ProjectPaths(project), Settings(), clock=lambda: now, is_kept=False).load()
    assert snapshot.findings == ()


def left_behind(project: Path) -> list[Path]:
    """Incomplete folders that no process owns."""
    return list((project / ".aiwg/ralph/index/.drafts").rglob("*"))


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_kill_before_any_system_call_loses_nothing(number: int, worker: Worker, tmp_path: Path) -> None:
    before, whole, killed = tmp_path / "before", tmp_path / "whole", tmp_path / "killed"
    make_episodes(before)
    for earlier in range(number):
        worker.step(before, earlier)
    shutil.copytree(before, whole)
    assert worker.step(whole, number)
    wanted, previous, calls = read_tree(whole), read_tree(before), 0
    while True:
        calls += 1
        shutil.copytree(before, killed)
        if worker.step(killed, number, calls):
            break
        left = read_tree(killed)
        if left == previous:  # a call that changes no file
            shutil.rmtree(killed)
            continue
        previous = left
        check_reads(killed)
        # An attempt that was started, except for a last call that changes no file, is not started again.
        if not (number in STARTS and left == wanted):
            worker.step(killed, number)
        assert read_tree(killed) == wanted
        assert not left_behind(killed)
        shutil.rmtree(killed)
    assert calls > 3


def test_another_agent_completes_an_attempt_killed_at_any_step(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, killed = tmp_path / "before", tmp_path / "killed"
    monkeypatch.setattr("core.files.atomic_write._CHECK_SECONDS", ())
    make_episodes(before)
    for earlier in range(COMPLETE):
        worker.step(before, earlier)
    previous = read_tree(before)
    for calls in range(1, 1000):
        shutil.copytree(before, killed)
        if worker.step(killed, COMPLETE, calls):
            break
        if read_tree(killed) == previous:
            shutil.rmtree(killed)
            continue
        previous = read_tree(killed)
        memory = make_episodes(killed)
        memory.start_attempt(TASK, abandon=True, reopen=True)
        memory.complete_attempt(TASK, outcome=Outcome.FAILURE)
        entries = read_project_json(killed, "trajectory.json")["attempts"]
        assert [one["attempt_id"] for one in entries] == list(range(1, len(entries) + 1))
        metadata = read_project_json(killed, "metadata.json")
        assert (metadata["status"], metadata["total_attempts"]) == ("running", len(entries))
        check_reads(killed)
        shutil.rmtree(killed)
