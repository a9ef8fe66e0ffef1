"""Generates `sample_data/`: the project acme-api, a shop's API in TypeScript with workers in Python.

It is committed; after a change here, generate it again with `python -m tests.sample`.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tests.sample.decisions import write_decisions
from tests.sample.events import write_events
from tests.sample.loop_files import write_loops, write_other_loops
from tests.sample.memory import write_memory
from tests.sample.shared import extracted_by_loop, write_shared
from tests.sample.tree import Tree

__all__ = ["write_sample"]


def write_sample(target: Path, now: datetime) -> None:
    """Write the project into the folder `target` as of `now` (aware): the same `now` gives the same bytes."""
    tree = Tree(target, now)
    write_loops(tree, extracted_by_loop())
    write_other_loops(tree)
    write_memory(tree)
    write_shared(tree)
    write_events(tree)
    write_decisions(tree)
