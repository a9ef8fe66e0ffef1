"""`ralphdeck loops`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from core.cli.json.shapes import json_help, loop_json
from core.cli.render.output import Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.support.options import Words, joined, reading_options
from core.cli.support.project import now, read_configuration, read_snapshot
from core.config.settings import LearningSettings
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot

COLOURS = {
    "running": "green",
    "completing": "green",
    "recovering": "yellow",
    "paused": "yellow",
    "partial": "yellow",
    "limit": "yellow",
    "failed": "red",
    "crashed": "red",
}


@click.command("list", epilog=json_help("loop list"))
@click.option(
    "--status",
    type=Words([status.value for status in LoopStatus]),
    multiple=True,
    help="Only loops in one of these.",
)
@click.option("--archived/--no-archived", default=None, help="Only archived loops, or none of them.")
@reading_options
def list_loops(status: tuple[tuple[str, ...], ...], archived: bool | None, as_json: bool, strict: bool) -> None:
    """List the loops of every source, newest first: internal, external, archived.

    \b
    Examples:
      ralphdeck loops --status running,paused
      ralphdeck loops --no-archived --json | jq -r '.loops[].id'
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    statuses = joined(status)
    chosen = [
        loop
        for loop in snapshot.loops.values()
        if (not statuses or loop.status in statuses) and archived in {None, loop.archived}
    ]
    if as_json:
        _print_json(snapshot, chosen, configuration.settings.learning)
    else:
        columns = (
            Column("ID"),
            Column("STATUS", colours=COLOURS),
            Column("ITERATION", right=True),
            Column("STARTED (UTC)"),
            Column("BADGES", expendable=1),
            Column("TASK", free=True),
        )
        print_table(columns, map(_row, chosen))
        if not chosen:
            remark("no loops")
    end(snapshot.findings, strict=strict)


def _print_json(snapshot: Snapshot, chosen: Iterable[Loop], settings: LearningSettings) -> None:
    """Import scoring for this listing alone: the table needs neither outcomes nor the event log."""
    from core.cli.json.learning import score_json
    from core.learning.evidence_inputs import EvidenceInputs
    from core.learning.outcomes import score_outcome

    present = now()
    inputs = EvidenceInputs.of(snapshot, settings)
    found = []
    for loop in chosen:
        signals = inputs.signals(loop.id)
        outcome = None
        if signals is not None:
            counts = {"error_count": signals.error_count, "retry_count": signals.retry_count}
            outcome = score_json(score_outcome(signals, present, settings)) | counts
        found.append({**loop_json(loop, inputs.loop_patterns(loop.id)), "outcome": outcome})
    print_json({"loops": found, "findings": findings_json(snapshot.findings)})


def _row(loop: Loop) -> tuple[str, ...]:
    badges = [*loop.badges, *(["archived"] if loop.archived else [])]
    started = minute(loop.started_at)
    return loop.id, loop.status.value, _progress(loop), started, ",".join(badges), loop.task


def _progress(loop: Loop) -> str:
    if loop.iteration is None:
        return ""
    return f"{loop.iteration}/{loop.max_iterations}" if loop.max_iterations is not None else str(loop.iteration)
