"""`ralphdeck task list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import click

from core.cli.json.shapes import json_help
from core.cli.json.tasks import task_json
from core.cli.render.output import OUTCOME_COLOURS, Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.support.options import Words, joined, reading_options
from core.cli.support.project import now, read_configuration, read_snapshot
from core.config.settings import WatchSettings
from core.episodes.attempt_state import AttemptCondition, AttemptState, assess_attempt, describe_state
from core.episodes.task_indexes import STATUSES
from core.records.episodes import Attempt, Task, by_task
from core.records.loops import Outcome
from core.records.snapshot import Snapshot

_OPEN_COLOURS = {AttemptState.LEFT.value: "yellow"}


@click.command("list", epilog=json_help("task list"))
@click.option("--status", type=Words(STATUSES), multiple=True, help="Only these.")
@click.option("--agent", metavar="NAME", help="Only those that this agent has worked at.")
@click.option("--open", "only_open", is_flag=True, help="Only those with an attempt that has not ended.")
@reading_options
def list_tasks(
    status: tuple[tuple[str, ...], ...], agent: str | None, only_open: bool, as_json: bool, strict: bool
) -> None:
    """List the tasks: status, attempts, how the last one came out, and whether one is open.

    An open attempt without a sign of life for 30 minutes (watch.stale_after_minutes), or at a task that has ended, was
    left unfinished.

    \b
    Examples:
      ralphdeck task list --status running,paused
      ralphdeck task list --open --json
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    wanted = joined(status)
    rows = [
        row
        for row in _rows(snapshot, now(), configuration.settings.watch)
        if (not wanted or row.task.status.value in wanted)
        and (agent is None or agent.casefold() in _agents(row))
        and (row.open is not None or not only_open)
    ]
    if as_json:
        print_json({"tasks": [_json(row) for row in rows], "findings": findings_json(snapshot.findings)})
    else:
        columns = (
            Column("ID"),
            Column("STATUS"),
            Column("ATTEMPTS", right=True, expendable=2),
            Column("LAST OUTCOME", colours=OUTCOME_COLOURS),
            Column("OPEN", colours=_OPEN_COLOURS),
            Column("UPDATED", expendable=1),
            Column("DESCRIPTION", free=True),
        )
        print_table(columns, [_cells(row) for row in rows])
        if not rows:
            remark("no tasks")
    end(snapshot.findings, strict=strict)


class _Row(NamedTuple):
    """One task and what its attempts amount to; `open` is the newest attempt that has not ended."""

    task: Task
    attempts: Sequence[Attempt]
    last: Outcome
    open: Attempt | None
    condition: AttemptCondition | None


def _rows(snapshot: Snapshot, now: datetime, settings: WatchSettings) -> Iterator[_Row]:
    attempts = by_task(snapshot.attempts.values())
    for task in sorted(snapshot.tasks.values(), key=lambda task: task.id):
        mine = attempts.get(task.id, ())
        ended = [one.outcome for one in mine if one.outcome is not Outcome.UNKNOWN]
        open_one = next((one for one in reversed(mine) if one.is_open), None)
        condition = assess_attempt(open_one, task, mine[-1].number, now, settings) if open_one is not None else None
        yield _Row(task, mine, ended[-1] if ended else Outcome.UNKNOWN, open_one, condition)


def _agents(row: _Row) -> set[str]:
    return {name.casefold() for name in (row.task.agent, *(one.agent for one in row.attempts))}


def _cells(row: _Row) -> tuple[str, ...]:
    task = row.task
    return (
        task.id,
        describe_state(task, row.attempts),
        str(len(row.attempts)),
        row.last.label,
        row.condition.state.value if row.condition else "",
        minute(task.updated_at),
        task.description,
    )


def _json(row: _Row) -> dict[str, object]:
    return {
        **task_json(row.task),
        "state": describe_state(row.task, row.attempts),
        "attempts": len(row.attempts),
        "last_outcome": row.last.value,
        "open_attempt": row.open.number if row.open else None,
        "open_state": row.condition.state.value if row.condition else None,
        "open_reason": row.condition.reason if row.condition else None,
    }
