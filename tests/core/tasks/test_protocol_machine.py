"""Random sequences of calls, some killed and repeated, leave consistent files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.base.errors import Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.loops import Outcome
from core.records.snapshot import Snapshot
from core.tasks.protocol import Episodes
from tests.factories import NO_FSYNC, NO_RETRIES, Killed, bash_action, kill_before_call, make_episodes

KILL = st.none() | st.integers(1, 70)
OUTCOMES = st.sampled_from([Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT])


@dataclass
class Attempt:
    """Expected state of an attempt."""

    outcome: str = ""
    actions: list[str] = field(default_factory=list)
    learnings: list[str] = field(default_factory=list)


@dataclass
class Task:
    """Expected state of a task."""

    status: str = "running"
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether the newest attempt is open."""
        return bool(self.attempts) and not self.attempts[-1].outcome


class Protocol(RuleBasedStateMachine):
    """Compares up to three tasks with a model in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.project = Path(tempfile.mkdtemp())
        self.memory: Episodes = make_episodes(self.project)
        self.tasks: dict[str, Task] = {}
        self.count = 0
        NO_RETRIES.start()
        NO_FSYNC.start()

    def teardown(self) -> None:
        """Remove the project."""
        NO_FSYNC.stop()
        NO_RETRIES.stop()
        shutil.rmtree(self.project)

    def call(self, step: Callable[[], Any], kill: int | None) -> bool:
        """Kill a call, then repeat it; return whether it was allowed."""
        if kill is not None:
            with suppress(Killed, Refused), kill_before_call(kill):
                step()
            self.read()
        try:
            step()
        except Refused:
            return False
        return True

    def read(self) -> Snapshot:
        """Load the files with the index."""
        paths, now = ProjectPaths(self.project), datetime(2026, 3, 1, tzinfo=UTC)
        snapshot = Index(paths, Settings(), clock=lambda: now, is_kept=False).load()
        assert snapshot.findings == ()
        return snapshot

    def some(self, data: st.DataObject) -> tuple[str, Task]:
        """Select a task."""
        task_id = data.draw(st.sampled_from(sorted(self.tasks)))
        return task_id, self.tasks[task_id]

    @initialize(kill=KILL)
    def first(self, kill: int | None) -> None:
        """Create the first task."""
        self.init("a", kill)

    @rule(task_id=st.sampled_from(["a", "b", "c"]), kill=KILL)
    def init(self, task_id: str, kill: int | None) -> None:
        """Create a task; the ID of a task with attempts is refused."""
        known = self.tasks.get(task_id)
        allowed = self.call(lambda: self.memory.init_task("do it", task_id=task_id), kill)
        assert allowed == (known is None or (known.status == "running" and not known.attempts))
        self.tasks.setdefault(task_id, Task())

    @rule(data=st.data(), abandon=st.booleans(), reopen=st.booleans(), kill=KILL)
    def start(self, data: st.DataObject, abandon: bool, reopen: bool, kill: int | None) -> None:
        """Start the next attempt, or resume the paused one."""
        task_id, task = self.some(data)
        ended, resumes = task.status in ("completed", "failed"), task.status == "paused" and not abandon
        before, was_open = len(task.attempts), task.open
        allowed = self.call(lambda: self.memory.start_attempt(task_id, abandon=abandon, reopen=reopen), kill)
        if ended and not reopen:
            assert not allowed
            return
        there = len(list((self.project / ".aiwg/ralph/tasks" / task_id / "attempts").glob("*")))
        if was_open and resumes:
            assert (allowed or kill is not None) and there == before
        elif was_open and not abandon:
            assert not allowed and there == before
            return
        else:
            if was_open:
                task.attempts[-1].outcome = "timeout"
            # A start whose kill came after its last write is done, and its repetition one start too many.
            task.attempts += [Attempt() for _ in range(there - before)]
            for left in task.attempts[before:-1]:
                left.outcome = "timeout"
            assert there > before
        task.status = "running"

    @rule(data=st.data(), number=st.integers(1, 3), quality=st.none() | st.floats(0, 1), kill=KILL)
    def log(self, data: st.DataObject, number: int, quality: float | None, kill: int | None) -> None:
        """Log some actions."""
        task_id, task = self.some(data)
        self.count += 1
        names = [f"npm test {self.count}.{at}" for at in range(number)]
        actions = [bash_action(name, True, timestamp=1769937000000 + self.count) for name in names]
        allowed = self.call(lambda: self.memory.log_actions(task_id, actions, quality=quality), kill)
        assert allowed == task.open
        if allowed:
            task.attempts[-1].actions += names

    @rule(data=st.data(), outcome=OUTCOMES, done=st.sampled_from([None, None, True, False]), kill=KILL)
    def complete(self, data: st.DataObject, outcome: Outcome, done: bool | None, kill: int | None) -> None:
        """Complete an attempt, and sometimes the task."""
        task_id, task = self.some(data)
        possible = bool(task.attempts) and task.attempts[-1].outcome in ("", outcome.value)
        possible = possible and (done is not True or outcome is Outcome.SUCCESS)
        step = lambda: self.memory.complete_attempt(task_id, outcome=outcome, task_done=done)  # noqa: E731
        assert self.call(step, kill) == possible
        if possible:
            task.attempts[-1].outcome = outcome.value
            if done is not None:
                task.status = "completed" if done else "failed"

    @rule(data=st.data(), kill=KILL)
    def pause(self, data: st.DataObject, kill: int | None) -> None:
        """Pause a task."""
        task_id, task = self.some(data)
        allowed = self.call(lambda: self.memory.pause_task(task_id), kill)
        assert allowed == (task.status in ("running", "paused"))
        task.status = "paused" if allowed else task.status

    @rule(data=st.data(), kill=KILL)
    def reflect(self, data: st.DataObject, kill: int | None) -> None:
        """Add a reflection."""
        task_id, task = self.some(data)
        self.count += 1
        learning = f"learning {self.count}"
        allowed = self.call(lambda: self.memory.reflect(task_id, learning=learning), kill)
        assert allowed == bool(task.attempts)
        if allowed:
            task.attempts[-1].learnings.append(learning)

    @invariant()
    def everything_acknowledged_is_there_and_agrees(self) -> None:
        """Model, index, index, metadata and trajectory are equal."""
        snapshot = self.read()
        assert snapshot.tasks.keys() == self.tasks.keys()
        index = json.loads((self.project / ".aiwg/ralph/index/by-status.json").read_bytes()) if self.tasks else {}
        for task_id, task in self.tasks.items():
            assert snapshot.tasks[task_id].status == task.status
            assert [status for status, ids in index.items() if task_id in ids] == [task.status]
            self.check_attempts(snapshot, task_id, task)

    def check_attempts(self, snapshot: Snapshot, task_id: str, task: Task) -> None:
        """Compare the attempts at one task with the model."""
        folder = self.project / ".aiwg/ralph/tasks" / task_id
        ended = json.loads((folder / "trajectory.json").read_bytes())["attempts"]
        assert [(one["attempt_id"], one["outcome"]) for one in ended] == [
            (number, one.outcome) for number, one in enumerate(task.attempts, 1) if one.outcome
        ]
        text = {(one.attempt, one.learning) for one in snapshot.reflections.values() if one.task_id == task_id}
        for number, attempt in enumerate(task.attempts, 1):
            found = snapshot.attempts[f"{task_id}.{number}"]
            assert found.is_open == (not attempt.outcome)
            log = folder / f"attempts/{number:03}/actions.jsonl"
            lines = log.read_bytes().splitlines() if log.exists() else []
            assert [json.loads(line)["params"]["command"] for line in lines] == attempt.actions
            counted = json.loads((log.parent / "attempt.json").read_bytes())["execution"]["actions_performed"]
            assert counted == len(attempt.actions)
            assert text >= {(number, learning) for learning in attempt.learnings}


TestProtocol = pytest.mark.slow(Protocol.TestCase)
TestProtocol.settings = settings(max_examples=12, stateful_step_count=14)
