"""`ralphdeck loop list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.base.formatting import format_cost, format_count
from core.cli.render.output import Column, id_column, minute, print_table, respond
from core.cli.support.options import ReadingCommand, words_option
from core.cli.support.project import now, read_configuration, read_snapshot
from core.records.loops import Loop, LoopStatus

if TYPE_CHECKING:
    from msgspec import Struct

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
COLUMNS = (
    id_column("ID", lambda loop: loop.id),
    Column("STATUS", lambda loop: loop.status.value, colours=COLOURS),
    Column("ITERATION", lambda loop: _progress(loop), right=True, expendable=2),
    Column("STARTED (UTC)", lambda loop: minute(loop.started_at), expendable=1),
    Column("BADGES", lambda loop: ",".join([*loop.badges, *["archived"] * loop.archived]), expendable=3),
    Column("TASK", lambda loop: loop.task, free=True),
)
RUNNER_COLUMNS = (
    Column("SOURCE", lambda loop: loop.source_name, expendable=2),
    Column("AGENT", lambda loop: loop.agent, expendable=4),
    Column("TOKENS", lambda loop: _tokens(loop), right=True, expendable=4),
    Column("COST", lambda loop: _cost(loop), right=True, expendable=5),
)  # before the start, if a loop of another runner than `.aiwg` is listed


@click.command("list", cls=ReadingCommand)
@words_option("--status", words=(one.value for one in LoopStatus), help="Only with these states.")
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Only of this runner or agent; aiwg: .aiwg.")
@click.option("--archived/--no-archived", default=None, help="Only archived loops, or only the others.")
def list_loops(status: frozenset[str], sources: tuple[str, ...], archived: bool | None) -> None:
    """List the loops of every runner and agent, newest first.

    \b
    Examples:
      ralphdeck loop list --status running,paused
      ralphdeck loop list --source claude,codex
      ralphdeck loop list --no-archived --json | jq -r '.loops[].id'
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    named = {name for names in sources for name in names.split(",")}
    chosen = [
        loop
        for loop in snapshot.loops.values()
        if (not status or loop.status in status)
        and (not named or loop.source_name in named)
        and archived in {None, loop.archived}
    ]

    def document() -> Struct:
        # Only this needs the scores: the table shows neither outcomes nor the event log.
        from core.cli.json import objects
        from core.cli.json.loops import loop_row
        from core.learning.evidence_inputs import EvidenceInputs
        from core.learning.outcomes import score_outcome

        present, settings = now(), configuration.settings.learning
        inputs = EvidenceInputs.of(snapshot, settings)
        rows = []
        for loop in chosen:
            signals = inputs.signals(loop.id)
            outcome = None
            if signals is not None:
                counts = {"error_count": signals.error_count, "retry_count": signals.retry_count}
                outcome = objects.LoopOutcome.of(score_outcome(signals, present, settings), **counts)
            rows.append(loop_row(loop, inputs.loop_patterns(loop.id), outcome))
        return objects.LoopList.of(loops=rows, findings=snapshot.findings)

    has_runners = any(loop.runner for loop in chosen)
    columns = (*COLUMNS[:3], *RUNNER_COLUMNS, *COLUMNS[3:]) if has_runners else COLUMNS
    respond(document, lambda: print_table(columns, chosen, "no loops"), snapshot.findings)


def _tokens(loop: Loop) -> str:
    total = loop.usage.total
    return "" if total is None else format_count(total)


def _cost(loop: Loop) -> str:
    return "" if loop.usage.cost_usd is None else format_cost(loop.usage.cost_usd)


def _progress(loop: Loop) -> str:
    most = f"/{loop.max_iterations}" if loop.max_iterations is not None else ""
    return f"{loop.iteration}{most}" if loop.iteration is not None else ""
