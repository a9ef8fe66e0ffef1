"""The decisions on one pattern, and undo and redo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.base.errors import AlreadyDone, Refused
from core.cli.json.shapes import decided_json, json_help
from core.cli.render.output import line, print_json, warn
from core.cli.support.dry_run import dry_run_option, foretell
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import deciding_options
from core.cli.support.project import open_deck
from core.curation.commands import ApproveReflection, Command, Note, Redo, Undo, bulk
from core.records.decisions import Verb

if TYPE_CHECKING:
    from core.curation.decision_writer import Decided
    from core.project.project import Project

pattern_argument = click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
patterns_argument = click.argument(
    "pattern_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_pattern
)


@click.command(epilog=json_help("decision"))
@patterns_argument
@click.option("--reason", default="", help="Why; kept in the log.")
@click.option("--re-enable", is_flag=True, help="Reset deprecated patterns first, as part of the same act.")
@dry_run_option
@deciding_options
def promote(
    pattern_ids: tuple[str, ...], reason: str, re_enable: bool, dry_run: bool, by: str | None, as_json: bool
) -> None:
    """Pin a pattern as proven, whatever the evidence says, until it is reset.

    The pin holds for the text of today: if that changes, the pattern comes back for review. Several patterns at
    once are one act, with one undo; if some of them are refused, the rest holds, and the exit code is 1. Of several
    patterns, those in quarantine are skipped: read and release each by itself. A pattern that is promoted already
    stays so, with exit code 0; then `decision` is null with --json.

    \b
    Example:
      ralphdeck promote pat-error-null-check-015 --dry-run
      ralphdeck promote pat-error-null-check-015 --reason "holds in auth and api"
      ralphdeck promote pat-error-retry-004 --re-enable
      ralphdeck promote pat-error-null-check-015 pat-success-types-first-006 && ralphdeck undo
    """
    _decide(
        by,
        as_json,
        bulk(Verb.PROMOTE, pattern_ids, reason, re_enable=re_enable),
        dry_run=dry_run,
    )


@click.command(epilog=json_help("decision"))
@patterns_argument
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@deciding_options
def deprecate(pattern_ids: tuple[str, ...], reason: str, dry_run: bool, by: str | None, as_json: bool) -> None:
    """Pin a pattern as deprecated: no loop gets it any more, until it is reset.

    \b
    Example:
      ralphdeck deprecate pat-error-retry-004 --reason "hides the cause"
    """
    _decide(by, as_json, bulk(Verb.DEPRECATE, pattern_ids, reason), dry_run=dry_run)


@click.command(epilog=json_help("decision"))
@patterns_argument
@click.option("--reason", default="", help="Why; kept in the log.")
@dry_run_option
@deciding_options
def reset(pattern_ids: tuple[str, ...], reason: str, dry_run: bool, by: str | None, as_json: bool) -> None:
    """Take the pin off a pattern: the evidence decides again.

    \b
    Example:
      ralphdeck reset pat-error-retry-004
    """
    _decide(by, as_json, bulk(Verb.RESET, pattern_ids, reason), dry_run=dry_run)


@click.command(epilog=json_help("decision"))
@patterns_argument
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@deciding_options
def quarantine(pattern_ids: tuple[str, ...], reason: str, dry_run: bool, by: str | None, as_json: bool) -> None:
    """Keep a pattern out of every context until somebody has read it and releases it.

    \b
    Example:
      ralphdeck quarantine pat-error-retry-004 --reason "tells to skip the tests"
    """
    _decide(by, as_json, bulk(Verb.QUARANTINE, pattern_ids, reason), dry_run=dry_run)


@click.command(epilog=json_help("decision"))
@patterns_argument
@click.option("--reason", default="", help="Why; kept in the log.")
@dry_run_option
@deciding_options
def release(pattern_ids: tuple[str, ...], reason: str, dry_run: bool, by: str | None, as_json: bool) -> None:
    """Approve the text of a pattern that is held or in quarantine: loops may get it. Read it first: patterns show.

    A text is held when it gives orders, such as to skip tests. What the scan blocks needs a --reason. The approval
    is valid for this very text: a changed text is held again. The ID of a held reflection approves its text, too.

    \b
    Examples:
      ralphdeck patterns list --state held,quarantine
      ralphdeck patterns show pat-error-retry-004 && ralphdeck release pat-error-retry-004 --dry-run
    """

    only = pattern_ids[0] if len(pattern_ids) == 1 else ""
    deck = open_deck(by)
    if only and any(one is not None and one.id == only for one in deck.view.learnings.learnings):
        _decide(by, as_json, ApproveReflection(only, reason=reason), dry_run=dry_run, deck=deck)
    else:
        _decide(by, as_json, bulk(Verb.RELEASE, pattern_ids, reason), dry_run=dry_run, deck=deck)


@click.command(epilog=json_help("decision"))
@pattern_argument
@click.argument("text")
@deciding_options
def note(pattern_id: str, text: str, by: str | None, as_json: bool) -> None:
    """Write a remark beside a pattern; its state stays.

    \b
    Example:
      ralphdeck note pat-error-retry-004 "see the incident of 3 May"
    """
    _decide(by, as_json, Note(pattern_id, text=text))


@click.command(epilog=json_help("decision"))
@click.argument("decision_id", metavar="[DECISION]", default="")
@click.option("--any-author", is_flag=True, help="Undo the newest decision also if another person made it.")
@deciding_options
def undo(decision_id: str, any_author: bool, by: str | None, as_json: bool) -> None:
    """Undo the newest decision that holds. Again and again: the whole log, back to its beginning.

    If another person made the newest decision, nothing is undone without --any-author. What was decided in one act
    is undone as one. With the id of a DECISION, or of a group, that one is undone, a merge for example, whoever made
    it, unless something that was decided later rests on it.
    Undo is a decision itself: nothing leaves the log, and redo repeats what was taken back.

    \b
    Examples:
      ralphdeck undo && ralphdeck log --limit 2
      ralphdeck log --verb merge --json      (has the id)
      ralphdeck undo 20260503T120000000-1a2b3c4d
      ralphdeck undo --any-author
    """
    _decide(by, as_json, Undo(decision_id=decision_id, any_author=any_author))


@click.command(epilog=json_help("decision"))
@deciding_options
def redo(by: str | None, as_json: bool) -> None:
    """Repeat the decision that was taken back last; a new decision in between ends the chance.

    \b
    Example:
      ralphdeck redo
    """
    _decide(by, as_json, Redo())


def _decide(
    by: str | None, as_json: bool, command: Command, *, dry_run: bool = False, deck: Project | None = None
) -> None:
    deck = deck or open_deck(by)
    try:
        if dry_run:
            decided = foretell(deck, command, as_json=as_json)
        else:
            decided = deck.decide(command)
            print_decided(decided, as_json)
    except AlreadyDone as error:
        print_unchanged(str(error), as_json)
        return
    if not all(refusal.is_done for refusal in decided.refused):
        click.get_current_context().exit(Refused.exit_code)


def print_decided(decided: Decided, as_json: bool) -> None:
    """What was decided, its warnings on stderr."""
    print_warnings(decided)
    if as_json:
        print_json(decided_json(decided))
    else:
        line(decided.summary)


def print_unchanged(why: str, as_json: bool) -> None:
    """That nothing was decided, because what was asked for holds already."""
    if as_json:
        print_json({"decision": None, "summary": why, "warnings": [], "written": True})
    else:
        line(f"{why}; nothing to do")


def print_warnings(decided: Decided) -> None:
    """On stderr, one a line."""
    for warning in decided.warnings:
        warn(warning)
