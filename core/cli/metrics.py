"""`ralphdeck metrics`: what sharing patterns has brought (0) Effectiveness Measurement."""

from __future__ import annotations

from typing import Any, Final

import click
from msgspec import to_builtins

from core.cli.options import reading_options
from core.cli.output import end, findings_json, line, percent, print_json
from core.cli.project import open_deck
from core.cli.shapes import Shape, json_help, number
from core.curation.derived import claimed_metrics, differences
from core.metrics.effectiveness import Comparison, EffectivenessMetrics, effectiveness, injection_effect, states
from core.settings import Settings
from core.text import plural, visible_line

_MOST_CHARS: Final = 60


@click.command(epilog=json_help("metrics"))
@reading_options
def metrics(as_json: bool, strict: bool) -> None:
    """Print how often patterns were applied, how well that went, and whether loops with them take fewer iterations.

    Counted anew from the evidence. Loops that completed are compared: those that had a pattern injected with those
    that had none, within the same category of task, since easy tasks may get more patterns than hard ones. Where the
    interval of the difference holds 0, or loops are too few, it says "cannot tell", and how many more it would take.

    \b
    Examples:
      ralphdeck metrics
      ralphdeck metrics --json | jq .comparison
    """
    deck = open_deck()
    view = deck.view
    found = effectiveness(view.snapshot, view.board, view.now)
    comparison = injection_effect(view.snapshot, deck.settings)
    by_state = states(view.snapshot, view.board)
    disputed = differences(claimed_metrics(deck.project), found)
    if as_json:
        print_json(
            {
                "effectiveness_metrics": to_builtins(found),
                "states": by_state,
                "comparison": _comparison_json(comparison, deck.settings),
                "differences": [{"key": key, "file": says, "evidence": shows} for key, says, shows in disputed],
                "findings": findings_json(view.findings),
            }
        )
    else:
        _print(found, by_state, comparison, deck.settings)
        for key, says, shows in disputed:
            line(f"! the file says {key} {_told(says)}, the evidence {_told(shows)}")
    end(view.findings, strict=strict)


def _comparison_json(told: Comparison, settings: Settings) -> Shape:
    having, lacking = told.loops
    return {
        "tells": told.tells,
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
    having, lacking = comparison.loops
    line(f"Difference, like tasks compared: {comparison.verdict}")
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
