"""`ralphdeck bursts`: sources that blame many patterns at once, and whether their marks count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from core.base.errors import UnknownRecord
from core.base.formatting import short_id
from core.cli.commands.decisions import print_decided
from core.cli.json.learning import burst_json
from core.cli.json.shapes import json_help
from core.cli.render.output import Column, end, findings_json, line, minute, print_json, print_table, remark
from core.cli.support.id_completion import complete_work
from core.cli.support.options import deciding_options, strict_option
from core.cli.support.project import open_deck
from core.curation.commands import CountReports, DiscardReports
from core.learning.bursts import Burst, known_time
from core.state.findings import all_findings


@click.command(epilog=json_help("review suspicious"))
@click.argument("source", required=False, shell_complete=complete_work)
@click.option("--revoke", is_flag=True, help="Let none of its marks count.")
@click.option("--confirm", is_flag=True, help="Let its marks count.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
@strict_option
def suspicious(
    source: str | None, revoke: bool, confirm: bool, reason: str, by: str | None, as_json: bool, strict: bool
) -> None:
    """Review sources that blame many patterns within a short time: their harmful marks are held until then.

    Without a verdict: list what is held, the largest first. A SOURCE is a loop, an attempt, or "by NAME".

    \b
    Examples:
      ralphdeck bursts
      ralphdeck bursts ralph-fix-auth-a1b2c3d4 --revoke --reason "it never read them"
    """
    if revoke and confirm:
        raise click.UsageError("give either --revoke or --confirm")
    if (revoke or confirm) and source is None:
        raise click.UsageError("a verdict needs the SOURCE of a burst")
    deck = open_deck(by)
    if source is not None and (revoke or confirm):
        verdict = DiscardReports if revoke else CountReports
        print_decided(deck.decide(verdict(source=source, reason=reason)), as_json)
        return
    view = deck.view
    found = [burst for burst in view.board.bursts if source in {None, burst.source}]
    if source is not None and not found:
        raise UnknownRecord(f"no burst of {short_id(source)} waits for a verdict; see: ralphdeck bursts")
    if as_json:
        print_json({"bursts": [burst_json(burst) for burst in found], "findings": findings_json(all_findings(view))})
    else:
        _print(found)
        for burst in found if source is not None else ():
            for pattern_id in burst.patterns:
                line(f"  {pattern_id}")
    end(all_findings(view), strict=strict)


def _print(found: Sequence[Burst]) -> None:
    columns = (
        Column("SOURCE"),
        Column("PATTERNS", right=True),
        Column("NEVER APPLIED", right=True),
        Column("FROM (UTC)"),
        Column("TO (UTC)"),
    )
    print_table(
        columns,
        ((b.source, str(len(b.patterns)), str(b.never_applied), _minute(b.first), _minute(b.last)) for b in found),
    )
    if not found:
        remark("no harmful marks are held")


def _minute(at: datetime) -> str:
    return minute(at) if known_time(at) else ""
