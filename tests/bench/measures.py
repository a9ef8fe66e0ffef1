"""The measurements: one function per row, which returns the text of the column "measured"."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from msgspec.structs import replace

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.learning.threshold_replay import what_if
from core.metrics.dashboard import RANGES, build_dashboard
from core.project.project import Project
from core.queries.filter_parser import parse_query
from core.queries.pattern_filter import PATTERN_FIELDS, PatternCatalog
from core.records.snapshot import Delta, Snapshot
from core.state.contexts import prepare_task_injection
from core.state.history import explain_pattern
from core.state.project_state import ProjectState
from core.storage.watcher import FileChanges, Watcher
from tests.bench.screen import Screen
from tests.bench.trees import NOW, events, loop_name

TASK: Final = "Fix the deadlock in the payment webhook migration, TypeError: Cannot cache order of null"
_ROOT: Final = Path(__file__).parents[2]


def open_project(project: Path, *, cache: bool = True) -> Project:
    """Open the project without reading it; the clock is fixed at the date of the generated files."""
    return Project(ProjectPaths(project), Settings(), by="bench", clock=lambda: NOW, cache=cache)


def milliseconds(action: Callable[[], object], times: int = 1) -> list[float]:
    """Time some calls, in milliseconds, sorted."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append((time.perf_counter() - begin) * 1000)
    return sorted(taken)


def child(*arguments: str) -> dict[str, Any]:
    """Run `python -m tests.bench.child` in a fresh process and parse its output."""
    command = [sys.executable, "-m", "tests.bench.child", *arguments]
    result = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def start_up(option: str) -> str:
    """Time a complete run of the command line, including the start of the process."""
    command = [sys.executable, "-m", "tui", option]

    def run() -> None:
        subprocess.run(command, cwd=_ROOT, stdout=subprocess.DEVNULL, check=True)

    return f"{median(milliseconds(run, 7)):.0f} ms"


def first_load(project: Path) -> str:
    """Load everything in a fresh process without a cache; fills the cache."""
    return _loaded([child("load", str(project))])


def warm_load(project: Path) -> str:
    """Load and score everything in a fresh process from a full cache, with nothing changed."""
    return _loaded([child("load", str(project)) for _ in range(3)])


def warm_library(project: Path) -> str:
    """Sweep, read the cache and join, without scores."""
    return _loaded([child("library", str(project)) for _ in range(3)])


def memory(project: Path) -> str:
    """Resident size of a fresh process that has loaded and scored everything."""
    answer = child("load", str(project))
    return f"{answer['rss_mb']:.0f} MB (peak {answer['peak_mb']:.0f})"


@contextmanager
def followed(project: Project, notified: Callable[[], None]) -> Iterator[Watcher]:
    """Keep the project up to date with a watcher; calls `notified` after each change."""

    def take(changes: FileChanges) -> None:
        project.apply(None if changes.sweep else changes.paths)
        begun.set()
        notified()

    begun = threading.Event()
    with Watcher(project.project, project.settings.watch, take) as watcher:
        begun.wait(60)
        yield watcher


def write_to_view(project: Project, writes: int = 150) -> str:
    """Time from a write of a running loop's state to the project state that contains it."""
    path = project.project.ralph / "loops" / loop_name(6) / "state.json"
    state = json.loads(path.read_text())
    seen = threading.Event()
    taken = []
    with followed(project, seen.set):
        for number in range(writes):
            state["currentIteration"] = number + 10
            text = json.dumps(state)
            seen.clear()
            begin = time.perf_counter()
            path.write_text(text)
            while project.view.loop(loop_name(6)).iteration != number + 10:
                seen.wait(5)
                seen.clear()
            taken.append((time.perf_counter() - begin) * 1000)
    return spread(sorted(taken), 0.99)


