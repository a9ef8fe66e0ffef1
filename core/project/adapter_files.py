"""The files of agents and runners of an open project, read when they are needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING

from core.records.loops import LoopDetails
from core.sources.loops import read_loop_details

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.records.loops import Loop
    from core.sources.adapters.agent_files import AgentFile
    from core.sources.adapters.collector import Collector
    from core.sources.adapters.contract import AdapterRecords, Delivery
    from core.sources.adapters.runner_files import RunnerFiles


class AdapterFiles:
    """Reads the files of agents and runners; may be shared between threads. With `cache`, keeps what it has read."""

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
        from core.sources.adapters.contract import find_folders
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
        """Return what was found when `read_all` was called, after a wait for files that are torn; None before."""
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
        """Return how the runner of a loop can be given a context; None if only hooks reach it."""
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
        from core.sources.adapters.contract import find_folders
        from core.sources.adapters.runner_files import RunnerFiles

        folders = find_folders(self._project.project, os.environ, has_home=self._settings.sources.home)
        return RunnerFiles(folders, "agents")
