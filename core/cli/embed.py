"""`ralphdeck embed`."""

from __future__ import annotations

import sys

import click

from core.cli.options import json_option, project_option
from core.cli.output import line, print_json
from core.cli.project import chosen_project, read_snapshot
from core.cli.shapes import json_help
from core.embeddings import Embeddings
from core.errors import BadInput
from core.retrieval.embedding import EXTRA, MODEL, available
from core.text import plural


@click.command(epilog=json_help("embed"))
@project_option
@json_option
def embed(as_json: bool) -> None:
    """Make what finding patterns by meaning needs: a vector for every pattern that has none.

    A small model that runs on this machine reads each pattern once, some 5 ms; the result is kept in
    .aiwg/ralph/memory/embeddings. Whatever is made stays if you interrupt it. A pattern without a vector is found
    by the words that it shares with a task.

    \b
    Examples:
      ralphdeck embed
      ralphdeck embed --json
    """
    if not available():
        raise BadInput(f"the model of meaning is not installed or switched off; install {EXTRA}")
    patterns = read_snapshot().patterns
    embeddings = Embeddings(chosen_project())
    missing = len(embeddings.missing(patterns))
    watched = missing > 0 and sys.stderr is not None and sys.stderr.isatty()
    with click.progressbar(length=missing, label="Reading patterns", file=sys.stderr, hidden=not watched) as bar:
        made = embeddings.make(patterns, lambda done, _all: bar.update(done - bar.pos))
    if as_json:
        print_json({"made": made, "patterns": len(patterns), "model": MODEL})
    elif made:
        line(f"made vectors for {plural(made, 'pattern')}; all {len(patterns):,} can be found by meaning")
    else:
        line(f"all {plural(len(patterns), 'pattern')} can be found by meaning already")
