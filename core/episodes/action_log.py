"""The log of an attempt that is written: `actions.jsonl` appended to, and counted in `attempt.json` (1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.episodes.folders import AttemptFolder, TaskFolder
from core.episodes.json_files import edit_object, ensure, put
from core.errors import Unwritable
from core.sources import dialects
from core.sources.journal import Journal
from core.sources.json_text import BadJson, JsonText
from core.sources.locking import open_regular


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


def update_metrics(
    folder: TaskFolder,
    place: AttemptFolder,
    actions: int,
    iterations: int,
    qualities: Sequence[tuple[int, float | None]],
) -> None:
    """(1) `update_attempt_metrics`: in steps, without counting the log again."""

    def edit(document: JsonText) -> None:
        execution = ensure(document, "execution", {})
        if not isinstance(execution, dict) or not isinstance(execution.get("quality_history", []), list):
            raise BadJson("expected an object with a list 'quality_history' under 'execution'")
        put(document, ("execution",), {"iterations": iterations, "actions_performed": actions})
        for iteration, quality in qualities:
            if "quality_history" not in execution:
                document.set(("execution",), "quality_history", [])
            _set_quality(document, iteration, quality)

    edit_object(place.attempt, edit, {"id": place.number, "task_id": folder.id})


def _set_quality(document: JsonText, iteration: int, quality: float | None) -> None:
    """The entry of an iteration in the quality history: the last one said, with the step from the entry before."""
    at = ("execution", "quality_history")
    history: list[Any] = document.value["execution"]["quality_history"]
    known = [place for place, one in enumerate(history) if isinstance(one, dict) and one.get("iteration") == iteration]
    before = history[: known[-1]] if known else history
    told = [dialects.rate(one.get("quality")) for one in before if isinstance(one, dict)]
    values = [value for value in told if value is not None]
    delta = round(float(quality or 0) - values[-1], 6) if values else 0
    entry = {"iteration": iteration, "quality": quality, "delta": delta}
    if known:
        put(document, (*at, known[-1]), entry)
    else:
        document.append(at, entry)


def count(execution: Mapping[str, Any], name: str) -> int:
    """A count of `execution`, 0 where it is none."""
    return dialects.count(execution.get(name)) or 0
