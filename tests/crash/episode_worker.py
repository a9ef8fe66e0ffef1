"""Makes steps of the agent protocol and kills itself: `python -m tests.crash.episode_worker`.

For each line on stdin, `PROJECT STEP CALLS`, it forks a child that makes one step of `STEPS` and kills itself before
that number of system calls that change the disk (0: never). Prints `done`, or `dead` for a child that was killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import core.files.atomic_write
from core.records.loops import Outcome
from core.tasks.protocol import Episodes
from tests.crash.worker import die_before, say
from tests.factories import EPISODES_START, bash_action, edit_action, make_episodes

TASK = "task-001"
ACTIONS = [
    {**edit_action("a.ts"), "timestamp": 1769937000000},
    {**bash_action("npm test", False), "timestamp": 1769937001000},
]
STEPS: tuple[Callable[[Episodes], Any], ...] = (
    lambda memory: memory.init_task("Add OAuth", tags=["auth"], task_id=TASK),
    lambda memory: memory.start_attempt(TASK, approach="implement first"),
    lambda memory: memory.log_actions(
        TASK, ACTIONS, quality=0.3, results={"out.txt": b"red"}, milestones=[{"event": "a test that fails"}]
    ),
    lambda memory: memory.complete_attempt(TASK, suggestions=["types first"]),
    lambda memory: memory.reflect(TASK, learning="types first"),
    lambda memory: memory.start_attempt(TASK),
    lambda memory: memory.pause_task(TASK),
    lambda memory: memory.start_attempt(TASK),
    lambda memory: memory.start_attempt(TASK, abandon=True),
    lambda memory: memory.complete_attempt(TASK, outcome=Outcome.SUCCESS, task_done=True),
    lambda memory: memory.start_attempt(TASK, reopen=True),
)
"""A task from creation to completion, and its next attempt."""


def make_step(project: Path, number: int, kill_before: int) -> None:
    """Make one step at a fixed time, until it ends or is killed."""
    now = EPISODES_START + timedelta(minutes=number)
    memory = make_episodes(project, lambda: now)
    if kill_before:
        die_before(kill_before)
    STEPS[number](memory)


def main() -> None:
    """Serve until stdin ends."""
    setattr(core.files.atomic_write, "_CHECK_SECONDS", ())  # noqa: B010
    setattr(os, "fsync", lambda handle: None)  # noqa: B010  # a kill is not a power failure
    with TemporaryDirectory() as folder:  # what every child needs is imported and compiled once
        for number in range(len(STEPS)):
            make_step(Path(folder), number, 0)
    for line in sys.stdin:
        project, step, calls = line.split()
        pid = os.fork()
        if pid == 0:
            make_step(Path(project), int(step), int(calls))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        say("dead" if os.WIFSIGNALED(status) else "done" if status == 0 else "failed")


if __name__ == "__main__":
    main()
