"""`ralphdeck history`: what was tried at a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import click

from core.cli.completing import complete_task
from core.cli.episode_shapes import attempt_details_json, history_json
from core.cli.options import reading_options
from core.cli.output import (
    OUTCOME_COLOURS,
    Column,
    end,
    findings_json,
    json_bytes,
    line,
    minute,
    percent,
    print_json,
    print_table,
    remark,
)
from core.cli.project import chosen_project
from core.cli.shapes import Shape, json_help, reflection_json
from core.episodes.export import attempt_markdown, history_markdown, reflection_markdown, reflections_markdown
from core.episodes.history import (
    COUNT_DIFFERS,
    AttemptDetail,
    TaskHistory,
    WholeHistory,
    read_attempt,
    read_history,
    read_whole_history,
)
from core.episodes.names import find_attempt
from core.outfile import export_file, write_file
from core.records.episodes import Attempt, Milestone
from core.records.findings import Finding
from core.records.reflections import Reflection
from core.text import visible_line

COLOURS: Final = {**OUTCOME_COLOURS, "open": "yellow"}
_MARKDOWN: Final = frozenset({".md", ".markdown"})


@click.command(epilog=json_help("history"))
@click.argument("task", shell_complete=complete_task)
@click.option("--attempt", type=click.IntRange(min=0), metavar="N", help="Only this attempt, with its actions.")
@click.option("--reflections", "only_reflections", is_flag=True, help="Only what was learned.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it into FILE instead: Markdown if it ends in .md, else JSON (.json).",
)
@reading_options
def history(
    task: str, attempt: int | None, only_reflections: bool, export: Path | None, as_json: bool, strict: bool
) -> None:
    """Print what was tried at TASK: its attempts, how they came out, what was learned.

    TASK is the id of a task or how it begins, or that of an attempt such as task-001.2. It is read straight from
    .aiwg/ralph/tasks, so that it takes no longer in a project with many tasks.

    An export and --json have everything of all attempts, their actions too; in Markdown the last 500 of each
    attempt, on a line each, and with --attempt all of them in full.

    \b
    Examples:
      ralphdeck history task-001
      ralphdeck history task-001 --attempt 2
      ralphdeck history task-001 --reflections
      ralphdeck history task-001 --export task-001.md
    """
    if export is not None and export.suffix.lower() not in {*_MARKDOWN, ".json"}:
        raise click.UsageError(f"--export writes .md or .json, not {export.suffix or 'a file without an ending'}")
    paths = chosen_project()
    file = export_file(str(export), paths) if export is not None else None
    task_id, number = find_attempt(paths, task, attempt)
    told: TaskHistory | WholeHistory | AttemptDetail
    if file is None and not as_json:
        told = read_history(paths, task_id) if number is None else read_attempt(paths, task_id, number)
        _print(told, only_reflections)
    else:
        told = read_whole_history(paths, task_id) if number is None else read_attempt(paths, task_id, number)
        _hand_over(told, only_reflections, file, as_json)
    end(_findings(told), strict=strict)


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
        text = reflections_markdown(told.reflections)
    else:
        text = history_markdown(told) if isinstance(told, WholeHistory) else attempt_markdown(told)
    return text.encode("utf-8", "replace")


def _print(told: TaskHistory | AttemptDetail, only_reflections: bool) -> None:
    if not only_reflections:
        if isinstance(told, TaskHistory):
            _print_task(told)
        else:
            _print_attempt(told)
    for reflection in told.reflections:
        _print_reflection(reflection)
    if only_reflections and not told.reflections:
        remark("no reflections")


def _print_task(history: TaskHistory) -> None:
    task = history.task
    line((task.id, "bold"), f"  {task.status.value}  {task.description}")
    _print_facts(
        (("done when", task.criteria), ("tags", ", ".join(task.tags)), ("quality", percent(history.final_quality)))
    )
    columns = (
        Column("ATTEMPT", right=True),
        Column("OUTCOME", colours=COLOURS),
        Column("STARTED (UTC)"),
        Column("MINUTES", right=True),
        Column("ITERATIONS", right=True),
        Column("ACTIONS", right=True),
        Column("QUALITY", right=True),
        Column("PLAN", free=True),
    )
    print_table(columns, map(_row, history.attempts))
    if not history.attempts:
        remark("no attempts yet")
    for finding in history.findings:
        if finding.code == COUNT_DIFFERS:
            remark(f"{finding.file} {finding.message}")
    _print_milestones(history.milestones)


def _row(attempt: Attempt) -> tuple[str, ...]:
    minutes = ""
    if attempt.started_at and attempt.ended_at:
        took = (attempt.ended_at - attempt.started_at).total_seconds() / 60
        minutes = f"{took:.0f}" if took >= 1 else "<1"
    return (
        str(attempt.number),
        came_out(attempt),
        minute(attempt.started_at),
        minutes,
        _count(attempt.iterations),
        _count(attempt.actions),
        percent(attempt.final_quality),
        attempt.plan,
    )


def _print_attempt(detail: AttemptDetail) -> None:
    attempt = detail.attempt
    line((attempt.id, "bold"), "  ", (came_out(attempt), COLOURS.get(came_out(attempt), "")), f"  {attempt.plan}")
    _print_facts(
        (
            ("reason", attempt.reason),
            ("agent", attempt.agent),
            *(("step", step) for step in detail.steps),
            *(("worked", text) for text in attempt.worked),
            *(("did not work", text) for text in attempt.failed),
            *(("next time", text) for text in attempt.suggestions),
            ("quality", " ".join(percent(one.quality) for one in attempt.quality)),
            *(("result", name) for name in detail.results),
        )
    )
    columns = (
        Column("ACTION", right=True),
        Column("AT (UTC)"),
        Column("TYPE"),
        Column("RESULT", colours={"failed": "red"}),
        Column("ON", free=True),
        Column("WHY", free=True),
    )
    rows = (
        (
            str(action.number),
            f"{action.at:%H:%M:%S}" if action.at else "",
            action.type or action.tool,
            "failed" if action.went_wrong else "ok" if action.success else "",
            action.about,
            action.reasoning,
        )
        for action in detail.actions
    )
    print_table(columns, rows)
    if not detail.actions:
        remark("no actions were logged")
    _print_milestones(detail.milestones)


def _print_milestones(milestones: Iterable[Milestone]) -> None:
    for one in milestones:
        when = minute(one.at)
        line(f"milestone  {when}  {one.event}  {one.details}")


def _print_reflection(one: Reflection) -> None:
    line()
    heading, *rows = reflection_markdown(one).split("\n")
    line((heading, "bold"))
    for row in rows:
        line(row)


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, text in facts:
        if text:
            line(f"  {name}: {text}")


def came_out(attempt: Attempt) -> str:
    """The outcome in a word; nothing where nobody can tell."""
    return "open" if attempt.is_open else attempt.outcome.told


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
