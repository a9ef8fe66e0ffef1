"""`ralphdeck loop outcome`: record the outcome of a loop or an attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from core.base.errors import BadInput
from core.base.formatting import shorten_id
from core.base.text import plural
from core.cli.json import objects
from core.cli.json.loops import effect, outcome_values, record_update
from core.cli.render.output import line, remark, respond, warn
from core.cli.support.options import COUNT, DURATION, DecidingCommand
from core.cli.support.project import open_project
from core.cli.support.work_options import (
    at_option,
    find_work,
    parse_result,
    print_effects,
    print_recorded_counts,
    require_past,
    result_options,
    work_argument,
)
from core.curation.use_counts import CountResult
from core.extraction.strategies import find_used_strategies
from core.project.scoring import applied, kind_of
from core.records.events import Event, Signals, event_id
from core.records.snapshot import Delta
from core.state.project_state import ProjectState


@click.command(cls=DecidingCommand)
@work_argument
@result_options
@click.option("--duration", "duration_ms", type=DURATION, help="From start to end; a plain number is ms.")
@click.option("--errors", "error_count", type=COUNT, metavar="N", help="Number of errors, resolved or not.")
@click.option("--retries", "retry_count", type=COUNT, metavar="N", help="Attempts before the last one.")
@click.option("--file", "files_touched", multiple=True, metavar="PATH", help="A file that it changed; may be repeated.")
@click.option("--strategy", default="", metavar="TEXT", help="How the work was divided.")
@click.option("--failure-mode", default="", metavar="TEXT", help="Kind of the failure.")
@click.option("--failure-details", default="", metavar="TEXT", help="What happened.")
@at_option
@click.option("--dry-run", is_flag=True, help="Score the outcome and write nothing.")
def outcome(work: str, success: bool, failure: bool, at: datetime | None, dry_run: bool, **signals: Any) -> None:
    """Record the outcome of WORK, a loop or an attempt at a task; it counts for the patterns that were applied.

    Missing values are read from the files of the loop or attempt. The ID of another tool needs --success or --failure.
    Of several reports the newest counts, separately for each value.

    \b
    Examples:
      ralphdeck loop outcome ralph-fix-auth-a1b2c3d4 --retries 1
      ralphdeck loop outcome bd-123.1 --success --duration 3m --errors 0 --file src/auth.ts --strategy "file-based"
      ralphdeck loop outcome task-001.2 --failure --failure-mode timeout --dry-run
    """
    result = parse_result(success, failure)
    moment = require_past(at)
    project = open_project(records=True)
    before = project.view
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="outcome",
        loop_id=find_work(before, work, warnings),
        success=result,
        by=project.by,
        agent=project.agent,
        signals=Signals(**signals),
    )
    after = _with_event(before, event)
    if after.board.outcome(event.loop_id) is None:
        loop = before.snapshot.loops.get(event.loop_id)
        reason = f"is {loop.status}" if loop else "has no recorded result"
        raise BadInput(f"{shorten_id(event.loop_id)} {reason}; give --success or --failure")
    if _is_older(before, event):
        warnings.append("a newer report on its outcome takes precedence; only values missing there are used")
    records: list[CountResult] = []
    if not dry_run:
        project.record(event, counted=records, warnings=warnings)
        project.learn_strategies(event.loop_id, counted=records, warnings=warnings)
        after = project.view
    _print(before, after, event.loop_id, warnings, records, is_recorded=not dry_run)


def _with_event(state: ProjectState, event: Event) -> ProjectState:
    """The state with one more event."""
    snapshot = replace(state.snapshot, events=(*state.snapshot.events, event))
    return replace(state, snapshot=snapshot, board=state.board.updated(snapshot, Delta(events=True), state.now))


def _is_older(state: ProjectState, event: Event) -> bool:
    return any(
        other.at > event.at
        for other in state.snapshot.events
        if other.kind == "outcome" and other.loop_id == event.loop_id and not other.pattern_id
    )


def _print(
    before: ProjectState,
    after: ProjectState,
    work_id: str,
    warnings: list[str],
    records: list[CountResult],
    *,
    is_recorded: bool,
) -> None:
    found = after.board.outcome(work_id)
    assert found is not None
    signals, scored = found
    strategies = find_used_strategies(work_id, after.snapshot, after.board)
    uses = dict.fromkeys(use.pattern_id for use in applied(after, [work_id])[work_id])
    effects = [(before.assessment(id), after.assessment(id)) for id in uses if id in before.board]
    for warning in warnings:
        warn(warning)

    def show() -> None:
        line((work_id, "bold"), f": {scored.reasoning}")
        if strategies:
            line(f"strategies: {', '.join(strategies)}")
        changed = [effect for effect in effects if effect[0].state is not effect[1].state]
        print_effects(changed)
        if len(effects) > len(changed):
            line(f"state unchanged: {plural(len(effects) - len(changed), 'applied pattern')}")
        print_recorded_counts([counted for counted in records if counted.problem])
        if written := sum(not counted.problem for counted in records):
            line(f"updated the {'record' if written == 1 else 'records'} of {plural(written, 'pattern')}")
        if not is_recorded:
            remark("nothing was written")

    respond(
        "OutcomeDocument",
        show,
        outcome=lambda: objects.Outcome.of(scored, **outcome_values(kind_of(after, work_id), signals)),
        patterns=(effect(*one) for one in effects),
        strategies=strategies,
        recorded=is_recorded,
        records=map(record_update, records),
        warnings=warnings,
    )
