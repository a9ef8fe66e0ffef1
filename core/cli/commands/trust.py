"""`ralphdeck trust`: decide whether agents get what a project contains."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.agents.agent_table import find_acting_agent
from core.base.errors import BadInput, ReadOnly, Refused
from core.base.paths import TRUSTED_PATHS, is_in_trusted_path
from core.base.pattern_titles import pattern_title
from core.base.text import plural, visible_line
from core.base.user_settings import read_user_settings
from core.cli.json import decisions as decisions_json
from core.cli.render.output import Column, id_column, line, minute, print_object, print_table, remark, wants_json
from core.cli.support.options import Command
from core.cli.support.project import (
    is_readonly,
    named_project,
    open_project,
    require_records,
    warn_of_user_settings,
)
from core.cli.support.signature import is_at_terminal
from core.cli.support.trust import describe_trust
from core.decisions.case import about_text, verb_text
from core.show.pages.signs import reason_text
from core.trust.projects import find_answer

if TYPE_CHECKING:
    from core.project.project import Project
    from core.project.trust import Arrivals
    from core.trust.projects import TrustedProject

_TRUST, _CONFIRM, _DECLINE, _LATER = "t", "c", "d", "l"


@click.command(cls=Command)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--show", "is_shown", is_flag=True, help="Only show what the project brings from elsewhere.")
@click.option("--revoke", is_flag=True, help="Trust the project no more.")
@click.option("--confirm", metavar="ID,...", help="Confirm decisions made elsewhere: their IDs, or all.")
@click.option("--yes", is_flag=True, help="Trust without a question.")
def trust(path: Path | None, is_shown: bool, revoke: bool, confirm: str | None, yes: bool) -> None:
    """Decide whether agents get the lessons of a project, and whose decisions count.

    A repository can contain lessons, numbers and decisions that you did not write. Until you trust the project, hooks,
    the MCP server and `loop inject` give nothing from it; you can look at everything. `init`, `connect` in the project
    and `team join` trust it, too. Decisions made elsewhere have no effect until you confirm them. What arrives later
    by git is asked about again. The answer is stored in your own state folder, never in the project. See
    docs/safety.md#origin.

    \b
    Examples:
      ralphdeck trust                  show what this project brings, and ask
      ralphdeck trust ~/src/shop --show
      ralphdeck trust --yes --confirm all
      ralphdeck trust --revoke
    """
    if [is_shown, revoke, bool(confirm or yes)].count(True) > 1:
        raise click.UsageError("give only one of --show, --revoke, and --yes or --confirm")
    if path is not None:
        if named_project() is not None:
            raise click.UsageError("give either PATH or --project")
        from core.cli.invocation import invocation

        invocation().project = path
    from core.project import trust as answers

    if not is_shown and (agent := find_acting_agent(os.environ)):
        raise Refused(f"{agent} cannot decide whom you trust; run this command in a terminal of your own")
    warn_of_user_settings()
    if not is_shown and not is_at_terminal() and read_user_settings().decisions.scripts == "none":
        raise Refused("decisions.scripts is none in your settings, so a script cannot decide whom you trust")
    require_records()
    project = open_project(asks=False)
    arrivals = answers.find_arrivals(project)
    answer = find_answer(project.project)
    if is_shown:
        _report(project, arrivals, answer, "")
        return
    if is_readonly():
        raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
    if revoke:
        done = "trust revoked" if answers.revoke(project) else "was not trusted"
        if is_in_trusted_path(project.project.project):
            done = f"{done}, but ${TRUSTED_PATHS} names a folder above it, so it is trusted"
        _report(project, arrivals, find_answer(project.project), done, is_done=True)
        return
    if confirm is not None and not yes and not arrivals.is_trusted:
        raise Refused("this project is not trusted; to trust it and confirm decisions: --yes --confirm")
    chosen = _chosen_ids(arrivals, confirm)
    if not yes and confirm is None:
        if not arrivals:
            _report(project, arrivals, answer, "nothing to decide", is_done=True)
            return
        choice = _ask(project, arrivals)
        if choice == _LATER:
            return
        if choice == _DECLINE:
            answers.decline(project)
            _report(project, arrivals, find_answer(project.project), "declined", is_done=True)
            return
        chosen = None if choice == _CONFIRM else []
    _accept(project, arrivals, chosen)


def _accept(project: Project, arrivals: Arrivals, chosen: list[str] | None) -> None:
    """Trust the project, and confirm the decisions with the IDs `chosen`, or all."""
    from core.project import trust as answers

    answers.trust(project, "question")
    answers.confirm(project, chosen, approves=is_at_terminal())
    project.apply_pending()
    claims = project.view.snapshot.curation.claims
    wanted = [one.id for one in arrivals.decisions if chosen is None or one.id in chosen]
    confirmed = [id for id in wanted if id not in claims]
    text = "trusted" + (f", {plural(len(confirmed), 'decision')} confirmed" if confirmed else "")
    _report(project, arrivals, find_answer(project.project), text, is_done=True)
    if left := len(wanted) - len(confirmed):
        remark(f"{plural(left, 'decision')} about held or blocked texts: confirm them yourself, at a terminal")


def _chosen_ids(arrivals: Arrivals, confirm: str | None) -> list[str] | None:
    """Return the IDs of the decisions to confirm; None for all."""
    if confirm is None:
        return []
    known = [one.id for one in arrivals.decisions]
    if confirm == "all":
        return None
    named = [name.strip() for name in confirm.split(",") if name.strip()]
    found = [id for name in named for id in known if id.startswith(name)]
    for name in named:
        if (count := sum(id.startswith(name) for id in known)) != 1:
            several = f"{count:,} unconfirmed decisions have" if count else "no unconfirmed decision has"
            raise Refused(f"{several} an ID that begins with {visible_line(name, 80)!r}")
    if not named:
        raise BadInput("--confirm needs IDs of decisions, or all")
    return found


def _ask(project: Project, arrivals: Arrivals) -> str:
    """Show what the project brings, and return the choice of the user."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("there is no terminal to ask on; look with --show, then trust with --yes")
    _print_arrivals(project, arrivals)
    choices = [(_LATER, "later")]
    if not arrivals.is_trusted:
        choices.insert(0, (_DECLINE, "never"))
    if arrivals.decisions:
        choices.insert(0, (_CONFIRM, "yes, and confirm the decisions"))
    if arrivals.patterns or not arrivals.is_trusted:
        choices.insert(0, (_TRUST, "accept the lessons" if arrivals.is_trusted else "trust"))
    words = ", ".join(f"{key} = {what}" for key, what in choices)
    question = "Accept what came from elsewhere" if arrivals.is_trusted else "Trust this project"
    return str(click.prompt(f"{question}? ({words})", type=click.Choice([key for key, _ in choices]), default="l"))


