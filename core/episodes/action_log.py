"""The log of an attempt that is written: `actions.jsonl` appended to, and counted in `attempt.json` (1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.episodes.folders import AttemptFolder, TaskFolder
from core.episodes.json_files import Shapes, edit_object, ensure, expect, put
from core.errors import BadInput, Unwritable
from core.sources import dialects
from core.sources.journal import Journal
from core.sources.json_text import JsonText
from core.sources.locking import open_regular

MAX_QUALITIES: Final = 50_000
"""Longest quality history that is written: one that readers still take, and far more than anybody looks at."""
_SHAPES: Final[Shapes] = {("execution",): dict, ("execution", "quality_history"): list}
"""What counting expects of an `attempt.json`."""


def append(path: Path, lines: Sequence[bytes], known: int) -> tuple[int, int]:
    """Append lines to a log, unless they are its last ones already.

    Args:
        known: How many actions it had, as far as they were counted.

    Returns:
        How many were added, and how many there are now. The log is counted only after a call that was repeated:
        the first one may not have come so far.
    """
    if not lines:
        return 0, known
    if _ends_with(path, b"".join(line + b"\n" for line in lines)):
        return 0, Journal(path).read()[0].count(b"\n")
    Journal(path).append(lines)
    return len(lines), known + len(lines)


def _ends_with(path: Path, data: bytes) -> bool:
    try:
        handle = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unwritable(f"cannot read {path}: {error.strerror}") from None
    try:
        start = os.fstat(handle).st_size - len(data)
        # Of a whole line only: what stands before it ends with a line feed.
        lead = os.pread(handle, 1, start - 1) if start > 0 else b"\n"
        return start >= 0 and lead == b"\n" and os.pread(handle, len(data), start) == data
    finally:
        os.close(handle)


def mend(place: AttemptFolder) -> None:
    """Take back the actions of a call that was killed before it had written all of them."""
    Journal(place.actions).mend()


def check_metrics(folder: TaskFolder, place: AttemptFolder, qualities: Mapping[int, float]) -> None:
    """Find out before anything is appended whether it can be counted.

    Raises:
        BadInput: The quality history would become too long.
        Conflict: `attempt.json` cannot be understood, or has no place for counts.
    """

    def check(document: JsonText) -> None:
        history = _history(document)
        length = len(history) + len(qualities.keys() - _places(history).keys())
        if qualities and length > MAX_QUALITIES:
            raise BadInput(f"the quality of {length:,} iterations; at most {MAX_QUALITIES:,} of an attempt are kept")

    edit_object(place.attempt, check, {"id": place.number, "task_id": folder.id})


def update_metrics(
    folder: TaskFolder,
    place: AttemptFolder,
    actions: int,
    iterations: int,
    qualities: Mapping[int, float],
) -> None:
    """(1) `update_attempt_metrics`: in steps, without counting the log again.

    Args:
        qualities: What the work was worth at the end of an iteration.
    """

    def edit(document: JsonText) -> None:
        _history(document)
        ensure(document, "execution", {})
        put(document, ("execution",), {"iterations": iterations, "actions_performed": actions})
        if qualities:
            _set_qualities(document, qualities)

    edit_object(place.attempt, edit, {"id": place.number, "task_id": folder.id})


def _history(document: JsonText) -> list[Any]:
    """The quality history as it is told by now; `BadJson` where there is no place for it."""
    expect(document.value, _SHAPES)
    history: list[Any] = document.value.get("execution", {}).get("quality_history", [])
    return history


def _set_qualities(document: JsonText, qualities: Mapping[int, float]) -> None:
    """The entries of some iterations in the quality history, each with the step from the entry before it."""
    at = ("execution", "quality_history")
    if "quality_history" not in document.value["execution"]:
        document.set(at[:1], at[1], [])
    history = _history(document)
    places = _places(history)
    known = {places[iteration]: iteration for iteration in qualities if iteration in places}
    last: float | None = None
    changed: dict[int, dict[str, Any]] = {}
    for place, one in enumerate(history):
        value = dialects.rate(one.get("quality")) if isinstance(one, dict) else None
        if place in known:
            value = qualities[known[place]]
            changed[place] = _entry(known[place], value, last)
        last = last if value is None else value
    entries = document.items(at, changed)
    for place, entry in entries.items():
        put(entry, (), changed[place])
    document.put_back(at, entries)
    new = []
    for iteration, value in qualities.items():
        if iteration not in places:
            new.append(_entry(iteration, value, last))
            last = value
    document.extend(at, new)


def _places(history: Sequence[Any]) -> dict[int, int]:
    """Where an iteration has its entry, the last one if there are several."""
    entries = ((place, one) for place, one in enumerate(history) if isinstance(one, dict))
    return {one["iteration"]: place for place, one in entries if isinstance(one.get("iteration"), int)}


def _entry(iteration: int, quality: float, before: float | None) -> dict[str, Any]:
    """(1) `quality_history`: what the work was worth at the end of an iteration."""
    return {"iteration": iteration, "quality": quality, "delta": 0 if before is None else round(quality - before, 6)}


def count(execution: Mapping[str, Any], name: str) -> int:
    """A count of `execution`, 0 where it is none."""
    return dialects.count(execution.get(name)) or 0
