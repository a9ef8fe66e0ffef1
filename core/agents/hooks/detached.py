"""Starts the work of `core.agents.hooks.background` in a process of its own, for which no agent waits."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


def start_background(project: ProjectPaths) -> None:
    """Start the process for sessions and do not wait for it; OSError if it cannot be started."""
    start_detached("sessions", project)


def start_sweep(project: ProjectPaths) -> None:
    """Start the process that compares all files and do not wait for it; it ends at once if another one is at work."""
    with suppress(OSError):
        start_detached("sweep", project)


def start_detached(work: str, project: ProjectPaths) -> None:
    """Start the work for the folder of a project; `-P` prevents imports from that folder."""
    import subprocess  # takes 2 ms to import, and most events start no process

    subprocess.Popen(
        [sys.executable, "-P", "-m", "core.agents.hooks.background", work, str(project.project)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