def write_to_notification(project: Path, writes: int = 100) -> str:
    """Time from the write of a file to the watcher's notification."""
    path = project / ".aiwg" / "ralph" / "loops" / loop_name(6) / "state.json"
    content = path.read_bytes()
    notified = threading.Event()
    taken = []
    with Watcher(ProjectPaths(project), Settings().watch, lambda _changes: notified.set()):
        notified.wait(60)
        for _ in range(writes):
            time.sleep(0.06)  # let the batch of the last write pass
            notified.clear()
            begin = time.perf_counter()
            path.write_bytes(content)
            notified.wait(60)
            taken.append((time.perf_counter() - begin) * 1000)
    return spread(sorted(taken), 0.99)


def filter_keystrokes(view: ProjectState) -> str:
    """Filter by each prefix of a query, as typed."""
    catalog = PatternCatalog(view.snapshot.patterns, view.board)
    text = "type:error state:cand uses:>3 tag:auth null retry"
    catalog.select(parse_query("", PATTERN_FIELDS))
    taken = []
    for length in range(1, len(text) + 1):
        query = parse_query(text[:length], PATTERN_FIELDS)
        taken += milliseconds(lambda query=query: catalog.select(query))  # type: ignore[misc]
    return spread(sorted(taken), 0.95)


def preview(view: ProjectState) -> str:
    """Build the context of a new task, then again repeatedly; the indexes are warm."""
    view.prepare()
    prepare_task_injection(view, "Add a limit to the export of invoices")
    return spread(milliseconds(lambda: prepare_task_injection(view, TASK), 20), 0.95)


def history(project: Project) -> str:
    """Load the details of one loop."""
    return spread(milliseconds(lambda: project.story(loop_name(40)), 50), 0.95)


def rescore(board: Scoreboard) -> str:
    """Compute all states, rates and scores for another time."""
    moments = iter(range(1, 1000))

    def once() -> None:
        later = board.rescored(NOW + timedelta(days=next(moments)))
        _ = later.score, later.state_codes, later.rate

    return spread(milliseconds(once, 30), 0.95)


def board_with_events(view: ProjectState, count: int) -> Scoreboard:
    """Build a scoreboard of the same patterns with evidence from `count` events."""
    known = view.snapshot.patterns
    log = tuple(events(len(known), count))
    return Scoreboard.build(Snapshot(patterns=known, events=log), NOW, view.settings)


def board_of_used(view: ProjectState, count: int) -> Scoreboard:
    """Build a scoreboard of 1,000 patterns with evidence from `count` events."""
    log = tuple(events(4_000, count))
    used = {event.pattern_id for event in log}
    known = {id: pattern for id, pattern in view.snapshot.patterns.items() if id in used}
    return Scoreboard.build(Snapshot(patterns=known, events=log), NOW, view.settings)


def new_event(board: Scoreboard) -> str:
    """Add one result for one pattern, then assess it: evidence, state, and the scores of all patterns."""
    log = board.history.inputs.snapshot
    taken = []
    for number, event in enumerate(events(len(log.patterns), 30)):
        fresh = replace(event, id=f"new-{number}", at=NOW)
        longer = dataclasses.replace(log, events=(*log.events, fresh))

        def once(longer: Snapshot = longer, id: str = fresh.pattern_id) -> None:
            updated = board.updated(longer, Delta(events=True), NOW)
            _ = updated.assessment(id), updated.score

        taken += milliseconds(once)
    return spread(sorted(taken), 0.95)


def what_if_of(board: Scoreboard) -> str:
    """Replay all history with other thresholds: the first result, and each further keystroke."""
    begin = time.perf_counter()
    what_if(_trial(board.settings, 89), board.history)
    first = (time.perf_counter() - begin) * 1000
    days = iter(range(30, 60))
    further = milliseconds(lambda: what_if(_trial(board.settings, next(days)), board.history), 10)
    return f"first {first:.0f} ms, further {spread(further, 0.95)}"


