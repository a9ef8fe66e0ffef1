"""The context of the active loop of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.agents.hooks.contexts import load_project, open_state
from core.index.contexts import prepare_delivery
from core.index.evidence import find_inputs
from core.index.experiment import make_assignments
from core.index.findings import ledger_error
from core.records.events import INJECTED_REFLECTION

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from core.base.paths import ProjectPaths

_INJECTED: Final = ("injected", INJECTED_REFLECTION)


def loop_context(paths: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> str:
    """Return the context of the only active loop in `.aiwg` and record it; "" if there is none."""
    state = open_state(paths, clock)
    loops = state.own_active_loops
    if len(loops) != 1 or not loops[0].task.strip() or ledger_error(state):
        return ""
    given = prepare_delivery(state, loops[0].task)
    events = find_inputs(state.snapshot, state.settings.learning).about_work(loops[0].id)
    known = {event.pattern_id or event.reflection_id for event in events if event.kind in _INJECTED}
    assigned = make_assignments(state, given.task, given.assigned, loops[0].id, agent, clock())
    if assigned or not known.issuperset((*given.pattern_ids, *given.reflection_ids)):
        project = load_project(paths, agent, clock)  # takes as long as all the rest
        project.assign(loops[0].id, given.task, given.assigned)
        project.inject(loops[0].id, given)
    return given.context
