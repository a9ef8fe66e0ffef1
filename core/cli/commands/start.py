"""`ralphdeck start`: set up a project, connect agents, and propose lessons from the sessions they left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from core.base.errors import RalphdeckError, ReadOnly
from core.base.text import plural
from core.cli.render.output import line, remark, respond, warn
from core.cli.support.options import DecidingCommand, ReadingCommand, invocation
from core.cli.support.project import is_readonly, now, open_project
from core.config.paths import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.plan import AgentPlan
    from core.config.paths import ProjectPaths
    from core.project.project import Project
    from core.state.review_items import ReviewItem


class _Step(NamedTuple):
    """One thing that is going to be done, and the files that it changes."""

    text: str
    files: tuple[str, ...] = ()


class _StartCommand(ReadingCommand):
    """A command that decides, and works also in a repository without `.aiwg`."""

    standard = DecidingCommand.standard


@click.command(cls=_StartCommand)
@click.option("--yes", is_flag=True, help="Do it without a question.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
def start(yes: bool, dry_run: bool) -> None:
    """Set up this repository: make .aiwg, connect the agents in use, and propose lessons from their sessions.

    Reads the sessions that agents have left on this machine, prints what it is going to do, and asks once. Proposed
    lessons are candidates: Review asks about each. What exists stays as it is, so it can be repeated. Without a
    terminal nothing is written unless --yes is given.

    \b
    Examples:
      ralphdeck start
      ralphdeck start --dry-run
      ralphdeck start --yes --json
    """
    from core.agents.checks import find_program, has_mcp_extra
    from core.agents.plan import Target, detect, find_connected, plan_connect
    from core.agents.restore_points import load_points
    from core.cli.commands.init import choose_project
    from core.cli.support.user_files import restore_points_file
    from core.show.setup import MOST_PROPOSED, count_sessions, find_offers, is_first_start

    folder = choose_project(None)
    invocation().project = folder.project
    project = open_project()
    state = project.search_all()
    offers = find_offers(state)[:MOST_PROPOSED] if is_first_start(state) else ()
    plans: list[AgentPlan] = []
    if not find_connected(folder.project) and (in_use := [*detect(folder.project)]):
        target = Target(folder.project.resolve(), find_program(), has_mcp=has_mcp_extra())
        plans = [one for one in plan_connect(in_use, target, load_points(restore_points_file())) if one.changes]
    is_new = not is_folder(folder.ralph)
    steps = _describe(folder, plans, offers, is_new=is_new)
    sessions = count_sessions(state)
    if not invocation().as_json:
        line((folder.project.name, "bold"), f": {plural(sessions, 'session')} of agents in the last 30 days")
        for number, step in enumerate(steps, 1):
            line(f"  {number}. {step.text}")
            for file in step.files:
                line(f"     {file}")
    may_write = bool(steps) and not dry_run and (yes or _confirm())
    lessons, notes = 0, list[str]()
    if may_write:
        if is_readonly():
            raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
        _require_trust(folder)
        _set_up(folder)
        _connect(plans, notes)
        lessons = _propose(project, offers, notes) if offers else 0

    def show() -> None:
        if not steps:
            line("Nothing to do: the project is set up, and agents are connected")
        if may_write:
            line("Done. Work as usual; ralphdeck shows each session while it runs")
            if lessons:
                line(f"{plural(lessons, 'lesson')} to read: ralphdeck, key 2, or: ralphdeck review")

    warn(*notes)
    respond(
        "StartDocument",
        show,
        None,
        project=str(folder.project),
        written=may_write,
        steps=[" ".join((step.text, ", ".join(step.files))).strip() for step in steps],
        sessions=sessions,
        lessons=lessons,
    )
    if notes or (steps and not may_write and not dry_run):
        click.get_current_context().exit(1)


def _describe(
    folder: ProjectPaths, plans: Sequence[AgentPlan], offers: Sequence[ReviewItem], *, is_new: bool
) -> list[_Step]:
    from core.agents.agent_table import AGENTS

    steps = [_Step(f"Make {folder.aiwg.name}, and add its private files to .gitignore")] if is_new else []
    for plan in plans:
        files = tuple(change.shown for change in plan.changes)
        steps.append(
            _Step(f"Connect {AGENTS[plan.agent].title}; ralphdeck connect --remove restores the files:", files)
        )
    if count := sum(len(item.offer.new) for item in offers if item.offer is not None):
        minutes = max(round(sum(item.seconds for item in offers) / 60), 1)
        lessons = f"{plural(count, 'lesson')} from {plural(len(offers), 'session')}"
        steps.append(_Step(f"Propose {lessons}: about {plural(minutes, 'minute')} to read in Review"))
    return steps


def _confirm() -> bool:
    if invocation().as_json or not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        remark("Nothing was written, because there is no terminal to ask on; to write: --yes")
        return False
    return click.confirm("Do this?", default=True)


def _require_trust(folder: ProjectPaths) -> None:
    """Raise Refused if the project brings records that the user has not trusted, or has declined to trust."""
    from core.base.errors import Refused
    from core.cli.support.trust import describe_trust, has_records
    from core.config.ownership import is_in_trusted_path
    from core.trust.projects import find_answer, is_trusted

    is_open = find_answer(folder) is None and not has_records(folder)
    if not (is_open or is_trusted(folder) or is_in_trusted_path(folder.project)):
        raise Refused(f"{describe_trust(folder)}. Nothing was written; start sets up a project that you trust")


def _set_up(folder: ProjectPaths) -> None:
    from core.agents.private_files import ignore_private_files
    from core.cli.commands.init import make_folder
    from core.cli.support.trust import trust_here

    make_folder(folder)
    ignore_private_files(folder.project)
    trust_here(folder, "init", now())


def _connect(plans: Sequence[AgentPlan], notes: list[str]) -> None:
    """Write the files of agents; adds to `notes` those that cannot be written."""
    from core.agents.apply import apply_plan
    from core.cli.support.user_files import restore_points_file

    for plan in plans:
        try:
            apply_plan(plan, restore_points_file())
        except RalphdeckError as error:
            notes.append(str(error))


def _propose(project: Project, offers: Sequence[ReviewItem], notes: list[str]) -> int:
    """Extract the offers as candidates in one act; returns the number of new patterns."""
    from core.cli.support.progress import show_progress
    from core.curation.commands import Extract, ExtractMany

    command = ExtractMany(tuple(Extract(item.subject, unattended=True) for item in offers))
    with show_progress() as progress:
        try:
            decided = project.decide(command, progress=lambda done, total: progress("proposing lessons", done, total))
        except RalphdeckError as error:
            notes.append(str(error))
            return 0
    notes += decided.warnings
    return sum(len(decision.after["found"]) for decision in decided.decisions)
