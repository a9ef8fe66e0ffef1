"""`ralphdeck patterns`: `list` and `show`; the other commands of the group are loaded when they are called."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import click

from core.cli.json.learning import set_aside_json, share_json, step_json, weighed_json
from core.cli.json.shapes import (
    json_help,
    lineage_json,
    number,
    observation_json,
    pattern_details_json,
    pattern_json,
    pin_json,
    rule_json,
)
from core.cli.render.document import print_blocks
from core.cli.render.output import Column, day, end, findings_json, line, percent, print_json, print_table, remark
from core.cli.support.as_of import as_of_option, tell_undated, view_as_of
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import reading_options
from core.cli.support.pattern_filter import PatternFilter, filter_options
from core.cli.support.project import now, open_deck, read_configuration, read_snapshot
from core.documents.patterns import explanation, pattern_document
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.scoreboard import Scoreboard
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Snapshot
from core.records.times import iso
from core.state.findings import all_findings, count_conflicts
from core.state.history import explain_pattern, pattern_lineage
from core.state.project_state import ProjectState

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

STATE_COLOURS: Final = {
    "proven": "green",
    "established": "cyan",
    "deprecated": "red",
    QUARANTINE: "yellow",
    HELD: "yellow",
}


@click.command("list", epilog=json_help("pattern list"))
@filter_options
@click.option("--sort", type=click.Choice(list(SORTS)), default="score", show_default=True)
@as_of_option
@reading_options
def list_patterns(wanted: PatternFilter, sort: str, as_of: datetime | None, as_json: bool, strict: bool) -> None:
    """List the learned patterns with state, success rate and use.

    A pattern whose text waits for a person has the state quarantine or held; its state in JSON is candidate.
    Rates and counts are what the evidence shows, not only what the files claim; ~85% is a rate that the record
    claims without the counts for it. A pattern without any rate passes no filter on it. The rate of an anti-pattern
    is how often the avoided approach failed.

    \b
    Examples:
      ralphdeck patterns list --type error,anti --min-success-rate 0.8
      ralphdeck patterns list --state candidate --tag typescript --sort uses
      ralphdeck patterns list --state held,quarantine
      ralphdeck patterns list --min-success-rate 0 --max-success-rate 60% --json
      ralphdeck patterns list --as-of 2026-11-15
    """
    snapshot, board = _scored(as_of)
    rows = wanted.rows(snapshot, board)
    key, descending = SORTS[sort]
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
        if as_of is not None:
            tell_undated(snapshot.findings)
    end(snapshot.findings, strict=strict)


def _scored(as_of: datetime | None) -> tuple[Snapshot, Scoreboard]:
    """The records of the project, scored as of now or of a past moment."""
    if as_of is not None:
        view = view_as_of(as_of)
        return view.snapshot, view.board
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    return snapshot, Scoreboard.build(snapshot, now(), configuration.settings)


def _cells(row: Row) -> tuple[str, ...]:
    pattern, assessment = row
    low, high = assessment.interval
    return (
        pattern.id,
        pattern.type.value,
        assessment.shown,
        f"{'~' * assessment.is_claimed}{percent(assessment.rate)}",
        f"{low:.2f}-{high:.2f}",
        str(assessment.uses),
        day(assessment.last_used),
        f"{assessment.score:.2f}",
        pattern.title,
    )


@click.command("show", epilog=json_help("pattern show"))
@click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
@as_of_option
@reading_options
def show_pattern(pattern_id: str, as_of: datetime | None, as_json: bool, strict: bool) -> None:
    """Show everything known about one pattern.

    \b
    Examples:
      ralphdeck patterns show pat-error-null-check-015
      ralphdeck patterns show pat-error-null-check-015 --json | jq .lineage
      ralphdeck patterns show pat-error-null-check-015 --as-of 7d
    """
    view = view_as_of(as_of)
    pattern = view.pattern(pattern_id)
    findings = tuple(finding for finding in all_findings(view) if finding.file == pattern.file)
    if as_json:
        print_json(
            {
                "pattern": pattern_details_json(pattern, view.assessment(pattern.id)),
                "evidence": [observation_json(seen) for seen in view.observations(pattern.id)],
                "lineage": [lineage_json(event) for event in pattern_lineage(view, pattern.id)],
                "findings": findings_json(findings),
            }
        )
    else:
        print_blocks(pattern_document(view, pattern).blocks)
    end(findings, strict=strict)


@click.command(epilog=json_help("pattern why"))
@click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
@reading_options
def why(pattern_id: str, as_json: bool, strict: bool) -> None:
    """Explain the state of a pattern: who or which rule decided, what counts how much, and what would change it.

    The rule that gave the pattern its state is marked "decides".

    \b
    Example:
      ralphdeck why pat-error-null-check-015
    """
    view = open_deck().view
    pattern = view.pattern(pattern_id)
    if as_json:
        print_json(_document(view, pattern))
    else:
        line(pattern.id)
        print_blocks(explanation(view, pattern))
    end(all_findings(view), strict=strict)


def _document(view: ProjectState, pattern: Pattern) -> dict[str, object]:
    assessment = view.assessment(pattern.id)
    reasons = explain_pattern(view, pattern.id)
    change = assessment.next_change
    return {
        "id": pattern.id,
        "state": assessment.state.value,
        "computed_state": assessment.computed.value,
        "decided_by": assessment.decided_by,
        "pin": pin_json(assessment.pin),
        "pin_stale": assessment.pin_stale,
        "contradicted": assessment.contradicted,
        "faded": assessment.faded,
        "injectable": assessment.injectable,
        "success_rate": number(assessment.rate),
        "claimed_rate": number(assessment.claimed_rate),
        "interval": [number(bound) for bound in assessment.interval],
        "successes": assessment.successes,
        "failures": assessment.failures,
        "helpful": number(assessment.helpful),
        "harmful": number(assessment.harmful),
        "next_change": None if change is None else {"at": iso(change[0]), "state": change[1].value},
        "rules": [rule_json(rule) for rule in reasons.lines],
        "events": [weighed_json(weighed) for weighed in reasons.events],
        "steps": [step_json(step) for step in reasons.steps],
        "loops": [share_json(share) for share in reasons.loops],
        "calendar": [{"at": iso(at), "state": state.value} for at, state in reasons.calendar],
        "set_aside": [set_aside_json(aside) for aside in view.board.ignored_reports(pattern.id)],
        "doubts": findings_json(count_conflicts(view, pattern.id)),
        "findings": findings_json(all_findings(view)),
    }
