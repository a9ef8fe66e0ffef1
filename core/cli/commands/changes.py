"""`ralphdeck changes`: what changed between two moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.text import plural
from core.cli.render.output import Column, id_column, line, minute, percent, print_table, respond
from core.cli.support.as_of import PastMoment, remark_undated
from core.cli.support.options import ReadingCommand
from core.cli.support.project import chosen_project, open_project
from core.curation.decision_text import subject_text
from core.records.decisions import TURNS, Decision

if TYPE_CHECKING:
    from core.history.changes import PatternChange, StateComparison

LAST_VISIT: Final = "last-visit"
DEFAULT_SINCE: Final = timedelta(days=7)  # How far `changes` looks back without a last visit.
MAX_ROWS: Final = 20  # Rows of each table without --all.


class _Since(PastMoment):
    """A past moment, or the last visit, which depends on the project."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == LAST_VISIT else super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"DATE|7d|{LAST_VISIT}"


@click.command(cls=ReadingCommand)
@click.option(
    "--since",
    type=_Since(end_of_day=False),
    help=f"Start; a day starts at midnight UTC. Default: {LAST_VISIT}, else 7d.",
)
@click.option("--until", type=PastMoment(end_of_day=True), help="End; a day counts to its end. Default: now.")
@click.option("--all", "is_complete", is_flag=True, help=f"All rows, not only the first {MAX_ROWS} of each table.")
def changes(since: datetime | str | None, until: datetime | None, is_complete: bool) -> None:
    """Show what changed between two moments: patterns, decisions, loops and questions.

    Both moments are scored from what was known then, with the present thresholds. The last visit is when the dashboard
    was last closed on this project.

    \b
    Examples:
      ralphdeck changes
      ralphdeck changes --since 2026-11-01 --until 2026-11-15
      ralphdeck changes --since 36h --json | jq -r '.patterns[].id'
    """
    from core.cli.support.user_files import last_visit
    from core.history.as_of import build_past_state
    from core.history.changes import compare_states
    from core.state.findings import all_findings

    state = open_project().view
    start = since if isinstance(since, datetime) else last_visit(chosen_project().project)
    if since == LAST_VISIT and start is None:
        raise click.UsageError("the dashboard was never opened on this project; use --since 7d or a date")
    start = start or state.now - DEFAULT_SINCE
    until = min(until or state.now, state.now)
    if start >= until:
        raise click.UsageError(f"{minute(start)} is not before {minute(until)}")
    before = build_past_state(state, start)
    found = compare_states(before, build_past_state(state, until))

    def show() -> None:
        _print(found, {decision.id: decision for decision in state.snapshot.decisions}, is_complete)
        remark_undated(all_findings(before))

    states = [(state, count, found.states_after[state]) for state, count in found.states_before.items()]
    respond("ChangesDocument", show, all_findings(before), found, results=found, states=states)


def summary(found: StateComparison) -> str:
    from core.history.changes import ENDED, NEW, REMOVED, STARTED, STATE

    states = found.count(STATE)
    parts = [f"{plural(states, 'pattern')} changed state"] * bool(states)
    parts += [f"{found.count(kind)} {kind}" for kind in (NEW, REMOVED) if found.count(kind)]
    parts += [f"{plural(found.helped, 'use')} helped, {found.failed} failed"] * bool(found.helped or found.failed)
    parts += [", ".join(f"{count} decided by {by}" for by, count in found.deciders.items())] * bool(found.decisions)
    parts += [f"{plural(found.count(kind), 'loop')} {kind}" for kind in (STARTED, ENDED) if found.count(kind)]
    return "; ".join(parts) or "no changes"


_PATTERN_COLUMNS: Final = (
    id_column("PATTERN", lambda one: one.pattern_id),
    Column("CHANGE", lambda one: one.kind, expendable=2),
    Column("BEFORE", lambda one: one.before.state.value if one.before is not None else ""),
    Column("AFTER", lambda one: one.after.state.value if one.after is not None else ""),
    Column("RATE", lambda one: _rates(one), right=True, expendable=1),
    Column("BECAUSE", lambda one: one.because, free=True),
)
_LOOP_COLUMNS: Final = (
    id_column("LOOP", lambda one: one.loop_id),
    Column("CHANGE", lambda one: one.kind),
    Column("STATUS", lambda one: one.status.value, expendable=1),
    Column("AT (UTC)", lambda one: minute(one.at), expendable=2),
    Column("TASK", lambda one: one.task, free=True),
)
_QUESTION_COLUMNS: Final = (
    Column("QUESTION", lambda one: one.kind),
    Column("", lambda one: "new" if one.new else "settled"),
    id_column("ABOUT", lambda one: one.subject),
    Column("TEXT", lambda one: one.text, free=True),
)


def _print(found: StateComparison, known: Mapping[str, Decision], is_complete: bool) -> None:
    line(f"{minute(found.since)} to {minute(found.until)} UTC: {summary(found)}")
    line(", ".join(f"{state} {count} → {found.states_after[state]}" for state, count in found.states_before.items()))
    decision_columns = (
        Column("DECIDED (UTC)", lambda one: minute(one.at)),
        Column("BY", lambda one: one.by, expendable=1),
        Column("VERB", lambda one: one.verb.value),
        id_column("SUBJECT", lambda one: _subject(one, known)),
        Column("REASON", lambda one: one.reason, free=True),
    )
    tables: tuple[tuple[str, Sequence[Column], Sequence[Any]], ...] = (
        ("patterns", _PATTERN_COLUMNS, found.patterns),
        ("decisions", decision_columns, found.decisions),
        ("loops", _LOOP_COLUMNS, found.loops),
        ("questions", _QUESTION_COLUMNS, found.questions),
    )
    for name, columns, rows in tables:
        if rows:
            line("")
            print_table(columns, rows if is_complete else rows[:MAX_ROWS])
            if not is_complete and len(rows) > MAX_ROWS:
                line(f"and {len(rows) - MAX_ROWS:,} more {name}; see: ralphdeck changes --all")


def _rates(change: PatternChange) -> str:
    before, after = (percent(one.rate) if one is not None else "" for one in (change.before, change.after))
    return f"{before} → {after}".strip() if before != after else after


def _subject(decision: Decision, known: Mapping[str, Decision]) -> str:
    if decision.verb in TURNS and (turned := known.get(decision.subject)) is not None:
        return f"{turned.verb.value} {subject_text(turned)}"
    return subject_text(decision)
