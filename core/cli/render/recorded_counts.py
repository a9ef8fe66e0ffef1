"""What became of the records of patterns after a report, and of the metrics."""

from __future__ import annotations

from collections.abc import Sequence

from core.base.text import plural
from core.cli.json.shapes import Shape, number
from core.cli.render.output import line, percent, warn
from core.curation.use_counts import CountResult


def counted_json(counted: CountResult) -> Shape:
    """The counts that a record has now, or the problem that keeps it from having them."""
    return {
        "id": counted.pattern_id,
        "file": counted.file,
        "written": not counted.problem,
        "problem": counted.problem or None,
        "successes": None if counted.problem else counted.successes,
        "failures": None if counted.problem else counted.failures,
        "usage_count": None if counted.problem else counted.uses,
        "success_rate": number(_rate(counted)),
    }


def print_counted(records: Sequence[CountResult]) -> None:
    """One line a record that is up to date, a warning for each other one: the report counts all the same."""
    for counted in records:
        if counted.problem:
            warn(f"the record of {counted.pattern_id} is not up to date: {counted.problem}")
            continue
        results = counted.successes + counted.failures
        rate = f"{percent(_rate(counted))} ({counted.successes:,}/{results:,}), " if results else ""
        line(f"  its record says {rate}{plural(counted.uses, 'use')} now: {counted.file}")


def _rate(counted: CountResult) -> float | None:
    """0..1; None without any result, or where the record does not have it."""
    results = counted.successes + counted.failures
    return counted.successes / results if results and not counted.problem else None
