"""Print the speed budget with measured values: `python -m tests.bench [--loops N] [--patterns N]`.

`--scan FILE...` measures only the safety scan and the secret masks, on labelled texts by source (see
`tests/bench/labelled_scan.py`). `--only queue` measures only the order of the review queue, in simulated registries.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench import (
    changing,
    episodes,
    extracting,
    labelled_scan,
    measures,
    queue,
    retrieval,
    review_session,
    scanning,
)
from tests.bench.trees import FILES_PER_LOOP, write_loops, write_patterns


def main() -> None:
    """Generate the projects, measure, and print each row as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--loops", type=int, default=10_000)
    parser.add_argument("--patterns", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["queue"], help="only this part")
    parser.add_argument("--worlds", type=int, default=20, help="worlds of each kind, for the queue")
    parser.add_argument("--scan", nargs="+", type=Path, metavar="FILE", help="only the scan, on labelled texts (JSONL)")
    options = parser.parse_args()
    if options.scan:
        print(labelled_scan.report(options.scan))
        return
    if options.only == "queue":
        queue.report(1000, options.worlds)
        return
    with tempfile.TemporaryDirectory(prefix="ralphdeck-bench-") as folder:
        for kind in ("CACHE", "CONFIG", "STATE", "DATA"):
            os.environ[f"XDG_{kind}_HOME"] = str(Path(folder) / kind.lower())
        _measure(Path(folder) / "project", options.loops, options.patterns, options.events)


