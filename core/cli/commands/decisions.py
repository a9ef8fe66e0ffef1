"""Decisions on patterns, e.g. `ralphdeck pattern promote`; `undo`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import click

from core.base.errors import AlreadyDone, Proposed, Refused, UnknownRecord
from core.cli.render.output import end, line, print_json, print_object, remark, wants_json, warn
from core.cli.support.dry_run import dry_run_option, forecast_decision
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import DecidingCommand, ReviewingCommand, WholeNumber, choose_mode, reason_option
from core.cli.support.project import now, open_project
from core.decisions.commands import (
    AcceptInversion,
    ApproveReflection,
    Command,
    Note,
    Redo,
    RejectInversion,
    Snooze,
    Undo,
    bulk,
)
from core.records.decisions import Verb

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.decisions.case import Decided
    from core.learning.inversion import Inversion
    from core.project.project import Project

MAX_DAYS = 3650  # Longest snooze.
pattern_argument = click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
patterns_argument = click.argument(
    "pattern_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_pattern
)
required_reason_option = click.option("--reason", required=True, help="Why; saved in the decision log.")


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@click.option("--re-enable", is_flag=True, help="Reset deprecated patterns first, as part of the same decision.")
@dry_run_option
def promote(pattern_ids: tuple[str, ...], reason: str, re_enable: bool, dry_run: bool) -> None:
    """Pin patterns as proven, independent of the evidence, until they are reset.

    The pin applies to the current text: if the text changes, Review asks again. Several patterns are promoted together,
    with one undo. Those in quarantine are skipped: read and release each of them first. If a pattern is refused, the
    others are promoted, and the exit code is 1. If a pattern is already promoted, nothing changes, the exit code is 0,
    and `decision` is null with --json.

    \b
    Examples:
      ralphdeck pattern promote pat-error-null-check-015 --dry-run
      ralphdeck pattern promote pat-error-null-check-015 --reason "holds in auth and api"
      ralphdeck pattern promote pat-error-retry-004 --re-enable
      ralphdeck pattern promote pat-error-null-check-015 pat-success-types-first-006 && ralphdeck undo
    """
    decide_patterns(Verb.PROMOTE, pattern_ids, reason, dry_run, re_enable=re_enable)


@click.command(cls=DecidingCommand)
@patterns_argument
@required_reason_option
@dry_run_option
def deprecate(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Pin patterns as deprecated: agents are not given them until they are reset.

    \b
    Example:
      ralphdeck pattern deprecate pat-error-retry-004 --reason "hides the cause"
    """
    decide_patterns(Verb.DEPRECATE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@dry_run_option
def reset(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Remove the pin of patterns: the evidence decides their state again.

    \b
    Example:
      ralphdeck pattern reset pat-error-retry-004
    """
    decide_patterns(Verb.RESET, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@required_reason_option
@dry_run_option
def quarantine(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Keep patterns out of every context until a person releases them.

    \b
    Example:
      ralphdeck pattern quarantine pat-error-retry-004 --reason "it skips the tests"
    """
    decide_patterns(Verb.QUARANTINE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@dry_run_option
def release(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Approve the text of patterns that are held or in quarantine. Read it first: pattern show.

    A text is held when it gives orders, such as to skip tests. A text that the scan blocks needs a --reason. The
    approval applies to the current text: if the text changes, it is held again. ID may also be a held reflection.

    A pattern that the rules deprecate is given again as established, until it is reset.

    \b
    Examples:
      ralphdeck pattern list --state held,quarantine
      ralphdeck pattern show pat-error-retry-004 && ralphdeck pattern release pat-error-retry-004 --dry-run
    """
    project = open_project(asks=dry_run)
    only = pattern_ids[0] if len(pattern_ids) == 1 else ""
    if only and project.view.learnings.find(only) is not None:
        decide(project, ApproveReflection(only, reason=reason), dry_run=dry_run)
    else:
        decide_patterns(Verb.RELEASE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@pattern_argument
@click.argument("text")
def note(pattern_id: str, text: str) -> None:
    """Add a note to a pattern; its state does not change.

    \b
    Example:
      ralphdeck pattern note pat-error-retry-004 "see the incident of 3 May"
    """
    project = open_project(asks=False)
    decide(project, Note(project.view.find_pattern(pattern_id).id, text=text))


@click.command(cls=DecidingCommand)
@click.argument("decision_id", metavar="[DECISION]", default="")
@click.option("--any-author", is_flag=True, help="Undo the newest decision even if another person made it.")
@click.option("--redo", is_flag=True, help="Repeat the decision that was undone last; not possible after another one.")
def undo(decision_id: str, any_author: bool, redo: bool) -> None:
    """Undo the newest decision in effect. Repeated calls undo the whole decision log.

    Another person's decision is undone only with --any-author, or if its ID is given. Decisions that were made together
    are undone together. DECISION is the ID of an older decision or group, such as a merge; it is undone unless a later
    decision depends on it. Undo is a decision too: nothing is removed from the log, and --redo repeats what was undone.

    \b
    Examples:
      ralphdeck undo && ralphdeck log --limit 2
      ralphdeck log --verb merge --json      (prints the ID)
      ralphdeck undo 20260503T120000000-1a2b3c4d
      ralphdeck undo --any-author
      ralphdeck undo --redo
    """
    if choose_mode({"--redo": "", "": "decision_id any_author"}):
        decide(open_project(asks=False), Redo())
        return
    decide(open_project(asks=False), Undo(decision_id=decision_id, any_author=any_author))


def decide_patterns(
    verb: Verb, pattern_ids: tuple[str, ...], reason: str, dry_run: bool, *, re_enable: bool = False
) -> None:
    project = open_project(asks=dry_run)  # a dry run also lists the loops of agents that get another context
    known = [_resolve(project, one, required=len(pattern_ids) == 1) for one in pattern_ids]
    fields = {"re_enable": re_enable} if verb is Verb.PROMOTE else {}
    decide(project, bulk(verb, known, reason, **fields), dry_run=dry_run)


def _resolve(project: Project, pattern_id: str, *, required: bool) -> str:
    """Resolve a pattern ID; of several IDs an unknown one is returned, and refused later."""
    try:
        return project.view.find_pattern(pattern_id).id
    except UnknownRecord:
        if required:
            raise
        return pattern_id


def decide(project: Project, command: Command, *, dry_run: bool = False) -> None:
    """Make a decision and print it; exit with 1 if it was refused for some patterns."""
    try:
        if dry_run:
            decided = forecast_decision(project, command)
        else:
            decided = project.decide(command)
            print_decided(decided)
    except AlreadyDone as error:
        print_unchanged(str(error))
        return
    except Proposed as error:
        _print_proposed(str(error))
        return
    if not all(refusal.is_done for refusal in decided.refused):
        click.get_current_context().exit(Refused.exit_code)


def print_decided(decided: Decided) -> None:
    warn(*decided.warnings)
    if wants_json():
        print_json(decided_json(decided))
    else:
        line(decided.summary)


def decided_json(decided: Decided) -> Wire:

    from core.cli.json import decisions as decisions_json

    return (decisions_json.DecidedTogether if decided.group or decided.refused else decisions_json.Decided).of(decided)


class _Unchanged(NamedTuple):
    """A decision that was not made."""

    summary: str
    decision: None = None
    warnings: tuple[str, ...] = ()
    written: bool = False


def decide_each(project: Project, commands: Iterable[Command], empty: str = "") -> None:
    """Make and print decisions, each with its own undo; without any, print `empty`."""

    made: list[Decided | _Unchanged] = []
    for command in commands:
        try:
            made.append(project.decide(command))
        except Proposed as error:
            made.append(_Unchanged(str(error)))
    for decided in made:
        warn(*decided.warnings)

    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.DecidedEach, decisions=made)
    else:
        for decided in made:
            line(decided.summary)
        if not made:
            remark(empty)


def print_unchanged(why: str) -> None:
    """Print that nothing was decided, because nothing would change."""
    _print_undecided(why, f"{why}; nothing changed")


def _print_proposed(what: str) -> None:
    """Print that the decision of an agent waits for a person."""
    _print_undecided(what, what)


def _print_undecided(summary: str, text: str) -> None:

    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.Decided, decision=None, summary=summary, warnings=[], written=False)
    else:
        line(text)


@click.command(cls=ReviewingCommand)
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--accept", is_flag=True, help="Write an anti-pattern and deprecate the original.")
@click.option("--text", metavar="REWRITE", help="Accept, with this text instead of the proposed one.")
@click.option("--reject", is_flag=True, help="Do not invert it; Review asks again after more failures.")
@click.option("--snooze", type=WholeNumber(1, MAX_DAYS), metavar="DAYS", help="Ask again after this many days.")
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

    Without --accept, --text, --reject, --snooze or --auto, the proposals are listed, most urgent first. A pattern with
    a proposal is not injected.

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
    if reason and not (auto or any(choices)):
        raise click.UsageError("--reason needs --accept, --text, --reject, --snooze or --auto")
    if auto and pattern_id is not None:
        raise click.UsageError("--auto accepts all proposals; leave out the ID")
    project = open_project()
    if auto:
        _accept_all(project, reason)
        return
    if pattern_id is None or not any(choices):
        _list_proposals(project, _proposals(project, pattern_id))
        return
    known = project.view.find_pattern(pattern_id).id
    command: Command
    if reject:
        command = RejectInversion(known, reason=reason)
    elif snooze is not None:
        command = Snooze(known, until=now() + timedelta(days=snooze), reason=reason)
    else:
        command = AcceptInversion(known, text=text, reason=reason)
    decide(project, command, dry_run=dry_run)


def _proposals(project: Project, pattern_id: str | None) -> list[Inversion]:
    proposals = [item.inversion for item in project.view.queue if item.inversion is not None]
    if pattern_id is None:
        return proposals
    wanted = project.view.find_pattern(pattern_id).id
    found = [proposal for proposal in proposals if proposal.pattern_id == wanted]
    if not found:
        raise Refused(f"{wanted} is not due for inversion; see: ralphdeck pattern show {wanted} --why")
    return found


def _list_proposals(project: Project, proposals: Sequence[Inversion]) -> None:
    from core.index.project_state import all_findings

    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(patterns_json.InversionList, findings=all_findings(project.view), proposals=proposals)
    else:
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
    end(all_findings(project.view))


def _accept_all(project: Project, reason: str) -> None:
    """Accept all proposals, even badly worded ones (docs/scoring.md#inversion)."""
    proposals = _proposals(project, None)
    for proposal in proposals:
        for lint in proposal.lint:
            warn(f"{proposal.pattern_id}: {lint}")
    commands = [AcceptInversion(proposal.pattern_id, reason=reason) for proposal in proposals]
    decide_each(project, commands, "no pattern is due for inversion")
