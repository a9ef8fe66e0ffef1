"""Write what an attempt adds: action log, counts, quality history, milestones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.regexes import lazy_regex
from core.files.append_log import AppendLog
from core.files.file_access import open_regular
from core.files.file_reader import MAX_BYTES
from core.sources import normalize
from core.sources.episodes import MAX_ENTRIES
from core.tasks.history import find_entries, is_entry
from core.tasks.task_files import (
    TRAJECTORY_SHAPES,
    Shapes,
    check_editable,
    check_shapes,
    edit_object,
    read_object,
    set_default,
    set_members,
)
from core.tasks.validation import MAX_TOTAL_SIZE, check_total_size, json_size

if TYPE_CHECKING:
    from core.files.json_editor import JsonText
    from core.tasks.task_files import AttemptFolder, TaskFolder


MAX_QUALITIES: Final = 50_000  # maximum length of a quality history; readers accept it
_ENTRY_BYTES: Final = 120  # maximum size of an entry of the quality history
_MAX_RECORD_BYTES: Final = MAX_BYTES - MAX_TOTAL_SIZE - (1 << 16)  # leaves room for the end of the attempt
_LINE: Final = lazy_regex(
    rb'\{"timestamp":"(?P<timestamp>[^"]*)","iteration":(?P<iteration>\d+),(?P<rest>.*)', re.DOTALL
)  # a line as `validate_action` formats it
_MAX_LENGTH_DIFFERENCE: Final = 16  # bytes by which a logged line may be longer than a repeated one (iteration, "\n")
_SHAPES: Final[Shapes] = {("execution",): dict, ("execution", "quality_history"): list}  # types in `attempt.json`


@contextmanager
def append_actions(
    path: Path, records: Sequence[Mapping[str, Any]], explicit: Sequence[Set[str]], known: int
) -> Iterator[tuple[int, int]]:
    """Append actions to a log; do nothing if the call repeats the last one.

    It repeats it if at least one action has a timestamp and the log ends with the same actions. `explicit` contains the
    names of the fields that the caller set in each action; fields with default values are not compared. `known` is the
    recorded number of actions. The block writes what belongs to the actions; if it cannot, they are removed, so that
    the call can be repeated. Yields the number of added actions and of all actions. Only a repeated call counts the
    lines of the log, since the first call may have been killed before it recorded their number.
    """
    lines = [msgspec.json.encode(record) for record in records]
    log = AppendLog(path)
    if any("timestamp" in fields for fields in explicit) and _ends_with(path, lines, explicit):
        yield 0, log.read()[0].count(b"\n")
        return
    if lines:
        log.append(lines)
    try:
        yield len(lines), known + len(lines)
    except (Conflict, Unwritable):
        if lines:
            log.remove_last(lines)
        raise


def _ends_with(path: Path, lines: Sequence[bytes], explicit: Sequence[Set[str]]) -> bool:
    """Whether a log ends with these lines; ignores fields with default values."""

    def is_same(one: bytes, other: bytes, fields: Set[str]) -> bool:
        parts = [found.groupdict() for found in (_LINE.match(one), _LINE.match(other)) if found]
        defaults = {name: None for name in ("timestamp", "iteration") if name not in fields}
        return one == other or (len(parts) == 2 and parts[0] | defaults == parts[1] | defaults)

    last = _last_lines(path, sum(len(line) + _MAX_LENGTH_DIFFERENCE for line in lines))[-len(lines) :]
    return len(last) == len(lines) and all(map(is_same, last, lines, explicit))


def _last_lines(path: Path, size: int) -> list[bytes]:
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
        # The first piece may be a part of a line. The last one is empty, unless the last line is incomplete.
        return whole[1 if start else 0 : -1] if not whole[-1] else []
    finally:
        os.close(handle)


def check_metrics(folder: TaskFolder, place: AttemptFolder, qualities: Mapping[int, float]) -> None:
    """Check that `update_metrics` will succeed, before actions are appended.

    Raises BadInput if the quality history would become too long, and Conflict if `attempt.json` is malformed.
    """

    def check(document: JsonText) -> None:
        history = _history(document)
        new = len(qualities.keys() - _find_iterations(history).keys())
        if qualities and len(history) + new > MAX_QUALITIES:
            raise BadInput(f"quality of {len(history) + new:,} iterations; at most {MAX_QUALITIES:,} per attempt")
        size = len(document.encode()) + new * _ENTRY_BYTES
        if qualities and size > _MAX_RECORD_BYTES:
            limit = f"{size:,} bytes; at most {_MAX_RECORD_BYTES:,} are allowed before the end of the attempt"
            raise BadInput(f"with this quality, {place.attempt} would have {limit}")

    edit_object(place.attempt, check, {"id": place.number, "task_id": folder.id})


def update_metrics(
    folder: TaskFolder,
    place: AttemptFolder,
    actions: int,
    iterations: int,
    qualities: Mapping[int, float],
    *,
    is_repeated: bool,
) -> None:
    """Write the counts, and the quality (0..1) of iterations, to `attempt.json`.

    `is_repeated` is whether the next call writes the same number of iterations again; it always counts the actions.
    """

    def edit(document: JsonText) -> None:
        _history(document)
        set_default(document, "execution", {})
        set_members(document, ("execution",), {"iterations": iterations, "actions_performed": actions})
        if qualities:
            _set_qualities(document, qualities)

    edit_object(
        place.attempt, edit, {"id": place.number, "task_id": folder.id}, is_repeated=is_repeated and not qualities
    )


def _history(document: JsonText) -> list[Any]:
    """Return the quality history; raise `BadJson` if it is malformed."""
    check_shapes(document.value, _SHAPES)
    history: list[Any] = document.value.get("execution", {}).get("quality_history", [])
    return history


def _set_qualities(document: JsonText, qualities: Mapping[int, float]) -> None:
    """Add or replace entries of the quality history, each with its change."""
    at = ("execution", "quality_history")
    if "quality_history" not in document.value["execution"]:
        document.set(at[:1], at[1], [])
    history = _history(document)
    places = _find_iterations(history)
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
        set_members(entry, (), changed[place])
    document.put_back(at, entries)
    new = []
    for iteration, value in qualities.items():
        if iteration not in places:
            new.append(_entry(iteration, value, last))
            last = value
    document.extend(at, new)


def _find_iterations(history: Sequence[Any]) -> dict[int, int]:
    entries = ((place, one) for place, one in enumerate(history) if isinstance(one, dict))
    return {one["iteration"]: place for place, one in entries if isinstance(one.get("iteration"), int)}


def _entry(iteration: int, quality: float, before: float | None) -> dict[str, Any]:
    return {"iteration": iteration, "quality": quality, "delta": 0 if before is None else round(quality - before, 6)}


class LogResult(Struct, frozen=True):
    """Result of `log_actions`."""

    number: int  # of the attempt
    actions: int  # number of all actions of the attempt
    added: int  # number of actions that this call added


# Entries of attempts in the trajectory

MILESTONES: Final = "milestones"
_MAX_MILESTONE_BYTES: Final = MAX_BYTES // 2  # size of a trajectory up to which milestones can be added
_MAX_PLAN_BYTES: Final = MAX_BYTES // 4 * 3  # size of a trajectory up to which new entries contain the plan


def set_entry(folder: TaskFolder, number: int, entry: Mapping[str, Any]) -> None:
    """Add or update the entry of an attempt; omit its plan if the file is long."""
    members = dict(entry)

    def edit(document: JsonText) -> None:
        check_shapes(document.value, TRAJECTORY_SHAPES)
        if len(document.encode()) > _MAX_PLAN_BYTES:
            members.pop("plan", None)
        at = _find_entry(document, number)
        if at is None:
            document.append(("attempts",), {MILESTONES: [], **members})
        else:
            set_members(document, ("attempts", at), members)

    edit_object(folder.trajectory, edit, {"task_id": folder.id, "attempts": []})


def remove_members(folder: TaskFolder, number: int, names: Sequence[str]) -> None:
    """Remove members of the entry of an attempt, if it has them."""

    def edit(document: JsonText) -> None:
        check_shapes(document.value, TRAJECTORY_SHAPES)
        at = _find_entry(document, number)
        for name in names:
            if at is not None and name in document.value["attempts"][at]:
                document.remove(("attempts", at, name))

    edit_object(folder.trajectory, edit, {"task_id": folder.id, "attempts": []})


def _find_entry(document: JsonText, number: int) -> int | None:
    entries = set_default(document, "attempts", [])
    return next((at for at, one in enumerate(entries) if is_entry(one, number)), None)


def read_milestone_entries(folder: TaskFolder, number: int) -> list[Any]:
    """Return the milestones of an attempt in the trajectory, unvalidated."""
    mine = find_entries(read_object(folder.trajectory, folder.project.aiwg) or {}, number)
    found = mine[0].get(MILESTONES) if mine else None
    return found if isinstance(found, list) else []


def check_milestones(folder: TaskFolder, number: int, new: Sequence[Mapping[str, Any]]) -> None:
    """Raise `BadInput` if new milestones do not fit into the trajectory."""
    if not new:
        return
    check_editable(folder.trajectory, folder.project.aiwg, TRAJECTORY_SHAPES)
    merged = merge_milestones(read_milestone_entries(folder, number), new)
    if len(merged) > MAX_ENTRIES:
        raise BadInput(f"{len(merged):,} milestones of attempt {number}; at most {MAX_ENTRIES:,} are allowed")
    check_total_size(merged, f"the milestones of attempt {number}")
    size = json_size(new) + (folder.trajectory.stat().st_size if folder.trajectory.exists() else 0)
    if size > _MAX_MILESTONE_BYTES:
        limit = f"{size:,} bytes; at most {_MAX_MILESTONE_BYTES:,} are allowed"
        raise BadInput(f"with these milestones, the trajectory of {folder.id} has {limit}; shorten or omit them")


def record_milestones(folder: TaskFolder, number: int, started: str | None, new: Sequence[Mapping[str, Any]]) -> None:
    """Add milestones to an open attempt, unless they repeat its last ones."""

    def edit(document: JsonText) -> None:
        check_shapes(document.value, TRAJECTORY_SHAPES)
        at = _find_entry(document, number)
        if at is None:
            at = len(document.value["attempts"])
            document.append(("attempts",), {"attempt_id": number, **({"started": started} if started else {})})
        set_members(document, ("attempts", at), {MILESTONES: merge_milestones(known, new)})

    known = read_milestone_entries(folder, number)
    edit_object(folder.trajectory, edit, {"task_id": folder.id, "attempts": []})


def merge_milestones(known: Sequence[Any], new: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Append milestones, unless they repeat the last known ones (ignoring times)."""

    def without_time(one: Any) -> Any:
        return {name: one[name] for name in ("event", "details") if name in one} if isinstance(one, dict) else one

    last = known[-len(new) :] if new else ()
    is_repeated = bool(new) and [*map(without_time, last)] == [*map(without_time, new)]
    return [*known, *(() if is_repeated else new)]
