"""The log of an attempt that is written: `actions.jsonl` appended to, and counted in `attempt.json` (1)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

import msgspec

from core.base.errors import BadInput, Unwritable
from core.episodes.folders import AttemptFolder, TaskFolder
from core.episodes.json_files import Shapes, edit_object, ensure, expect, put
from core.episodes.validation import MAX_SAID
from core.sources import normalize
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_BYTES
from core.storage.json_editor import JsonText
from core.storage.locks import open_regular

MAX_QUALITIES: Final = 50_000
"""Longest quality history that is written: one that readers still take, and far more than anybody looks at."""
_ENTRY_BYTES: Final = 120
"""Most bytes of an entry of the quality history."""
_MOST_BYTES: Final = MAX_BYTES - MAX_SAID - (1 << 16)
"""Of an `attempt.json` that still takes in how the attempt ends."""
_LINE: Final = re.compile(
    rb'\{"timestamp":"(?P<timestamp>[^"]*)","iteration":(?P<iteration>\d+),(?P<rest>.*)', re.DOTALL
)
"""A line as it is written, see `arguments.action`."""
_MOST_DIFFERENT: Final = 16
"""Bytes that an iteration may be longer, and a line feed."""
_SHAPES: Final[Shapes] = {("execution",): dict, ("execution", "quality_history"): list}
"""What counting expects of an `attempt.json`."""


def append(path: Path, records: Sequence[Mapping[str, Any]], told: Sequence[Set[str]], known: int) -> tuple[int, int]:
    """Append actions to a log, unless they are its last ones already and one of them tells its time.

    Args:
        told: The fields that each of them tells itself; others are not compared.
        known: How many actions it had, as far as they were counted.

    Returns:
        How many were added, and how many there are now. The log is counted only after a call that was repeated:
        the first one may not have come so far.
    """
    if not records:
        return 0, known
    lines = [msgspec.json.encode(record) for record in records]
    if any("timestamp" in fields for fields in told) and _ends_with(path, lines, told):
        return 0, AppendLog(path).read()[0].count(b"\n")
    AppendLog(path).append(lines)
    return len(lines), known + len(lines)


def _ends_with(path: Path, lines: Sequence[bytes], told: Sequence[Set[str]]) -> bool:
    """Whether a log has these lines last, but for the times and the iterations that they do not tell themselves."""
    last = _last_lines(path, sum(len(line) + _MOST_DIFFERENT for line in lines))[-len(lines) :]
    return len(last) == len(lines) and all(map(_is_same, last, lines, told))


def _is_same(one: bytes, other: bytes, told: Set[str]) -> bool:
    if one == other:
        return True
    parts = [found for found in (_LINE.match(one), _LINE.match(other)) if found]
    untold = {name: None for name in ("timestamp", "iteration") if name not in told}
    return len(parts) == 2 and parts[0].groupdict() | untold == parts[1].groupdict() | untold


def _last_lines(path: Path, size: int) -> list[bytes]:
    """The whole lines in the last `size` bytes of a log."""
    try:
        handle = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unwritable(f"cannot read {path}: {error.strerror}") from None
    try:
        start = max(os.fstat(handle).st_size - size - 1, 0)
        data = os.pread(handle, size + 1, start)
        whole = data.split(b"\n")
        # What stands before the first line feed may be the end of a line, what follows the last one is no line yet.
        return whole[1 if start else 0 : -1] if not whole[-1] else []
    finally:
        os.close(handle)


def repair_log(place: AttemptFolder) -> None:
    """Take back the actions of a call that was killed before it had written all of them."""
    AppendLog(place.actions).undo_incomplete_batch()


def check_log_metrics(folder: TaskFolder, place: AttemptFolder, qualities: Mapping[int, float]) -> None:
    """Find out before anything is appended whether it can be counted.

    Raises:
        BadInput: The quality history would become too long.
        Conflict: `attempt.json` cannot be understood, or has no place for counts.
    """

    def check(document: JsonText) -> None:
        history = _history(document)
        new = len(qualities.keys() - _places(history).keys())
        if qualities and len(history) + new > MAX_QUALITIES:
            many = f"the quality of {len(history) + new:,} iterations"
            raise BadInput(f"{many}; at most {MAX_QUALITIES:,} of an attempt are kept")
        size = len(document.encode()) + new * _ENTRY_BYTES
        if qualities and size > _MOST_BYTES:
            limit = f"of {size:,} bytes; with room for its end there are {_MOST_BYTES:,}"
            raise BadInput(f"no room for a further quality in {place.attempt}, {limit}")

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
        value = normalize.rate(one.get("quality")) if isinstance(one, dict) else None
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
    return normalize.count(execution.get(name)) or 0
