"""The task of a command, and the task memory of the chosen project."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from shlex import quote
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import ProjectNotFound
from core.base.paths import BEGIN_COMMAND, is_folder
from core.cli.render.output import warn
from core.cli.support.project import chosen_project, now

if TYPE_CHECKING:
    from core.cli.support.options import Decorated
    from core.tasks.protocol import Episodes


class _TaskId(click.types.StringParamType):
    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return "Name the task, or set RALPHDECK_TASK."


class _TaskArgument(click.Argument):
    """An argument that the environment may replace."""

    def make_metavar(self, ctx: click.Context) -> str:
        return "[TASK]"

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return "'TASK'"


task_argument: Final = click.argument("task_id", cls=_TaskArgument, type=_TaskId(), envvar="RALPHDECK_TASK")
"""The task; an agent may set it once for all of its hooks."""


def milestone_options(command: Decorated) -> Decorated:
    """Add `--milestone` and `--milestone-details`; see `join_milestones`."""
    details = click.option(
        "--milestone-details",
        metavar="TEXT",
        multiple=True,
        help="Details of the milestone that was given at the same position.",
    )
    milestone = click.option(
        "--milestone", "milestones", metavar="TEXT", multiple=True, help="A milestone; may be repeated."
    )
    return milestone(details(command))


def join_milestones(events: Sequence[str], details: Sequence[str]) -> list[dict[str, str]]:
    """Return milestones with their details; raises UsageError for details without a milestone."""
    if len(details) > len(events):
        raise click.UsageError("--milestone-details needs a --milestone")
    return [{"event": event, "details": text} for event, text in zip_longest(events, details, fillvalue="")]


def open_task_memory(*, may_create: bool = False) -> Episodes:
    """Open the task memory of the chosen project.

    With `may_create` it is created in a folder without `.aiwg`, if `--project` names the folder. Raises ProjectNotFound
    if there is no project or no task memory; the message explains how to create one.
    """
    from core.tasks.protocol import Episodes

    project = chosen_project()
    if not may_create and not is_folder(project.aiwg):
        raise ProjectNotFound(
            f"no .aiwg in {project.project}; begin with: {BEGIN_COMMAND} {quote(str(project.project))}"
        )
    return Episodes(project, clock=now, warn=warn)
