"""`ralphdeck task list`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import click

from core.base.text import visible_line
from core.base.validation import ambiguous_id_error, find_matching_ids
from core.cli.json import tasks as tasks_json
from core.cli.render.output import (
    OUTCOME_COLOURS,
    Column,
    end,
    id_column,
    line,
    minute,
    percent,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.options import ReadingCommand, WholeNumber, choose_mode, words_option
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.records.episodes import TASK_STATUSES, Attempt, Task, group_by_task
from core.records.loops import Outcome
from core.tasks.attempts import AttemptCondition, AttemptState, assess_attempt, describe_state
from core.tasks.task_links import MAX_TASKS
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.base.settings import WatchSettings
    from core.cli.json.wire import Wire
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import PastTask
    from core.tasks.task_links import SimilarTask

_MAX_SHOWN = 300  # Characters of a text that are printed.
COLUMNS = (
    id_column("ID", lambda row: row.task.id),
    Column("STATUS", lambda row: describe_state(row.task, row.attempts)),
    Column("ATTEMPTS", lambda row: str(len(row.attempts)), right=True, expendable=2),
    Column("LAST OUTCOME", lambda row: row.last.label, colours=OUTCOME_COLOURS),
    Column(
        "OPEN",
        lambda row: row.condition.state.word if row.condition else "",
        colours={AttemptState.LEFT.word: "yellow"},
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

    @property
    def agents(self) -> set[str]:
        return {name.casefold() for name in (self.task.agent, *(one.agent for one in self.attempts))}


@click.command("list", cls=ReadingCommand)
@words_option("--status", words=TASK_STATUSES, help="Only with these states.")
@click.option("--agent", metavar="NAME", help="Only tasks of this agent.")
@click.option("--open", "only_open", is_flag=True, help="Only tasks with an open attempt.")
@click.option("--similar", metavar="TASK|TEXT", help="List past tasks like this one instead, with their learnings.")
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help=f"With --similar: at most N. Default: {MAX_TASKS}.")
def list_tasks(
    status: frozenset[str], agent: str | None, only_open: bool, similar: str | None, limit: int | None
) -> None:
    """List the tasks: status, attempts, last outcome, and the state of an open attempt.

    An open attempt counts as unfinished if it had no activity for 30 minutes (watch.stale_after_minutes), or if its
    task has ended.

    With --similar the past tasks are listed that are most like a TASK or a TEXT. TASK is the ID of a task or a part of
    it, or an attempt; any other TEXT describes a future task. Tasks are compared by semantic similarity if `ralphdeck
    doctor --embed` or the dashboard has computed their vectors, otherwise by common words. Learnings of successful
    attempts come first; drafts are listed only if there is no written reflection.

    \b
    Examples:
      ralphdeck task list --status running,paused
      ralphdeck task list --open --json
      ralphdeck task list --similar task-001
      ralphdeck task list --similar "Add OAuth login to the admin pages" --limit 3 --json
    """
    if choose_mode({"--similar": "limit", "": "status agent only_open"}):
        _list_similar(similar or "", limit or MAX_TASKS)
        return
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    rows = [
        row
        for row in _rows(snapshot, now(), configuration.settings.watch)
        if (not status or row.task.status.value in status)
        and (agent is None or agent.casefold() in row.agents)
        and (row.open is not None or not only_open)
    ]
    if wants_json():
        print_object(tasks_json.TaskList, findings=snapshot.findings, tasks=map(_row_json, rows))
    else:
        print_table(COLUMNS, rows, "no tasks")
    end(snapshot.findings)


def _rows(snapshot: Snapshot, now: datetime, settings: WatchSettings) -> Iterator[_Row]:
    attempts = group_by_task(snapshot.attempts.values())
    for task in sorted(snapshot.tasks.values(), key=lambda task: task.id):
        mine = attempts.get(task.id, ())
        ended = [one.outcome for one in mine if one.outcome is not Outcome.UNKNOWN]
        open_one = next((one for one in reversed(mine) if one.is_open), None)
        condition = assess_attempt(open_one, task, mine[-1].number, now, settings) if open_one is not None else None
        yield _Row(task, mine, ended[-1] if ended else Outcome.UNKNOWN, open_one, condition)


def _row_json(row: _Row) -> Wire:
    return tasks_json.TaskRow.of(
        row.task,
        state=describe_state(row.task, row.attempts),
        attempts=len(row.attempts),
        last_outcome=row.last,
        open_attempt=row.open.number if row.open else None,
        open_state=row.condition.state if row.condition else None,
        open_reason=row.condition.reason if row.condition else None,
    )


def _list_similar(task: str, limit: int) -> None:
    """List similar past tasks with their learnings, most similar first."""
    from core.retrieval.embeddings import TASKS, Embeddings, is_available
    from core.tasks.task_links import collect_past_tasks, find_similar_tasks

    require_trust(chosen_project())
    snapshot = read_snapshot()
    tasks = collect_past_tasks(snapshot)
    embeddings = Embeddings(chosen_project(), TASKS)
    query = _find_task(task, tasks)
    found = find_similar_tasks(query, snapshot, embeddings, limit)
    if embeddings.problem:
        remark(embeddings.problem)

    if wants_json():
        print_object(tasks_json.SimilarTaskList, findings=snapshot.findings, similar=found)
    else:
        for one in found:
            _print_similar(one)
        if not found:
            is_id = isinstance(query, str) and " " not in query.strip()
            remark(f"no similar task{'; no task has this id, so it was compared as text' if is_id else ''}")
        if is_available() and embeddings.missing(tasks):
            remark("some tasks were compared by words only; to compute vectors: ralphdeck doctor --embed")
    end(snapshot.findings)


def _find_task(text: str, tasks: Mapping[str, PastTask]) -> str | PastTask:
    """Find a task by ID, ID prefix or attempt, else return the text; raises for several."""
    task_id, _, number = text.rpartition(".")
    name = task_id if text not in tasks and task_id in tasks and number.isdecimal() else text
    matches = find_matching_ids(name, tasks)
    if len(matches) > 1:
        raise ambiguous_id_error(text, matches)
    return tasks[matches[0]] if matches else text


def _print_similar(found: SimilarTask) -> None:
    line(
        (visible_line(found.task_id, _MAX_SHOWN), "bold"),
        f"  {percent(found.score)} by {found.matched_by}  {found.outcome.value}  ",
        visible_line(found.description, _MAX_SHOWN),
    )
    for learned in found.learnings:
        attempt = "" if learned.attempt is None else f"attempt {learned.attempt}: "
        line(f"  - {attempt}", visible_line(learned.text, _MAX_SHOWN))
