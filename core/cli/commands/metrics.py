"""`ralphdeck metrics`: the effect of patterns, and the progress of learning."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.cli.json import analysis as analysis_json
from core.cli.render.output import Column, end, line, percent, print_object, print_table, wants_json
from core.cli.support.options import ReadingCommand, WholeNumber, choose_mode
from core.cli.support.project import open_project
from core.cli.support.signature import find_user_name
from core.cli.support.team import last_team_status
from core.files.atomic_write import export_file, file_exists, write_file
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.effectiveness import (
    MIN_FOLLOWED,
    LoopCounts,
    ReviewerAccuracy,
    Share,
    compute_effectiveness,
    count_states,
    measure_accuracy,
)

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.show.metrics.dashboard import Dashboard
    from core.show.metrics.effectiveness import Comparison
    from core.show.metrics.lesson_effect import LessonEffect
    from core.show.metrics.sections import Figure, Row

_MAX_CHARS: Final = 60
MAX_WEEKS: Final = 520  # Ten years.


@click.command(cls=ReadingCommand)
@click.option(
    "--weeks",
    type=WholeNumber(1, MAX_WEEKS),
    default=DEFAULT_WEEKS,
    show_default=True,
    help="Number of weeks to look back and ahead.",
)
@click.option("--export", metavar="FILE", help="Write all sections to a file: a report (.md) or numbers (.csv).")
@click.option("--force", is_flag=True, help="Let --export overwrite a file.")
@click.option(
    "--reviewer",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Show how many promotions and deprecations later evidence confirmed. Default: yours.",
)
@click.option("--tasks", is_flag=True, help="Compare retries of tasks with and without reflections instead.")
def metrics(weeks: int, export: str | None, force: bool, reviewer: str | None, tasks: bool) -> None:
    """Print whether lessons help, which ones most and least, and how learning works.

    Sections about the work follow: patterns and their states, uses, loops with and without patterns, tokens, failure
    causes. The last ones are about ralphdeck itself: upcoming changes by decay, open questions, review coverage and the
    accuracy of your decisions.

    All numbers come from the evidence. Completed loops with injected patterns are compared with those without, within
    the same category of task, because easy tasks may get more patterns than hard ones. If the interval of the
    difference contains 0 or there are too few loops, the result is "not enough data", with the number needed.

    --reviewer: a decision counts if there are enough results between it and the next decision on the same pattern.
    Enough is the number that a pattern needs to leave the state candidate (min_feedback). A rate needs at least 30 such
    decisions.

    --tasks also prints the success metrics of the task memory. A retry has reflections if a reflection on an earlier
    attempt at its task was written before the retry began; drafts without a learning do not count. The target for
    retries with reflections is 20 percentage points above those without. The read latency is measured now, on the tasks
    with most actions. --json lists all IDs.

    \b
    Examples:
      ralphdeck metrics
      ralphdeck metrics --json | jq .comparison
      ralphdeck metrics --weeks 52 --export report.md
      ralphdeck metrics --reviewer ana
      ralphdeck metrics --tasks --json | jq .metrics.tracking_coverage.missing
    """
    mode = choose_mode({"--reviewer": "", "--tasks": "", "": "weeks export force"})
    if mode == "--reviewer":
        _print_accuracy(reviewer or None)
        return
    if mode == "--tasks":
        from core.cli.commands.task_report import print_report

        print_report()
        return
    from core.index.project_state import all_findings
    from core.show.metrics.dashboard import build_dashboard
    from core.show.metrics.effectiveness import compare_metrics, read_recorded_metrics
    from core.show.metrics.sections import build_figures

    project = open_project()
    state, settings = project.search_all(), project.settings
    loops = LoopCounts.of(state.snapshot)
    found = compute_effectiveness(state.snapshot, state.board, state.now, loops)
    by_state = count_states(state.snapshot, state.board)
    differences = compare_metrics(read_recorded_metrics(project.project), found)
    board = build_dashboard(state, project.by, weeks, last_team_status(), loops)
    target = _export(board, export, project.project, force=force) if export is not None else None

    if wants_json():
        print_object(
            analysis_json.MetricsDocument,
            findings=all_findings(state),
            lessons=_lessons_json(board.lessons),
            effectiveness_metrics=found,
            states=by_state,
            comparison=_comparison_json(board.iterations, settings.interval_level),
            reflections=_comparison_json(board.reflections, settings.interval_level),
            differences=differences,
            weeks=weeks,
            sections=build_figures(board),
            exported=None if target is None else str(target),
        )
    elif target is not None:
        line(f"wrote {target}")
    else:
        for number, figure in enumerate(build_figures(board)):
            if number and figure.rows:
                line("")
            _print_section(figure)
        if differences:
            first, count = differences[0], plural(len(differences), "recorded number")
            line(
                f"! {visible_line(first.file, 80)}: {count} unlike the evidence, such as {first.key}"
                f" {_shown(first.claimed)}, evidence {_shown(first.evident)}"
            )
    end(all_findings(state))


def _print_accuracy(by: str | None) -> None:
    """Print how many decisions of a reviewer later evidence confirmed."""
    from core.index.project_state import all_findings

    state = open_project().view
    found = measure_accuracy(state, by or find_user_name(None, state.settings).by)

    if wants_json():
        print_object(
            analysis_json.AccuracyDocument,
            found,
            findings=all_findings(state),
            needed=MIN_FOLLOWED,
            promotions=_share_json(found.promotions),
            deprecations=_share_json(found.deprecations),
        )
    else:
        line(f"accuracy of {found.by}'s decisions, by later results")
        for word, share in (("promotion", found.promotions), ("deprecation", found.deprecations)):
            line(f"{plural(share.made, word)}: {_share_text(share, found)}")
    end(all_findings(state))


def _share_json(share: Share) -> Wire:
    return analysis_json.DecisionShare.of(share, held=share.held if share.rate is not None else None)


def _share_text(share: Share, found: ReviewerAccuracy) -> str:
    """Return how many decisions were confirmed, or how many are missing for a rate."""
    if share.rate is None:
        return f"{share.followed} of {MIN_FOLLOWED} needed, each with {plural(found.follow_up, 'later result')} or more"
    interval = f"{percent(found.level)} interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.held} of {share.followed} with later results confirmed, {percent(share.rate)} ({interval})"


def _comparison_json(found: Comparison, level: float) -> Wire:
    having, lacking = found.loops
    categories = [
        analysis_json.CategoryComparison.of(
            group,
            loops_with=len(group.having),
            loops_without=len(group.lacking),
            average_with=sum(group.having) / len(group.having),
            average_without=sum(group.lacking) / len(group.lacking),
        )
        for group in found.groups
    ]
    return analysis_json.Comparison.of(
        found, level=level, loops_with=having, loops_without=lacking, categories=categories
    )


def _lessons_json(found: LessonEffect) -> Wire:
    comparison = found.comparison
    having, lacking = comparison.loops
    is_known = comparison.is_conclusive
    return analysis_json.LessonEffect.of(
        found,
        known=is_known,
        unit=found.measure.unit,
        cases_with=having,
        cases_without=lacking,
        average_with=comparison.having if is_known else None,
        average_without=comparison.lacking if is_known else None,
        interval=[comparison.low, comparison.high] if is_known else None,
    )


def _export(board: Dashboard, name: str, project: ProjectPaths, *, force: bool) -> Path:
    from core.show.metrics.sections import FORMATS, export_metrics

    file = export_file(name, project, FORMATS)
    if file_exists(file) and not force:
        raise BadInput(f"{visible_line(str(file), 300)} already exists; use --force to overwrite it")
    write_file(file, export_metrics(board, file.suffix.lower(), project.project.name))
    return file


def _print_section(figure: Figure) -> None:
    """Print the summary and the rows of a section, without weeks that have no data."""
    from core.show.metrics.sections import reach_text

    title = figure.title if figure.title.endswith("?") else f"{figure.title}:"
    if not figure.rows:
        line((title, "bold"), f" {figure.takeaway.removesuffix('.')}. {figure.missing}")
        return
    line((title, "bold"), f" {figure.takeaway}")
    columns = [Column(f"  {figure.about}", lambda row: f"  {row.label}", free=True)]
    if figure.group:
        columns.append(Column(figure.group, lambda row: row.group))
    columns += (Column(part, partial(_part, figure, number), right=True) for number, part in enumerate(figure.parts))
    if figure.reach:
        columns.append(
            Column(figure.reach, lambda row: reach_text(figure, row), right=True, expendable=int(not figure.group))
        )
    if figure.extra:
        columns.append(Column(figure.extra, lambda row: row.extra, right=True, expendable=1))
    if figure.has_count:
        columns.append(Column("n", lambda row: f"{row.count:,}", right=True))
    print_table(columns, [row for row in figure.rows if any(row.values) or row.count or row.low is not None])


def _part(figure: Figure, number: int, row: Row) -> str:
    from core.show.metrics.sections import part_text

    return part_text(figure, row, number)


def _shown(value: Any) -> str:
    """Format a value of a metrics file, which may have any type."""
    return "nothing" if value is None else visible_line(str(value), _MAX_CHARS)
