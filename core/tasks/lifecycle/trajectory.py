"""Update `trajectory.json`: entries of attempts, and their milestones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import BadInput
from core.files.file_reader import MAX_BYTES
from core.sources.episodes import MAX_ENTRIES
from core.tasks.json_files import check_editable, check_shapes, edit_object, read_object, set_default, set_members
from core.tasks.strict_reader import TRAJECTORY_SHAPES, is_entry
from core.tasks.validation import check_total_size, json_size

if TYPE_CHECKING:
    from core.files.json_editor import JsonText
    from core.tasks.folders import TaskFolder

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
    entries = (read_object(folder.trajectory, folder.project.aiwg) or {}).get("attempts")
    mine = [one for one in entries if is_entry(one, number)] if isinstance(entries, list) else []
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
