"""Files of agents and runners, read or followed (docs/adapters.md#live)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from functools import cached_property
from time import monotonic, sleep, thread_time
from typing import TYPE_CHECKING, Final, Self

from core.records.loops import LoopDetails
from core.sources.loops import read_loop_details

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.records.loops import Loop
    from core.sources.adapters.agent_files import AgentFile
    from core.sources.adapters.collector import Collector, FirstRead
    from core.sources.adapters.contract import AdapterRecords, Delivery
    from core.sources.adapters.runner_files import RunnerFiles


class AdapterFiles:
    """Thread-safe reader of files of agents and runners; with `cache`, keeps results."""

    def __init__(
        self, project: ProjectPaths, settings: Settings, clock: Callable[[], datetime], *, cache: bool = True
    ) -> None:
        self._project = project
        self._settings = settings
        self._clock = clock
        self._has_cache = cache
        self._lock = threading.Lock()
        self._collector: Collector | None = None

    def open_collector(self, pause: Callable[[float], object] | None = None) -> Collector:
        """Return a new reader of all files, for one thread."""
        from core.sources.adapters.collector import Collector
        from core.sources.adapters.folders import find_folders
        from core.sources.adapters.transcripts import KeptFile

        folders = find_folders(self._project.project, os.environ, has_home=self._settings.sources.home)
        kept = KeptFile(self._project.project) if self._has_cache else None
        has_instructions = self._settings.sources.instructions
        return Collector(folders, clock=self._clock, kept=kept, pause=pause, has_instructions=has_instructions)

    def _opened(self) -> Collector:
        self._collector = self._collector or self.open_collector()
        return self._collector

    def close(self) -> None:
        """Close what reading has opened; another read opens it again."""
        with self._lock:
            collector, self._collector = self._collector, None
            if collector is not None:
                collector.close()

    def read_all(self) -> AdapterRecords:
        """Read all files once, to their end."""
        self.close()
        with self._lock:
            return self._opened().read_all()

    def check_failures(self) -> AdapterRecords | None:
        """Return what `read_all` found, after a wait for torn files; None before it."""
        with self._lock:
            return self._collector.check_failures(sleep) if self._collector is not None else None

    def details(self, loop: Loop) -> LoopDetails:
        """Read the details of a loop with its adapter."""
        if not loop.runner:
            return read_loop_details(self._project, loop)
        if loop.is_from_hooks_alone:  # its tasks and attempts are in the records
            return LoopDetails(loop_id=loop.id, iterations=loop.iterations)
        with self._lock:
            return self._opened().details(loop)

    def deliver(self, loop: Loop, context: str) -> Delivery | None:
        """Return how a loop's runner can be given a context; None if only by hooks."""
        with self._lock:
            return self._opened().deliver(loop, context)

    def agent_files(self) -> tuple[AgentFile, ...]:
        """Read the files that agents load at the start of each session."""
        from core.sources.adapters.agent_files import read_agent_files

        return read_agent_files(self._runner_files)

    def all_agent_files(self) -> tuple[AgentFile, ...]:
        """Read all files that agents load, also rules for some paths and skills."""
        from core.sources.adapters.agent_files import read_all_agent_files

        return read_all_agent_files(self._runner_files)

    @cached_property
    def _runner_files(self) -> RunnerFiles:
        from core.sources.adapters.folders import find_folders
        from core.sources.adapters.runner_files import RunnerFiles

        folders = find_folders(self._project.project, os.environ, has_home=self._settings.sources.home)
        return RunnerFiles(folders, "agents")


CHECK_SECONDS: Final = 2.0  # between checks of files that changed last
LOOK_SECONDS: Final = 60.0  # between looks at all files
SAVE_SECONDS: Final = 30.0
PARTIAL_SECONDS: Final = 3.0  # between two lists while another process reads the transcripts
BYTES_PER_LOOK: Final = 8 << 20  # of transcripts: about 0.2 s
SHARE: Final = 20  # looks take at most one in this number of parts of the time
MAX_READERS: Final = 3  # processes that are started for the first read before this one does it


class AdapterFeed:
    """In a thread, calls `take` with runners' loops and lessons when they change.

    `progress` is called with the bytes of transcripts that are read, and those in all, while they are read for the
    first time in another process. `failed` is called with an error that ends the thread.
    """

    def __init__(
        self,
        open_collector: Callable[[], Collector],
        take: Callable[[AdapterRecords], None],
        progress: Callable[[int, int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._open, self._take, self._progress, self._failed = open_collector, take, progress, failed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ralphdeck-sources", daemon=True)
        self._last: AdapterRecords | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._open()) as collector:
                collector.set_limits(BYTES_PER_LOOK)
                self._publish(collector.look())
                self._read_all(collector)
                self._follow(collector)
        except Exception as error:
            self._failed(error)

    def _read_all(self, collector: Collector) -> None:
        """Read the transcripts to their end; in another process if they are large."""
        from core.sources.adapters.collector import MIN_BYTES, FirstRead  # the first rows do not need it

        for _ in range(MAX_READERS):
            if self._stop.is_set() or collector.kept is None or collector.bytes_behind < MIN_BYTES:
                break
            total = collector.bytes_behind
            collector.set_limits(0)  # the other process reads them
            collector.save()
            with FirstRead(collector.folders) as reader:
                self._show_partial(collector, reader, total)
            collector.set_limits(BYTES_PER_LOOK)
            self._publish(collector.look_anew())
        while collector.records.is_behind and not self._stop.wait(CHECK_SECONDS / 10):
            self._publish(collector.look_at_changed())
        self._progress(0, 0)
        collector.prune()

    def _show_partial(self, collector: Collector, reader: FirstRead, total: int) -> None:
        """Publish what the other process has read until it ends."""
        shown, wait = monotonic(), PARTIAL_SECONDS
        while (done := reader.bytes_read(CHECK_SECONDS / 4)) is not None and not self._stop.is_set():
            self._progress(min(done, total), total)
            if monotonic() - shown > wait:
                begun = thread_time()
                self._publish(collector.look_anew())
                shown, wait = monotonic(), max(PARTIAL_SECONDS, SHARE * (thread_time() - begun))

    def _follow(self, collector: Collector) -> None:
        looked = saved = monotonic()
        wait = CHECK_SECONDS
        while not self._stop.wait(wait):
            now, begun = monotonic(), thread_time()
            if now - looked >= LOOK_SECONDS:
                looked = now
                self._publish(collector.look())
            else:
                self._publish(collector.look_at_changed())
            if now - saved >= SAVE_SECONDS:
                saved = now
                collector.save()
            wait = max(CHECK_SECONDS, SHARE * (thread_time() - begun))

    def _publish(self, records: AdapterRecords) -> None:
        if records is not self._last and not self._stop.is_set():
            self._last = records
            self._take(records)
