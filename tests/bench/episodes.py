"""Large task memories: one task with 1,000 attempts, and 10,000 tasks with two attempts each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.base.paths import ProjectPaths
from core.base.text import plural
from core.tasks.attempts import ReplaySteps
from core.tasks.history import read_attempt, read_history
from tests.bench.measured import Measured, milliseconds, spread
from tests.bench.trees import NOW
from tests.bench.words import text

if TYPE_CHECKING:
    from tests.bench.place import Place

LONG: Final = "task-long"
SHORT: Final = "task-00500"
_ACTIONS: Final = 100
RARE: Final = "quetzalcoatlus"
"""Occurs once."""
FREQUENT: Final = "TypeError"


def write_tasks(paths: ProjectPaths, tasks: int, attempts: int) -> None:
    """Write one long task, and many short ones with two attempts of twenty actions."""
    source = random.Random(4)
    write_task(source, paths.tasks / LONG, attempts, _ACTIONS)
    for number in range(tasks):
        write_task(source, paths.tasks / f"task-{number:05d}", 2, 20)
    with (paths.tasks / SHORT / "attempts" / "002" / "actions.jsonl").open("a") as log:
        log.write(json.dumps(_action(source, 20, NOW) | {"success": False, "error": f"no {RARE}"}) + "\n")


def long_history(place: Place) -> Measured:
    """Read the history of the task with most attempts: metadata, trajectory, reflections, summary."""
    return spread(milliseconds(lambda: read_history(place.episodes, LONG), 50))


def short_history(place: Place) -> Measured:
    return spread(milliseconds(lambda: read_history(place.episodes, SHORT), 50))


def replay(place: Place) -> Measured:
    """Read one attempt and compute all its steps."""
    last = place.sizes.attempts
    return spread(milliseconds(lambda: ReplaySteps(read_attempt(place.episodes, LONG, last))[-1], 50))


def rare_word(place: Place) -> Measured:
    return _found(place.episodes, RARE)


def frequent_word(place: Place) -> Measured:
    return _found(place.episodes, FREQUENT)


def _found(paths: ProjectPaths, query: str) -> Measured:
    """Show the first page of a search in all tasks, actions, reflections and errors."""
    find = _searcher(paths)
    hits = find(query)
    taken = milliseconds(lambda: find(query), 5)
    return Measured(taken[-1], note=plural(hits, "hit"))


@lru_cache(1)
def _searcher(paths: ProjectPaths) -> Callable[[str], int]:
    """Index all tasks, and return a function that searches for a word; in an older revision in an index of its own."""
    from core.index.search_words import SearchWords

    try:
        from core.index.search import TaskView, WordFiller, search
    except ImportError:
        old: Any = import_module("core.index.index").SearchIndex(paths)
        old_search: Any = import_module("core.index.search").search
        fresh = old.check()
        old.update(fresh)
        return lambda query: int(old_search(paths, SearchWords(query), limit=50, index=old, fresh=fresh).total)
    from core.index.database import Database

    database = Database.open(paths.project)
    filler = WordFiller(paths)
    while filler.fill(database, 1.0):
        pass
    view = TaskView(database.read(), paths, checks_all=True)
    return lambda query: search(paths, SearchWords(query), limit=50, view=view).total


def write_task(source: random.Random, folder: Path, attempts: int, actions: int, *, is_open: bool = False) -> None:
    """Write a task with its attempts, the actions of each, and reflections; the last attempt may be open."""
    numbers = range(1, attempts + 1)
    ended = numbers[:-1] if is_open else numbers
    started = {number: NOW - timedelta(days=30) + timedelta(minutes=40 * number) for number in numbers}
    _write(
        folder / "metadata.json",
        {
            "id": folder.name,
            "description": text(source, 8),
            "completion_criteria": "npm test passes",
            "created": _stamp(started[1]),
            "updated": _stamp(started[attempts]),
            "status": "running" if is_open else "completed",
            "current_attempt": attempts,
            "total_attempts": attempts,
            "tags": text(source, 2).split(),
        },
    )
    _write(
        folder / "trajectory.json",
        {"task_id": folder.name, "attempts": [_recorded(n, started[n], source) for n in ended]},
    )
    reflections = (json.dumps(_reflection(n, started[n], source)) for n in ended)
    (folder / "reflections.jsonl").write_text("\n".join(reflections) + "\n")
    for number in numbers:
        inside = folder / "attempts" / f"{number:03d}"
        _write(inside / "attempt.json", _attempt(number, folder.name, started[number], source))
        if number in ended:
            _write(inside / "outcome.json", {"status": "failure", "reason": text(source, 6), "final_quality": 0.6})
        (inside / "actions.jsonl").write_text(
            "\n".join(json.dumps(_action(source, n, started[number])) for n in range(actions)) + "\n"
        )


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _recorded(number: int, started: datetime, source: random.Random) -> dict[str, Any]:
    return {
        "attempt_id": number,
        "started": _stamp(started),
        "ended": _stamp(started + timedelta(minutes=30)),
        "outcome": "failure",
        "plan": text(source, 6),
        "actions": _ACTIONS,
        "iterations": 3,
        "milestones": [{"timestamp": _stamp(started), "event": "types_green", "details": text(source, 4)}],
        "final_quality": 0.6,
        "completion_percent": 60,
    }


def _reflection(number: int, started: datetime, source: random.Random) -> dict[str, Any]:
    return {
        "timestamp": _stamp(started + timedelta(minutes=31)),
        "attempt_id": number,
        "observation": text(source, 14),
        "analysis": text(source, 14),
        "learning": text(source, 14),
        "action_items": [text(source, 6), text(source, 6)],
        "triggered_by": "failure",
        "reflection_type": "error-analysis",
    }


def _attempt(number: int, task_id: str, started: datetime, source: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "task_id": task_id,
        "started": _stamp(started),
        "plan": {"approach": text(source, 6), "steps": [text(source, 4)] * 3, "estimated_iterations": 3},
        "execution": {
            "agent": "software-implementer",
            "iterations": 3,
            "quality_history": [{"iteration": n, "quality": n / 5, "delta": 0.2} for n in (1, 2, 3)],
        },
    }


def _action(source: random.Random, number: int, started: datetime) -> dict[str, Any]:
    return {
        "timestamp": _stamp(started + timedelta(seconds=15 * number)),
        "iteration": 1 + number // 40,
        "type": "edit" if number % 3 else "bash",
        "tool": "Edit" if number % 3 else "Bash",
        "params": {
            "file_path": f"src/{text(source, 1)}.ts",
            "old_string": text(source, 8),
            "new_string": text(source, 8),
        },
        "success": number % 7 != 0,
        "output": text(source, 12),
        "error": None if number % 7 else f"TypeError: {text(source, 5)}",
        "reasoning": text(source, 10),
        "expected_outcome": text(source, 5),
    }
