"""`ralphdeck doctor --embed`: compute the vectors for semantic search."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from core.base.errors import BadInput, install_hint
from core.base.text import plural
from core.cli.json import setup as setup_json
from core.cli.render.output import line, print_object, wants_json
from core.cli.support.project import chosen_project, open_project

if TYPE_CHECKING:
    from core.retrieval.embeddings import Record, VectorSubject


def compute_vectors() -> None:
    """Compute the missing vectors of patterns, tasks and instructions for agents."""
    from core.questions.conflict import index_instructions
    from core.retrieval.embeddings import EXTRA, INSTRUCTIONS, MODEL, PATTERNS, TASKS, is_available
    from core.tasks.task_links import embeddable_work

    if not is_available():
        raise BadInput(f"the embedding model is not installed or is disabled; {install_hint(EXTRA)}")
    project = open_project(asks=False)
    project.read_adapted()
    patterns, tasks = project.view.snapshot.patterns, embeddable_work(project.view.snapshot)
    instructions = index_instructions(project.view)
    patterns_made = _compute(PATTERNS, patterns, "Reading patterns")
    tasks_made = _compute(TASKS, tasks, "Reading tasks")
    instructions_made = _compute(INSTRUCTIONS, instructions, "Reading instructions")

    if wants_json():
        print_object(
            setup_json.VectorCounts,
            model=MODEL,
            made=patterns_made,
            patterns=len(patterns),
            tasks_made=tasks_made,
            tasks=len(tasks),
            instructions_made=instructions_made,
            instructions=len(instructions),
        )
    else:
        for noun, made, total in (
            ("pattern", patterns_made, len(patterns)),
            ("task", tasks_made, len(tasks)),
            ("instruction", instructions_made, len(instructions)),
        ):
            if made:
                line(f"computed vectors for {plural(made, noun)}; all {total:,} have one")
            elif total or noun == "pattern":
                line(f"vectors are up to date: {plural(total, noun)}")


def _compute(subject: VectorSubject[Record], records: Mapping[str, Record], label: str) -> int:
    from core.retrieval.embeddings import Embeddings

    embeddings = Embeddings(chosen_project(), subject)
    missing = len(embeddings.missing(records))
    is_watched = missing > 0 and sys.stderr is not None and sys.stderr.isatty()
    with click.progressbar(length=missing, label=label, file=sys.stderr, hidden=not is_watched) as bar:
        return embeddings.make(records, lambda done, _all: bar.update(done - bar.pos))
