"""Contexts and known fixes for a session or active loop, from the whole project.

The texts are made below: contexts in `core.index.contexts`, known fixes in `core.project.error_advice`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.agents.hooks.deadline import start_sweep
from core.agents.hooks.sessions import Given
from core.index.contexts import prepare_delivery
from core.index.evidence import find_inputs
from core.index.experiment import make_assignments
from core.index.project_state import ledger_error
from core.project.kept_project import open_quick_state
from core.records.events import INJECTED_REFLECTION
from core.retrieval.rendering import count_tokens
from core.sources.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from core.agents.hooks.events import FailedCall
    from core.base.paths import ProjectPaths
    from core.index.project_state import ProjectState
    from core.learning.experiments import Assignment, Coin
    from core.project.project import Project


MAX_FIX_TOKENS: Final = 300  # size of the answer to a failed tool call


def open_state(project: ProjectPaths, clock: Callable[[], datetime]) -> ProjectState | None:
    """Return the state of a project; None if its decisions cannot be read.

    Decisions withhold texts. A comparison with all files begins in the background if the last one is old.
    """
    settings = Configuration.read(project).settings  # those in the registry are about pruning alone
    state, is_sweep_due = open_quick_state(project, settings, clock)
    if is_sweep_due:
        start_sweep(project)
    return None if ledger_error(state) else state


def load_project(project: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> Project:
    """Load a project to record something, signed with the name of the agent."""
    from core.project.project import Project

    found = Configuration.read(project).with_registry(project)
    opened = Project(project, found.settings, by=agent, clock=clock, findings=found.findings, asks=False)
    opened.agent = agent
    opened.load()
    return opened


def prompt_context(state: ProjectState, prompt: str, coin: Coin | None = None) -> tuple[Given, Sequence[Assignment]]:
    """Return the context for a prompt, and what the coin of the task decided.

    The context is empty if nothing fits.
    """
    if not prompt:
        return Given(), ()
    given = prepare_delivery(state, prompt, coin=coin)
    tokens = state.count_tokens(given.pattern_ids)
    return Given(given.context, list(given.pattern_ids), list(given.reflection_ids), tokens), given.assigned


def known_fix(
    state: ProjectState,
    project: ProjectPaths,
    call: FailedCall,
    has_given: Collection[str] = (),
    coin: Coin | None = None,
) -> tuple[Given, Sequence[Assignment]]:
    """Return the known fix, at most `MAX_FIX_TOKENS`, and what the coin decided.

    The fix is empty if there is none, and if all that is known are patterns that the agent was given, whose IDs are
    `has_given`.
    """
    from core.project.error_advice import hold_out, on_failure
    from core.tasks.command_errors import find_failures

    failures = find_failures(call.error, call.output, str(project.project))
    for count in (2, 1):
        advice = on_failure(state, *failures, most=count, only_same=True)
        if not advice.fixes and all(pattern.id in has_given for pattern, _ in advice.patterns):
            return Given(), ()
        if count_tokens(advice.text) <= MAX_FIX_TOKENS:
            assigned = coin.assign_all(advice.patterns) if coin is not None else ()
            advice = hold_out(state, advice, [one.pattern_id for one in assigned if one.is_held_out])
            ids = [pattern.id for pattern, _ in advice.patterns]
            each = count_tokens(advice.text) // max(len(ids), 1)
            return Given(context=advice.text, patterns=ids, tokens=dict.fromkeys(ids, each)), assigned
    return Given(), ()


# The active loop of a project

_INJECTED: Final = ("injected", INJECTED_REFLECTION)


def loop_context(paths: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> str:
    """Return the context of the only active loop in `.aiwg` and record it, or ""."""
    state = open_state(paths, clock)
    loops = state.own_active_loops if state is not None else ()
    if state is None or len(loops) != 1 or not loops[0].task.strip():
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
