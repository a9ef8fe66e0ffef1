"""Compare all files of a project with its index, in a process of its own that no agent waits for."""

from __future__ import annotations

import os
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.agents.hooks.detached import start_detached
from core.base.errors import RalphdeckError, Unwritable
from core.files.file_access import file_lock
from core.files.user_files import cache_path

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_NICE: Final = 10
_LOCK: Final = "sweep.lock"


def start_sweep(project: ProjectPaths) -> None:
    """Start the process and do not wait for it; it ends at once if another one is at work."""
    with suppress(OSError):
        start_detached("core.agents.hooks.sweep", project)


def is_first_load(project: ProjectPaths) -> bool:
    """Return whether the process makes the index of the project now, before which a hook would read all files."""
    import sqlite3  # imported on use: few events look for this

    from core.index.database import read_existing
    from core.index.records import Reader
    from core.index.snapshot import COMPLETE, TEXTS

    with suppress(RalphdeckError, sqlite3.Error, ValueError):
        connection = read_existing(project.project)
        if connection is not None:
            with closing(connection):
                reader = Reader(connection, {})
                if reader.meta(COMPLETE) is not None and reader.meta(TEXTS) is not None:
                    return False
    try:
        with file_lock(cache_path(project.project, _LOCK), 0):
            return False
    except Unwritable:
        return True


def run(folder: str) -> None:
    """Bring the index of the project in a folder up to date, and check its pages, unless another process does it.

    It also does what no change waits for: without the weights that are fitted to past tasks, each hook fits them anew.
    """
    from core.base.paths import ProjectPaths
    from core.base.steps import run_all
    from core.index.anchors import check_in_steps
    from core.index.refresh import Index
    from core.index.verdicts import IndexVerdicts
    from core.questions.question_search import ROOMS, verdict_settings
    from core.sources.configuration import Configuration

    project = ProjectPaths(Path(folder))
    with file_lock(cache_path(project.project, _LOCK), 0):
        settings = Configuration.read(project).settings
        index = Index(project, settings, clock=lambda: datetime.now(UTC))
        index.load()
        while not index.settle()[0]:
            pass
        index.check_pages()
        if settings.review.check_anchors:
            stored = IndexVerdicts(index, ROOMS, verdict_settings(settings))
            run_all(check_in_steps(index.snapshot, stored))


if __name__ == "__main__":
    os.nice(_NICE)
    with suppress(RalphdeckError, OSError):  # the process has no output; a later event starts it again
        run(sys.argv[1])
