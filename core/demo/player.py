"""Plays running loops in a scratch copy of the sample, for as long as one likes to watch."""

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
from core.demo.loops import PlayedLoop
from core.demo.sample import copy_sample
from core.demo.scenes import OPENING, REPERTOIRE
from core.demo.tasks import PlayedAgent, escalate

_LOG: Final = logging.getLogger(__name__)
_MARK: Final = ".ralphdeck-demo"
_KEPT: Final = 3
"""So many played loops that ended stay in `loops/`; older ones go to the archive."""
_AGENT_EVERY: Final = 4
"""Every so many beats the agent does something at its task."""
_ESCALATES_AT: Final = 30
"""In this beat a debug session asks for a person."""


@contextmanager
def scratch_project(now: datetime) -> Iterator[ProjectPaths]:
    """A copy of the sample project as of `now`, in a temporary folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="ralphdeck-", ignore_cleanup_errors=True) as folder:
        project = ProjectPaths(Path(folder).resolve() / "acme-api")
        copy_sample(project.project, now)
        (project.project / _MARK).touch()
        yield project


class DemoPlayer:
    """Plays from `start` until `stop`, in a thread of its own; usable as a context manager.

    Iterations advance, errors come and get fixed, patterns are applied and help or not, loops finish, crash
    and are followed by new ones; an agent works at tasks, attempt by attempt, and a debug session is escalated.
    The same seed plays the same piece; only its times differ.

    Args:
        project: A scratch project; any other is refused with `BadInput`, since the player writes there.
        seed: Of what comes next.
        interval: Seconds between two visible things, on average.
        clock: The present moment, aware UTC.
    """

    def __init__(
        self,
        project: ProjectPaths,
        *,
        seed: int = 7,
        interval: float = 0.8,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not (project.project / _MARK).is_file():
            raise BadInput(f"{project.project} is no scratch copy; the demo plays only in one of its own")
        self._project = project
        self._interval = interval
        self._clock = clock
        self._random = random.Random(seed)
        self._repertoire = cycle(REPERTOIRE)
        self._loops: list[PlayedLoop] = []
        self._finished: deque[PlayedLoop] = deque()
        self._agent = PlayedAgent(project, clock)
        self._beats = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._play, name="ralphdeck-demo", daemon=True)

    def start(self) -> None:
        """Begin to play; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait until nothing is written any more and no process is left."""
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
            for scene in OPENING:
                if loop := PlayedLoop.adopted(self._project, scene):
                    self._loops.append(loop)
            while not self._stopping.wait(self._interval * self._random.uniform(0.6, 1.4)):
                self._beat()
        except (OSError, ValueError, KeyError, RalphdeckError):
            # Somebody removed or broke the scratch copy; the dashboard goes on without the play.
            _LOG.exception("the demo ends early")
        finally:
            for loop in self._loops:
                loop.stop()

    def _beat(self) -> None:
        now = self._clock()
        self._beats += 1
        if self._beats == _ESCALATES_AT:
            escalate(self._project, now)
        if self._beats % _AGENT_EVERY == 0 and self._agent.beat():
            return
        if len(self._loops) < len(OPENING):
            suffix = f"{self._random.getrandbits(32):08x}"
            self._loops.append(PlayedLoop.begun(self._project, next(self._repertoire), suffix, now))
            return
        loop = self._random.choice(self._loops)
        loop.beat(now)
        if loop.ended:
            self._loops.remove(loop)
            self._finished.append(loop)
            if len(self._finished) > _KEPT:
                self._finished.popleft().archive(now)
