"""`ralphdeck start` and `init`: set up a project, connect agents, and propose lessons from their sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from core.agents.agent_table import AGENTS
from core.base.errors import RalphdeckError, ReadOnly, Unwritable
from core.base.paths import ProjectPaths, is_folder, project_at
from core.base.text import plural
from core.cli.invocation import invocation
from core.cli.json import setup as setup_json
from core.cli.render.output import line, print_object, remark, wants_json, warn
from core.cli.support.options import Command, DecidingCommand, ReadingCommand
from core.cli.support.project import is_readonly, named_project, now, open_project
from core.cli.support.trust import trust_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.plan import AgentPlan
    from core.index.review_items import ReviewItem
    from core.project.project import Project


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
    lessons are candidates: Review asks about each. What exists stays as it is, so it can be repeated; what was
    interrupted is finished. Without a terminal nothing is written unless --yes is given. The exit code is 1 if a file
    of an agent cannot be changed.

    \b
    Examples:
      ralphdeck start
      ralphdeck start --dry-run
      ralphdeck start --yes --json
    """
    from core.agents.plan import remove_old_drafts
    from core.show.now import MOST_PROPOSED, count_sessions, find_offers, is_first_start

    folder = choose_project(None)
    invocation().project = folder.project
    project = open_project()
    state = project.search_all()
    offers = find_offers(state)[:MOST_PROPOSED] if is_first_start(state) else ()
    plans = _plan_agents(folder)
    pending = len({decision.id for decision, _ in project.ledger.pending()})
    steps = _describe(folder, plans, offers, pending)
    sessions = count_sessions(state)
    if not wants_json():
        line((folder.project.name, "bold"), f": {plural(sessions, 'session')} of agents in the last 30 days")
        for number, step in enumerate(steps, 1):
            line(f"  {number}. {step.text}")
            for file in step.files:
                line(f"     {file}")
    problems = [f"{AGENTS[plan.agent].title} is not changed: {plan.problem}" for plan in plans if plan.problem]
    warn(*problems)
    may_write = bool(steps) and not dry_run and (yes or _confirm())
    lessons, left, notes = 0, list[str](), list[str]()
    if may_write:
        if is_readonly():
            raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
        _require_trust(folder)
        _set_up(folder, notes)
        connected = _connect(plans, notes)
        left = [f"{AGENTS[plan.agent].title}: {text}" for plan in connected if plan.changes for text in plan.left]
        notes += project.apply_pending() if pending else ()
        lessons = _propose(project, offers, notes) if offers else 0
    if may_write or not (steps or is_readonly()):
        remove_old_drafts(folder.project)

    warn(*notes)
    if wants_json():
        print_object(
            setup_json.StartDocument,
            project=str(folder.project),
            written=may_write,
            steps=[" ".join((step.text, ", ".join(step.files))).strip() for step in steps],
            sessions=sessions,
            lessons=lessons,
            left=left,
        )
    else:
        if not steps and not problems:
            line("Nothing to do: the project is set up, and agents are connected")
        if may_write:
            for text in left:
                line(f"Left for you: {text}")
            line(f"{'Then work' if left else 'Done. Work'} as usual; ralphdeck shows each session while it runs")
            if lessons:
                line(f"{plural(lessons, 'lesson')} to read: ralphdeck, key 2, or: ralphdeck review")
    if problems or notes or (steps and not may_write and not dry_run):
        click.get_current_context().exit(1)


def _plan_agents(folder: ProjectPaths) -> list[AgentPlan]:
    """Plan to connect the agents in use that are not connected, or only in part since a process was killed."""
    from core.agents.checks import find_program, has_mcp_extra
    from core.agents.plan import Target, detect, is_connected, load_points, plan_connect
    from core.cli.support.user_files import restore_points_file

    project = folder.project.resolve()
    if not (in_use := [*detect(project)]):
        return []
    target = Target(project, find_program(), has_mcp=has_mcp_extra())
    points = load_points(restore_points_file())
    plans = []
    for plan in plan_connect(in_use, target, points):
        is_known = plan.is_connected or is_connected(plan.agent, Target(project, is_global=True))
        is_partial = any(
            (point := points.get(str(change.path))) is not None and point.original == change.before
            for change in plan.changes
        )
        if is_partial or not is_known:
            plans.append(plan)
    return [plan for plan in plans if plan.changes or plan.problem]


def _describe(
    folder: ProjectPaths, plans: Sequence[AgentPlan], offers: Sequence[ReviewItem], pending: int
) -> list[_Step]:
    from core.agents.setup import is_ignoring
    from core.cli.support.trust import has_records
    from core.trust.projects import is_trusted

    steps = []
    if not is_folder(folder.ralph):
        steps.append(_Step(f"Make {folder.aiwg.name}, and add its private files to .gitignore"))
    elif not is_ignoring(folder.project) or not (has_records(folder) or is_trusted(folder)):
        steps.append(_Step(f"Finish setting up {folder.aiwg.name}, and add its private files to .gitignore"))
    for plan in plans:
        if plan.problem:
            continue
        files = tuple(change.shown for change in plan.changes)
        steps.append(
            _Step(f"Connect {AGENTS[plan.agent].title}; ralphdeck connect --remove restores the files:", files)
        )
    if pending:
        steps.append(_Step(f"Write {plural(pending, 'decision')} of an interrupted process to the pattern files"))
    if count := sum(len(item.offer.new) for item in offers if item.offer is not None):
        minutes = max(round(sum(item.seconds for item in offers) / 60), 1)
        lessons = f"{plural(count, 'lesson')} from {plural(len(offers), 'session')}"
        steps.append(_Step(f"Propose {lessons}: about {plural(minutes, 'minute')} to read in Review"))
    return steps


