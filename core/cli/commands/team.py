"""`ralphdeck team`: share patterns, decisions and evidence through PostgreSQL."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import click

from core.base.errors import BadInput, RalphdeckError, Refused
from core.base.text import plural, visible_line
from core.cli.json import loops as loops_json
from core.cli.json import setup as setup_json
from core.cli.support.options import Command, DecidingCommand, NumberRange, OneOf, choose_mode, reason_option
from core.cli.support.output import Column, line, print_json, print_object, print_table, remark, wants_json, warn
from core.cli.support.project import chosen_project, now, open_project
from core.cli.support.signature import find_user_name, trust_here
from core.cli.support.team import (
    check_writable,
    describe_preview,
    find_joined_project,
    open_team,
    require_joined,
    show_conflicts,
    show_cycle,
    withdraw_member,
    withdrawn_members,
)
from core.records.times import parse_time

if TYPE_CHECKING:
    from core.project.project import Project
    from core.records.team import HeldUses, Member, PooledTrials, SpaceInfo, TeamProject
    from core.team.connection import Joined
    from core.team.sync import Preview

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
LEVELS = ("reader", "contributor", "reviewer", "admin")
DEFAULT_SPACE = "team"
_JOIN_MODES = {
    "--create": "url service url_file space name half_life",
    "--leave": "",
    "": "url service url_file space project_name yes",
}


def server_options(command: _Decorated) -> _Decorated:
    """Add the argument and options for the address of the server."""
    for decorate in (
        click.option("--url-file", metavar="FILE", help="File with the URL; only you may be able to read it."),
        click.option("--service", metavar="NAME", help="Service of libpq, in ~/.pg_service.conf."),
        click.argument("url", required=False),
    ):
        command = decorate(command)
    return command


def _source(url: str | None, service: str | None, url_file: str | None) -> str:
    """Return where the address comes from; by default the environment."""
    from core.team.connection import FILE, FROM_ENVIRONMENT, SERVICE, URL_VARIABLE, require_psycopg, url_source

    if sum(one is not None for one in (url, service, url_file)) > 1:
        raise click.UsageError("give only one of URL, --service and --url-file")
    require_psycopg()
    if url is not None:
        return url_source(url)
    if service is not None:
        return SERVICE + service
    if url_file is not None:
        return FILE + str(Path(url_file).absolute())
    if not os.environ.get(URL_VARIABLE):
        raise click.UsageError(f"give the URL of the team's database, --service, --url-file, or ${URL_VARIABLE}")
    return FROM_ENVIRONMENT


def _conninfo(source: str) -> str:
    from core.team.connection import Joined

    return Joined(space="", source=source, id=uuid4(), name="").conninfo


def _create_space(source: str, space: str, name: str | None, half_life: float | None) -> None:
    """Prepare a PostgreSQL database for a team, and create a space in it."""
    from core.base.settings import Settings
    from core.cli.support.project import read_configuration
    from core.team.connection import connect, describe_server
    from core.team.migrations import latest_version, migrate, read_migrations
    from core.team.server import create_space, list_spaces

    try:
        settings = read_configuration().settings
    except RalphdeckError:  # there is no project here
        settings = Settings()
    conninfo = _conninfo(source)
    with closing(connect(conninfo, client_schema=latest_version())) as connection:
        applied = migrate(connection)
        is_new = space not in {row.name for row in list_spaces(connection)}
        if is_new:
            days = half_life if half_life is not None else settings.maturity.half_life_days
            create_space(connection, space, days, name or find_user_name(None, settings).by)
        joined = next(row for row in list_spaces(connection) if row.name == space)

    if wants_json():
        print_object(setup_json.TeamInit, joined, schema=latest_version(), created=is_new)
    else:
        if applied:
            done = "Created the schema in" if applied[0] == read_migrations()[0] else "Upgraded the schema in"
            line(f"{done} {describe_server(conninfo)}: version {latest_version()}")
        verb = "Created" if is_new else "Found"
        line(f"{verb} the space {visible_line(space)}; you are {visible_line(joined.member)}, {joined.level}")
        line("Next, in a project: ralphdeck team join URL; for others: ralphdeck team member ROLE --level reviewer")


@click.command("join", cls=DecidingCommand)
@server_options
@click.option(
    "--space",
    default="",
    metavar="NAME",
    help="Name of the space. Default: the only one that you belong to; with --create: team.",
)
@click.option("--project-name", metavar="NAME", help="Name that members see. Default: the name of the folder.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--create", is_flag=True, help="Do not join: prepare the database, and create a space in it.")
@click.option("--as", "name", metavar="NAME", help="With --create: your name. Default: that which signs decisions.")
@click.option(
    "--half-life", type=NumberRange(1, 36_500), metavar="DAYS", help="With --create. Default: that of the project."
)
@click.option("--leave", is_flag=True, help="Leave the team: nothing is sent or received any more.")
def join(
    url: str | None,
    service: str | None,
    url_file: str | None,
    space: str,
    project_name: str | None,
    yes: bool,
    create: bool,
    name: str | None,
    half_life: float | None,
    leave: bool,
) -> None:
    """Join this project to a team, and synchronize it once.

    Sends the patterns of this project, decisions about them, and how often they helped; never prompts, transcripts,
    paths or secrets. To see it before: ralphdeck team sync --dry-run. Where a pattern has another text in the space,
    nothing is overwritten. The URL is stored in your own configuration folder, never in the project.

    URL is that of a PostgreSQL database, without a password: libpq reads it from ~/.pgpass, PGPASSWORD or a service.
    With --create, its role must be able to create roles and schemas. Can be repeated: an older schema is upgraded, and
    a space that exists stays as it is. You become the first admin of a new space.

    After --leave all files of the project stay. What was sent stays in the space, because others have built on it; the
    owner of the database can delete the space.

    \b
    Examples:
      ralphdeck team join postgresql://ada@db.example/team --create
      ralphdeck team join postgresql://ada@db.example/team
      ralphdeck team join --url-file ~/.config/team-url --space backend --yes
      ralphdeck team join --leave
    """
    mode = choose_mode(_JOIN_MODES)
    check_writable()
    if mode == "--create":
        _create_space(_source(url, service, url_file), space or DEFAULT_SPACE, name, half_life)
    elif mode == "--leave":
        _leave()
    else:
        if (known := find_joined_project()) is not None:
            raise Refused(f"this project has joined the space {known.space}; to leave it: ralphdeck team join --leave")
        _join(_source(url, service, url_file), space, project_name, yes=yes)


def _join(source: str, space: str, project_name: str | None, *, yes: bool) -> None:
    from core.team.connection import Joined, save_joined
    from core.team.server import Space

    project = open_project()
    folder = project.project.project
    with closing(Space.connect(_conninfo(source), space)) as opened:
        name = project_name or folder.name or "project"
        joined = Joined(space=opened.info.name, source=source, id=uuid4(), name=name)
        with open_team(project, joined) as team:
            if not yes and not _confirm(opened.info, team.preview()):
                return
            save_joined(folder, joined)
            trust_here(project.project, "team join", now())
            cycle = team.sync(opened)

    if wants_json():
        print_object(setup_json.TeamSync, cycle, space=opened.info.name)
    else:
        info = opened.info
        line(f"Joined the space {visible_line(info.name)} as {visible_line(info.member)}, {info.level}")
        show_cycle(cycle)


def _confirm(info: SpaceInfo, preview: Preview) -> bool:
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        remark("Nothing was sent, because there is no terminal to ask on; to send: --yes")
        return False
    line(f"To be sent: {describe_preview(preview)}")
    if click.confirm(f"Join the space {visible_line(info.name)} as {visible_line(info.member)}, {info.level}?"):
        return True
    remark("Nothing was sent")
    return False


def _leave() -> None:
    """Leave the team; all files of the project stay."""
    from core.sources.team_evidence import TeamEvidenceWriter
    from core.team.connection import save_joined
    from core.team.follow import forget

    joined, project = require_joined(), chosen_project()
    save_joined(project.project, None)
    forget(project.project)
    TeamEvidenceWriter(project).remove()

    if wants_json():
        print_object(setup_json.TeamLeft, space=joined.space, at=now())
    else:
        line(f"Left the space {visible_line(joined.space)}")
        line("All patterns and decisions of this project stay; the evidence of other projects was removed from it")
        line("What was sent stays in the space: patterns, decisions and uses")


@click.command("member", cls=DecidingCommand)
@click.argument("role")
@click.option("--level", type=OneOf(LEVELS), help="What the member may do.")
@click.option("--name", metavar="NAME", help="Name that signs decisions. Default: the role.")
@click.option("--remove", is_flag=True, help="Remove the member; its decisions keep their name.")
@click.option(
    "--withdraw", is_flag=True, help="With --remove: also withdraw all uses and unread patterns of the member."
)
@click.option("--create-login", is_flag=True, help="Also create the database role; asks for a password.")
@reason_option
def member(
    role: str, level: str | None, name: str | None, remove: bool, withdraw: bool, create_login: bool, reason: str
) -> None:
    """Add a database role to the space, change its level, or remove it. Needs admin.

    \b
    reader        sees everything in the space, and changes nothing
    contributor   also sends uses and new candidates; for machines that only run loops
    reviewer      also decides: promote, deprecate, release, merge, archive
    admin         also manages the members

    What a removed member sent stays, unless --withdraw is given, also later: then none of its uses counts, and its
    patterns that no person has read are archived. `ralphdeck undo` reverses this, but not the removal.

    \b
    Examples:
      ralphdeck team member rita --level reviewer --create-login
      ralphdeck team member ci --level contributor --name "Build server"
      ralphdeck team member rita --remove
      ralphdeck team member ci --remove --withdraw --reason "made up results"
    """
    from core.records.team import Level
    from core.team.connection import require_psycopg
    from core.team.server import Space
    from core.team.server import create_login as create_role

    if remove == (level is not None):
        raise click.UsageError("give either --level or --remove")
    if withdraw and not remove:
        raise click.UsageError("give --withdraw with --remove")
    check_writable()
    require_psycopg()
    joined = require_joined()
    with closing(Space.connect(joined.conninfo, joined.space)) as space:
        known = next((one for one in space.members() if one.role == role), None)
        if remove and known is None:
            raise BadInput(f"{visible_line(role)} is not a member of the space {joined.space}")
        if create_login:
            password = click.prompt(f"Password of {visible_line(role)}", hide_input=True, confirmation_prompt=True)
            create_role(space.connection, role, password)
        new = Level(level) if level is not None else None
        shown = name or (known.name if known is not None else role)
        if known is None or known.level is not None or not withdraw:
            space.set_member(role, shown, new)
        why = reason or f"{shown} was removed from the team"
        decided = withdraw_member(space, joined, known.name, why) if withdraw and known is not None else None

    decision = decided.decision.id if decided is not None else None
    if wants_json():
        print_object(setup_json.TeamMembership, role=role, name=shown, level=new, decision=decision)
    else:
        line(f"{visible_line(shown)} is {new} now" if new else f"Removed {visible_line(shown)}")
        if decided is not None:
            warn(*decided.warnings)
            line(decided.summary)


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

    from core.team.connection import Joined

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
    """Watch the project and its space until interrupted; print connection changes."""
    from core.cli.support.process import run_until_signal
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
    from core.cli.commands.metrics import pools_json, print_pools
    from core.team.connection import ChainBroken
    from core.team.decisions import first_head, verify_space
    from core.team.follow import MOST_POOLED, stored_status
    from core.team.local_state import LAST_SYNC

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
