"""Options and lookups for work items, including those of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from core.base.errors import BadInput
from core.base.formatting import shorten_id
from core.base.text import plural
from core.base.validation import suggest_id
from core.cli.render.output import line, percent, warn
from core.cli.support.id_completion import complete_work
from core.cli.support.options import MOMENT, Decorated
from core.cli.support.project import now
from core.decisions.case import change
from core.learning.maturity import Assessment
from core.records.times import iso

if TYPE_CHECKING:
    from core.decisions.use_counts import CountResult
    from core.index.project_state import ProjectState

Effect = tuple[Assessment, Assessment]  # The assessments of one pattern before a report and after it.

work_argument = click.argument("work", metavar="WORK", shell_complete=complete_work)
success_option = click.option("--success", is_flag=True, help="It succeeded.")
failure_option = click.option("--failure", is_flag=True, help="It failed.")


at_option = click.option("--at", type=MOMENT, metavar="TIME", help="Time in ISO-8601. Default: now.")


def result_options(command: Decorated) -> Decorated:
    """Add `--success` and `--failure`; see `parse_result`."""
    return success_option(failure_option(command))


def parse_result(success: bool, failure: bool) -> bool | None:
    """Return the result given by the two flags; None if neither is set."""
    if success and failure:
        raise click.UsageError("give either --success or --failure")
    return success if success or failure else None


def require_past(at: datetime | None) -> datetime:
    """Return the time of a recorded event; raises UsageError for a future time."""
    present = now()
    if at is not None and at > present:
        raise click.UsageError(f"--at is in the future: {iso(at)}")
    return at or present


def find_work(state: ProjectState, name: str, warnings: list[str]) -> str:
    """Find the ID of a work item; warn about an unknown ID, and accept it.

    Raises UnknownRecord if the name matches several loops or is empty, BadInput if it has control characters.
    """
    loops = state.snapshot.loops.values()
    # A mere part of an ID is not enough here: another tool may use it as an ID.
    if (
        not name.strip()
        or name in state.snapshot.attempts
        or any(name in loop.aliases or loop.id.startswith(name) for loop in loops)
    ):
        return state.work_id(name)
    if not name.isprintable():
        raise BadInput(f"ID {shorten_id(name)} has control characters")
    known = [*state.snapshot.loops, *state.snapshot.attempts]
    warnings.append(
        f"no loop or attempt {shorten_id(name)}; treated as a work item of another tool{suggest_id(name, known)}"
    )
    return name


def print_effects(effects: Sequence[Effect]) -> None:
    """Print the change of state of each pattern, one per line."""
    for before, after in effects:
        pinned = f" (pinned; by rule {change(before.computed, after.computed)})" if after.pin is not None else ""
        sums = f"helpful {after.helpful:.2f}, harmful {after.harmful:.2f}"
        line((after.pattern_id, "bold"), f": {change(before.state, after.state)}{pinned}, {sums}")
        if after.inversion_due and not before.inversion_due:
            line(f"  its inversion is proposed now; see: ralphdeck pattern invert {after.pattern_id}")


def print_recorded_counts(records: Sequence[CountResult]) -> None:
    """Print a line for each updated record, and a warning for each failed one."""
    for counted in records:
        if counted.problem:
            warn(f"the record of {counted.pattern_id} is not up to date: {counted.problem}")
            continue
        results = counted.successes + counted.failures
        rate = f"{percent(counted.successes / results)} ({counted.successes:,}/{results:,}), " if results else ""
        if not counted.is_changed:
            line(f"  its record: nothing changed, {rate}{plural(counted.uses, 'use')}")
            continue
        line(f"  updated its record: {rate}{plural(counted.uses, 'use')}, in {counted.file}")
