"""Append actions to an open attempt, with their qualities, result files and milestones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.config.paths import safe_component
from core.episodes.action_log import append_actions, check_log_metrics, read_count, update_metrics
from core.episodes.folders import AttemptFolder, TaskFolder, store_file
from core.episodes.json_files import read_object
from core.episodes.lifecycle.trajectory import check_milestones, record_milestones
from core.episodes.validation import MAX_ITERATION, validate_actions, validate_milestones


@dataclass(frozen=True, slots=True)
class LogResult:
    """The result of `log_actions`.

    Attributes:
        number: The attempt.
        actions: All actions of the attempt, as counted in `attempt.json`.
        added: New actions of this call.
    """

    number: int
    actions: int
    added: int


def record_actions(
    folder: TaskFolder,
    place: AttemptFolder,
    actions: Sequence[Mapping[str, Any]],
    *,
    now: datetime,
    iteration: int | None,
    quality: float | None,
    files: Mapping[str, bytes],
    milestones: Sequence[Mapping[str, Any]],
) -> LogResult:
    """Check everything, then write it; the caller holds the lock of the task. See `Episodes.log_actions`."""
    record = read_object(place.attempt, folder.project.aiwg) or {}
    execution = record.get("execution")
    counts = execution if isinstance(execution, dict) else {}
    known = read_count(counts, "actions_performed")
    new_milestones = validate_milestones(milestones, now)
    if not actions and quality is None and not files and not new_milestones:
        return LogResult(place.number, known, 0)
    latest = iteration or min(max(read_count(counts, "iterations"), 1), MAX_ITERATION)
    lines, action_qualities = validate_actions(actions, now, latest)
    iterations = [line["iteration"] for line in lines]
    pairs = zip([*iterations, latest], [*action_qualities, quality], strict=True)
    qualities = {at: value for at, value in pairs if value is not None}
    check_log_metrics(folder, place, qualities)
    check_milestones(folder, place.number, new_milestones)
    for name, data in files.items():
        store_file(folder.project, place.results(latest) / safe_component(name), data, drafts=place.path)
    given = [{name for name, value in action.items() if value not in (None, "")} for action in actions]
    added, total = append_actions(place.actions, lines, given, known)
    highest = max((latest, *iterations, read_count(counts, "iterations")))
    update_metrics(folder, place, total, highest, qualities)
    if new_milestones:
        started = record.get("started")
        record_milestones(folder, place.number, started if isinstance(started, str) else None, new_milestones)
    return LogResult(place.number, total, added)
