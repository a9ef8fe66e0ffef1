"""Options that filter patterns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click

from core.cli.support.id_completion import complete_loop
from core.cli.support.options import FRACTION, words_option
from core.records.patterns import Maturity, Pattern, PatternType

if TYPE_CHECKING:
    from core.learning.maturity import Assessment
    from core.learning.scoreboard import Scoreboard
    from core.records.snapshot import Snapshot


_STATES: Final = [*Maturity, "quarantine", "held"]


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Conditions on patterns; all must hold. Empty and None match every pattern."""

    types: frozenset[str]
    states: frozenset[str]
    min_success_rate: float | None
    max_success_rate: float | None
    tags: frozenset[str]
    from_loop: str | None

    def rows(self, snapshot: Snapshot, board: Scoreboard) -> list[tuple[Pattern, Assessment]]:
        of_loop = None if self.from_loop is None else _of_loop(snapshot, self.from_loop)
        patterns = [
            pattern
            for pattern in sorted(snapshot.patterns.values(), key=attrgetter("id"))
            if (not self.types or pattern.type in self.types)
            and (of_loop is None or pattern.id in of_loop)
            and (not self.tags or self.tags <= {tag.lower() for tag in pattern.tags})
        ]
        rows = zip(patterns, board.assessments(patterns), strict=True)
        return [row for row in rows if self._matches_state(row[1]) and self._matches_rate(row[1].rate)]

    def _matches_state(self, assessment: Assessment) -> bool:
        return not self.states or not self.states.isdisjoint((assessment.state, assessment.shown))

    def _matches_rate(self, rate: float | None) -> bool:
        low, high = self.min_success_rate, self.max_success_rate
        if rate is None:
            return low is None and high is None
        return (low is None or rate >= low) and (high is None or rate <= high)


FILTER_NAMES: Final = "types states min_success_rate max_success_rate tags from_loop"
"""Names of the parameters that `filter_options` adds."""


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a `PatternFilter`, passed to the command as `wanted`."""

    @words_option("--type", "types", words=PatternType, help="Only these types.")
    @words_option("--state", "states", words=_STATES, help="Only in these states.")
    @click.option("--min-success-rate", type=FRACTION, help="Only with at least this rate.")
    @click.option("--max-success-rate", type=FRACTION, help="Only with at most this rate.")
    @click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag; may be repeated.")
    @click.option(
        "--from-loop",
        metavar="ID",
        help="Only patterns that this loop discovered or followed.",
        shell_complete=complete_loop,
    )
    @functools.wraps(command)
    def filtered(tags: tuple[str, ...], **options: Any) -> Any:
        fields = {field: options.pop(field) for field in PatternFilter.__dataclass_fields__ if field != "tags"}
        wanted = PatternFilter(tags=frozenset(tag.lower() for tag in tags), **fields)
        return command(wanted=wanted, **options)

    return filtered


def _of_loop(snapshot: Snapshot, loop_id: str) -> set[str]:
    """Find patterns that a loop discovered or applied by its or the pattern's record."""
    names = {loop_id}
    found: set[str] = set()
    for loop in snapshot.loops.values():
        if loop_id == loop.id or loop_id in loop.aliases:
            names |= {loop.id, *loop.aliases}
            found |= {use.pattern_id for use in loop.injected if use.applied}
            found |= {extracted.pattern_id for extracted in loop.extracted}
    for pattern in snapshot.patterns.values():
        if any(source.loop_id in names for source in pattern.source_loops):
            found.add(pattern.id)
    return found
