"""Compare all files of a project with its index, in a process of its own that no agent waits for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from core.hooks.detached import start_detached
from core.storage.file_access import file_lock
from core.storage.user_files import cache_path

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

_NICE: Final = 10


def start_sweep(project: ProjectPaths) -> None:
    """Start the process and do not wait for it; it ends at once if another one is at work."""
    with suppress(OSError):
        start_detached("core.hooks.sweep", project)


def run(folder: str) -> None:
    """Bring the index of the project in a folder up to date, and check its pages, unless another process does it.

    It also does what no change waits for: without the weights that are fitted to past tasks, each hook fits them anew.
    """
    from core.config.paths import ProjectPaths
    from core.index.refresh import Index
    from core.sources.configuration import Configuration

    project = ProjectPaths(Path(folder))
    with file_lock(cache_path(project.project, "sweep.lock"), 0):
        index = Index(project, Configuration.read(project).settings, clock=lambda: datetime.now(UTC))
        index.load()
        while not index.settle()[0]:
            pass
        index.check_pages()


if __name__ == "__main__":
    os.nice(_NICE)
    with suppress(RalphdeckError, OSError):  # the process has no output; a later event starts it again
        run(sys.argv[1])
