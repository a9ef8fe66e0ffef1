"""`ralphdeck embed`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from core.base.errors import BadInput
from core.base.text import plural
from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_json
from core.cli.support.options import json_option, project_option
from core.cli.support.project import chosen_project, read_snapshot
from core.episodes.similar_tasks import embeddable_work
from core.retrieval.embedding import EXTRA, MODEL, available
from core.retrieval.embeddings import PATTERNS, TASKS, Embeddings, Record, VectorSubject


@click.command(epilog=json_help("embed"))
@project_option
@json_option
def embed(as_json: bool) -> None:
    """Make what finding patterns and tasks by meaning needs: a vector for every one that has none.

    A small model that runs on this machine reads each of them once, some 5 ms; the result is kept in
    .aiwg/ralph/memory/embeddings and .aiwg/ralph/index/embeddings. Whatever is made stays if you interrupt it. What
    has no vector is found by the words that it shares with a task.

    \b
    Examples:
      ralphdeck embed
      ralphdeck embed --json
    """
    if not available():
        raise BadInput(f"the model of meaning is not installed or switched off; install {EXTRA}")
    snapshot = read_snapshot()
    tasks = embeddable_work(snapshot)
    made = {
        "pattern": (_make(PATTERNS, snapshot.patterns, "Reading patterns"), len(snapshot.patterns)),
        "task": (_make(TASKS, tasks, "Reading tasks"), len(tasks)),
    }
    if as_json:
        (patterns_made, patterns), (tasks_made, known) = made.values()
        print_json(
            {"made": patterns_made, "patterns": patterns, "tasks_made": tasks_made, "tasks": known, "model": MODEL}
        )
        return
    for noun, (new, total) in made.items():
        if new:
            line(f"made vectors for {plural(new, noun)}; all {total:,} can be found by meaning")
        elif total or noun == "pattern":
            line(f"vectors are up to date: {plural(total, noun)}")


def _make(subject: VectorSubject[Record], records: Mapping[str, Record], label: str) -> int:
    """Make what is missing, with a bar on a terminal; returns how many were made."""
    embeddings = Embeddings(chosen_project(), subject)
    missing = len(embeddings.missing(records))
    watched = missing > 0 and sys.stderr is not None and sys.stderr.isatty()
    with click.progressbar(length=missing, label=label, file=sys.stderr, hidden=not watched) as bar:
        return embeddings.make(records, lambda done, _all: bar.update(done - bar.pos))