def _report(
    project: Project, arrivals: Arrivals, answer: TrustedProject | None, done: str, *, is_done: bool = False
) -> None:
    folder = project.project.project

    if wants_json():
        print_object(
            decisions_json.TrustDocument,
            arrivals,
            project=str(folder),
            trusted=answer.answer == "trusted" if answer is not None else is_in_trusted_path(folder),
            since=answer.since if answer is not None else None,
            how=answer.how if answer is not None else None,
            done=done or None,
            decisions=(
                decisions_json.LoggedDecision.of(one, undone=False, elsewhere=True) for one in arrivals.decisions
            ),
        )
    elif is_done:
        line(f"{visible_line(str(folder), 300)}: {done}")
    else:
        _print_arrivals(project, arrivals)
        later = "; for what arrived since then: ralphdeck trust" if arrivals.is_trusted and arrivals else ""
        line(f"{describe_trust(project.project)}{later}")


_MAX_SHOWN = 20


def _print_arrivals(project: Project, arrivals: Arrivals) -> None:
    state = project.view
    line((f"{'Not accepted yet' if arrivals.is_trusted else 'This repository brings'}: {arrivals.summary}", "bold"))
    if arrivals.patterns:
        marks = {name: mark for mark in ("claimed", "held", "blocked") for name in getattr(arrivals, mark)}
        order = sorted(arrivals.patterns, key=lambda name: (name not in arrivals.blocked, name not in arrivals.held))
        columns = (
            Column("MARK", lambda name: marks.get(name, ""), colours={"blocked": "red", "held": "yellow"}),
            id_column("LESSON", lambda name: name),
            Column("TITLE", lambda name: pattern_title(state.snapshot.patterns[name]), free=True),
        )
        print_table(columns, order[:_MAX_SHOWN], "")
        _print_rest(len(order), "lessons", "ralphdeck pattern list")
    if arrivals.decisions:
        known = {one.id: one for one in state.snapshot.decisions}
        decided = (
            Column("AT (UTC)", lambda one: minute(one.at)),
            Column("BY", lambda one: one.by),
            Column("MARK", lambda one: "stopped" if one.id in arrivals.releases else "", colours={"stopped": "red"}),
            Column("DECISION", verb_text),
            id_column("SUBJECT", lambda one: about_text(one, known)),
            Column("REASON", reason_text, free=True),
        )
        print_table(decided, arrivals.decisions[-_MAX_SHOWN:], "")
        _print_rest(len(arrivals.decisions), "decisions", "ralphdeck log")
        for subject in dict.fromkeys(one.subject for one in arrivals.decisions if one.id in arrivals.releases):
            text = visible_line(state.snapshot.patterns[subject].description, 200)
            line((f"Confirming releases a text that the scan stops, {visible_line(subject, 80)}: {text}", "red"))


def _print_rest(count: int, what: str, command: str) -> None:
    if count > _MAX_SHOWN:
        remark(f"{count - _MAX_SHOWN:,} more {what}; see: {command}")
