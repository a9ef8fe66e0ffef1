"""Contexts and known fixes for a session; these read the whole project."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from core.hooks.sessions import Given
from core.project.reader import ProjectReader
from core.records.debug_sessions import Failure
from core.retrieval.rendering import count_tokens
from core.sources.configuration import Configuration
from core.state.contexts import prepare_delivery
from core.state.findings import ledger_error

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.hooks.events import FailedCall

_Reader = TypeVar("_Reader", bound=ProjectReader)

MAX_FIX_TOKENS: Final = 300  # size of the answer to a failed tool call


def open_reader(project: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> ProjectReader:
    """Load a project to read it, without the imports for decisions."""
    return load_project(ProjectReader, project, agent, clock)


def load_project(kind: type[_Reader], project: ProjectPaths, agent: str, clock: Callable[[], datetime]) -> _Reader:
    """Load a project; what it records is signed with the name of the agent."""
    found = Configuration.read(project).with_registry(project)
    opened = kind(project, found.settings, by=agent, clock=clock, findings=found.findings, asks=False)
    opened.agent = agent
    opened.load()
    return opened


def prompt_context(project: ProjectReader, prompt: str) -> Given:
    """Return the context for a prompt; empty if nothing fits or the decisions cannot be read."""
    if not prompt or ledger_error(project.view):
        return Given()
    given = prepare_delivery(project.view, prompt)
    return Given(given.context, list(given.pattern_ids), list(given.reflection_ids))


def known_fix(project: ProjectReader, call: FailedCall, has_given: Collection[str] = ()) -> Given:
    """Return the known fix for a failed tool call, at most `MAX_FIX_TOKENS`; empty if there is none.

    It is also empty if all that is known are patterns that the agent was given, whose IDs are `has_given`.
    """
    from core.project.debug_hooks import on_failure

    failures = find_failures(call, str(project.project.project))
    if not failures or ledger_error(project.view):
        return Given()
    for count in (2, 1):
        advice = on_failure(project.view, *failures, most=count, only_same=True)
        if not advice.fixes and all(pattern.id in has_given for pattern, _ in advice.patterns):
            return Given()
        if count_tokens(advice.text) <= MAX_FIX_TOKENS:
            return Given(context=advice.text, patterns=[pattern.id for pattern, _ in advice.patterns])
    return Given()


def find_failures(call: FailedCall, root: str) -> list[Failure]:
    """Find the errors in the error text and the output of a failed tool call."""
    from core.debug_memory.command_errors import find_command_errors
    from core.episodes.log_summary import pick_error_line

    found = find_command_errors(call.error, call.output, root)
    return list(found) or [Failure(message=pick_error_line(call.error, call.output))]