def _measure(project: Path, loops: int, patterns: int, events: int) -> None:
    begin = time.perf_counter()
    few = patterns // 10
    write_loops(project, loops)
    write_patterns(project, few)
    files = loops * FILES_PER_LOOP
    print(f"{loops:,} loops in {files:,} files and {few:,} patterns made in {time.perf_counter() - begin:.0f} s")
    print(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first row\n")
    print(f"{'what':<66} {'at most':>9}  measured")

    _row("ralphdeck --version", "120 ms", lambda: measures.start_up("--version"))
    _row("ralphdeck --help", "120 ms", lambda: measures.start_up("--help"))
    _row("200 decisions in a terminal, key -> next question with forecasts", "", review_session.review_200_questions)
    _row("first load, nothing cached", "", lambda: measures.first_load(project))
    _row("first frame", "400 ms", lambda: measures.first_frame(project))
    _row(f"{loops:,} loops and {few:,} patterns on screen", "1 s", lambda: measures.lists_on_screen(project))
    _row("the same without a screen: read and scored", "", lambda: measures.warm_load(project))
    _row("reopening with nothing changed, scan included", "600 ms", lambda: measures.warm_library(project))
    _row("file written -> row changed on screen, p99", "150 ms", lambda: measures.write_to_row(project))
    opened = measures.open_project(project)
    opened.load()
    _row("the same without a screen: file written -> state changed, p99", "", lambda: measures.write_to_view(opened))
    _row("file written -> watcher notifies, p99", "100 ms", lambda: measures.write_to_notification(project))
    _row("details of a loop, p95", "50 ms", lambda: measures.history(opened))
    memory = episodes.write_tasks(project.with_name("episodes"))
    _row(
        "history of a task: 1,000 attempts, 100,000 actions, p95",
        "50 ms",
        lambda: episodes.history(memory, episodes.LONG),
    )
    _row("history of one of 10,000 tasks, p95", "50 ms", lambda: episodes.history(memory, episodes.SHORT))
    _row("replay of one of 1,000 attempts, p95", "", lambda: episodes.replay(memory))
    _row("search in 10,000 tasks, a rare word", "", lambda: episodes.found(memory, episodes.RARE))
    _row("search in 10,000 tasks, a frequent word", "", lambda: episodes.found(memory, episodes.FREQUENT))
    _row(f"the review queue of {few:,} patterns, p95", "", lambda: queue.listing(opened.view))
    _row("idle, dashboard", "1 %", lambda: measures.idle_dashboard(project))
    _row("dashboard at 20 changes a second", "15 %", lambda: changing.under_load(project.parent, 20))
    _row(
        "dashboard at 200 changes a second, an hour of the above in 6 minutes",
        "0 MB/min",
        lambda: changing.under_load(project.parent, 200, seconds=360),
    )
    _row("idle, watcher and project, with the regular sweep", "1 %", lambda: measures.idle(opened))
    _row("extraction of 1,000 loops", "", lambda: extracting.extraction(opened))
    _row(f"near-duplicates among {few:,} patterns", "", lambda: extracting.near_duplicates(opened.view))
    _row(f"context preview at {few:,} patterns, p95", "100 ms", lambda: measures.preview(opened.view))
    for tasks in ("paraphrased", "literal"):
        _row(f"tasks {tasks}, found by words", "", partial(retrieval.found_by_words, tasks))
        _row(f"tasks {tasks}, found by semantic search", "", partial(retrieval.found_by_meaning, tasks))
    _row("embedding model", "", lambda: retrieval.embedding(opened.view))
    del opened

    write_patterns(project, patterns)
    _row(f"first load with {patterns:,} patterns", "", lambda: measures.first_load(project))
    _row(f"memory, {loops:,} loops and {patterns:,} patterns", "800 MB", lambda: measures.memory(project))
    _row(f"key -> paint at {patterns:,} patterns, p95", "30 ms", lambda: measures.key_to_paint(project))
    opened = measures.open_project(project)
    view = opened.load()
    _row(f"filter keystroke at {patterns:,} patterns, p95", "50 ms", lambda: measures.filter_keystrokes(view))
    _row(f"context preview at {patterns:,} patterns, p95", "100 ms", lambda: measures.preview(view))
    _row(
        f"the same with reflections on 10,000 tasks, {patterns:,} patterns, p95",
        "100 ms",
        lambda: retrieval.preview_with_reflections(view),
    )
    _row(
        f"the same with semantic search, new task, {patterns:,} patterns, p95",
        "100 ms",
        lambda: retrieval.injection_by_meaning(opened, measures.TASK),
    )
    _row(f"file written -> state changed at {patterns:,} patterns, p99", "", lambda: measures.write_to_view(opened))
    _row(f"full rescore, {patterns:,} patterns, p95", "15 ms", lambda: measures.rescore(view.board))
    _row(f"scan of {few:,} patterns", "", lambda: scanning.cost(view, few))
    _row("scan: texts that rules were tuned on", "", lambda: scanning.summary(held_out=False))
    _row("scan: texts held out", "", lambda: scanning.summary(held_out=True))
    _row(f"impact of {patterns:,} patterns, p95", "", lambda: queue.weighing(view))
    _row(f"the review queue of {patterns:,} patterns, p95", "", lambda: queue.listing(view))
    board = measures.board_with_events(view, events)
    _row(f"full rescore, {events:,} events, p95", "50 ms", lambda: measures.rescore(board))
    _row(f"one new event after {events:,}, p95", "", lambda: measures.new_event(board))
    _row(f"all metrics of a year, {events:,} events, p95", "1 s", lambda: measures.metrics(view, board))
    _row("why, of the patterns with most evidence, p95", "20 ms", lambda: measures.why(view, board))
    known = measures.board_with_events(view, 10_000)
    _row(f"what_if, 10,000 events and counts of {patterns:,} patterns", "", lambda: measures.what_if_of(known))
    small = measures.board_of_used(view, 10_000)
    _row("what_if over 10,000 events", "300 ms", lambda: measures.what_if_of(small))


def _row(what: str, budget: str, measure: Callable[[], str]) -> None:
    try:
        measured = measure()
    except Exception as error:
        measured = f"failed: {type(error).__name__}: {error}"
    print(f"{what:<66} {budget:>9}  {measured}", flush=True)


main()
