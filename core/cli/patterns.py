"""`ralphdeck patterns list` and `patterns show`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from core.cli.completing import complete_loop, complete_pattern
from core.cli.options import Fraction, Words, joined, project_option, reading_options
from core.cli.output import Column, end, findings_json, percent, print_json, print_table, remark
from core.cli.pattern_text import print_pattern
from core.cli.project import now, open_deck, read_configuration, read_snapshot
from core.cli.shapes import json_help, lineage_json, observation_json, pattern_details_json, pattern_json
from core.learning.assessment import Assessment
from core.learning.scoreboard import Scoreboard
from core.records.patterns import Maturity, Pattern, PatternType
from core.snapshot import Snapshot

Row = tuple[Pattern, Assessment]

SORTS: Final[dict[str, tuple[Callable[[Row], Any], bool]]] = {
    "score": (lambda row: row[1].score, True),
    "rate": (lambda row: -1.0 if row[1].rate is None else row[1].rate, True),
    "uses": (lambda row: row[1].uses, True),
    "last-used": (lambda row: row[1].last_used.timestamp() if row[1].last_used else 0.0, True),
    "state": (lambda row: list(Maturity).index(row[1].state), False),
    "type": (lambda row: list(PatternType).index(row[0].type), False),
    "title": (lambda row: row[0].title.lower(), False),
    "id": (lambda row: row[0].id, False),
}
"""What patterns can be sorted by, and whether the greatest comes first. Equal ones come in the order of their ids."""

STATE_COLOURS: Final = {"proven": "green", "established": "cyan", "deprecated": "red"}


@click.group()
@project_option
def patterns() -> None:
    """List the learned patterns, or show everything about one.

    \b
    Examples:
      ralphdeck patterns list --state proven
      ralphdeck patterns show pat-error-null-check-015
    """


@patterns.command("list", epilog=json_help("patterns list"))
@click.option("--type", "types", type=Words(list(PatternType)), multiple=True, help="Only these types.")
@click.option("--state", "states", type=Words(list(Maturity)), multiple=True, help="Only in these states.")
@click.option("--min-success-rate", type=Fraction(), help="Only with at least this rate.")
@click.option("--max-success-rate", type=Fraction(), help="Only with at most this rate.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag; repeat to ask for several.")
@click.option(
    "--from-loop", metavar="ID", help="Only those that this loop found or used.", shell_complete=complete_loop
)
@click.option("--sort", type=click.Choice(list(SORTS)), default="score", show_default=True)
@reading_options
def list_patterns(
    types: tuple[tuple[str, ...], ...],
    states: tuple[tuple[str, ...], ...],
    min_success_rate: float | None,
    max_success_rate: float | None,
    tags: tuple[str, ...],
    from_loop: str | None,
    sort: str,
    as_json: bool,
    strict: bool,
) -> None:
    """List the learned patterns with state, success rate and use.

    Rates and counts are what the evidence shows, not only what the files claim. A pattern without any result has
    no rate and passes no filter on it. Of an anti-pattern the rate is how often the avoided approach failed.

    \b
    Examples:
      ralphdeck patterns list --type error,anti --min-success-rate 0.8
      ralphdeck patterns list --state candidate --tag typescript --sort uses
      ralphdeck patterns list --min-success-rate 0 --max-success-rate 60% --json
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    board = Scoreboard.build(snapshot, now(), configuration.settings)
    wanted_types, wanted_states = joined(types), joined(states)
    wanted_tags = {tag.lower() for tag in tags}
    of_loop = None if from_loop is None else _of_loop(snapshot, from_loop)
    rows: list[Row] = []
    for pattern in snapshot.patterns.values():
        if (wanted_types and pattern.type not in wanted_types) or (of_loop is not None and pattern.id not in of_loop):
            continue
        if not wanted_tags <= {tag.lower() for tag in pattern.tags}:
            continue
        assessment = board.assessment(pattern.id)
        if (not wanted_states or assessment.state in wanted_states) and _rate_between(
            assessment.rate, min_success_rate, max_success_rate
        ):
            rows.append((pattern, assessment))
    key, descending = SORTS[sort]
    rows.sort(key=lambda row: row[0].id)
    rows.sort(key=key, reverse=descending)
    if as_json:
        document = {"patterns": [pattern_json(*row) for row in rows]}
        print_json({**document, "findings": findings_json(snapshot.findings)})
    else:
        columns = (
            Column("ID"),
            Column("TYPE"),
            Column("STATE", colours=STATE_COLOURS),
            Column("RATE", right=True),
            Column("90 % INTERVAL"),
            Column("USES", right=True),
            Column("LAST USED"),
            Column("SCORE", right=True),
            Column("TITLE", free=True),
        )
        print_table(columns, map(_cells, rows))
        if not rows:
            remark("no patterns")
    end(snapshot.findings, strict=strict)


def _rate_between(rate: float | None, low: float | None, high: float | None) -> bool:
    if low is None and high is None:
        return True
    return rate is not None and (low is None or rate >= low) and (high is None or rate <= high)


def _of_loop(snapshot: Snapshot, loop_id: str) -> set[str]:
    """Ids of the patterns that a loop found or used, by its own word or by the pattern's."""
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


def _cells(row: Row) -> tuple[str, ...]:
    pattern, assessment = row
    low, high = assessment.interval
    return (
        pattern.id,
        pattern.type.value,
        assessment.state.value,
        percent(assessment.rate),
        f"{low:.2f}-{high:.2f}",
        str(assessment.uses),
        f"{assessment.last_used:%Y-%m-%d}" if assessment.last_used else "",
        f"{assessment.score:.2f}",
        pattern.title,
    )


@patterns.command("show", epilog=json_help("patterns show"))
@click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
@reading_options
def show_pattern(pattern_id: str, as_json: bool, strict: bool) -> None:
    """Show everything known about one pattern.

    \b
    Examples:
      ralphdeck patterns show pat-error-null-check-015
      ralphdeck patterns show pat-error-null-check-015 --json | jq .lineage
    """
    view = open_deck().view
    pattern = view.pattern(pattern_id)
    findings = tuple(finding for finding in view.findings if finding.file == pattern.file)
    if as_json:
        print_json(
            {
                "pattern": pattern_details_json(pattern, view.assessment(pattern.id)),
                "evidence": [observation_json(seen) for seen in view.observations(pattern.id)],
                "lineage": [lineage_json(event) for event in view.lineage(pattern.id)],
                "findings": findings_json(findings),
            }
        )
    else:
        print_pattern(view, pattern)
    end(findings, strict=strict)
