"""Event loop of a process that watches a project."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Final

from core.curation.decision_writer import Decided
from core.project.auto_extraction import AutoExtraction
from core.project.project import Project
from core.records.snapshot import Delta
from core.state.project_state import ProjectState
from core.storage.watcher import FileChanges, Watcher, WatchState

REFRESH_SECONDS: Final = 10.0  # how often the activity of loops is checked when no file changes
BATCH_BURST: Final = 60  # batches of file changes that are applied without delay after a quiet time
BATCHES_PER_SECOND: Final = 3.0  # batches a second under a steady stream of changes: each costs a repaint
_ROUNDING: Final = 1e-6


class BatchPacer:
    """Limits how often file changes are applied: a burst, then a steady rate.

    `clock` returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left = float(BATCH_BURST)
        self._since = clock()

    def delay(self) -> float:
        """Seconds until the next batch may be applied; 0 if it may be applied now."""
        now = self._clock()
        self._left = min(self._left + (now - self._since) * BATCHES_PER_SECOND, BATCH_BURST)
        self._since = now
        missing = 1 - self._left
        return missing / BATCHES_PER_SECOND if missing > _ROUNDING else 0.0

    def count(self) -> None:
        """Note that a batch was applied."""
        self._left -= 1


class WatchLoop:
    """Runs jobs, reads and extractions in one thread; subclasses report events.

    With `extract`, patterns are extracted from loops when they end.
    """

    def __init__(self, project: Project, *, extract: bool = False) -> None:
        self.project = project
        self._condition = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed_paths: set[Path] = set()
        self._sweep = False
        self._stopped = False
        self._pacer = BatchPacer()
        self._watch_state: WatchState | None = None
        self._extraction = AutoExtraction(project) if extract else None

    # Hooks of subclasses, called in the thread of `run`.

    def prepare(self) -> None:
        """Called once before the first turn; file changes are already collected."""

    def changed(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        """The project was read again; the delta may be empty."""
        raise NotImplementedError

    def extracted(self, before: ProjectState, loop_id: str, decided: Decided | None) -> None:
        """A loop that has ended was examined; `decided` is None if it had nothing new."""
        raise NotImplementedError

    def watching(self, state: WatchState) -> None:
        """The watch mode has changed, for example to polling."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """One step failed; what this raises ends the loop."""
        raise error

    def begin_turn(self, *, idle: bool) -> None:
        """A turn begins; `idle` if it has neither jobs nor changes."""

    def idle(self) -> None:
        """A turn without jobs and changes: by default, update times and scores."""
        self._read(self.project.refresh)

    def seconds_left(self) -> float:
        """Seconds until the next turn if nothing happens before."""
        return self._extraction.seconds_left(REFRESH_SECONDS) if self._extraction is not None else REFRESH_SECONDS

    # Called from any thread.

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job in the thread of the loop, after those submitted before it."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify()

    def stop(self) -> None:
        """Let `run` return after the submitted jobs; may be called from a signal handler."""
        self._stopped = True
        with self._condition:
            self._condition.notify()

    # The loop.

    def run(self) -> None:
        with Watcher(self.project.project, self.project.settings.watch, self._noticed) as watcher:
            self._guarded(self.prepare)
            while self._jobs or not self._stopped:
                self._guarded(lambda: self._turn(watcher))

    def _noticed(self, changes: FileChanges) -> None:
        with self._condition:
            self._changed_paths |= changes.paths
            self._sweep |= changes.sweep
            self._condition.notify()

    def _turn(self, watcher: Watcher) -> None:
        jobs, changed, sweep = self._next_work()
        if self._stopped and not jobs:
            return
        if watcher.state != self._watch_state:
            self._watch_state = watcher.state
            self.watching(watcher.state)
        idle = not (jobs or changed or sweep)
        self.begin_turn(idle=idle)
        for job in jobs:
            self._guarded(job)
        if changed or sweep:
            self._pacer.count()
            self._read(lambda: self.project.apply(None if sweep else changed))
            if unfinished := self.project.library.retry_paths:
                watcher.retry(unfinished)
        elif idle:
            self.idle()
        before = self.project.view
        if self._extraction is not None and (examined := self._extraction.extract_next()) is not None:
            self.extracted(before, *examined)

    def _next_work(self) -> tuple[Iterable[Callable[[], None]], set[Path], bool]:
        """Wait for jobs or changes; the pacer delays changes only."""
        with self._condition:
            if not (self._stopped or self._jobs or self._changed_paths or self._sweep):
                self._condition.wait(self.seconds_left())
            if self._changed_paths or self._sweep:
                self._condition.wait_for(lambda: self._stopped or self._jobs, self._pacer.delay())
            jobs = list(self._jobs)
            self._jobs.clear()
            changed, sweep = set[Path](), False
            if self._pacer.delay() == 0:
                changed, self._changed_paths = self._changed_paths, changed
                sweep, self._sweep = self._sweep, sweep
            return jobs, changed, sweep

    def _read(self, read: Callable[[], tuple[ProjectState, Delta]]) -> None:
        before = self.project.view
        after, delta = read()
        if self._extraction is not None:
            self._extraction.add_ended(before, after, delta)
        self.changed(before, after, delta)

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            self.failed(error)
