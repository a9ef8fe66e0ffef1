"""`ralphdeck changes`: what changed between two moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from core.base.text import plural
from core.cli.json.shapes import decision_json, json_help
from core.cli.render.output import Column, end, findings_json, line, minute, percent, print_json, print_table
from core.cli.support.as_of import PastMoment, tell_undated
from core.cli.support.options import reading_options
from core.cli.support.project import chosen_project, open_deck
from core.cli.support.user_files import last_visit
from core.curation.decision_text import subject_text
from core.history.changes import (
    ENDED,
    NEW,
    REMOVED,
    STARTED,
    STATE,
    LoopChange,
    PatternChange,
    PatternStatus,
    QuestionChange,
    StateComparison,
    compare_states,
)
from core.records.decisions import TURNS, Decision
from core.records.times import iso
from core.state.findings import all_findings

LAST_VISIT: Final = "last-visit"
DEFAULT_SINCE: Final = timedelta(days=7)
"""How far `changes` looks back where no visit is known."""
MOST: Final = 20
"""Rows of each table, unless all are asked for."""


class _Since(PastMoment):
    """The same, or the last visit; which project that is of, only the whole command line tells."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The moment, or `LAST_VISIT`; a usage error for anything else."""
        return value if value == LAST_VISIT else super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The forms, as the help shows them."""
        return f"DATE|7d|{LAST_VISIT}"


@click.command(epilog=json_help("changes"))
@click.option(
    "--since",
    type=_Since(end_of_day=False),
    help=f"From when on; a day begins at midnight UTC. Default: {LAST_VISIT}, else 7d.",
)
@click.option("--until", type=PastMoment(end_of_day=True), help="Until when; a day counts to its end. Default: now.")
@click.option("--all", "whole", is_flag=True, help=f"All rows, not only the first {MOST} of each table.")
@reading_options
def changes(since: datetime | str | None, until: datetime | None, whole: bool, as_json: bool, strict: bool) -> None:
    """Say what changed between two moments: patterns, decisions, loops and questions.

    Both moments are scored anew from what was known then, under the thresholds of today. The last visit is when the
    dashboard was closed on this project last.

    \b
    Examples:
      ralphdeck changes
      ralphdeck changes --since 2026-11-01 --until 2026-11-15
      ralphdeck changes --since 36h --json | jq -r '.patterns[].id'
    """
    from core.history.as_of import build_past_state

    view = open_deck().view
    begin = since if isinstance(since, datetime) else last_visit(chosen_project().project)
    if since == LAST_VISIT and begin is None:
        raise click.UsageError("no dashboard was open on this project yet")
    begin = begin or view.now - DEFAULT_SINCE
    until = min(until or view.now, view.now)
    if begin >= until:
        raise click.UsageError(f"{minute(begin)} is not before {minute(until)}")
    before, after = build_past_state(view, begin), build_past_state(view, until)
    found = compare_states(before, after)
    findings = all_findings(before)
    if as_json:
        print_json({**changes_json(found), "findings": findings_json(findings)})
    else:
        _print(found, {decision.id: decision for decision in view.snapshot.decisions}, None if whole else MOST)
        tell_undated(findings)
    end(findings, strict=strict)


def changes_json(found: StateComparison) -> dict[str, Any]:
    """The stable shape of what changed."""
    return {
        "since": iso(found.since),
        "until": iso(found.until),
        "results": {"helped": found.helped, "failed": found.failed, "other": found.other},
        "states": [
            {"state": state, "before": found.states_before[state], "after": found.states_after[state]}
            for state in found.states_after
        ],
        "patterns": [_pattern_json(one) for one in found.patterns],
        "decisions": [decision_json(one) for one in found.decisions],
        "loops": [
            {"id": one.loop_id, "kind": one.kind, "status": one.status, "task": one.task, "at": iso(one.at)}
            for one in found.loops
        ],
        "questions": [
            {"kind": one.kind, "subject": one.subject, "text": one.text, "new": one.new} for one in found.questions
        ],
    }


def _pattern_json(change: PatternChange) -> dict[str, Any]:
    return {
        "id": change.pattern_id,
        "title": change.title,
        "kind": change.kind,
        "because": change.because,
        "by": change.by,
        "weight": change.weight,
        "before": _standing_json(change.before),
        "after": _standing_json(change.after),
    }


def _standing_json(standing: PatternStatus | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    return {
        "state": standing.state,
        "success_rate": standing.rate,
        "successes": standing.successes,
        "failures": standing.failures,
        "usage_count": standing.uses,
        "score": standing.score,
        "injectable": standing.injectable,
    }


def _print(found: StateComparison, known: Mapping[str, Decision], most: int | None) -> None:
    line(f"{minute(found.since)} to {minute(found.until)} UTC: {summary(found)}")
    counts = (f"{state} {count} → {found.states_after[state]}" for state, count in found.states_before.items())
    line(", ".join(counts))
    _table("patterns", _PATTERN_COLUMNS, found.patterns, _pattern_row, most)
    _table("decisions", _DECISION_COLUMNS, found.decisions, lambda one: _decision_row(one, known), most)
    _table("loops", _LOOP_COLUMNS, found.loops, _loop_row, most)
    _table("questions", _QUESTION_COLUMNS, found.questions, _question_row, most)


def summary(found: StateComparison) -> str:
    """All that changed, in numbers."""
    states = found.count(STATE)
    told = [f"{plural(states, 'pattern')} {'turns' if states == 1 else 'turn'}"] * bool(states)
    told += [f"{found.count(kind)} {kind}" for kind in (NEW, REMOVED) if found.count(kind)]
    told += [f"{plural(found.helped, 'use')} helped, {found.failed} failed"] * bool(found.helped or found.failed)
    told += [", ".join(f"{count} decided by {by}" for by, count in found.deciders.items())] * bool(found.decisions)
    told += [f"{plural(found.count(kind), 'loop')} {kind}" for kind in (STARTED, ENDED) if found.count(kind)]
    return "; ".join(told) or "nothing changed"


_PATTERN_COLUMNS: Final = (
    Column("PATTERN"), Column("CHANGE"), Column("BEFORE"), Column("AFTER"), Column("RATE", right=True),
    Column("BECAUSE", free=True),
)  # fmt: skip
_DECISION_COLUMNS: Final = (
    Column("DECIDED (UTC)"), Column("BY"), Column("VERB"), Column("SUBJECT"), Column("REASON", free=True),
)  # fmt: skip
_LOOP_COLUMNS: Final = (
    Column("LOOP"),
    Column("CHANGE"),
    Column("STATUS"),
    Column("AT (UTC)"),
    Column("TASK", free=True),
)
_QUESTION_COLUMNS: Final = (Column("QUESTION"), Column(""), Column("ABOUT"), Column("TEXT", free=True))


def _table(
    what: str, columns: Sequence[Column], rows: Sequence[Any], row: Callable[[Any], tuple[str, ...]], most: int | None
) -> None:
    if rows:
        line("")
        print_table(columns, map(row, rows[:most]))
        if most is not None and len(rows) > most:
            line(f"and {len(rows) - most:,} more {what}; see: ralphdeck changes --all")


def _pattern_row(change: PatternChange) -> tuple[str, ...]:
    before, after = change.before, change.after
    rates = [percent(one.rate) if one is not None else "" for one in (before, after)]
    rate = f"{rates[0]} → {rates[1]}".strip() if rates[0] != rates[1] else rates[1]
    states = [one.state.value if one is not None else "" for one in (before, after)]
    return change.pattern_id, change.kind, *states, rate, change.because


def _decision_row(decision: Decision, known: Mapping[str, Decision]) -> tuple[str, ...]:
    subject = subject_text(decision)
    if decision.verb in TURNS and (taken := known.get(decision.subject)) is not None:
        subject = f"{taken.verb.value} {subject_text(taken)}"
    return minute(decision.at), decision.by, decision.verb.value, subject, decision.reason


def _loop_row(change: LoopChange) -> tuple[str, ...]:
    return change.loop_id, change.kind, change.status.value, minute(change.at), change.task


def _question_row(question: QuestionChange) -> tuple[str, ...]:
    return question.kind, "new" if question.new else "settled", question.subject, question.text
