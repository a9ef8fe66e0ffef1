"""`ralphdeck team sync` and `team status`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.cli.json import loops as loops_json
from core.cli.json import setup as setup_json
from core.cli.render.output import Column, line, print_json, print_object, print_table, remark, wants_json, warn
from core.cli.support.options import Command, DecidingCommand, OneOf
from core.cli.support.project import open_project
from core.cli.support.team import (
    check_writable,
    describe_preview,
    find_joined_project,
    open_team,
    require_joined,
    show_conflicts,
    show_cycle,
    withdrawn_members,
)
from core.records.times import parse_time

if TYPE_CHECKING:
    from core.project.project import Project
    from core.records.team import HeldUses, Member, PooledTrials, SpaceInfo, TeamProject
    from core.team.consent import Joined


@click.command("sync", cls=DecidingCommand)
@click.option("--dry-run", is_flag=True, help="Print exactly what would be sent, and send nothing.")
@click.option("--follow", is_flag=True, help="Continue until interrupted.")
@click.option(
    "--prefer",
    type=OneOf(["local", "team"]),
    help="Where texts differ, take the local ones or those of the team.",
)
def sync(dry_run: bool, follow: bool, prefer: str | None) -> None:
    """Send what is new here, and receive what is new in the space.

    What was interrupted is completed by the next sync; nothing is counted twice. With --prefer, the text that is
    replaced remains in the decision log. --dry-run needs neither a server nor a joined project.

    \b
    Examples:
      ralphdeck team sync
      ralphdeck team sync --dry-run --json
      ralphdeck team sync --prefer team
    """
    from core.team.sync import Prefer

    if follow and (dry_run or prefer):
        raise click.UsageError("give --follow alone")
    if dry_run:
        _preview()
        return
    check_writable()
    joined, project = require_joined(), open_project()
    if follow:
        _follow(project, joined)
        return
    with open_team(project, joined) as team, closing(team.open_space()) as space:
        cycle = team.sync(space, Prefer(prefer) if prefer else None)
    if wants_json():
        print_object(setup_json.TeamSync, cycle, space=joined.space)
    else:
        show_cycle(cycle)


def _preview() -> None:
    from tempfile import TemporaryDirectory

    from core.team.consent import Joined

    joined = find_joined_project()
    project = open_project()
    with TemporaryDirectory(prefix="ralphdeck-") as folder:
        file = None if joined is not None else Path(folder) / "state.db"
        known = joined or Joined(space="", source="", id=uuid4(), name="")
        with open_team(project, known, file) as team:
            preview = team.preview()

    if wants_json():
        print_object(setup_json.TeamPreview, preview)
    else:
        for text in preview.patterns:
            line(f"pattern   {text.pattern_id}")
        for decision in preview.decisions:
            line(f"decision  {visible_line(decision, 200)}")
        for use in preview.uses:
            end = "withdrawn" if use.withdraws else {True: "helped", False: "did not help", None: use.kind}[use.success]
            line(
                f"use       {use.pattern_id}  {use.at:%Y-%m-%d %H:%M}  {end}"
                if use.at
                else f"use  {use.pattern_id}  {end}"
            )
        for trial in preview.trials:
            arm = "held out" if trial.is_held_out else "given"
            line(f"trial     {trial.pattern_id}  {arm}  {'' if trial.outcome else 'not '}{trial.kind}")
        for masked in preview.masked:
            remark(f"masked in {masked.pattern_id} {masked.pointer}: {masked.kind}")
        line(f"would send {describe_preview(preview)}; with --json, this prints every byte of it")


def _follow(project: Project, joined: Joined) -> None:
    """Watch the project and its space until interrupted; prints each change of the connection."""
    from core.cli.support.daemon import run_until_signal
    from core.project.watch_loop import Daemon, WatchEvent

    as_json = wants_json()

    def report(event: WatchEvent) -> None:
        if as_json:
            print_json(loops_json.WatchLine.of(event), one_line=True)
        else:
            line(f"{event.at:%H:%M:%S}  {event.text}")

    daemon = Daemon(project, report, extract=False, prune=False)
    run_until_signal(daemon)


@click.command("status", cls=Command)
@click.option("--verify", is_flag=True, help="Check the hash chain of all decisions of the space.")
def status(verify: bool) -> None:
    """Show the space, your level in it, what is not sent yet, and texts that differ.

    Without a connection, shows since when the project is offline. Exits with 3 if --verify finds a change.

    \b
    Examples:
      ralphdeck team status
      ralphdeck team status --verify --json
    """
    from core.cli.commands.experiment import pools_json, print_pools
    from core.team.errors import ChainBroken
    from core.team.follow import MOST_POOLED, stored_status
    from core.team.local_state import LAST_SYNC
    from core.team.verification import first_head, verify_space

    joined, project = require_joined(), open_project()
    problem = broken = ""
    space: SpaceInfo | None = None
    members: tuple[Member, ...] = ()
    projects: tuple[TeamProject, ...] = ()
    held: tuple[HeldUses, ...] = ()
    pools: tuple[PooledTrials, ...] = ()
    verified: int | None = None
    with open_team(project, joined) as team:
        to_send, conflicts = team.collect(), tuple(team.state.conflicts())
        last_sync, last = team.state.fact(LAST_SYNC), stored_status(team.state)
        try:
            with closing(team.open_space()) as opened:
                space, members, projects = opened.info, opened.members(), opened.projects()
                held, pools = opened.held_uses(), opened.pooled_trials(MOST_POOLED)
                if verify:
                    verified = verify_space(opened, team.state.received_head() or first_head(space.id))
        except ChainBroken as error:
            broken = str(error)
        except RalphdeckError as error:
            problem = str(error)
    withdrawn = withdrawn_members(project.ledger.state(), project.ledger.decisions())
    since = last.offline_since if last is not None and problem else None

    if wants_json():
        print_object(
            setup_json.TeamStatus,
            space=joined.space,
            member=space.member if space else (last.member if last else ""),
            level=space.level if space else (last.level if last else ""),
            online=space is not None,
            offline_since=since,
            problem=problem or broken,
            last_sync=last_sync,
            to_send=to_send,
            conflicts=list(conflicts),
            decisions=verified,
            members=list(members),
            projects=list(projects),
            held=list(held),
            withdrawn=withdrawn,
            trials=pools_json(pools),
        )
    else:
        if space is not None:
            line(f"Space      {visible_line(space.name)}, as {visible_line(space.member)}, {space.level}")
        else:
            line(
                f"Space      {visible_line(joined.space)}, offline"
                + (f" since {since:%Y-%m-%d %H:%M} UTC" if since else "")
            )
            warn(visible_line(problem, 300))
        synced = parse_time(last_sync or None)
        line(f"Last sync  {synced:%Y-%m-%d %H:%M} UTC" if synced is not None else "Last sync  never")
        line(f"To send    {plural(to_send, 'change')}" if to_send else "To send    nothing")
        if verified is not None:
            line(f"Decisions  {verified:,}, in the order and with the content in which the server recorded them")
        if broken:
            warn(visible_line(broken, 300))
        print_table(_MEMBERS, [one for one in members if one.level is not None])
        for one in projects:
            joined_by = visible_line(one.joined_by)
            line(f"Project    {visible_line(one.name)}, {plural(one.uses, 'use')}, joined by {joined_by}")
        for uses in held:
            count = plural(uses.successes + uses.failures, "result")
            line(f"Held       {count} of {visible_line(uses.member)}; see: ralphdeck review --suspicious")
        print_pools(pools)
        for removed in (member for member in members if member.level is None):
            state = "withdrawn" if removed.name in withdrawn else "kept; to withdraw it, give team member --withdraw"
            line(f"Removed    {visible_line(removed.name)}, role {visible_line(removed.role)}; what it sent is {state}")
        show_conflicts(conflicts)
    if broken:
        click.get_current_context().exit(3)


_MEMBERS = (
    Column("MEMBER", lambda one: one.name),
    Column("ROLE", lambda one: one.role),
    Column("LEVEL", lambda one: one.level.value),
)
