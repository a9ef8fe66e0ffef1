"""`ralphdeck connect` and `compile`: write into the files of coding agents."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from core.agents.agent_table import AGENTS
from core.base.errors import RalphdeckError, ReadOnly, Refused, install_hint
from core.base.paths import ProjectPaths
from core.base.text import plural
from core.cli.json import setup as setup_json
from core.cli.support.options import Command, OneOf, setting_option
from core.cli.support.output import (
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
from core.cli.support.project import chosen_project, is_readonly, now, open_reader
from core.cli.support.signature import trust_here
from core.cli.support.user_files import compiled_points_file, restore_points_file
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.agents.checks import Answer
    from core.agents.plan import AgentPlan, CompilePlan, FileChange, FilePlan, Target
    from core.index.compiled import FileStatus, Selection
    from core.project.reader import ProjectReader


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
    """Connect coding agents: they get lessons, and their sessions are recorded.

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
    """Show the changes, ask, write and report; `ignores` also edits `.gitignore`."""
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
        has_changes = ignores or any(plan.changes for plan in plans)  # a plan that failed has none
        for note in notes if has_changes and not is_removal else ():
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


TARGETS: Final = {
    "agents-md": "AGENTS.md",
    "claude-md": "CLAUDE.md",
    "cursor": ".cursor/rules/ralphdeck.mdc",
    "copilot": ".github/copilot-instructions.md",
    "skills": ".claude/skills and .agents/skills",
}
_DRIFT_EXIT: Final = 1
Rows = list[tuple[str, list[dict[str, Any]]]]  # targets with their files
_TARGET_COLOURS: Final = {"current": "green", "broken": "red", "edited": "red"}


@click.command("compile", cls=Command)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, type=OneOf([*TARGETS, "all"]))
@click.option("--check", is_flag=True, help="Write nothing: exit code 0 up to date, 1 drift, 3 a file is unreadable.")
@click.option("--remove", is_flag=True, help="Remove the lessons; the files get their own bytes back.")
@click.option("--dry-run", "--print", "dry_run", is_flag=True, help="Print the difference, and write nothing.")
@click.option("--force", is_flag=True, help="Replace edited lessons, and write the newest choice and order.")
@setting_option("--budget", "compile.max_tokens", metavar="TOKENS")
def compile_lessons(
    targets: Sequence[str], check: bool, remove: bool, dry_run: bool, force: bool, max_tokens: int | None
) -> None:
    """Write approved lessons into files agents load, for review in a pull request.

    \b
    TARGET     file
    agents-md  AGENTS.md: a section
    claude-md  CLAUDE.md: a section; AGENTS.md, if CLAUDE.md imports it
    cursor     .cursor/rules/ralphdeck.mdc, and a rule for each folder to which lessons are limited
    copilot    .github/copilot-instructions.md: a section; .github/instructions for lessons limited to files
    skills     SKILL.md folders in .claude/skills and .agents/skills
    all        all of these

    Only texts that a person approved are written, those with the best evidence first, within the token budget.
    Everything else in the files stays as it is. Lessons that someone edited in a file are not replaced: Review asks
    what to do with the edit. Without TARGET, takes those that have lessons already.

    \b
    Examples:
      ralphdeck compile agents-md claude-md
      ralphdeck compile all --dry-run
      ralphdeck compile --check          (in CI)
      ralphdeck compile skills --remove
    """
    if check + remove + dry_run > 1 and not (remove and dry_run):
        raise click.UsageError("give only one of --check, --remove and --dry-run")
    from core.agents.plan import find_targets, plan_removal, plan_writing
    from core.index.compiled import check_target, list_to_write
    from core.index.experiment import find_experiment

    project = open_reader(reads_agents=False)
    folder = project.project.project
    named = [*TARGETS] if "all" in targets else [*dict.fromkeys(targets)] or find_targets(folder)
    if not named and not remove:
        raise Refused(f"no file has lessons yet; name a target: {', '.join(TARGETS)} or all")
    answered = project.view.snapshot.curation.dismissed
    if remove:
        _write([plan_removal(target, folder, answered, force=force) for target in named], None, folder, dry_run=dry_run)
        return
    selection = _select(project, max_tokens)
    if check:
        _report({target: check_target(target, selection, folder, answered) for target in named}, selection)
        return
    found = {target: list_to_write(target, selection, folder, answered, force=force) for target in named}
    plans = [plan_writing(target, files, folder, force=force) for target, files in found.items()]
    _write(plans, selection, folder, dry_run=dry_run)
    if selection.chosen and find_experiment(project.project, project.view.settings) is not None:
        remark("An experiment holds lessons out; those in files are given all the same, so it cannot judge them")


