"""`ralphdeck task list`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import click

from core.cli.episode_shapes import task_json
from core.cli.options import Words, joined, reading_options
from core.cli.output import Column, end, findings_json, print_json, print_table, remark
from core.cli.project import now, read_configuration, read_snapshot
from core.cli.shapes import json_help
from core.episodes.indexing import STATUSES
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.snapshot import Snapshot

RUNNING = "running"
PAUSED = "paused"
HALF_FINISHED = "half-finished"
"""What an open attempt is called that nobody seems to work at any more."""
_COLOURS = {"success": "green", "failure": "red", "timeout": "red"}
_OPEN_COLOURS = {HALF_FINISHED: "yellow"}


@click.command("list", epilog=json_help("task list"))
@click.option("--status", type=Words(STATUSES), multiple=True, help="Only these.")
@click.option("--agent", metavar="NAME", help="Only those that this agent has worked at.")
@click.option("--open", "only_open", is_flag=True, help="Only those with an attempt that has not ended.")
@reading_options
def list_tasks(
    status: tuple[tuple[str, ...], ...], agent: str | None, only_open: bool, as_json: bool, strict: bool
) -> None:
    """List the tasks: status, attempts, how the last one came out, and whether one is open.

    An open attempt without any sign for 30 minutes (watch.stale_after_minutes), or at a task that has ended, is
    half-finished.

    \b
    Examples:
      ralphdeck task list --status running,paused
      ralphdeck task list --open --json
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    rows = list(_rows(snapshot, now(), timedelta(minutes=configuration.settings.watch.stale_after_minutes)))
    wanted = joined(status)
    rows = [
        row
        for row in rows
        if (not wanted or row.task.status.value in wanted)
        and (agent is None or agent in {row.task.agent, *(one.agent for one in row.attempts)})
        and (row.open is not None or not only_open)
    ]
    if as_json:
        print_json({"tasks": [_json(row) for row in rows], "findings": findings_json(snapshot.findings)})
    else:
        columns = (
            Column("ID"),
            Column("STATUS"),
            Column("ATTEMPTS", right=True),
            Column("LAST OUTCOME", colours=_COLOURS),
            Column("OPEN", colours=_OPEN_COLOURS),
            Column("UPDATED"),
            Column("DESCRIPTION", free=True),
        )
        print_table(columns, [_cells(row) for row in rows])
        if not rows:
            remark("no tasks")
    end(snapshot.findings, strict=strict)


class _Row:
    """One task and what its attempts amount to."""

    def __init__(self, task: Task, attempts: tuple[Attempt, ...], now: datetime, stale_after: timedelta) -> None:
        self.task = task
        self.attempts = attempts
        ended = [one for one in attempts if one.outcome is not Outcome.UNKNOWN]
        self.last = ended[-1].outcome if ended else Outcome.UNKNOWN
        self.open = next((one for one in reversed(attempts) if one.is_open), None)
        self.state = self._state(now - stale_after) if self.open is not None else ""

    def _state(self, stale: datetime) -> str:
        assert self.open is not None
        sign = self.open.last_action_at or self.open.started_at
        if self.task.status.ended or self.open is not self.attempts[-1]:
            return HALF_FINISHED
        if self.task.status is TaskStatus.PAUSED:
            return PAUSED
        return RUNNING if sign is not None and sign >= stale else HALF_FINISHED


def _rows(snapshot: Snapshot, now: datetime, stale_after: timedelta) -> Iterator[_Row]:
    attempts: dict[str, list[Attempt]] = {}
    for one in snapshot.attempts.values():
        attempts.setdefault(one.task_id, []).append(one)
    for task in sorted(snapshot.tasks.values(), key=lambda task: task.id):
        mine = sorted(attempts.get(task.id, ()), key=lambda one: one.number)
        yield _Row(task, tuple(mine), now, stale_after)


def _cells(row: _Row) -> tuple[str, ...]:
    task = row.task
    return (
        task.id,
        task.status.value,
        str(len(row.attempts)),
        "" if row.last is Outcome.UNKNOWN else row.last.value,
        row.state,
        f"{task.updated_at:%Y-%m-%d %H:%M}" if task.updated_at else "",
        task.description,
    )


def _json(row: _Row) -> dict[str, object]:
    return {
        **task_json(row.task),
        "attempts": len(row.attempts),
        "last_outcome": row.last.value,
        "open_attempt": row.open.number if row.open else None,
        "open_state": row.state or None,
    }
