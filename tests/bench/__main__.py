"""Prints the budget with measured values beside it: `python -m tests.bench [--loops N] [--patterns N]`."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.bench import measures
from tests.bench.trees import FILES_PER_LOOP, write_loops, write_patterns


def main() -> None:
    """Make the trees, measure, print a line as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--loops", type=int, default=10_000)
    parser.add_argument("--patterns", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ralphdeck-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        _measure(Path(folder) / "project", options.loops, options.patterns, options.events)


def _measure(project: Path, loops: int, patterns: int, events: int) -> None:
    begin = time.perf_counter()
    few = patterns // 10
    write_loops(project, loops)
    write_patterns(project, few)
    files = loops * FILES_PER_LOOP
    print(f"{loops:,} loops in {files:,} files and {few:,} patterns made in {time.perf_counter() - begin:.0f} s\n")
    print(f"{'what':<66} {'at most':>9}  measured")

    _row("ralphdeck --version", "120 ms", measures.start_up("--version"))
    _row("ralphdeck --help", "120 ms", measures.start_up("--help"))
    _row("first load, nothing cached", "", measures.first_load(project))
    _row(f"lists of {loops:,} loops and {few:,} patterns, warm cache", "1 s", measures.warm_load(project))
    _row("reopening with nothing changed, scan included", "600 ms", measures.warm_library(project))
    deck = measures.opened(project)
    deck.load()
    _row("file written -> view changed, p99", "150 ms", measures.write_to_view(deck))
    _row("task history read, p95", "50 ms", measures.history(deck))
    _row("idle", "1 %", measures.idle(deck))
    del deck

    write_patterns(project, patterns)
    _row(f"first load with {patterns:,} patterns", "", measures.first_load(project))
    _row(f"memory, {loops:,} loops and {patterns:,} patterns", "800 MB", measures.memory(project))
    deck = measures.opened(project)
    view = deck.load()
    _row(f"filter keystroke at {patterns:,} patterns, p95", "50 ms", measures.filter_keystrokes(view))
    _row(f"context preview at {patterns:,} patterns, p95", "100 ms", measures.preview(view))
    _row(f"file written -> view changed at {patterns:,} patterns, p99", "150 ms", measures.write_to_view(deck))
    _row(f"full rescore, {patterns:,} patterns, p95", "15 ms", measures.rescore(view.board))
    board = measures.board_with_events(view, events)
    _row(f"full rescore, {events:,} events, p95", "50 ms", measures.rescore(board))


def _row(what: str, budget: str, measured: str) -> None:
    print(f"{what:<66} {budget:>9}  {measured}", flush=True)


main()
