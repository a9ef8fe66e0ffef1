"""Play running loops in a scratch copy of the sample project."""

from __future__ import annotations

import logging
import random
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from core.base.errors import BadInput, RalphdeckError
from core.config.paths import ProjectPaths
from core.demo.agent import DemoAgent, escalate_session
from core.demo.loops import PlayedLoop
from core.demo.sample import copy_sample
from core.demo.scripts import load_loop_scripts

_LOG: Final = logging.getLogger(__name__)
_MARKER: Final = ".ralphdeck-demo"
_MAX_FINISHED: Final = 3
"""Ended loops that stay in `loops/`; older ones move to the archive."""
_AGENT_INTERVAL: Final = 4
"""Steps between two steps of the agent."""
_SEED: Final = 7
_ESCALATION_STEP: Final = 30
"""The step in which a debug session is escalated."""


@contextmanager
def scratch_project(now: datetime) -> Iterator[ProjectPaths]:
    """A copy of the sample project that ends at `now`, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="ralphdeck-", ignore_cleanup_errors=True) as folder:
        project = ProjectPaths(Path(folder).resolve() / "acme-api")
        copy_sample(project.project, now)
        (project.project / _MARKER).touch()
        yield project


class DemoPlayer:
    """Plays in its own thread from `start` until `stop`; usable as a context manager.

    Loops iterate, apply patterns, complete, crash and are replaced by new ones; an agent works at tasks, and a debug
    session is escalated. The sequence is the same each time.

    Args:
        project: A scratch project; any other raises `BadInput`, since the player writes to it.
        interval: Average seconds between two steps.
        clock: Returns the present moment, aware UTC.
    """

    def __init__(
        self, project: ProjectPaths, *, interval: float = 0.8, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not (project.project / _MARKER).is_file():
            raise BadInput(f"{project.project} is not a scratch copy; the demo writes only to its own copies")
        self._project = project
        self._interval = interval
        self._clock = clock
        self._random = random.Random(_SEED)
        self._running = load_loop_scripts().running
        self._new = cycle(load_loop_scripts().new)
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
        """Stop, and wait until the thread and all processes have ended."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _play(self) -> None:
        try:
            for script in self._running:
                if loop := PlayedLoop.find_running(self._project, script):
                    self._loops.append(loop)
            while not self._stopping.wait(self._interval * self._random.uniform(0.6, 1.4)):
                self._advance()
        except (OSError, ValueError, KeyError, RalphdeckError):
            # The scratch copy was removed or damaged; the dashboard continues without the player.
            _LOG.exception("the demo stopped early")
        finally:
            for loop in self._loops:
                loop.stop()

    def _advance(self) -> None:
        now = self._clock()
        self._steps += 1
        if self._steps == _ESCALATION_STEP:
            escalate_session(self._project, now)
        if self._steps % _AGENT_INTERVAL == 0 and self._agent.advance():
            return
        if len(self._loops) < len(self._running):
            suffix = f"{self._random.getrandbits(32):08x}"
            self._loops.append(PlayedLoop.create(self._project, next(self._new), suffix, now))
            return
        loop = self._random.choice(self._loops)
        loop.advance(now)
        if loop.ended:
            self._loops.remove(loop)
            self._finished.append(loop)
            if len(self._finished) > _MAX_FINISHED:
                self._finished.popleft().archive(now)
