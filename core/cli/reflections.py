"""`ralphdeck reflections`."""

from __future__ import annotations

import click

from core.cli.completing import complete_loop
from core.cli.options import Words, joined, reading_options
from core.cli.output import Column, end, findings_json, print_json, print_table, remark
from core.cli.project import read_snapshot
from core.cli.shapes import json_help, reflection_json
from core.records.reflections import Reflection

KINDS = ("error-analysis", "strategy-change", "success-pattern", "constraint-discovery", "process-improvement")
"""(1) reflection types, as words of the command line."""


@click.command(epilog=json_help("reflections"))
@click.option("--loop", metavar="ID", help="Only those of this loop.", shell_complete=complete_loop)
@click.option("--task", metavar="ID", help="Only those of this task.")
@click.option("--kind", type=Words(KINDS), multiple=True, help="Only these kinds.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many.")
@reading_options
def reflections(
    loop: str | None,
    task: str | None,
    kind: tuple[tuple[str, ...], ...],
    limit: int | None,
    as_json: bool,
    strict: bool,
) -> None:
    """List what agents wrote down about their attempts, newest first, each once.

    \b
    Examples:
      ralphdeck reflections --loop ralph-fix-auth-a1b2c3d4
      ralphdeck reflections --kind strategy-change --limit 20 --json
    """
    snapshot = read_snapshot()
    loop_ids = {loop}
    for known in snapshot.loops.values():
        if loop == known.id or loop in known.aliases:
            loop_ids |= {known.id, *known.aliases}
    kinds = {word.replace("-", "_") for word in joined(kind)}
    chosen = [
        reflection
        for reflection in snapshot.reflections.values()
        if (loop is None or reflection.loop_id in loop_ids)
        and task in {None, reflection.task_id}
        and (not kinds or reflection.kind in kinds)
    ][:limit]
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
    end(snapshot.findings, strict=strict)


def _row(reflection: Reflection) -> tuple[str, ...]:
    iteration = reflection.iteration if reflection.iteration is not None else reflection.attempt
    return (
        f"{reflection.at:%Y-%m-%d %H:%M}" if reflection.at else "",
        reflection.loop_id or reflection.task_id,
        "" if iteration is None else str(iteration),
        reflection.kind.replace("_", " "),
        "" if reflection.outcome.value == "unknown" else reflection.outcome.value,
        reflection.text,
    )
