"""`ralphdeck history`: what was tried at a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from core.base.text import plural, visible_line
from core.cli.completing import complete_task
from core.cli.episode_shapes import attempt_details_json, history_json
from core.cli.options import Words, joined, reading_options
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
from core.cli.project import chosen_project, now, read_configuration
from core.cli.shapes import Shape, json_help, reflection_json
from core.config.paths import ProjectPaths
from core.config.settings import WatchSettings
from core.episodes.attempt_state import Condition, condition_of
from core.episodes.export import attempt_markdown, history_markdown, reflection_markdown, reflections_markdown
from core.episodes.history import (
    COUNT_DIFFERS,
    AttemptDetail,
    TaskHistory,
    WholeHistory,
    narrowed,
    read_attempt,
    read_history,
    read_whole_history,
)
from core.episodes.task_lookup import find_attempt
from core.records.episodes import Attempt, Milestone, Quality, Task
from core.records.findings import Finding
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.storage.export_file import export_file, write_file

COLOURS: Final = {**OUTCOME_COLOURS, "running": "yellow", "paused": "yellow", "left unfinished": "yellow"}
_LIMIT: Final = 50
"""So many attempts, milestones and reflections of a task are printed, the last ones."""
MOST_SHOWN: Final = 2_000
"""Characters of one text that are printed; exports and --json have all."""
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
            told = narrowed(whole, lambda one: one.outcome in outcomes) if outcomes else whole
        else:
            told = read_attempt(paths, task_id, number)
            # Only of an open attempt it takes the others to know its state.
            whole = read_history(paths, task_id) if told.attempt.is_open else TaskHistory(Task(id=task_id))
        _print(told, whole, only_reflections, limit)
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
    return WholeHistory(narrowed(whole.task, lambda one: one.outcome in outcomes), kept)


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


def _print(told: TaskHistory | AttemptDetail, history: TaskHistory, only_reflections: bool, limit: int) -> None:
    states = _States(history)
    if not only_reflections:
        if isinstance(told, TaskHistory):
            _print_task(told, states, limit)
        else:
            _print_attempt(told, states)
    for reflection in told.reflections[-limit:]:
        _print_reflection(reflection)
    if only_reflections and not told.reflections:
        remark("no reflections")
    _print_left_out({"reflection": len(told.reflections) - limit})


class _States:
    """How each attempt came out, or what state it is in while nobody has said."""

    def __init__(self, history: TaskHistory) -> None:
        self._task: Final = history.task
        self.latest: Final = max((one.number for one in history.attempts), default=0)
        is_open = any(one.is_open for one in history.attempts)
        self._settings: Final = read_configuration().settings.watch if is_open else WatchSettings()

    def condition(self, attempt: Attempt) -> Condition:
        return condition_of(attempt, self._task, self.latest, now(), self._settings)

    def came_out(self, attempt: Attempt) -> str:
        """The outcome or the state in a word; nothing where nobody can tell."""
        return self.condition(attempt).state.value if attempt.is_open else attempt.outcome.told


def _print_task(history: TaskHistory, states: _States, limit: int) -> None:
    task = history.task
    line((_short(task.id), "bold"), f"  {task.status.value}  {_short(task.description)}")
    _print_facts(
        (
            ("done when", task.criteria),
            ("tags", ", ".join(task.tags)),
            ("agent", task.agent),
            ("loop", task.loop_id),
            ("related", ", ".join(task.related)),
            ("created", minute(task.created_at)),
            ("completed" if task.completed_at else "updated", minute(task.completed_at or task.updated_at)),
            ("quality", percent(history.final_quality)),
            ("completion", percent(history.completion)),
        )
    )
    columns = (
        Column("ATTEMPT", right=True),
        Column("OUTCOME", colours=COLOURS),
        Column("STARTED (UTC)"),
        Column("MINUTES", right=True, expendable=4),
        Column("ITERATIONS", right=True, expendable=1),
        Column("ACTIONS", right=True, expendable=2),
        Column("QUALITY", right=True),
        Column("PLAN", free=True, expendable=3),
        Column("REASON", free=True),
    )
    print_table(columns, (_row(one, states.came_out(one)) for one in history.attempts[-limit:]))
    if not history.attempts:
        remark("no attempt came out so" if states.latest else "no attempts yet")
    for finding in history.findings:
        if finding.code == COUNT_DIFFERS:
            remark(f"{finding.file} {finding.message}")
    _print_milestones(history.milestones[-limit:])
    _print_left_out({"attempt": len(history.attempts) - limit, "milestone": len(history.milestones) - limit})


def _print_left_out(more: Mapping[str, int]) -> None:
    told = ", ".join(plural(count, f"earlier {noun}") for noun, count in more.items() if count > 0)
    if told:
        remark(f"{told}; see --limit")


def _row(attempt: Attempt, came_out: str) -> tuple[str, ...]:
    newest = attempt.quality[-1].quality if attempt.quality else None  # while it is open
    return (
        str(attempt.number),
        came_out,
        minute(attempt.started_at),
        _minutes(attempt),
        _count(attempt.iterations),
        _count(attempt.actions),
        percent(newest if attempt.final_quality is None else attempt.final_quality),
        attempt.plan,
        attempt.reason,
    )


def _minutes(attempt: Attempt) -> str:
    """How long it took; nothing where a time is missing."""
    if attempt.started_at is None or attempt.ended_at is None:
        return ""
    took = (attempt.ended_at - attempt.started_at).total_seconds() / 60
    return f"{took:.0f}" if took >= 1 else "<1"


def _print_attempt(detail: AttemptDetail, states: _States) -> None:
    attempt = detail.attempt
    came_out = states.came_out(attempt)
    line((_short(attempt.id), "bold"), "  ", (came_out, COLOURS.get(came_out, "")), f"  {_short(attempt.plan)}")
    minutes = _minutes(attempt)
    failed = f", {attempt.errors:,} failed" if attempt.errors else ""
    planned = "" if detail.estimated_iterations is None else f" of {detail.estimated_iterations:,} planned"
    _print_facts(
        (
            ("reason", states.condition(attempt).reason if attempt.is_open else attempt.reason),
            ("agent", attempt.agent),
            ("started", minute(attempt.started_at)),
            ("ended", f"{minute(attempt.ended_at)}{minutes and f' after {minutes} min'}"),
            ("iterations", f"{_count(attempt.iterations)}{planned if attempt.iterations is not None else ''}"),
            ("actions", f"{_count(attempt.actions)}{failed}"),
            *(("step", step) for step in detail.steps),
            *(("worked", text) for text in attempt.worked),
            *(("did not work", text) for text in attempt.failed),
            *(("next time", text) for text in attempt.suggestions),
            ("quality by iteration", "  ".join(map(_quality, attempt.quality))),
            ("quality", percent(attempt.final_quality)),
            ("completion", percent(attempt.completion)),
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


def _quality(one: Quality) -> str:
    return f"{percent(one.quality)} ({one.change})" if one.change else percent(one.quality)


def _print_milestones(milestones: Iterable[Milestone]) -> None:
    for one in milestones:
        of = "" if one.attempt is None else f"  attempt {one.attempt}"
        line(f"milestone  {minute(one.at)}{of}  {_short(one.event)}  {_short(one.details)}")


def _print_reflection(one: Reflection) -> None:
    line()
    heading, *rows = reflection_markdown(one).split("\n")
    line((heading, "bold"))
    for row in rows:
        line(row)


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, text in facts:
        if text:
            line(f"  {name}: {_short(text)}")


def _short(text: str) -> str:
    return visible_line(text, MOST_SHOWN)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
