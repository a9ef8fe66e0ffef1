"""`ralphdeck connect`: add hooks, MCP server, skill and instructions to the files of coding agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from core.agents.agent_table import AGENTS
from core.base.errors import RalphdeckError, ReadOnly, install_hint
from core.base.paths import ProjectPaths
from core.base.text import plural
from core.cli.json import setup as setup_json
from core.cli.render.output import (
    STRICT_EXIT,
    Column,
    line,
    list_difference,
    print_difference,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.options import Command, OneOf
from core.cli.support.project import chosen_project, is_readonly, now
from core.cli.support.trust import trust_here
from core.cli.support.user_files import restore_points_file

if TYPE_CHECKING:
    from core.agents.checks import Answer
    from core.agents.plan import AgentPlan, FileChange, Target

_STALE_EXIT: Final = 1
_CURRENT: Final = "current"
_STALE: Final = "stale"
_ABSENT: Final = "absent"
_BROKEN: Final = "broken"
_PRIVATE: Final = "keeps private files out of Git"
_COLOURS: Final = {_CURRENT: "green", _STALE: "yellow", _ABSENT: "yellow", _BROKEN: "red"}


@click.command(cls=Command)
@click.argument("agents", metavar="[AGENT]...", nargs=-1, type=OneOf([*AGENTS, "all"]))
@click.option("--check", is_flag=True, help="Only check: exit code 0 up to date, 1 missing or outdated, 3 broken.")
@click.option("--remove", is_flag=True, help="Remove everything that was added; restores the files.")
@click.option("--print", "prints", is_flag=True, help="Print the entries, to add them by hand; write nothing.")
@click.option("--global", "is_global", is_flag=True, help="Use the user's files instead of those of the project.")
@click.option("--yes", is_flag=True, help="Write without a question.")
@click.option("--no-mcp", is_flag=True, help="Leave the MCP server out. It is left out without the extra mcp too.")
def connect(
    agents: Sequence[str], check: bool, remove: bool, prints: bool, is_global: bool, yes: bool, no_mcp: bool
) -> None:
    """Connect coding agents to the project, so that they get lessons and their sessions are recorded.

    Lists the files with what each is for, asks once (answer d to see the difference), writes, and runs the hook with a
    sample event. Everything else in the files stays as it is. A file that cannot be changed safely is reported, and
    then no file of that agent is changed.
    Without AGENT, connects the agents that are in use; --check and --remove take the connected ones.

    Without a terminal the difference is shown, nothing is written unless --yes is given, and the exit code is 1 if
    there is something to write.

    \b
    Examples:
      ralphdeck connect claude
      ralphdeck connect claude codex --yes
      ralphdeck connect --check          (in CI)
      ralphdeck connect claude --remove
    """
    if check + remove + prints > 1:
        raise click.UsageError("give only one of --check, --remove and --print")
    from core.agents.checks import find_program, has_mcp_extra
    from core.agents.plan import Target, load_points, plan_connect, plan_remove
    from core.agents.setup import is_ignoring

    project = Path.cwd() if is_global else chosen_project().project.resolve()
    has_mcp = not no_mcp and (has_mcp_extra() or remove)
    program = "ralphdeck" if remove else find_program()
    target = Target(project, program, is_global, has_mcp)
    named = _chosen_agents(agents, target, is_connected_only=check or remove)
    points = load_points(restore_points_file())
    plans = plan_remove(named, target, points) if remove else plan_connect(named, target, points)
    if prints:
        if wants_json():
            _print_json(plans, {})
        else:
            _print_entries(named, target)
        return
    if check:
        answers = {plan.agent: one for plan in plans if plan.is_connected and (one := _try(plan.agent, target))}
        if wants_json():
            _print_json(plans, answers)
        else:
            _print_checks(plans, answers)
        click.get_current_context().exit(_check_exit(plans, answers))
    notes = []
    if not has_mcp and not no_mcp:
        notes.append(f"The MCP server is left out; for it, {install_hint('mcp')}, then connect again")
    changes = [change.after or b"" for plan in plans for change in plan.changes]
    if Path(program).is_absolute() and not is_global and any(program.encode() in after for after in changes):
        notes.append(
            "The files name ralphdeck by a path of this machine, because a login shell does not find it; for a team, "
            "put it on the PATH and connect again"
        )
    ignores = not is_global and not remove and not is_ignoring(project)
    _change(plans, target, notes, is_removal=remove, yes=yes, ignores=ignores)


def _chosen_agents(named: Sequence[str], target: Target, *, is_connected_only: bool) -> list[str]:
    from core.agents.plan import detect, is_connected

    if "all" in named:
        return [*AGENTS]
    if named:
        return [*dict.fromkeys(named)]
    if is_connected_only:
        return [agent for agent in AGENTS if is_connected(agent, target)]
    found = [*detect(target.project)]
    if not wants_json():
        titles = ", ".join(AGENTS[agent].title for agent in found) or "none"
        others = ", ".join(agent for agent in AGENTS if agent not in found)
        remark(f"Agents in use: {titles}{f'; not found: {others}' if others else ''}")
    return found


def _change(
    plans: list[AgentPlan], target: Target, notes: list[str], *, is_removal: bool, yes: bool, ignores: bool
) -> None:
    """Show the changes, ask, write, and report; `ignores` adds the private files to `.gitignore`, too."""
    from core.agents.plan import apply_plan, remove_old_drafts
    from core.agents.setup import ignore_private_files

    as_json = wants_json()
    count = sum(len(plan.changes) for plan in plans) + ignores
    asks = not as_json and not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if asks:
        _print_summary(plans, ignores=ignores)
    elif not as_json:
        _print_plans(plans, ignores=ignores)
    may_write = bool(count) and (yes or (asks and _confirm(count, plans, ignores=ignores)))
    if count and not may_write and not as_json:
        remark(f"Nothing was written{'' if asks else ', because there is no terminal to ask on; to write: --yes'}")
    if (may_write or not count) and not (target.is_global or is_readonly()):
        remove_old_drafts(target.project)
    failed: list[AgentPlan] = []
    if may_write:
        if is_readonly():
            raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
        for number, plan in enumerate(plans):
            try:
                apply_plan(plan, restore_points_file())
            except RalphdeckError as error:
                plans[number] = plan._replace(changes=(), problem=str(error))
                failed.append(plans[number])
        if ignores:
            try:
                ignore_private_files(target.project)
            except RalphdeckError as error:
                notes.append(f"The private files of .aiwg are not ignored by Git: {error}")
    if not is_removal and not target.is_global and (may_write or not count):
        paths = ProjectPaths(target.project)
        if paths.aiwg.is_dir() and (brought := trust_here(paths, "connect", now())):
            notes.append(f"Trusted, with what the project contains: {brought}; to look at it: ralphdeck trust --show")
    answers = {}
    if not is_removal and (may_write or not count):
        connected = [plan.agent for plan in plans if not plan.problem]
        answers = {agent: one for agent in connected if (one := _try(agent, target))}

    if as_json:
        _print_json(plans, answers, written=may_write, notes=notes)
    else:
        _print_result(plans, failed, answers, is_removal, may_write)
        for note in notes if count and not is_removal else ():
            line(note)
    if (count and not may_write) or any(plan.problem for plan in plans) or any(one.problem for one in answers.values()):
        click.get_current_context().exit(1)


def _confirm(count: int, plans: Sequence[AgentPlan], *, ignores: bool) -> bool:
    """Ask until the answer is yes or no; `d` shows the difference first."""
    while True:
        answer = click.prompt(f"Write {plural(count, 'file')}? [y/N, d: show the difference]", "n", show_default=False)
        if (letter := answer.strip().lower()[:1]) in {"y", "n"}:
            return bool(letter == "y")
        if letter == "d":
            _print_plans(plans, ignores=ignores)


def _try(agent: str, target: Target) -> Answer | None:
    from core.agents.checks import installed_command, try_hook

    command = installed_command(agent, target)
    return try_hook(agent, command, target.project) if command else None


def _print_summary(plans: Sequence[AgentPlan], *, ignores: bool) -> None:
    """Print one line per file: what changes in it, and what for."""
    rows = [
        (AGENTS[plan.agent].title, change.shown, _size(change), change.purpose)
        for plan in plans
        for change in plan.changes
    ]
    if ignores:
        rows.append(("Git", ".gitignore", "added to", _PRIVATE))
    columns = [
        Column("agent", itemgetter(0), expendable=1),
        Column("file", itemgetter(1)),
        Column("change", itemgetter(2)),
        Column("what for", itemgetter(3)),
    ]
    print_table(columns, rows)
    for plan in plans:
        if plan.problem:
            line((f"{AGENTS[plan.agent].title} is not changed: {plan.problem}", "red"))
        elif not plan.changes:
            line(f"{AGENTS[plan.agent].title}: nothing to change")


def _size(change: FileChange) -> str:
    if change.before is None or change.after is None:
        return "deleted" if change.after is None else "new"
    texts = [text[:1] for text in [*list_difference(change.shown, change.before, change.after)][2:]]
    counts = (("+", texts.count("+")), ("-", texts.count("-")))
    return " ".join(f"{sign}{count}" for sign, count in counts if count)


def _print_plans(plans: Sequence[AgentPlan], *, ignores: bool) -> None:
    """Print the difference of each file."""
    for plan in plans:
        line((AGENTS[plan.agent].title, "bold"))
        if plan.problem:
            line("  ", (f"not changed: {plan.problem}", "red"))
        elif not plan.changes:
            line("  nothing to change")
        for change in plan.changes:
            print_difference(change.shown, change.before, change.after)
    if ignores:
        line(("Git", "bold"))
        line(f"  .gitignore: {_PRIVATE}")


def _print_result(
    plans: Sequence[AgentPlan],
    failed: Sequence[AgentPlan],
    answers: dict[str, Answer],
    is_removal: bool,
    is_written: bool,
) -> None:
    for plan in failed:
        line((f"{AGENTS[plan.agent].title} not changed: {plan.problem}", "red"))
    if is_removal and not plans:
        remark("No agent is connected")
    for plan in plans:
        title = AGENTS[plan.agent].title
        if is_written and plan.changes:
            line(f"{'Disconnected' if is_removal else 'Connected'} {title}: {plural(len(plan.changes), 'file')}")
        if plan.agent in answers:
            _print_answer(title, answers[plan.agent])
        for note in plan.notes:
            line(f"  {note}")
        if not is_removal and is_written and not plan.problem:
            for text in plan.left:
                line(f"  Left for you: {text}")


def _print_answer(title: str, answer: Answer) -> None:
    if answer.problem:
        line("  ", (f"The hook of {title} {answer.problem}", "red"))
    else:
        line(f"  The hook of {title} answers in {answer.seconds:.2f} s")


def _print_entries(agents: Sequence[str], target: Target) -> None:
    """Print what each file needs, as for a file that does not exist yet."""
    from core.agents.plan import parts_of

    for agent in agents:
        for part in parts_of(agent, target):
            if part.is_wanted and (part.kind != "mcp" or target.has_mcp):
                line((f"# {AGENTS[agent].title}: {part.shown}", "bold"))
                for text in part.editor.merge(None).decode().splitlines():
                    line(text)
                line("")


def _print_checks(plans: Sequence[AgentPlan], answers: dict[str, Answer]) -> None:
    if not plans:
        remark("No agent is connected; to connect one: ralphdeck connect claude")
    for plan in plans:
        state = _state(plan, answers)
        files = ", ".join(change.shown for change in plan.changes)
        texts = [plan.problem, files, answers[plan.agent].problem if plan.agent in answers else ""]
        details = "; ".join(filter(None, texts))
        line(f"{AGENTS[plan.agent].title}: ", (state, _COLOURS[state]), f" ({details})" if details else "")


def _state(plan: AgentPlan, answers: dict[str, Answer]) -> str:
    if plan.problem or (plan.agent in answers and answers[plan.agent].problem):
        return _BROKEN
    if not plan.changes:
        return _CURRENT
    return _STALE if plan.is_connected else _ABSENT


def _check_exit(plans: Sequence[AgentPlan], answers: dict[str, Answer]) -> int:
    states = {_state(plan, answers) for plan in plans}
    if _BROKEN in states:
        return STRICT_EXIT
    return 0 if states == {_CURRENT} else _STALE_EXIT


def _print_json(
    plans: Sequence[AgentPlan], answers: dict[str, Answer], *, written: bool = False, notes: Sequence[str] = ()
) -> None:
    agents = []
    for plan in plans:
        answer = answers.get(plan.agent)
        agents.append(
            {
                "name": plan.agent,
                "title": AGENTS[plan.agent].title,
                "state": _CURRENT if written and not plan.problem else _state(plan, answers),
                "problem": plan.problem or (f"the hook {answer.problem}" if answer and answer.problem else ""),
                "files": [
                    {
                        "file": change.shown,
                        "action": "add" if change.before is None else "delete" if change.after is None else "change",
                    }
                    for change in plan.changes
                ],
                "hook_seconds": round(answer.seconds, 3) if answer else None,
                "notes": plan.notes,
                "left": plan.left,
            }
        )
    print_object(setup_json.ConnectDocument, agents=agents, written=written, notes=notes)
