"""`ralphdeck start`, `init` and `trust`: begin with a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from core.agents.agent_table import AGENTS, find_acting_agent
from core.base.errors import BadInput, RalphdeckError, ReadOnly, Refused, Unwritable
from core.base.paths import TRUSTED_PATHS, ProjectPaths, is_folder, is_in_trusted_path, project_at
from core.base.pattern_titles import pattern_title
from core.base.text import plural, visible_line
from core.base.user_settings import read_user_settings
from core.cli.json import decisions as decisions_json
from core.cli.json import setup as setup_json
from core.cli.support.options import Command, DecidingCommand, ReadingCommand, invocation
from core.cli.support.output import Column, id_column, line, minute, print_object, print_table, remark, wants_json, warn
from core.cli.support.project import (
    is_readonly,
    named_project,
    now,
    open_project,
    require_records,
    warn_of_user_settings,
)
from core.cli.support.signature import describe_trust, is_at_terminal, trust_here
from core.decisions.case import about_text, verb_text
from core.show.pages.signs import reason_text
from core.trust.projects import find_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.plan import AgentPlan
    from core.index.review_items import ReviewItem
    from core.project.project import Project
    from core.project.trust import Arrivals
    from core.trust.projects import TrustedProject


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
    """Set up this repository: make .aiwg, connect agents in use, propose lessons.

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
    """Plan to connect agents in use, also those whose connection was interrupted."""
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
    from core.cli.support.signature import has_records
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
    """Raise Refused for records without trust, or if the user declined to trust."""
    from core.base.errors import Refused
    from core.cli.support.signature import describe_trust, has_records
    from core.trust.projects import find_record, is_trusted

    record = find_record(folder)
    is_open = (record is None or record.answer == "trusted") and not has_records(folder)
    if not (is_open or is_trusted(folder)):
        raise Refused(f"{describe_trust(folder)}. Nothing was written; start sets up a project that you trust")


def _set_up(folder: ProjectPaths, notes: list[str]) -> None:
    """Make and trust the folder; note why Git does not ignore its private files."""
    from core.agents.setup import ignore_private_files
    from core.cli.support.signature import trust_here

    make_folder(folder)
    try:
        ignore_private_files(folder.project)
    except RalphdeckError as error:
        notes.append(f"The private files of .aiwg are not ignored by Git: {error}")
    trust_here(folder, "init", now())


def _connect(plans: Sequence[AgentPlan], notes: list[str]) -> list[AgentPlan]:
    """Write agents' files; return the written plans, and note why others failed."""
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
    """Extract the offers as candidates in one act; return the number of new ones."""
    from core.base.errors import AlreadyDone
    from core.cli.support.output import show_progress
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
    """Begin a project: make .aiwg/ralph, and add what is private to .gitignore.

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
    """Return the named project, else the current Git root, else the current folder."""
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
