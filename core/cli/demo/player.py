"""Plays the demo in a copy of the sample project, and checks it without a UI."""

from __future__ import annotations

import json
import logging
import os
import random
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from core.base.errors import BadInput, RalphdeckError
from core.base.paths import TRUSTED_PATHS, ProjectPaths
from core.base.settings import Settings
from core.cli.demo.loops import (
    ActionScript,
    AttemptScript,
    PlayedLoop,
    TaskScript,
    load_loop_scripts,
    load_task_scripts,
)
from core.cli.demo.sample import copy_sample
from core.files.watcher import FileChanges, Watcher, WatchMode
from core.index.refresh import Index
from core.records.debug_sessions import ESCALATED, IN_PROGRESS
from core.records.findings import Severity
from core.records.loops import Outcome
from core.records.times import iso
from core.sources.configuration import PLACES
from core.tasks.protocol import Episodes
from core.trust.origins import forget_origins

_LOG: Final = logging.getLogger(__name__)
_MARKER: Final = ".ralphdeck-demo"
# Each loop that ends would add up to five questions to Review; what it offers is a line of one.
_SETTINGS: Final = "ralph: {cross_loop_learning: {extraction: {auto_extract_on_completion: false}}}\n"
_MAX_FINISHED: Final = 3  # Maximum number of ended loops in `loops/`; the oldest moves to the archive.
_AGENT_INTERVAL: Final = 4  # The agent acts in every step with a number divisible by this.
_LIVELY_STEPS: Final = 60  # Number of steps after which the demo goes on slowly, to be read.
_CALM: Final = 12  # Factor of the interval then: the demo takes about nine minutes.
_SEED: Final = 7
_ESCALATION_STEP: Final = 30  # Number of the step in which a debug session is escalated.
_AGENT: Final = "software-implementer"
_PARAMS: Final = {"bash": "command", "grep": "pattern", "glob": "pattern", "task": "description"}
"""Name of the parameter with the target, by action type; `file_path` for other types."""


@contextmanager
def scratch_project(now: datetime) -> Iterator[ProjectPaths]:
    """Make a trusted temporary copy of the sample project; its times end at `now`."""
    with tempfile.TemporaryDirectory(prefix="ralphdeck-", ignore_cleanup_errors=True) as folder:
        project = ProjectPaths(Path(folder).resolve() / "acme-api")
        trusted = os.environ.get(TRUSTED_PATHS)
        os.environ[TRUSTED_PATHS] = os.pathsep.join(filter(None, (trusted, str(project.project))))
        try:
            copy_sample(project.project, now)
            (project.project / _MARKER).touch()
            (project.project / PLACES[0]).write_text(_SETTINGS, encoding="utf-8")
            yield project
        finally:
            forget_origins(project.project)
            if trusted is None:
                del os.environ[TRUSTED_PATHS]
            else:
                os.environ[TRUSTED_PATHS] = trusted


