"""`ralphdeck metrics`: the effect of patterns, and the progress of learning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.cli.json import objects
from core.cli.render.output import Column, line, percent, print_table, respond
from core.cli.support.options import ReadingCommand, WholeNumber
from core.cli.support.project import open_project
from core.cli.support.team import last_team_status
from core.metrics import DEFAULT_WEEKS
from core.metrics.effectiveness import (
    Benefit,
    Comparison,
    EffectivenessMetrics,
    LoopCounts,
    compare_reflections,
    compute_effectiveness,
    count_states,
)
from core.storage.atomic_write import export_file, file_exists, write_file

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.config.settings import Settings
    from core.metrics.dashboard import Dashboard
    from core.metrics.sections import Figure

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
@click.option(
    "--export", metavar="FILE", help="Write all sections to a file: a report (.md), numbers (.csv) or charts (.svg)."
)
@click.option("--force", is_flag=True, help="Let --export overwrite a file.")
def metrics(weeks: int, export: str | None, force: bool) -> None:
    """Print how often patterns were applied and helped, and whether loops with them take fewer iterations.

    Weekly sections follow: evidence, success rates with intervals, upcoming changes by decay, review coverage, open
    questions, failure causes, and the accuracy of your decisions.

    All numbers come from the evidence. Completed loops with injected patterns are compared with those without, within
    the same category of task, because easy tasks may get more patterns than hard ones. If the interval of the
    difference contains 0 or there are too few loops, the result is "not enough data", with the number needed.

    \b
    Examples:
      ralphdeck metrics
      ralphdeck metrics --json | jq .comparison
      ralphdeck metrics --weeks 52 --export report.md
    """
    from core.metrics.dashboard import build_dashboard
    from core.metrics.derived_files import compare_metrics, read_recorded_metrics
    from core.metrics.sections import build_figures
    from core.state.findings import all_findings

    project = open_project()
    state, settings = project.search_all(), project.settings
    loops = LoopCounts.of(state.snapshot)
    found = compute_effectiveness(state.snapshot, state.board, state.now, loops)
    of_reflections = compare_reflections(state.snapshot, settings, loops)
    by_state = count_states(state.snapshot, state.board)
    differences = compare_metrics(read_recorded_metrics(project.project), found)
    board = build_dashboard(state, project.by, weeks, last_team_status(), loops)
    comparison = board.iterations
    target = _export(board, export, project.project, force=force) if export is not None else None

    def show() -> None:
        if target is not None:
            line(f"wrote {target}")
            return
        _print(found, by_state, comparison, settings)
        _print_comparison("Difference by injected reflections", of_reflections, settings)
        for one in differences:
            file = visible_line(one.file, 80)
            line(f"! {file} has {one.key} {_shown(one.claimed)}, the evidence {_shown(one.evident)}")
        for figure in build_figures(board):
            _print_section(figure)

    respond(
        "MetricsDocument",
        show,
        all_findings(state),
        effectiveness_metrics=found,
        states=by_state,
        comparison=lambda: _comparison_json(comparison, settings.interval_level),
        reflections=lambda: _comparison_json(of_reflections, settings.interval_level),
        differences=differences,
        weeks=weeks,
        sections=lambda: build_figures(board),
        exported=None if target is None else str(target),
    )


def _comparison_json(found: Comparison, level: float) -> objects.Wire:
    having, lacking = found.loops
    categories = [
        objects.CategoryComparison.of(
            group,
            loops_with=len(group.having),
            loops_without=len(group.lacking),
            average_with=sum(group.having) / len(group.having),
            average_without=sum(group.lacking) / len(group.lacking),
        )
        for group in found.groups
    ]
    return objects.Comparison.of(found, level=level, loops_with=having, loops_without=lacking, categories=categories)


def _export(board: Dashboard, name: str, project: ProjectPaths, *, force: bool) -> Path:
    from core.metrics.export import FORMATS, export_metrics

    file = export_file(name, project, FORMATS)
    if file_exists(file) and not force:
        raise BadInput(f"{visible_line(str(file), 300)} already exists; use --force to overwrite it")
    write_file(file, export_metrics(board, file.suffix.lower(), project.project.name))
    return file


def _print_section(figure: Figure) -> None:
    """Print the summary and the rows of a section, without weeks that have no data."""
    from core.metrics.sections import reach_text

    line("")
    line((figure.title, "bold"), f": {figure.takeaway}")
    if not figure.rows:
        line(f"  {figure.missing}")
        return
    columns = [Column(f"  {figure.about}", lambda row: f"  {row.label}")]
    columns += (Column(part, _value(figure, number), right=True) for number, part in enumerate(figure.parts))
    if figure.reach:
        columns.append(Column(figure.reach, lambda row: reach_text(figure, row), right=True, expendable=1))
    if figure.extra:
        columns.append(Column(figure.extra, lambda row: row.extra, right=True, expendable=1))
    columns.append(Column("n", lambda row: f"{row.count:,}", right=True))
    print_table(columns, [row for row in figure.rows if any(row.values) or row.count or row.low is not None])


def _value(figure: Figure, number: int) -> Any:
    from core.metrics.sections import value_text

    return lambda row: value_text(figure, row.values[number]) if row.values else "—"


def _print(found: EffectivenessMetrics, by_state: dict[str, int], comparison: Comparison, settings: Settings) -> None:
    line(f"Patterns: {found.total_patterns:,}")
    types = (plural(count, key.replace("_", " ").removesuffix("s")) for key, count in found.patterns_by_type.items())
    line(f"  by type: {', '.join(types)}")
    line(f"  by state: {', '.join(f'{count:,} {state}' for state, count in by_state.items())}")
    stats, benefit = found.pattern_usage_stats, found.cross_loop_benefit
    rate = f", {percent(stats.overall_success_rate)} successful" if stats.total_applications else ""
    line(f"Applications with a result: {stats.total_applications:,}{rate}")
    line("Loops:")
    for word in ("with", "without"):
        line(f"  {word} injected patterns: {_describe_loops(benefit, word)}")
    if benefit.improvement_percentage is not None:
        note = "of completed loops, over all tasks, not corrected for category"
        line(f"  improvement: {benefit.improvement_percentage:.1f} % ({note})")
    _print_comparison("Difference within the same category", comparison, settings)


def _describe_loops(benefit: Benefit, word: str) -> str:
    """Describe loops with or without injected patterns: `5; 1 completed in 2.0 iterations on average, 4 failed`."""
    total, average, completed, failed, wasted = (
        getattr(benefit, f"{name}_{word}{more}")
        for name, more in (
            *(("loops", "_pattern_injection"), ("average_iterations", ""), ("completed_loops", "")),
            *(("failed_loops", ""), ("average_iterations_failed", "")),
        )
    )
    parts = ["none completed" if average is None else f"{completed:,} completed in {average:.1f} iterations on average"]
    if failed:
        parts.append(f"{failed:,} failed" + ("" if wasted is None else f" after {wasted:.1f}"))
    return f"{total:,}; {', '.join(parts)}" if total else "none"


def _print_comparison(label: str, comparison: Comparison, settings: Settings) -> None:
    having, lacking = comparison.loops
    line(f"{label}: {comparison.verdict}")
    if comparison.difference is not None:
        interval = ""
        if comparison.low is not None and comparison.high is not None:
            level = f"{settings.interval_level * 100:g} %"
            interval = f", {level} interval {comparison.low:+.1f} to {comparison.high:+.1f}"
        categories = plural(len(comparison.groups), "category", "categories")
        line(f"  {comparison.difference:+.1f} iterations{interval}; {having} and {lacking} loops in {categories}")


def _shown(value: Any) -> str:
    """Format a value of a metrics file, which may have any type."""
    return "nothing" if value is None else visible_line(str(value), _MAX_CHARS)
