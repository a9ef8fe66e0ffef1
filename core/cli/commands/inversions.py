"""`ralphdeck invert`: patterns that fail so often that they would serve better as warnings (2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from core.base.errors import Refused
from core.cli.commands.decisions import print_decided, print_warnings
from core.cli.json.shapes import decided_json, json_help, proposal_json
from core.cli.render.output import end, findings_json, line, print_json, remark, warn
from core.cli.support.dry_run import dry_run_option, foretell
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import deciding_options, strict_option
from core.cli.support.project import now, open_deck
from core.curation.commands import AcceptInversion, Command, RejectInversion, Snooze
from core.learning.inversion_proposals import Inversion
from core.project.project import Project
from core.state.findings import all_findings

MOST_DAYS = 3650
"""Longest snooze."""


@click.command(epilog=json_help("pattern invert"))
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--accept", is_flag=True, help="Make it an anti-pattern; the original is deprecated.")
@click.option("--text", metavar="REWRITE", help="Accept, with these words instead of the proposed ones.")
@click.option("--reject", is_flag=True, help="Keep it; it comes back after some further failures.")
@click.option("--snooze", type=click.IntRange(1, MOST_DAYS), metavar="DAYS", help="Ask again after so many days.")
@click.option("--auto", is_flag=True, help="Accept every proposal, without a person.")
@click.option("--reason", default="", help="Why; kept in the log.")
@dry_run_option
@deciding_options
@strict_option
def invert(
    pattern_id: str | None,
    accept: bool,
    text: str | None,
    reject: bool,
    snooze: int | None,
    auto: bool,
    reason: str,
    dry_run: bool,
    by: str | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Review the patterns that fail so often that they should become warnings.

    Without a verdict: list the proposals, the most urgent first. While one waits, its pattern is not injected.

    \b
    Examples:
      ralphdeck invert
      ralphdeck invert pat-success-split-by-type-002 --accept --dry-run
      ralphdeck invert pat-success-split-by-type-002 --accept
      ralphdeck invert pat-success-split-by-type-002 --text "AVOID: splitting by type before the types compile"
      ralphdeck invert --auto --json
    """
    verdicts = [accept or text is not None, reject, snooze is not None]
    if sum(verdicts) + auto > 1:
        raise click.UsageError("give one verdict: --accept (or --text), --reject, --snooze or --auto")
    if any(verdicts) and pattern_id is None:
        raise click.UsageError("a verdict needs the ID of a pattern")
    if dry_run and not any(verdicts):
        raise click.UsageError("--dry-run tells what one verdict would change: give --accept, --reject or --snooze")
    if auto and pattern_id is not None:
        raise click.UsageError("--auto accepts every proposal and takes no ID")
    deck = open_deck(by)
    if auto:
        _accept_all(deck, reason, as_json)
    elif pattern_id is not None and any(verdicts):
        _verdict(deck, _command(pattern_id, reject, snooze, text, reason), dry_run, as_json)
    else:
        _list(deck, _proposals(deck, pattern_id), as_json)
        end(all_findings(deck.view), strict=strict)


def _verdict(deck: Project, command: Command, dry_run: bool, as_json: bool) -> None:
    if dry_run:
        foretell(deck, command, as_json=as_json)
    else:
        print_decided(deck.decide(command), as_json)


def _command(pattern_id: str, reject: bool, snooze: int | None, text: str | None, reason: str) -> Command:
    if reject:
        return RejectInversion(pattern_id, reason=reason)
    if snooze is not None:
        return Snooze(pattern_id, until=now() + timedelta(days=snooze), reason=reason)
    return AcceptInversion(pattern_id, text=text, reason=reason)


def _proposals(deck: Project, pattern_id: str | None) -> list[Inversion]:
    proposals = [item.inversion for item in deck.view.queue if item.inversion is not None]
    if pattern_id is None:
        return proposals
    wanted = deck.view.pattern(pattern_id).id
    found = [proposal for proposal in proposals if proposal.pattern_id == wanted]
    if not found:
        raise Refused(f"{wanted} is not due for inversion; see: ralphdeck why {wanted}")
    return found


def _list(deck: Project, proposals: Sequence[Inversion], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "proposals": [proposal_json(proposal) for proposal in proposals],
                "findings": findings_json(all_findings(deck.view)),
            }
        )
        return
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


def _accept_all(deck: Project, reason: str, as_json: bool) -> None:
    """(2) inverts as soon as the threshold is reached; a text that reads wrong is inverted all the same."""
    decisions = []
    for proposal in _proposals(deck, None):
        for lint in proposal.lint:
            warn(f"{proposal.pattern_id}: {lint}")
        decided = deck.decide(AcceptInversion(proposal.pattern_id, reason=reason))
        print_warnings(decided)
        decisions.append(decided)
        if not as_json:
            line(decided.summary)
    if as_json:
        print_json({"decisions": [decided_json(decided) for decided in decisions]})
    elif not decisions:
        remark("no pattern is due for inversion")
