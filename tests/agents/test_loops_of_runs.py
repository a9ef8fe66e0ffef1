"""Real agents in a shell loop, and one that is killed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.agents.conftest import make_bench
from tests.agents.story import TASK
from tests.agents.workbench import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.slow]
RUNS = 3
LOOPING = ("claude", "codex")


@pytest.mark.parametrize("name", LOOPING)
def test_runs_of_one_prompt_are_iterations_of_one_loop_and_attempts_at_one_task(name: str, place: Path) -> None:
    bench = make_bench(name, place)
    bench.ralphdeck("init")
    bench.ralphdeck("connect", name, "--yes")
    run = shlex.join(bench.command(TASK))
    bench.start(["sh", "-c", f"for run in {' '.join(map(str, range(RUNS)))}; do {run}; done"], "give-up").wait()
    (loop,) = bench.loops()
    assert (loop["iteration"], loop["task"]) == (RUNS, TASK)
    (task,) = bench.json("task", "list")["tasks"]
    assert (task["attempts"], task["last_outcome"]) == (RUNS, "failure")


@pytest.mark.parametrize("name", LOOPING)
def test_a_killed_session_is_not_running(name: str, place: Path) -> None:
    bench = make_bench(name, place)
    bench.ralphdeck("init")
    bench.ralphdeck("connect", name, "--yes")
    agent = bench.start(bench.command(TASK), "wait")
    assert wait_until(lambda: len(agent.requests()) == 2), "the first command has ended, the second one runs"
    assert [loop["status"] for loop in bench.loops()] == ["running"]
    agent.kill()
    agent.wait()
    (loop,) = bench.loops()
    assert loop["status"] == "crashed", loop["liveness_reason"]
