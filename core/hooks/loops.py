"""Projects that a hook opens to record or to decide, and the loop that is active in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.hooks.contexts import load_project
from core.project.project import Project
from core.records.loops import Liveness, Loop
from core.state.contexts import prepare_task_injection
from core.state.findings import ledger_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from core.config.paths import ProjectPaths


def open_project(project: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> Project:
    """Load a project; what it records is signed with the name of the agent."""
    return load_project(Project, project, agent, clock)


def active_loop(project: ProjectReader) -> Loop | None:
    """Return the loop that runs now, if there is exactly one with recent activity."""
    running = [loop for loop in project.view.snapshot.loops.values() if loop.status.active]
    active = [loop for loop in running if loop.liveness is not Liveness.STALE]
    return active[0] if len(active) == 1 else None


def loop_context(project: Project) -> str:
    """Return the context of the only active loop and record it; "" if there is none."""
    loop = active_loop(project)
    if loop is None or not loop.task.strip() or ledger_error(project.view):
        return ""
    injection = prepare_task_injection(project.view, loop.task)
    if injection.context:
        project.inject(loop.id, injection)
    return injection.context
