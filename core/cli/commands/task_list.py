"""`ralphdeck task list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import click

from core.cli.json import objects
from core.cli.json.wire import Wire
from core.cli.render.output import OUTCOME_COLOURS, Column, id_column, minute, print_table, respond
from core.cli.support.options import ReadingCommand, words_option
from core.cli.support.project import now, read_configuration, read_snapshot
from core.config.settings import WatchSettings
from core.episodes.attempt_state import AttemptCondition, AttemptState, assess_attempt, describe_state
from core.episodes.task_indexes import STATUSES
from core.records.episodes import Attempt, Task, by_task
from core.records.loops import Outcome
from core.records.snapshot import Snapshot

COLUMNS = (
    id_column("ID", lambda row: row.task.id),
    Column("STATUS", lambda row: describe_state(row.task, row.attempts)),
    Column("ATTEMPTS", lambda row: str(len(row.attempts)), right=True, expendable=2),
    Column("LAST OUTCOME", lambda row: row.last.label, colours=OUTCOME_COLOURS),
    Column(
        "OPEN",
        lambda row: row.condition.state.value if row.condition else "",
        colours={AttemptState.LEFT.value: "yellow"},
    ),
    Column("UPDATED", lambda row: minute(row.task.updated_at), expendable=1),
    Column("DESCRIPTION", lambda row: row.task.description, free=True),
)


class _Row(NamedTuple):
    """One task with its attempts; `open` is the newest open attempt."""

    task: Task
    attempts: Sequence[Attempt]
    last: Outcome
    open: Attempt | None
    condition: AttemptCondition | None


@click.command("list", cls=ReadingCommand)
@words_option("--status", words=STATUSES, help="Only with these states.")
@click.option("--agent", metavar="NAME", help="Only tasks of this agent.")
@click.option("--open", "only_open", is_flag=True, help="Only tasks with an open attempt.")
def list_tasks(status: frozenset[str], agent: str | None, only_open: bool) -> None:
    """List the tasks: status, attempts, last outcome, and the state of an open attempt.

    An open attempt without activity for 30 minutes (watch.stale_after_minutes), or at a task that has ended, was left
    unfinished.

    \b
    Examples:
      ralphdeck task list --status running,paused
      ralphdeck task list --open --json
    """
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    wanted = status
    rows = [
        row
        for row in _rows(snapshot, now(), configuration.settings.watch)
        if (not wanted or row.task.status.value in wanted)
        and (agent is None or agent.casefold() in _agents(row))
        and (row.open is not None or not only_open)
    ]
    respond("TaskList", lambda: print_table(COLUMNS, rows, "no tasks"), snapshot.findings, tasks=map(_row_json, rows))


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


def _row_json(row: _Row) -> Wire:
    return objects.TaskRow.of(
        row.task,
        state=describe_state(row.task, row.attempts),
        attempts=len(row.attempts),
        last_outcome=row.last,
        open_attempt=row.open.number if row.open else None,
        open_state=row.condition.state if row.condition else None,
        open_reason=row.condition.reason if row.condition else None,
    )
