"""`ralphdeck task similar`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from core.base.id_lookup import find_matching_ids
from core.base.text import visible_line
from core.cli.json.shapes import json_help
from core.cli.render.output import end, findings_json, line, percent, print_json, remark
from core.cli.support.options import reading_options
from core.cli.support.project import chosen_project, read_snapshot
from core.episodes.similar_tasks import MAX_TASKS, SimilarTask, collect_past_tasks, find_similar_tasks
from core.episodes.task_lookup import ambiguous_task_error
from core.retrieval.embedding import available
from core.retrieval.embeddings import TASKS, Embeddings, PastTask

_MAX_SHOWN = 300
"""Characters of a text that are printed."""


@click.command(epilog=json_help("task similar"))
@click.argument("task", metavar="TASK|TEXT")
@click.option(
    "--limit", type=click.IntRange(min=1), default=MAX_TASKS, show_default=True, metavar="N", help="At most so many."
)
@reading_options
def similar(task: str, limit: int, as_json: bool, strict: bool) -> None:
    """List past tasks like one, and what was learned in them, best first (1).

    TASK is the id of a task or how it begins, or that of an attempt; any other TEXT describes one that is still to
    come. Tasks are compared by meaning where `ralphdeck embed` or the dashboard has made their vectors, else by the
    words that they share. Learnings of successful attempts come first; drafted ones only where nobody has written any.

    \b
    Examples:
      ralphdeck task similar task-001
      ralphdeck task similar "Add OAuth login to the admin pages" --limit 3 --json
    """
    snapshot = read_snapshot()
    tasks = collect_past_tasks(snapshot)
    embeddings = Embeddings(chosen_project(), TASKS)
    asked = _meant(task, tasks)
    found = find_similar_tasks(asked, snapshot, embeddings, limit)
    if embeddings.problem:
        remark(embeddings.problem)
    if as_json:
        print_json({"similar": [_document(one) for one in found], "findings": findings_json(snapshot.findings)})
    else:
        for one in found:
            _print(one)
        if not found:
            unknown = isinstance(asked, str) and " " not in asked.strip()
            remark(f"no similar task{'; no task has this ID, so it was compared as text' if unknown else ''}")
        if available() and embeddings.missing(tasks):
            remark("some tasks were compared by their words only; for meaning, run once: ralphdeck embed")
    end(snapshot.findings, strict=strict)


def _meant(told: str, tasks: Mapping[str, PastTask]) -> str | PastTask:
    """The task that an id, the beginning of one, or the id of an attempt means; else the text as it is.

    Raises:
        UnknownRecord: The ids of several tasks begin so.
    """
    task_id, _, number = told.rpartition(".")
    name = task_id if told not in tasks and task_id in tasks and number.isdecimal() else told
    begun = find_matching_ids(name, tasks)
    if len(begun) > 1:
        raise ambiguous_task_error(told, begun)
    return tasks[begun[0]] if begun else told


def _print(found: SimilarTask) -> None:
    line(
        (visible_line(found.task_id, _MAX_SHOWN), "bold"),
        f"  {percent(found.score)} by {found.matched_by}  {found.outcome.value}  ",
        visible_line(found.description, _MAX_SHOWN),
    )
    for learned in found.learnings:
        attempt = "" if learned.attempt is None else f"attempt {learned.attempt}: "
        line(f"  - {attempt}", visible_line(learned.text, _MAX_SHOWN))


def _document(found: SimilarTask) -> dict[str, object]:
    return {
        "id": found.task_id,
        "description": found.description,
        "score": found.score,
        "matched_by": found.matched_by,
        "outcome": found.outcome.value,
        "learnings": [{"attempt": learned.attempt, "text": learned.text} for learned in found.learnings],
    }
