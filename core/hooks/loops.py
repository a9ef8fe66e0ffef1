"""Projects that a hook opens to record or to decide, and the context of their active loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.hooks.contexts import load_project
from core.project.project import Project
from core.state.contexts import prepare_delivery
from core.state.findings import ledger_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from core.config.paths import ProjectPaths


def open_project(project: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> Project:
    """Load a project; what it records is signed with the name of the agent."""
    return load_project(Project, project, agent, clock)


def loop_context(project: Project) -> str:
    """Return the context of the only active loop and record it; "" if there is none."""
    loops = project.view.active_loops
    if len(loops) != 1 or not loops[0].task.strip() or ledger_error(project.view):
        return ""
    loop = loops[0]
    given = prepare_delivery(project.view, loop.task)
    if given.context:
        project.inject(loop.id, given)
    return given.context
