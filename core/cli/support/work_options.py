"""Loops and attempts on the command line, called WORK: find it, its time and its result."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from core.base.errors import BadInput, UnknownRecord
from core.base.formatting import short_id
from core.cli.render.output import line
from core.cli.support.options import Decorated, Moment
from core.cli.support.project import now
from core.curation.case import change
from core.learning.assessment import Assessment
from core.records.times import iso
from core.state.project_state import ProjectState

Effect = tuple[Assessment, Assessment]
"""What is known of one pattern before something was recorded, and after it."""


def result_options(command: Decorated) -> Decorated:
    """`--success` and `--failure`; see `result_of`."""
    failure = click.option("--failure", is_flag=True, help="It went badly.")
    return click.option("--success", is_flag=True, help="It went well.")(failure(command))


def at_option(command: Decorated) -> Decorated:
    """`--at TIME`; see `time_of`."""
    return click.option("--at", type=Moment(), metavar="TIME", help="When, ISO-8601. Default: now.")(command)


def result_of(success: bool, failure: bool) -> bool | None:
    """What the two flags say together; None without one."""
    if success and failure:
        raise click.UsageError("give either --success or --failure")
    return success if success or failure else None


def time_of(at: datetime | None) -> datetime:
    """When something happened that is recorded now."""
    present = now()
    if at is not None and at > present:
        raise click.UsageError(f"--at lies in the future: {iso(at)}")
    return at or present


def find_work(view: ProjectState, name: str, warnings: list[str]) -> str:
    """ID of the loop or attempt that `name` refers to; work of another tool keeps its name, with a warning.

    Raises:
        UnknownRecord: It begins the ids of several loops, or is empty.
        BadInput: The ID has characters that cannot be shown.
    """
    try:
        return view.work_id(name)
    except UnknownRecord:
        if any(loop_id.startswith(name) for loop_id in view.snapshot.loops) or not name.strip():
            raise
    if not name.isprintable():
        raise BadInput(f"ID {short_id(name)} has characters that cannot be shown")
    warnings.append(f"no loop or attempt {short_id(name)} is known; recorded as work of another tool")
    return name


def print_effects(effects: Sequence[Effect]) -> None:
    """One line a pattern: what became of its state."""
    for before, after in effects:
        pinned = f" (pinned; by rule {change(before.computed, after.computed)})" if after.pin is not None else ""
        sums = f"helpful {after.helpful:.2f}, harmful {after.harmful:.2f}"
        line((after.pattern_id, "bold"), f": {change(before.state, after.state)}{pinned}, {sums}")
        if after.inversion_due and not before.inversion_due:
            line(f"  its inversion is proposed now; see: ralphdeck invert {after.pattern_id}")
