"""`ralphdeck history`: what was tried at a task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import click

from core.base.text import visible_line
from core.cli.json.shapes import Shape, json_help, reflection_json
from core.cli.json.tasks import attempt_details_json, history_json
from core.cli.render.history_text import AttemptStates, print_history
from core.cli.render.output import end, findings_json, json_bytes, line, print_json
from core.cli.support.id_completion import complete_task
from core.cli.support.options import Words, joined, reading_options
from core.cli.support.project import chosen_project
from core.config.paths import ProjectPaths
from core.documents.markdown import blocks_markdown, to_markdown
from core.documents.tasks import attempt_document, reflection_sections, whole_history_document
from core.episodes.history import (
    AttemptDetail,
    TaskHistory,
    WholeHistory,
    filter_history,
    read_attempt,
    read_history,
    read_whole_history,
)
from core.episodes.task_lookup import find_attempt
from core.records.episodes import Task
from core.records.findings import Finding
from core.records.loops import Outcome
from core.storage.export_file import export_file, write_file

_LIMIT: Final = 50
_MARKDOWN: Final = frozenset({".md", ".markdown"})


@click.command(epilog=json_help("history"))
@click.argument("task", shell_complete=complete_task)
@click.option("--attempt", type=click.IntRange(min=0), metavar="N", help="Only this attempt, with its actions.")
@click.option("--reflections", "only_reflections", is_flag=True, help="Only what was learned.")
@click.option(
    "--outcome",
    type=Words([outcome.value for outcome in Outcome]),
    multiple=True,
    help="Only attempts that came out so, and what was learned in them; unknown: those that are open.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it into FILE instead: Markdown if it ends in .md, else JSON (.json).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="Print at most so many attempts, milestones and reflections, the last ones. Exports and --json have all.",
)
@reading_options
def history(
    task: str,
    attempt: int | None,
    only_reflections: bool,
    outcome: tuple[tuple[str, ...], ...],
    export: Path | None,
    limit: int,
    as_json: bool,
    strict: bool,
) -> None:
    """Print what was tried at TASK: its attempts, how they came out, what was learned.

    TASK is the id of a task or how it begins, or that of an attempt such as task-001.2. It is read straight from
    .aiwg/ralph/tasks, so that it takes no longer in a project with many tasks. An open attempt without a sign of
    life for 30 minutes (watch.stale_after_minutes), or at a task that has ended, was left unfinished.

    An export and --json have everything of all attempts, their actions too; in Markdown the last 500 of each
    attempt, on a line each, and with --attempt all of them in full.

    \b
    Examples:
      ralphdeck history task-001
      ralphdeck history task-001 --attempt 2
      ralphdeck history task-001 --reflections --outcome failure,timeout
      ralphdeck history task-001 --export task-001.md
    """
    if export is not None and export.suffix.lower() not in {*_MARKDOWN, ".json"}:
        raise click.UsageError(f"--export writes .md or .json, not {export.suffix or 'a file without an ending'}")
    paths = chosen_project()
    file = export_file(str(export), paths) if export is not None else None
    task_id, number = find_attempt(paths, task, attempt)
    outcomes = frozenset(map(Outcome, joined(outcome)))
    if outcomes and number is not None:
        raise click.UsageError("--outcome chooses among all attempts; give it without the number of one")
    told: TaskHistory | WholeHistory | AttemptDetail
    if file is None and not as_json:
        if number is None:
            whole = read_history(paths, task_id)
            told = filter_history(whole, lambda one: one.outcome in outcomes) if outcomes else whole
        else:
            told = read_attempt(paths, task_id, number)
            # Only of an open attempt it takes the others to know its state.
            whole = read_history(paths, task_id) if told.attempt.is_open else TaskHistory(Task(id=task_id))
        print_history(told, whole, only_reflections, limit)
    else:
        told = _everything(paths, task_id, outcomes) if number is None else read_attempt(paths, task_id, number)
        _hand_over(told, only_reflections, file, as_json)
    end(_findings(told), strict=strict)


def _everything(paths: ProjectPaths, task_id: str, outcomes: Collection[Outcome]) -> WholeHistory:
    """All attempts in full, or those that came out so."""
    whole = read_whole_history(paths, task_id)
    if not outcomes:
        return whole
    kept = tuple(detail for detail in whole.attempts if detail.attempt.outcome in outcomes)
    return WholeHistory(filter_history(whole.task, lambda one: one.outcome in outcomes), kept)


def _findings(told: TaskHistory | WholeHistory | AttemptDetail) -> Sequence[Finding]:
    return (*told.findings, *told.actions.findings) if isinstance(told, AttemptDetail) else told.findings


def _hand_over(told: WholeHistory | AttemptDetail, only_reflections: bool, file: Path | None, as_json: bool) -> None:
    """Write it into a file, print it as JSON, or both."""
    markdown = file is not None and file.suffix.lower() in _MARKDOWN
    document = {} if markdown and not as_json else _json(told, only_reflections)
    if file is not None:
        write_file(file, _markdown(told, only_reflections) if markdown else json_bytes(document, indent=2))
    if as_json:
        print_json(document)
    else:
        line(f"wrote {visible_line(str(file), 300)}")


def _json(told: WholeHistory | AttemptDetail, only_reflections: bool) -> Shape:
    if only_reflections:
        shape: Shape = {"reflections": [reflection_json(one) for one in told.reflections]}
    else:
        shape = history_json(told) if isinstance(told, WholeHistory) else attempt_details_json(told)
    return {**shape, "findings": findings_json(_findings(told))}


def _markdown(told: WholeHistory | AttemptDetail, only_reflections: bool) -> bytes:
    if only_reflections:
        text = blocks_markdown(reflection_sections(told.reflections), 2) + "\n"
    elif isinstance(told, WholeHistory):
        text = to_markdown(whole_history_document(told, AttemptStates(told.task).condition))
    else:
        alone = TaskHistory(Task(id=told.attempt.task_id), (told.attempt,))
        text = to_markdown(attempt_document(told, AttemptStates(alone).condition(told.attempt), full=True))
    return text.encode("utf-8", "replace")
