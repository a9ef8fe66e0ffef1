"""`ralphdeck reflections`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from core.cli.json.shapes import json_help, recurring_json, reflection_json
from core.cli.render.output import Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.support.id_completion import complete_loop
from core.cli.support.options import Words, joined, reading_options
from core.cli.support.project import read_snapshot
from core.extraction.clustering import MIN_LOOPS, Cluster, cluster_snapshot
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot

KINDS = ("error-analysis", "strategy-change", "success-pattern", "constraint-discovery", "process-improvement")
"""(1) reflection types, as words of the command line."""


@click.command("list", epilog=json_help("reflection list"))
@click.option("--loop", metavar="ID", help="Only those of this loop.", shell_complete=complete_loop)
@click.option("--task", metavar="ID", help="Only those of this task.")
@click.option("--kind", type=Words(KINDS), multiple=True, help="Only these kinds.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many.")
@click.option("--recurring", is_flag=True, help="Learnings that several loops told, those of most loops first.")
@click.option(
    "--min-loops",
    type=click.IntRange(min=MIN_LOOPS),
    metavar="N",
    help=f"With --recurring: from at least so many loops, or tasks of no known loop. Default: {MIN_LOOPS}.",
)
@reading_options
def list_reflections(
    loop: str | None,
    task: str | None,
    kind: tuple[tuple[str, ...], ...],
    limit: int | None,
    recurring: bool,
    min_loops: int | None,
    as_json: bool,
    strict: bool,
) -> None:
    """List what agents wrote down about their attempts, newest first, each once.

    A draft that has found nothing to learn is left out; `ralphdeck history` has it.

    With --recurring: learnings that say nearly the same in several loops, as one; a drafted reflection takes no part.
    `ralphdeck extract` with the id of one drafts a candidate pattern from it.

    \b
    Examples:
      ralphdeck reflections --loop ralph-fix-auth-a1b2c3d4
      ralphdeck reflections --kind strategy-change --limit 20 --json
      ralphdeck reflections --recurring --min-loops 3
      ralphdeck extract recurring-1a2b3c4d5e --dry-run
    """
    if min_loops is not None and not recurring:
        raise click.UsageError("--min-loops goes with --recurring")
    snapshot = read_snapshot()
    home = snapshot.loop_called(loop) if loop is not None else None
    loop_ids = {loop} if home is None else {home.id, *home.aliases}
    kinds = {word.replace("-", "_") for word in joined(kind)}

    def wanted(reflection: Reflection) -> bool:
        return task in {None, reflection.task_id} and (not kinds or reflection.kind in kinds)

    if recurring:
        clusters = [
            cluster
            for cluster in cluster_snapshot(snapshot)
            if len(cluster.sources) >= (min_loops or MIN_LOOPS)
            and any((loop is None or source in loop_ids) and wanted(told) for source, told in cluster.members)
        ]
        _print_recurring(snapshot, clusters[:limit], as_json=as_json)
    else:
        every = snapshot.reflections.values()
        chosen = [
            told for told in every if told.teaches and (loop is None or told.loop_id in loop_ids) and wanted(told)
        ]
        _print_all(snapshot, chosen[:limit], as_json=as_json)
    end(snapshot.findings, strict=strict)


def _print_all(snapshot: Snapshot, chosen: Sequence[Reflection], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "reflections": [reflection_json(reflection) for reflection in chosen],
                "findings": findings_json(snapshot.findings),
            }
        )
    else:
        columns = (
            Column("AT (UTC)"),
            Column("LOOP OR TASK"),
            Column("ITERATION", right=True),
            Column("KIND"),
            Column("OUTCOME", colours={"success": "green", "failure": "red", "timeout": "red"}),
            Column("REFLECTION", free=True),
        )
        print_table(columns, map(_row, chosen))
        if not chosen:
            remark("no reflections")


def _print_recurring(snapshot: Snapshot, clusters: Sequence[Cluster], *, as_json: bool) -> None:
    if as_json:
        print_json({"recurring": list(map(recurring_json, clusters)), "findings": findings_json(snapshot.findings)})
        return
    columns = (
        Column("ID"),
        Column("LOOPS", right=True),
        Column("LAST (UTC)"),
        Column("KIND"),
        Column("LEARNING", free=True),
    )
    print_table(columns, map(_recurring_row, clusters))
    if not clusters:
        remark("no learning recurs")


def _recurring_row(cluster: Cluster) -> tuple[str, ...]:
    return (
        cluster.id,
        str(len(cluster.sources)),
        minute(cluster.last_at),
        ", ".join(cluster.kinds).replace("_", " "),
        cluster.text,
    )


def _row(reflection: Reflection) -> tuple[str, ...]:
    iteration = reflection.iteration if reflection.iteration is not None else reflection.attempt
    return (
        minute(reflection.at),
        reflection.loop_id or reflection.task_id,
        "" if iteration is None else str(iteration),
        f"{reflection.kind.replace('_', ' ')}{' (draft)' if reflection.draft else ''}".strip(),
        reflection.outcome.label,
        reflection.text,
    )
