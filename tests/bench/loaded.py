"""What an open project costs: changes, scores, contexts, lists; without a screen."""

from __future__ import annotations

import dataclasses
import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import islice

from msgspec.structs import replace

from core.base.settings import Settings
from core.files.watcher import FileChanges, Watcher
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState, explain_pattern
from core.index.texts import Texts
from core.learning.scoreboard import Scoreboard
from core.learning.threshold_replay import what_if
from core.project.project import Project
from core.questions.asking import QueueRecords
from core.questions.impact import PatternImpacts
from core.questions.queue import review_queue
from core.records.snapshot import Delta, Snapshot
from core.show.filter_parser import parse_query
from core.show.metrics.dashboard import RANGES, build_dashboard
from core.show.pattern_filter import PATTERN_FIELDS, PatternCatalog
from tests.bench.measured import Measured, milliseconds, spread, timed
from tests.bench.place import Place, board_with_events, open_project
from tests.bench.trees import NOW, events, loop_name

TASK = "Fix the deadlock in the payment webhook migration, TypeError: Cannot cache order of null"


def load_again(place: Place) -> Measured:
    """Read and score everything from a full cache, with nothing changed."""
    _ = place.opened
    return timed(lambda: open_project(place.loops).load())


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


def write_to_state(place: Place, writes: int = 150) -> Measured:
    """Time from a write of a running loop's state to the project state that contains it."""
    project = place.opened
    path = project.project.ralph / "loops" / loop_name(6) / "state.json"
    original = path.read_text()
    state = json.loads(original)
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
    path.write_text(original)
    return spread(taken, 0.99)


def details(place: Place) -> Measured:
    """Load the details of one loop."""
    return spread(milliseconds(lambda: place.opened.story(loop_name(40)), 50))


def extraction(place: Place, loops: int = 200) -> Measured:
    """Extract from finished loops, reading their files from disk."""
    project = place.opened
    ended = [loop.id for loop in project.view.snapshot.loops.values() if loop.status.ended]
    taken = [milliseconds(partial(project.extraction, loop_id))[0] for loop_id in islice(ended, loops)]
    return spread(taken)


def near_duplicates(place: Place, threshold: float = 0.8) -> Measured:
    """Index the patterns and find all near-duplicate pairs."""
    pairs: list[int] = []
    patterns = place.view.snapshot.patterns
    found = timed(lambda: pairs.append(len(Texts(Snapshot(patterns=patterns)).similarity.pairs(threshold))))
    return Measured(found.value, cpu=found.cpu, note=f"{pairs[0]:,} pairs")


def preview(place: Place) -> Measured:
    """Build the context of a task, then again repeatedly; the indexes are warm."""
    view = place.view_of_many
    view.prepare()
    prepare_task_injection(view, "Add a limit to the export of invoices")
    return spread(milliseconds(lambda: prepare_task_injection(view, TASK), 20))


def filter_keystrokes(place: Place) -> Measured:
    """Filter by each prefix of a query, as typed."""
    view = place.view_of_many
    catalog = PatternCatalog(view.snapshot.patterns, view.board)
    text = "type:error state:cand uses:>3 tag:auth null retry"
    catalog.select(parse_query("", PATTERN_FIELDS))
    queries = [parse_query(text[:length], PATTERN_FIELDS) for length in range(1, len(text) + 1)]
    return spread([milliseconds(partial(catalog.select, query))[0] for query in queries])


def rescore(place: Place) -> Measured:
    """Compute all states, rates and scores of many patterns for another time."""
    return _rescored(place.view_of_many.board)


def rescore_events(place: Place) -> Measured:
    """The same with the evidence of all events."""
    return _rescored(place.board)


def _rescored(board: Scoreboard) -> Measured:
    moments = iter(range(1, 1000))

    def once() -> None:
        later = board.rescored(NOW + timedelta(days=next(moments)))
        _ = later.score, later.state_codes, later.rate

    return spread(milliseconds(once, 30))


def new_event(place: Place) -> Measured:
    """Add one result for one pattern, then assess it: evidence, state, and the scores of all patterns."""
    board = place.board
    log = board.history.inputs.snapshot
    gc.freeze()
    taken = []
    for number, event in enumerate(events(len(log.patterns), 30)):
        fresh = replace(event, id=f"new-{number}", at=NOW)
        longer = log.with_changes(events=(*log.events, fresh))

        def once(longer: object = longer, id: str = fresh.pattern_id) -> None:
            updated = board.updated(longer, Delta(events=True), NOW)  # type: ignore[arg-type]
            _ = updated.assessment(id), updated.score

        taken += milliseconds(once)
    return spread(taken)


def what_if_again(place: Place) -> Measured:
    """Replay 10,000 events with other thresholds: each further keystroke."""
    board = board_with_events(place.view_of_many, 10_000, patterns=4_000)
    what_if(_trial(board.settings, 89), board.history)
    days = iter(range(30, 60))
    return spread(milliseconds(lambda: what_if(_trial(board.settings, next(days)), board.history), 10))


def _trial(settings: Settings, half_life_days: float) -> Settings:
    return replace(settings, maturity=replace(settings.maturity, half_life_days=half_life_days))


def metrics(place: Place) -> Measured:
    """Compute every section of the Metrics screen over a year."""
    board = place.board
    known = dataclasses.replace(place.view_of_many, snapshot=board.history.inputs.snapshot, board=board)
    return spread(milliseconds(lambda: build_dashboard(known, "ana", RANGES[-1]), 5))


def why(place: Place) -> Measured:
    """Explain the patterns with the most evidence."""
    board = place.board
    known = dataclasses.replace(place.view_of_many, board=board)
    most = [board.ids[row] for row in board.uses.argsort()[-20:].tolist()]
    _ = board.interval
    return spread([milliseconds(partial(explain_pattern, known, id))[0] for id in most])


def impacts(place: Place) -> Measured:
    """Compute the impact of every pattern from existing arrays."""
    view = place.view_of_many
    return spread(milliseconds(lambda: PatternImpacts.of(view.board, view.settings), 20))


def review_list(place: Place) -> Measured:
    """Build the queue from nothing, with the scores given."""
    return _listed(place.view)


def review_list_of_many(place: Place) -> Measured:
    return _listed(place.view_of_many)


def _listed(view: ProjectState) -> Measured:
    def once() -> int:
        board = view.board.rescored(view.now)
        return len(review_queue(QueueRecords.of(view.snapshot, board, view.now, view.settings)))

    taken = spread(milliseconds(once, 10))
    return Measured(taken.value, note=f"{once():,} questions")
