"""`ralphdeck task similar`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from core.base.id_lookup import find_matching_ids
from core.base.text import visible_line
from core.cli.render.output import line, percent, remark, respond
from core.cli.support.options import ReadingCommand
from core.cli.support.project import chosen_project, read_snapshot
from core.episodes.similar_tasks import MAX_TASKS, SimilarTask, collect_past_tasks, find_similar_tasks
from core.episodes.task_lookup import ambiguous_task_error
from core.retrieval.embedding import is_available
from core.retrieval.embeddings import TASKS, Embeddings, PastTask

_MAX_SHOWN = 300
"""Characters of a text that are printed."""


@click.command(cls=ReadingCommand)
@click.argument("task", metavar="TASK|TEXT")
@click.option(
    "--limit", type=click.IntRange(min=1), default=MAX_TASKS, show_default=True, metavar="N", help="At most N."
)
def similar(task: str, limit: int) -> None:
    """List similar past tasks and what was learned in them, most similar first.

    TASK is the id of a task or a part of it, or an attempt; any other TEXT describes a future task. Tasks are compared
    by semantic similarity if `ralphdeck embed` or the dashboard has computed their vectors, else by common words.
    Learnings of successful attempts come first; drafts only if there is no written reflection.

    \b
    Examples:
      ralphdeck task similar task-001
      ralphdeck task similar "Add OAuth login to the admin pages" --limit 3 --json
    """
    snapshot = read_snapshot()
    tasks = collect_past_tasks(snapshot)
    embeddings = Embeddings(chosen_project(), TASKS)
    query = _find_task(task, tasks)
    found = find_similar_tasks(query, snapshot, embeddings, limit)
    if embeddings.problem:
        remark(embeddings.problem)

    def show() -> None:
        for one in found:
            _print(one)
        if not found:
            is_id = isinstance(query, str) and " " not in query.strip()
            remark(f"no similar task{'; no task has this id, so it was compared as text' if is_id else ''}")
        if is_available() and embeddings.missing(tasks):
            remark("some tasks were compared by words only; to compute vectors: ralphdeck embed")

    respond("SimilarTaskList", show, snapshot.findings, similar=found)


def _find_task(text: str, tasks: Mapping[str, PastTask]) -> str | PastTask:
    """The task with this ID, prefix of an ID, or attempt, else the text; raises UnknownRecord for several."""
    task_id, _, number = text.rpartition(".")
    name = task_id if text not in tasks and task_id in tasks and number.isdecimal() else text
    matches = find_matching_ids(name, tasks)
    if len(matches) > 1:
        raise ambiguous_task_error(text, matches)
    return tasks[matches[0]] if matches else text


def _print(found: SimilarTask) -> None:
    line(
        (visible_line(found.task_id, _MAX_SHOWN), "bold"),
        f"  {percent(found.score)} by {found.matched_by}  {found.outcome.value}  ",
        visible_line(found.description, _MAX_SHOWN),
    )
    for learned in found.learnings:
        attempt = "" if learned.attempt is None else f"attempt {learned.attempt}: "
        line(f"  - {attempt}", visible_line(learned.text, _MAX_SHOWN))
