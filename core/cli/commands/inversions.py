"""`ralphdeck pattern invert`: patterns that should become warnings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from core.base.errors import Refused
from core.cli.commands.decisions import print_decided, print_warnings
from core.cli.render.output import line, remark, respond, warn
from core.cli.support.dry_run import dry_run_option, forecast_decision
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import ReviewingCommand, reason_option
from core.cli.support.project import now, open_project
from core.curation.commands import AcceptInversion, Command, RejectInversion, Snooze
from core.learning.inversion_rules import Inversion
from core.project.project import Project
from core.state.findings import all_findings

MAX_DAYS = 3650
"""Longest snooze."""


@click.command(cls=ReviewingCommand)
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--accept", is_flag=True, help="Make it an anti-pattern; the original is deprecated.")
@click.option("--text", metavar="REWRITE", help="Accept, with this text instead of the proposed one.")
@click.option("--reject", is_flag=True, help="Do not invert it; asked again after more failures.")
@click.option("--snooze", type=click.IntRange(1, MAX_DAYS), metavar="DAYS", help="Ask again after this many days.")
@click.option("--auto", is_flag=True, help="Accept all proposals.")
@reason_option
@dry_run_option
def invert(
    pattern_id: str | None,
    accept: bool,
    text: str | None,
    reject: bool,
    snooze: int | None,
    auto: bool,
    reason: str,
    dry_run: bool,
) -> None:
    """Review the patterns that fail so often that they should become warnings.

    Without a decision: list the proposals, most urgent first. A pattern with a proposal is not injected.

    \b
    Examples:
      ralphdeck pattern invert
      ralphdeck pattern invert pat-success-split-by-type-002 --accept --dry-run
      ralphdeck pattern invert pat-success-split-by-type-002 --accept
      ralphdeck pattern invert pat-success-split-by-type-002 --text "AVOID: splitting by type before the types compile"
      ralphdeck pattern invert --auto --json
    """
    choices = [accept or text is not None, reject, snooze is not None]
    if sum(choices) + auto > 1:
        raise click.UsageError("give only one of --accept (or --text), --reject, --snooze and --auto")
    if any(choices) and pattern_id is None:
        raise click.UsageError("a decision needs the ID of a pattern")
    if dry_run and not any(choices):
        raise click.UsageError("--dry-run needs --accept, --reject or --snooze")
    if auto and pattern_id is not None:
        raise click.UsageError("--auto accepts all proposals; leave out the ID")
    project = open_project()
    if auto:
        _accept_all(project, reason)
        return
    if pattern_id is None or not any(choices):
        _list(project, _proposals(project, pattern_id))
        return
    known = project.view.find_pattern(pattern_id).id
    command: Command
    if reject:
        command = RejectInversion(known, reason=reason)
    elif snooze is not None:
        command = Snooze(known, until=now() + timedelta(days=snooze), reason=reason)
    else:
        command = AcceptInversion(known, text=text, reason=reason)
    if dry_run:
        forecast_decision(project, command)
    else:
        print_decided(project.decide(command))


def _proposals(project: Project, pattern_id: str | None) -> list[Inversion]:
    proposals = [item.inversion for item in project.view.queue if item.inversion is not None]
    if pattern_id is None:
        return proposals
    wanted = project.view.find_pattern(pattern_id).id
    found = [proposal for proposal in proposals if proposal.pattern_id == wanted]
    if not found:
        raise Refused(f"{wanted} is not due for inversion; see: ralphdeck pattern why {wanted}")
    return found


def _list(project: Project, proposals: Sequence[Inversion]) -> None:
    def show() -> None:
        for proposal in proposals:
            line((proposal.pattern_id, "bold"), f"  {proposal.reason}")
            line(f"  would become: {proposal.text}")
            line(f"  failure mode: {proposal.failure_mode}. {proposal.why_it_fails}")
            if proposal.better_pattern_id:
                line(f"  instead: {proposal.better_pattern_id} {proposal.better_alternative}")
            for lint in proposal.lint:
                line((f"  ! {lint}", "yellow"))
        if not proposals:
            remark("no pattern is due for inversion")

    respond("InversionList", show, all_findings(project.view), proposals=proposals)


def _accept_all(project: Project, reason: str) -> None:
    """Accept all proposals, those with a wording problem too; see docs/scoring.md#inversion."""
    made = []
    for proposal in _proposals(project, None):
        for lint in proposal.lint:
            warn(f"{proposal.pattern_id}: {lint}")
        made.append(project.decide(AcceptInversion(proposal.pattern_id, reason=reason)))
        print_warnings(made[-1])

    def show() -> None:
        for decided in made:
            line(decided.summary)
        if not made:
            remark("no pattern is due for inversion")

    respond("DecidedEach", show, decisions=made)
