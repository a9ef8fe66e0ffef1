"""`ralphdeck changes`: what changed between two moments, or would with other thresholds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import click

from core.cli.commands.what_if import complete_threshold, list_thresholds, try_thresholds
from core.cli.json import analysis as analysis_json
from core.cli.render.document import print_document
from core.cli.render.output import end, minute, print_json, remark, wants_json
from core.cli.support.as_of import PastMoment, remark_undated
from core.cli.support.options import ReadingCommand, choose_mode
from core.cli.support.project import chosen_project, open_project

LAST_VISIT: Final = "last-visit"
DEFAULT_SINCE: Final = timedelta(days=7)  # How far `changes` looks back without a last visit.
MAX_ROWS: Final = 20  # Rows of each table without --all.


class _Since(PastMoment):
    """A past moment, or the last visit, which depends on the project."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == LAST_VISIT else super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"DATE|7d|{LAST_VISIT}"


_PERIOD: Final = "since until is_complete"


@click.command(cls=ReadingCommand)
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1, shell_complete=complete_threshold)
@click.option("--thresholds", is_flag=True, help="List the thresholds and their values.")
@click.option(
    "--since",
    type=_Since(end_of_day=False),
    help=f"Start; a day starts at midnight UTC. Default: {LAST_VISIT}, else 7d.",
)
@click.option("--until", type=PastMoment(end_of_day=True), help="End; a day counts to its end. Default: now.")
@click.option("--all", "is_complete", is_flag=True, help=f"All rows, not only the first {MAX_ROWS} of each table.")
def changes(
    values: tuple[str, ...],
    thresholds: bool,
    since: datetime | str | None,
    until: datetime | None,
    is_complete: bool,
) -> None:
    """Show what changed between two moments: patterns, decisions, loops and questions.

    Both moments are scored from what was known then, with the present thresholds. The last visit is when the dashboard
    was last open on this project; one in the last half hour goes on.

    With NAME=VALUE, replays the history with other thresholds: shows which patterns would change state or be inverted,
    and how the weights of evaluation criteria would change. Nothing is written. Pins are ignored, so the numbers of
    states differ from other lists. The group before the dot may be left out if the name is unique.

    \b
    Examples:
      ralphdeck changes
      ralphdeck changes --since 2026-11-01 --until 2026-11-15
      ralphdeck changes --since 36h --json | jq -r '.patterns[].id'
      ralphdeck changes maturity.half_life_days=30
      ralphdeck changes deprecation_threshold=20% min_helpful=3 --json
    """
    mode = choose_mode({"NAME=VALUE": "", "--thresholds": "", "": _PERIOD})
    if mode:
        if thresholds:
            list_thresholds()
        else:
            try_thresholds(values)
        return
    from core.cli.support.user_files import last_visit
    from core.index.findings import all_findings
    from core.project.as_of import build_past_state
    from core.show.comparison import compare_states, comparison_document

    state = open_project().view
    start = since if isinstance(since, datetime) else last_visit(chosen_project().project, state.now)
    if since == LAST_VISIT and start is None:
        raise click.UsageError("the dashboard was not open on this project before; use --since 7d or a date")
    start = start or state.now - DEFAULT_SINCE
    until = min(until or state.now, state.now)
    if start >= until:
        raise click.UsageError(f"{minute(start)} is not before {minute(until)}")
    before = build_past_state(state, start)
    found = compare_states(before, build_past_state(state, until))

    if wants_json():
        states = [(state, count, found.states_after[state]) for state, count in found.states_before.items()]
        print_json(analysis_json.ChangesDocument.of(found, results=found, states=states, findings=all_findings(before)))
    else:
        print_document(comparison_document(found, state, None if is_complete else MAX_ROWS))
        if not is_complete and found.longest > MAX_ROWS:
            remark("all rows: ralphdeck changes --all")
        remark_undated(all_findings(before))
    end(all_findings(before))