def _confirm() -> bool:
    if wants_json() or not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        remark("Nothing was written, because there is no terminal to ask on; to write: --yes")
        return False
    return click.confirm("Do this?")


def _require_trust(folder: ProjectPaths) -> None:
    """Raise Refused if the project brings records that the user has not trusted, or has declined to trust."""
    from core.base.errors import Refused
    from core.cli.support.trust import describe_trust, has_records
    from core.trust.projects import find_record, is_trusted

    record = find_record(folder)
    is_open = (record is None or record.answer == "trusted") and not has_records(folder)
    if not (is_open or is_trusted(folder)):
        raise Refused(f"{describe_trust(folder)}. Nothing was written; start sets up a project that you trust")


def _set_up(folder: ProjectPaths, notes: list[str]) -> None:
    """Make the folder, and trust it; adds to `notes` why its private files are not ignored by Git."""
    from core.agents.setup import ignore_private_files
    from core.cli.support.trust import trust_here

    make_folder(folder)
    try:
        ignore_private_files(folder.project)
    except RalphdeckError as error:
        notes.append(f"The private files of .aiwg are not ignored by Git: {error}")
    trust_here(folder, "init", now())


def _connect(plans: Sequence[AgentPlan], notes: list[str]) -> list[AgentPlan]:
    """Write the files of agents; returns the plans that were written, and adds to `notes` why others were not."""
    from core.agents.plan import apply_plan
    from core.cli.support.user_files import restore_points_file

    written = []
    for plan in plans:
        try:
            apply_plan(plan, restore_points_file())
            written.append(plan)
        except RalphdeckError as error:
            notes.append(str(error))
    return written


def _propose(project: Project, offers: Sequence[ReviewItem], notes: list[str]) -> int:
    """Extract the offers as candidates in one act; returns the number of new patterns."""
    from core.base.errors import AlreadyDone
    from core.cli.support.progress import show_progress
    from core.decisions.commands import Extract, ExtractMany

    command = ExtractMany(tuple(Extract(item.subject, unattended=True) for item in offers))
    with show_progress() as progress:
        try:
            decided = project.decide(command, progress=lambda done, total: progress("proposing lessons", done, total))
        except AlreadyDone:  # by another process, while this one asked or connected
            return 0
        except RalphdeckError as error:
            notes.append(str(error))
            return 0
    notes += decided.warnings
    return sum(len(decision.after["found"]) for decision in decided.decisions)


@click.command(cls=Command)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def init(folder: Path | None) -> None:
    """Begin a project: make .aiwg/ralph in a repository, and add what is private to .gitignore.

    FOLDER is the project. Default: the root of the Git repository of the current folder, else the current folder. Can
    be repeated; what exists stays as it is.

    \b
    Example:
      ralphdeck init && ralphdeck connect claude
    """
    from core.agents.setup import git_root, ignore_private_files

    if folder is not None and named_project() is not None and folder.absolute() != named_project():
        raise click.UsageError("give either FOLDER or --project")
    project = choose_project(folder)
    if is_readonly():
        raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
    is_new = make_folder(project)
    root = git_root(project.project)
    is_ignored = ignore_private_files(project.project)
    brought = trust_here(project, "init", now())

    if wants_json():
        print_object(setup_json.InitDocument, project=str(project.project), created=is_new, ignored=is_ignored)
    else:
        line(f"Project in {project.aiwg}" if is_new else f"The project in {project.aiwg} exists already")
        if is_ignored:
            line("Added the private files to .gitignore; commit .aiwg to share patterns and decisions with your team")
        if root is None:
            remark("Not in a Git repository; after git init, run ralphdeck init again to keep private files out of it")
        if brought:
            line(f"Trusted, with what it contains: {brought}; to look at it: ralphdeck trust --show")
        line("Next: ralphdeck connect claude   (or codex, gemini, cursor, copilot, opencode)")


def choose_project(folder: Path | None) -> ProjectPaths:
    """Return the named project, else the root of the Git repository of the current folder, else that folder."""
    from core.agents.setup import git_root

    named = folder or named_project()
    if named is not None:
        return project_at(named)
    here = project_at(Path())
    return ProjectPaths(git_root(here.project) or here.project)


def make_folder(project: ProjectPaths) -> bool:
    """Make `.aiwg/ralph`; returns whether it is new. Raises Unwritable."""
    is_new = not project.ralph.is_dir()
    try:
        project.ralph.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make {project.ralph}: {error.strerror}") from None
    return is_new
