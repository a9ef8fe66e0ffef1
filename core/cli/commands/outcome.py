"""`ralphdeck outcome`: how a loop or an attempt came out (2) Recording Outcomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import click

from core.base.errors import BadInput
from core.base.formatting import short_id
from core.base.text import plural
from core.cli.json.learning import effect_json, outcome_json
from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_json, remark, warn
from core.cli.render.recorded_counts import counted_json, print_counted
from core.cli.support.id_completion import complete_work
from core.cli.support.options import Count, Duration, deciding_options
from core.cli.support.project import open_deck
from core.cli.support.work_options import at_option, find_work, print_effects, result_of, result_options, time_of
from core.curation.use_counts import CountResult
from core.extraction.strategies import find_used_strategies
from core.project.scoring import applied, kind_of
from core.records.events import Event, Signals, event_id
from core.records.snapshot import Delta
from core.state.project_state import ProjectState


@click.command(epilog=json_help("loop outcome"))
@click.argument("work", shell_complete=complete_work)
@result_options
@click.option("--duration", type=Duration(), help="From start to end; a number alone is ms.")
@click.option("--errors", type=Count(), metavar="N", help="Errors on the way, resolved or not.")
@click.option("--retries", type=Count(), metavar="N", help="Attempts before the last one.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file it changed; may be given again.")
@click.option("--strategy", default="", metavar="TEXT", help="How the work was divided.")
@click.option("--failure-mode", default="", metavar="TEXT", help="What kind of failure it was.")
@click.option("--failure-details", default="", metavar="TEXT", help="What happened.")
@at_option
@click.option("--dry-run", is_flag=True, help="Score it and write nothing.")
@deciding_options
def outcome(
    work: str,
    success: bool,
    failure: bool,
    duration: float | None,
    errors: int | None,
    retries: int | None,
    files: tuple[str, ...],
    strategy: str,
    failure_mode: str,
    failure_details: str,
    at: datetime | None,
    dry_run: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """Record how WORK, a loop or an attempt at a task, came out; that counts for the patterns it applied.

    What is left out comes from the files of the loop or attempt. Work of another tool needs --success or
    --failure. Of several reports the newest that says something stands, field by field.

    \b
    Examples:
      ralphdeck outcome ralph-fix-auth-a1b2c3d4 --retries 1
      ralphdeck outcome bd-123.1 --success --duration 3m --errors 0 --file src/auth.ts --strategy "file-based"
      ralphdeck outcome task-001.2 --failure --failure-mode timeout --dry-run
    """
    result = result_of(success, failure)
    moment = time_of(at)
    deck = open_deck(by, records=True)
    view = deck.view
    warnings: list[str] = []
    event = Event(
        id=event_id(moment),
        at=moment,
        kind="outcome",
        loop_id=find_work(view, work, warnings),
        success=result,
        by=deck.by,
        agent=deck.agent,
        signals=Signals(
            duration_ms=duration,
            error_count=errors,
            retry_count=retries,
            files_touched=files,
            strategy=strategy,
            failure_mode=failure_mode,
            failure_details=failure_details,
        ),
    )
    after = _supposing(view, event)
    if after.outcome(event.loop_id) is None:
        raise BadInput(f"{_not_out(view, event.loop_id)}; say how it came out with --success or --failure")
    if _older(view, event):
        warnings.append("a newer report of its outcome stands; of this one only what that leaves open counts")
    records: list[CountResult] = []
    if not dry_run:
        deck.record(event, counted=records, warnings=warnings)
        deck.learn_strategies(event.loop_id, counted=records, warnings=warnings)
        after = deck.view
    _print(view, after, event.loop_id, warnings, records, as_json=as_json, recorded=not dry_run)


def _supposing(view: ProjectState, event: Event) -> ProjectState:
    """The view as it were with one event more."""
    snapshot = replace(view.snapshot, events=(*view.snapshot.events, event))
    return replace(view, snapshot=snapshot, board=view.board.updated(snapshot, Delta(events=True), view.now))


def _not_out(view: ProjectState, work_id: str) -> str:
    loop = view.snapshot.loops.get(work_id)
    return f"{short_id(work_id)} is {loop.status}" if loop else f"{short_id(work_id)} does not say how it ended"


def _older(view: ProjectState, event: Event) -> bool:
    return any(
        other.at > event.at
        for other in view.snapshot.events
        if other.kind == "outcome" and other.loop_id == event.loop_id and not other.pattern_id
    )


def _print(
    before: ProjectState,
    after: ProjectState,
    work_id: str,
    warnings: list[str],
    records: list[CountResult],
    *,
    as_json: bool,
    recorded: bool,
) -> None:
    found = after.outcome(work_id)
    assert found is not None
    signals, scored = found
    strategies = find_used_strategies(work_id, after.snapshot, after.board)
    uses = dict.fromkeys(seen.pattern_id for seen in applied(after, [work_id])[work_id])
    effects = [(before.assessment(id), after.assessment(id)) for id in uses if id in before.board]
    for warning in warnings:
        warn(warning)
    if as_json:
        print_json(
            {
                "outcome": outcome_json(kind_of(after, work_id), signals, scored),
                "patterns": [effect_json(effect) for effect in effects],
                "strategies": list(strategies),
                "recorded": recorded,
                "records": [counted_json(counted) for counted in records],
                "warnings": warnings,
            }
        )
        return
    line((work_id, "bold"), f": {scored.reasoning}")
    if strategies:
        line(f"strategies: {', '.join(strategies)}")
    changed = [effect for effect in effects if effect[0].state is not effect[1].state]
    print_effects(changed)
    if len(effects) > len(changed):
        line(f"in their state stay: {plural(len(effects) - len(changed), 'pattern')} that it applied")
    print_counted([counted for counted in records if counted.problem])
    if written := sum(not counted.problem for counted in records):
        line(f"up to date: the {'record' if written == 1 else 'records'} of {plural(written, 'pattern')}")
    if not recorded:
        remark("nothing was written")
