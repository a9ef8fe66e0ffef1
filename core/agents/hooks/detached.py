"""Processes that go on when a hook ends, because no agent waits for them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


def start_detached(module: str, project: ProjectPaths) -> None:
    """Run a module with the folder of a project, and do not wait for it; OSError if it cannot be started.

    `-P` prevents that Python imports modules from the folder of the project.
    """
    import subprocess  # takes 2 ms to import, and most events start no process

    subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(project.project)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