def _trial(settings: Settings, half_life_days: float) -> Settings:
    return replace(settings, maturity=replace(settings.maturity, half_life_days=half_life_days))


def metrics(view: ProjectState, board: Scoreboard) -> str:
    """Compute every section of the Metrics screen over a year."""
    known = dataclasses.replace(view, snapshot=board.history.inputs.snapshot, board=board)
    return spread(milliseconds(lambda: build_dashboard(known, "ana", RANGES[-1]), 5), 0.95)


def why(view: ProjectState, board: Scoreboard) -> str:
    """Explain the patterns with the most evidence."""
    known = dataclasses.replace(view, board=board)
    most = [board.ids[row] for row in board.uses.argsort()[-20:].tolist()]
    _ = board.interval
    times = (milliseconds(partial(explain_pattern, known, id)) for id in most)
    return spread(sorted(taken for each in times for taken in each), 0.95)


def idle(project: Project, seconds: float = 5) -> str:
    """Processor share of watcher and project while nothing happens; the regular sweep is averaged."""
    swept = time.process_time()
    project.apply(None)
    sweep = time.process_time() - swept
    with followed(project, lambda: None):
        cpu = time.process_time()
        time.sleep(seconds)
        waiting = (time.process_time() - cpu) / seconds
    share = waiting + sweep / project.settings.watch.sweep_seconds
    return f"{share:.2%} (sweep {1000 * sweep:.0f} ms)"


def first_frame(project: Path) -> str:
    """Time from the start of the process to the first frame, before any file is read."""
    taken = []
    for _ in range(3):
        with Screen(project) as screen:
            taken.append((screen.wait_for("Loops") - screen.begun) * 1000)
    return f"{median(taken):.0f} ms"


def lists_on_screen(project: Path) -> str:
    """Time from the start of the process to rows of loops, then of patterns."""
    with Screen(project) as screen:
        loops = screen.show_loops() - screen.begun
        patterns = screen.show_patterns() - screen.begun
    return f"loops {loops * 1000:.0f} ms, patterns {patterns * 1000:.0f} ms"


def write_to_row(project: Path, writes: int = 40) -> str:
    """Time from a write of a running loop's state to the row on screen."""
    path = project / ".aiwg" / "ralph" / "loops" / loop_name(6) / "state.json"
    state = json.loads(path.read_text())
    taken = []
    with Screen(project) as screen:
        screen.show_loops()
        screen.calm()
        screen.press("g")  # the cursor may have stayed on a row of the first, partial list
        for number in range(writes):
            state["task"] = f"Q{number:03d}X"
            text = json.dumps(state)
            begin = time.perf_counter()
            path.write_text(text)
            taken.append((screen.wait_for(state["task"]) - begin) * 1000)
            screen.settle()
    return spread(sorted(taken), 0.99)


def key_to_paint(project: Path) -> str:
    """Time from a key in the list of patterns to the first bytes of the next frame."""
    taken = []
    with Screen(project) as screen:
        screen.show_loops()
        screen.show_patterns()
        screen.calm()
        for _ in range(60):
            begin = screen.press("j")
            taken.append((screen.wait_for_paint() - begin) * 1000)
            screen.settle()
    return spread(sorted(taken), 0.95)


def idle_dashboard(project: Path) -> str:
    """Processor share and resident size of the idle dashboard."""
    with Screen(project) as screen:
        screen.show_loops()
        screen.calm()
        return f"{screen.processor_share(20):.2%} ({screen.resident_mb():.0f} MB)"


def resident_mb() -> float:
    """Resident size of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _loaded(answers: list[dict[str, Any]]) -> str:
    wall, cpu = (median(answer[key] for answer in answers) for key in ("load_ms", "cpu_ms"))
    return f"{wall:.0f} ms (processor {cpu:.0f})"


def spread(taken: list[float], share: float) -> str:
    return f"{taken[min(int(len(taken) * share), len(taken) - 1)]:.1f} ms (median {median(taken):.1f})"
