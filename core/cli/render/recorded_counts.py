"""Text output of updated pattern records."""

from __future__ import annotations

from collections.abc import Sequence

from core.base.text import plural
from core.cli.render.output import line, percent, warn
from core.curation.use_counts import CountResult


def print_recorded_counts(records: Sequence[CountResult]) -> None:
    """Print a line for each updated record, and a warning for each other one; the report counts in any case."""
    for counted in records:
        if counted.problem:
            warn(f"the record of {counted.pattern_id} is not up to date: {counted.problem}")
            continue
        results = counted.successes + counted.failures
        rate = f"{percent(counted.successes / results)} ({counted.successes:,}/{results:,}), " if results else ""
        line(f"  updated its record: {rate}{plural(counted.uses, 'use')}, in {counted.file}")
