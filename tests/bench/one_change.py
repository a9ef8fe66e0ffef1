"""The cost of one change of each kind in a large project: from the written file to the next project state.

`write_large` adds an event log, tasks and debug sessions to a project of `tests.bench.trees`. A function per kind of
change makes the change of a number; `cost` applies some and measures their processor times.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import msgspec
from msgspec.structs import replace

import core.index.parse
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.records.events import event_id
from core.records.times import iso
from core.sources.events import append_events
from tests.bench.measured import Measured, spread
from tests.bench.trees import NOW, events, loop_name

if TYPE_CHECKING:
    from tests.bench.place import Place

_RUNNING: Final = 6
"""Number of a running loop in the projects of `tests.bench.trees`."""
_FINISHED: Final = 40
TASKS: Final = 2000
SESSIONS: Final = 1000

Change = Callable[[Project, int], Path]


def write_large(folder: Path, patterns: int, count: int) -> None:
    """Add `count` events, some decisions, `TASKS` tasks and `SESSIONS` debug sessions."""
    ralph = folder / ".aiwg" / "ralph"
    log = ralph / "shared" / "curation" / "events.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        file.writelines(msgspec.json.encode(event) + b"\n" for event in events(patterns, count))
    for number in range(TASKS):
        _write(ralph / "tasks" / f"task-{number:05}" / "attempts" / "001" / "attempt.json", _attempt(number, 1))
    for number in range(SESSIONS):
        _write(ralph / "debug-memory" / "sessions" / f"session-{number:05}.json", _session(number, 1))


def cost(place: Place, change: str, times: int = 20) -> Measured:
    """Make a change of `CHANGES` repeatedly; the first one, which builds indexes, is not measured."""
    make, project = CHANGES[change], place.opened_with_events
    project.apply([make(project, 0)])
    gc.freeze()  # as the dashboard does after loading
    total, reading = [], []
    with _reading_times() as spent:
        for number in range(1, times + 1):
            path = make(project, number)
            spent.clear()
            begin = time.process_time()
            state, delta = project.apply([path])
            total.append((time.process_time() - begin) * 1000)
            reading.append(sum(spent) * 1000)
            if not delta:
                raise RuntimeError(f"{change} {number} changed nothing")
            _ = state.board.score
    found = spread(total)
    return replace(found, note=f"{found.note}, of that reading {median(reading):.1f}")


@contextmanager
def _reading_times() -> Iterator[list[float]]:
    """Collect the processor times of reading and parsing files."""
    spent: list[float] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            begin = time.process_time()
            try:
                return function(*arguments)
            finally:
                spent.append(time.process_time() - begin)

        return call

    module: Any = core.index.parse
    with (
        patch.object(module, "read_file", timed(module.read_file)),
        patch.object(module, "parse_file", timed(module.parse_file)),
    ):
        yield spent


def new_event(project: Project, _number: int) -> Path:
    """Append a result for a pattern to the event log."""
    known = next(events(len(project.view.snapshot.patterns), 1))
    append_events(project.project, replace(known, id=event_id(NOW), at=NOW))
    return project.project.events


def running_loop(project: Project, number: int) -> Path:
    """Write the next iteration of a running loop."""
    before = project.view.loop(loop_name(_RUNNING)).iteration or 0
    return _change_loop(project, _RUNNING, currentIteration=before + 1 + number % 2)


def finished_loop(project: Project, number: int) -> Path:
    """Change the result of a finished loop, and so the evidence on its patterns."""
    return _change_loop(project, _FINISHED, status=("completed", "failed")[number % 2])


def _change_loop(project: Project, loop: int, **fields: Any) -> Path:
    path = project.project.ralph / "loops" / loop_name(loop) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return path


def changed_pattern(project: Project, number: int) -> Path:
    """Change the text of one record in a file with a quarter of all patterns."""
    path = project.project.patterns / "error-patterns.json"
    data = path.read_bytes()
    key = b'"description": "'
    place = data.index(key) + len(key)
    path.write_bytes(data[:place] + event_id(NOW)[-5:].encode() + data[place + 5 :])
    return path


def decision(project: Project, number: int) -> Path:
    """Append a promotion to the decision log, as another process does."""
    at = NOW + timedelta(seconds=number)
    known = list(project.view.snapshot.patterns)
    id = known[number * 97 % len(known)]
    project.ledger.append(Decision(id=event_id(at), at=at, by="bench", verb=Verb.PROMOTE, subject=id))
    return project.project.ledger


def reflection(project: Project, number: int) -> Path:
    """Write another text of a loop's reflection."""
    path = project.project.ralph / "loops" / loop_name(_FINISHED) / "reflections" / "reflection-1.json"
    content = {"iteration": 1, "content": f"Text {event_id(NOW)}", "type": "error_analysis", "timestamp": iso(NOW)}
    return _write(path, content)


def debug_session(project: Project, number: int) -> Path:
    """Add a run to a debug session of a finished loop."""
    path = project.project.ralph / "debug-memory" / "sessions" / "session-00000.json"
    return _write(path, _session(0, len(project.view.debug_session("session-00000").executions) % 20 + 1))


def attempt(project: Project, number: int) -> Path:
    """Start another attempt at a task."""
    task = project.project.ralph / "tasks" / f"task-{number:05}" / "attempts"
    free = len(list(task.iterdir())) + 1
    return _write(task / f"{free:03}" / "attempt.json", _attempt(number, free))


CHANGES: Final[dict[str, Change]] = {
    change.__name__.replace("_", " "): change
    for change in (
        *(new_event, running_loop, finished_loop, changed_pattern),
        *(decision, reflection, debug_session, attempt),
    )
}


def _write(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def _attempt(task: int, number: int) -> dict[str, Any]:
    started = NOW - timedelta(minutes=task + 30 - number)
    return {"id": number, "task_id": f"task-{task:05}", "started": iso(started), "plan": {"approach": "Retry"}}


def _session(number: int, runs: int) -> dict[str, Any]:
    at = NOW - timedelta(minutes=number + 60)
    return {
        "session_id": f"session-{number:05}",
        "loop_id": loop_name(_FINISHED + 5 * number),
        "created_at": iso(at),
        "executions": [
            {"timestamp": iso(at + timedelta(minutes=run)), "results": {"total": 9, "passed": 8, "failed": 1}}
            for run in range(runs)
        ],
    }
