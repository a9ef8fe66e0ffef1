"""`ralphdeck compile`: write approved lessons into the files that agents load by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import RalphdeckError, ReadOnly, Refused
from core.base.text import plural
from core.cli.json import setup as setup_json
from core.cli.render.output import STRICT_EXIT, line, print_difference, print_object, remark, wants_json
from core.cli.support.options import Command, OneOf, setting_option
from core.cli.support.project import is_readonly, open_reader
from core.cli.support.user_files import compiled_points_file
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from pathlib import Path

    from core.agents.plan import CompilePlan, FilePlan
    from core.index.compiled import FileStatus, Selection
    from core.project.reader import ProjectReader

TARGETS: Final = {
    "agents-md": "AGENTS.md",
    "claude-md": "CLAUDE.md",
    "cursor": ".cursor/rules/ralphdeck.mdc",
    "copilot": ".github/copilot-instructions.md",
    "skills": ".claude/skills and .agents/skills",
}
_DRIFT_EXIT: Final = 1
Rows = list[tuple[str, list[dict[str, Any]]]]  # targets with their files
_COLOURS: Final = {"current": "green", "broken": "red", "edited": "red"}


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
    """Write approved lessons into the files that agents load by themselves, for review in a pull request.

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
        _print_json(rows, selection, written=False)
    else:
        for target, files in found.items():
            if not files:
                line(f"{target}: ", ("current", "green"), " (no approved lesson for it)")
            for file in files:
                details = f" ({'; '.join(file.details)})" if file.details else ""
                line(f"{file.path}: ", (file.status, _COLOURS.get(file.status, "yellow")), details)
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
        _print_json(rows, selection, written=has_changes and not dry_run)
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


def _print_json(rows: Rows, selection: Selection | None, *, written: bool) -> None:
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
