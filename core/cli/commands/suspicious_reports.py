"""`ralphdeck review suspicious`: sources with many harmful reports at once."""

from __future__ import annotations

import click

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.cli.commands.decisions import print_decided
from core.cli.json import objects
from core.cli.render.output import Column, id_column, line, minute, print_table, respond
from core.cli.support.id_completion import complete_work
from core.cli.support.options import ReviewingCommand, reason_option
from core.cli.support.project import open_project
from core.curation.commands import CountReports, DiscardReports
from core.learning.bursts import known_time
from core.state.findings import all_findings

COLUMNS = (
    id_column("SOURCE", lambda burst: burst.source),
    Column("PATTERNS", lambda burst: str(len(burst.patterns)), right=True),
    Column("NEVER APPLIED", lambda burst: str(burst.never_applied), right=True, expendable=1),
    Column("FROM (UTC)", lambda burst: minute(known_time(burst.first))),
    Column("TO (UTC)", lambda burst: minute(known_time(burst.last)), expendable=2),
)


@click.command(cls=ReviewingCommand)
@click.argument("source", required=False, shell_complete=complete_work)
@click.option("--revoke", is_flag=True, help="Discard all its reports.")
@click.option("--confirm", is_flag=True, help="Count its reports.")
@reason_option
def suspicious(source: str | None, revoke: bool, confirm: bool, reason: str) -> None:
    """Review sources that report many patterns as harmful within a short time. Their reports are held until then.

    Without a decision: list them, largest first. A SOURCE is a loop, an attempt, or "by NAME".

    \b
    Examples:
      ralphdeck review suspicious
      ralphdeck review suspicious ralph-fix-auth-a1b2c3d4 --revoke --reason "it never read them"
    """
    if revoke and confirm:
        raise click.UsageError("give either --revoke or --confirm")
    if (revoke or confirm) and source is None:
        raise click.UsageError("a decision needs the SOURCE of the reports")
    project = open_project()
    if source is not None and (revoke or confirm):
        verdict = DiscardReports if revoke else CountReports
        print_decided(project.decide(verdict(source=source, reason=reason)))
        return
    state = project.view
    found = [burst for burst in state.board.bursts if source in {None, burst.source}]
    if source is not None and not found:
        raise UnknownRecord(f"no suspicious reports of {shorten_id(source)}; see: ralphdeck review suspicious")

    def show() -> None:
        print_table(COLUMNS, found, "no suspicious reports")
        for burst in found if source is not None else ():
            for pattern_id in burst.patterns:
                line(f"  {pattern_id}")

    respond(
        lambda: objects.BurstList.of(
            bursts=[objects.Burst.of(one, first=known_time(one.first), last=known_time(one.last)) for one in found],
            findings=all_findings(state),
        ),
        show,
        all_findings(state),
    )