class DemoPlayer:
    """Plays the demo in its own thread; `start` and `stop` it, or use `with`.

    Loops iterate, apply patterns, complete and crash, a few new ones start; an agent works on tasks, and a debug
    session is escalated. It ends after all scripts. The random numbers are seeded, so each run is the same. `interval`
    is the average number of seconds between the first steps; later ones are slower. Raises BadInput if `project` is not
    a scratch copy, since the player writes to it.
    """

    def __init__(
        self, project: ProjectPaths, *, interval: float = 0.8, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not (project.project / _MARKER).is_file():
            raise BadInput(f"{project.project} is not a copy made by the demo; run: ralphdeck demo")
        self._project = project
        self._interval = interval
        self._clock = clock
        self._random = random.Random(_SEED)
        self._running = load_loop_scripts().running
        self._new = iter(load_loop_scripts().new)
        self._loops: list[PlayedLoop] = []
        self._finished: deque[PlayedLoop] = deque()
        self._agent = DemoAgent(project, clock)
        self._steps = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._play, name="ralphdeck-demo", daemon=True)

    def start(self) -> None:
        """Start playing and return at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop playing, and wait until the thread and all its processes have ended."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def join(self) -> None:
        """Wait until all scripts have been played."""
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _play(self) -> None:
        try:
            for script in self._running:
                if loop := PlayedLoop.find_running(self._project, script):
                    self._loops.append(loop)
            while not self._stopping.wait(self._pause()) and self._advance():
                pass
        except (OSError, ValueError, KeyError, RalphdeckError):
            # The scratch copy was removed or damaged; the dashboard continues without the player.
            _LOG.exception("the demo stopped because of an error")
        finally:
            for loop in self._loops:
                loop.stop()

    def _pause(self) -> float:
        """Return the seconds until the next step."""
        calm = 1 if self._steps < _LIVELY_STEPS else _CALM
        return self._interval * calm * self._random.uniform(0.6, 1.4)

    def _advance(self) -> bool:
        """Play one step; False if everything has ended."""
        now = self._clock()
        self._steps += 1
        if self._steps == _ESCALATION_STEP:
            escalate_session(self._project, now)
        if (not self._loops or self._steps % _AGENT_INTERVAL == 0) and self._agent.advance():
            return True
        if len(self._loops) < len(self._running) and (script := next(self._new, None)) is not None:
            suffix = f"{self._random.getrandbits(32):08x}"
            self._loops.append(PlayedLoop.create(self._project, script, suffix, now))
            return True
        if not self._loops:
            return self._steps < _ESCALATION_STEP
        loop = self._random.choice(self._loops)
        loop.advance(now)
        if loop.ended:
            self._loops.remove(loop)
            self._finished.append(loop)
            if len(self._finished) > _MAX_FINISHED:
                self._finished.popleft().archive(now)
        return True


class DemoAgent:
    """Simulated agent that works on each scripted task (docs/task-memory.md)."""

    def __init__(self, project: ProjectPaths, clock: Callable[[], datetime]) -> None:
        self._episodes = Episodes(project, clock=clock, by=_AGENT)
        self._steps = (step for task in load_task_scripts() for step in self._play_task(task))

    def advance(self) -> bool:
        """Run the next step of the scripts; return False if none is left."""
        return next(self._steps, False)

    def _play_task(self, task: TaskScript) -> Iterator[bool]:
        task_id = task.id
        if not task_id:
            task_id = self._episodes.init_task(task.description, criteria=task.criteria, tags=task.tags)
            yield True
        for attempt in task.attempts:
            yield from self._play_attempt(task_id, attempt, is_last=attempt is task.attempts[-1])

    def _play_attempt(self, task_id: str, attempt: AttemptScript, *, is_last: bool) -> Iterator[bool]:
        iteration = attempt.iteration
        if attempt.approach:
            self._episodes.start_attempt(task_id, approach=attempt.approach, steps=attempt.steps)
            yield True
        for action in attempt.actions:
            self._episodes.log_actions(task_id, [_action_fields(action)], iteration=iteration, quality=action.quality)
            iteration += action.quality is not None
            yield True
        outcome = Outcome.SUCCESS if attempt.succeeds else Outcome.FAILURE
        task_done = attempt.succeeds if is_last else None
        self._episodes.complete_attempt(task_id, outcome=outcome, reason=attempt.reason, task_done=task_done)
        if attempt.learning:
            self._episodes.reflect(
                task_id, learning=attempt.learning, observation=attempt.reason, trigger=outcome.value
            )
        yield True


def _action_fields(action: ActionScript) -> dict[str, Any]:
    params = {_PARAMS.get(action.type, "file_path"): action.target}
    if action.change is not None:
        params["old_string"], params["new_string"] = action.change
    return {
        "type": action.type,
        "tool": action.type.capitalize(),
        "params": params,
        "success": not action.error,
        "output": action.output,
        **({"error": action.error} if action.error else {}),
        "reasoning": action.reasoning,
        "expected_outcome": action.expected,
    }


def escalate_session(project: ProjectPaths, now: datetime) -> None:
    """Escalate the first debug session that is in progress, if there is one."""
    for file in sorted((project.ralph / "debug-memory" / "sessions").glob("*.json")):
        session = json.loads(file.read_text(encoding="utf-8"))
        if session.get("status") == IN_PROGRESS:
            session.update(status=ESCALATED, updated_at=iso(now))
            file.write_text(json.dumps(session, indent=2, ensure_ascii=False), encoding="utf-8")
            return


_INTERVAL: Final = 0.05
now: Final = partial(datetime.now, UTC)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Result of a headless demo: records at its end, and records that changed."""

    loops: int
    patterns: int
    reflections: int
    findings: int
    changes: int  # Number of file change batches that changed at least one record.
    changed_loops: int
    changed_patterns: int
    watch: WatchMode  # How the watcher detected file changes.


def demo_check(seconds: float = 2.0) -> DemoReport:
    """Play the demo in a temporary folder for `seconds`, and count the changes.

    Raises RalphdeckError if no change was detected or if the sample contains errors.
    """
    never = threading.Event()
    changes = 0
    changed_loops: set[str] = set()
    changed_patterns: set[str] = set()

    def apply_changes(changed: FileChanges) -> None:
        nonlocal changes
        _, delta = index.refresh(None if changed.sweep else changed.paths)
        watcher.retry(index.retry_paths)
        changes += bool(delta)
        changed_loops.update(delta.loops)
        changed_patterns.update(delta.patterns)

    with scratch_project(now()) as project, closing(Index(project, Settings(), clock=now, is_kept=False)) as index:
        index.load()
        watcher = Watcher(project, Settings().watch, apply_changes)
        with watcher, DemoPlayer(project, interval=_INTERVAL):
            never.wait(seconds)
            watch = watcher.state.mode
        snapshot = index.snapshot
    if not changed_loops:
        raise RalphdeckError(f"the demo played for {seconds:g} s, but no change was detected")
    errors = [finding for finding in snapshot.findings if finding.severity is Severity.ERROR]
    if errors:
        raise RalphdeckError(f"the sample project contains an error: {errors[0].file}: {errors[0].message}")
    return DemoReport(
        loops=len(snapshot.loops),
        patterns=len(snapshot.patterns),
        reflections=len(snapshot.reflections),
        findings=len(snapshot.findings),
        changes=changes,
        changed_loops=len(changed_loops),
        changed_patterns=len(changed_patterns),
        watch=watch,
    )
