"""The context of the active loop of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.hooks.contexts import load_project, open_state
from core.state.contexts import prepare_delivery
from core.state.findings import ledger_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from core.config.paths import ProjectPaths


def loop_context(paths: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> str:
    """Return the context of the only active loop in `.aiwg` and record it; "" if there is none."""
    state = open_state(paths, clock)
    loops = state.own_active_loops
    if len(loops) != 1 or not loops[0].task.strip() or ledger_error(state):
        return ""
    given = prepare_delivery(state, loops[0].task)
    if given.context:
        load_project(paths, agent, clock).inject(loops[0].id, given)
    return given.context