def _select(project: ProjectReader, max_tokens: int | None) -> Selection:
    from core.index.anchors import find_doubtful
    from core.index.compiled import select_lessons
    from core.index.project_state import ledger_error

    require_trust(project.project)
    if problem := ledger_error(project.view):
        raise Refused(f"nothing is compiled, because the decisions cannot be read: {problem}")
    view = project.view
    budget = view.settings.compile.max_tokens if max_tokens is None else max_tokens
    stale = find_doubtful(view.stale, view.snapshot.curation)
    return select_lessons(view.snapshot.patterns, view.board, view.settings, budget, stale)


def _report(found: dict[str, list[FileStatus]], selection: Selection) -> None:
    """Print the state of each file; the exit code shows drift."""

    found = {target: [file for file in files if file.exists_or_should] for target, files in found.items()}

    if wants_json():
        rows = [
            (target, [_file_json(file.path, file.status, file.details) for file in files])
            for target, files in found.items()
        ]
        _print_compiled(rows, selection, written=False)
    else:
        for target, files in found.items():
            if not files:
                line(f"{target}: ", ("current", "green"), " (no approved lesson for it)")
            for file in files:
                details = f" ({'; '.join(file.details)})" if file.details else ""
                line(f"{file.path}: ", (file.status, _TARGET_COLOURS.get(file.status, "yellow")), details)
        if any(file.status in ("missing", "outdated") for files in found.values() for file in files):
            remark("To bring them up to date: ralphdeck compile")
    states = Counter(file.status for files in found.values() for file in files)
    if states["broken"]:
        click.get_current_context().exit(STRICT_EXIT)
    if any(states[state] for state in ("missing", "outdated", "edited")):
        click.get_current_context().exit(_DRIFT_EXIT)


def _write(plans: list[CompilePlan], selection: Selection | None, folder: Path, *, dry_run: bool) -> None:
    """Print or write the changes, and report them."""
    from core.agents.plan import AgentPlan, apply_plan, remove_drafts_of

    has_changes = any(plan.changes for plan in plans)
    if not dry_run and not is_readonly():
        for plan in plans:
            remove_drafts_of(plan, folder)
    if has_changes and not dry_run:
        if is_readonly():
            raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
        for number, plan in enumerate(plans):
            try:
                apply_plan(AgentPlan(plan.target, plan.changes), compiled_points_file())
            except RalphdeckError as error:
                plans[number] = plan.failed(str(error))

    if wants_json():
        rows = [(plan.target, [_file_json(file.path, _outcome(file), ()) for file in plan.files]) for plan in plans]
        _print_compiled(rows, selection, written=has_changes and not dry_run)
    else:
        for plan in plans:
            for file in plan.files:
                _print_file(file, dry_run=dry_run)
        if not has_changes and not any(plan.has_problem for plan in plans):
            remark("Nothing to change")
        if selection is not None:
            _print_selection(selection)
    if any(plan.has_problem for plan in plans):
        click.get_current_context().exit(1)


def _outcome(file: FilePlan) -> str:
    if file.problem or file.note:
        return file.problem or file.note
    if file.change is None:
        return "current"
    return "new" if file.change.before is None else "deleted" if file.change.after is None else "changed"


def _print_file(file: FilePlan, *, dry_run: bool) -> None:
    if file.problem:
        line(f"{file.path} is not changed: ", (file.problem, "red"))
    elif file.note:
        line(f"{file.path} {file.note}")
    elif file.change is not None and dry_run:
        print_difference(file.path, file.change.before, file.change.after)
    elif file.change is not None:
        line(f"{file.path}: {_outcome(file)}")


def _print_selection(selection: Selection) -> None:
    count = plural(len(selection.chosen), "lesson")
    remark(f"{count}, about {selection.tokens:,} of {selection.budget:,} tokens")
    for reason, number in Counter(selection.left_out.values()).most_common():
        remark(f"{plural(number, 'lesson')} left out: {reason}")
    if selection.stale:
        count = plural(len(selection.stale), "lesson")
        remark(f"{count} about files or names that were removed; see: ralphdeck pattern anchors")


def _file_json(path: str, state: str, details: Sequence[str]) -> dict[str, Any]:
    return {"file": path, "state": state, "details": details}


def _print_compiled(rows: Rows, selection: Selection | None, *, written: bool) -> None:
    print_object(
        setup_json.CompileDocument,
        targets=[{"name": name, "files": files} for name, files in rows],
        lessons=[entry.pattern_id for entry in selection.chosen] if selection is not None else [],
        left_out=[{"id": id, "reason": reason} for id, reason in (selection.left_out if selection else {}).items()],
        tokens=selection.tokens if selection else 0,
        budget=selection.budget if selection else 0,
        stale=selection.stale if selection else (),
        written=written,
    )
