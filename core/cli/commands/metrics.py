"""`ralphdeck metrics`: what sharing patterns has brought (0) Effectiveness Measurement, and how the learning goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from msgspec import to_builtins

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.cli.json.shapes import Shape, json_help, number
from core.cli.render.output import Column, end, findings_json, line, percent, print_json, print_table
from core.cli.support.options import reading_options
from core.cli.support.project import open_deck
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.metrics.dashboard import DEFAULT_WEEKS, Dashboard, build_dashboard
from core.metrics.derived_files import compare_metrics, read_recorded_metrics
from core.metrics.effectiveness import (
    Comparison,
    EffectivenessMetrics,
    effectiveness,
    injection_effect,
    reflection_effect,
    states,
)
from core.metrics.export import FORMATS, export_metrics
from core.metrics.figures import Figure, reach_text, value_text
from core.metrics.sections import build_figures
from core.state.findings import all_findings
from core.storage.export_file import export_file, is_there, write_file

_MOST_CHARS: Final = 60
MOST_WEEKS: Final = 520
"""Ten years."""


@click.command(epilog=json_help("metrics"))
@click.option(
    "--weeks",
    type=click.IntRange(1, MOST_WEEKS),
    default=DEFAULT_WEEKS,
    show_default=True,
    help="How many weeks to look back and ahead.",
)
@click.option(
    "--export",
    "file",
    metavar="FILE",
    help="Write all sections into a file: a report (.md) or the numbers (.csv).",
)
@click.option("--force", is_flag=True, help="Let --export write over a file.")
@reading_options
def metrics(weeks: int, file: str | None, force: bool, as_json: bool, strict: bool) -> None:
    """Print how often patterns were applied, how well that went, and whether loops with them take fewer iterations.

    After that week by week: evidence, success with its interval, what decay will change, how much of what loops get
    a person has judged, open questions, causes of failure, and how your own verdicts have held.

    Counted anew from the evidence. Loops that completed are compared: those that had a pattern injected with those
    that had none, within the same category of task, since easy tasks may get more patterns than hard ones. Where the
    interval of the difference holds 0, or loops are too few, it says "not enough data" and how many more it needs.

    \b
    Examples:
      ralphdeck metrics
      ralphdeck metrics --json | jq .comparison
      ralphdeck metrics --weeks 52 --export report.md
    """
    deck = open_deck()
    view = deck.search_all()
    found = effectiveness(view.snapshot, view.board, view.now)
    comparison = injection_effect(view.snapshot, deck.settings)
    of_reflections = reflection_effect(view.snapshot, deck.settings)
    by_state = states(view.snapshot, view.board)
    disputed = compare_metrics(read_recorded_metrics(deck.project), found)
    board = build_dashboard(view, deck.by, weeks)
    target = _export(board, file, deck.project, force=force) if file is not None else None
    if as_json:
        print_json(
            {
                "effectiveness_metrics": to_builtins(found),
                "states": by_state,
                "comparison": _comparison_json(comparison, deck.settings),
                "reflections": _comparison_json(of_reflections, deck.settings),
                "differences": [
                    {"key": one.key, "file": one.claimed, "evidence": one.evident, "source": one.file}
                    for one in disputed
                ],
                "weeks": weeks,
                "sections": [_section_json(figure) for figure in build_figures(board)],
                "exported": None if target is None else str(target),
                "findings": findings_json(all_findings(view)),
            }
        )
    elif target is not None:
        line(f"wrote {target}")
    else:
        _print(found, by_state, comparison, deck.settings)
        _print_comparison("Difference that injected reflections make", of_reflections, deck.settings)
        for one in disputed:
            file = visible_line(one.file, 80)
            line(f"! {file} claims {one.key} {_told(one.claimed)}, the evidence shows {_told(one.evident)}")
        for figure in build_figures(board):
            _print_section(figure)
    end(all_findings(view), strict=strict)


def _export(found: Dashboard, name: str, project: ProjectPaths, *, force: bool) -> Path:
    """Write the file and say which it is."""
    file = export_file(name, project, FORMATS)
    if is_there(file) and not force:
        raise BadInput(f"{visible_line(str(file), 300)} is there already; --force writes over it")
    write_file(file, export_metrics(found, file.suffix.lower(), project.project.name))
    return file


def _section_json(figure: Figure) -> Shape:
    return {
        "id": figure.id,
        "title": figure.title,
        "takeaway": figure.takeaway,
        "parts": figure.parts,
        "rows": [
            {
                "label": row.label,
                "values": [number(value) for value in row.values],
                "low": number(row.low),
                "high": number(row.high),
                "n": row.count,
            }
            for row in figure.rows
        ],
    }


def _print_section(figure: Figure) -> None:
    """What a section says, then its numbers; of weeks those in which something was."""
    line("")
    line((figure.title, "bold"), f": {figure.takeaway}")
    if not figure.rows:
        line(f"  {figure.missing}")
        return
    reach = [Column(figure.reach, right=True)] if figure.reach else []
    print_table(
        [
            Column(f"  {figure.about}"),
            *(Column(part, right=True) for part in figure.parts),
            *reach,
            Column("n", right=True),
        ],
        [
            (
                f"  {row.label}",
                *([value_text(figure, value) for value in row.values] or ["—"] * len(figure.parts)),
                *([reach_text(figure, row)] if figure.reach else []),
                f"{row.count:,}",
            )
            for row in figure.rows
            if any(row.values) or row.count or row.low is not None
        ],
    )


def _comparison_json(told: Comparison, settings: Settings) -> Shape:
    having, lacking = told.loops
    return {
        "tells": told.is_conclusive,
        "difference": number(told.difference),
        "interval": None if told.low is None or told.high is None else [number(told.low), number(told.high)],
        "level": settings.interval_level,
        "average_with": number(told.having),
        "average_without": number(told.lacking),
        "loops_with": having,
        "loops_without": lacking,
        "loops_needed": told.needed,
        "categories": [
            {
                "category": group.category or None,
                "loops_with": len(group.having),
                "loops_without": len(group.lacking),
                "average_with": sum(group.having) / len(group.having),
                "average_without": sum(group.lacking) / len(group.lacking),
            }
            for group in told.groups
        ],
    }


def _print(found: EffectivenessMetrics, by_state: dict[str, int], comparison: Comparison, settings: Settings) -> None:
    line(f"Patterns: {found.total_patterns:,}")
    types = (plural(count, key.replace("_", " ").removesuffix("s")) for key, count in found.patterns_by_type.items())
    line(f"  by type: {', '.join(types)}")
    line(f"  by state: {', '.join(f'{count:,} {state}' for state, count in by_state.items())}")
    stats, benefit = found.pattern_usage_stats, found.cross_loop_benefit
    rate = f", {percent(stats.overall_success_rate)} of them with success" if stats.total_applications else ""
    line(f"Applications with a result: {stats.total_applications:,}{rate}")
    line("Loops:")
    for word, count, average in (
        ("with", benefit.loops_with_pattern_injection, benefit.average_iterations_with),
        ("without", benefit.loops_without_pattern_injection, benefit.average_iterations_without),
    ):
        told_average = "none of them completed" if average is None else f"{average:.1f} iterations on average"
        line(f"  {word} injected patterns: {count:,}, {told_average}")
    if benefit.improvement_percentage is not None:
        line(f"  improvement: {benefit.improvement_percentage:.1f}% (all tasks together, not like with like)")
    _print_comparison("Difference, like tasks compared", comparison, settings)


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


def _told(value: Any) -> str:
    """A value of the metrics file, which may be anything."""
    return "nothing" if value is None else visible_line(str(value), _MOST_CHARS)
