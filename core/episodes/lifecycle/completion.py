"""End an attempt: determine its outcome and write `outcome.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from core.base.errors import BadInput, Refused, UnknownRecord
from core.episodes.action_log import repair_log
from core.episodes.folders import AttemptFolder, TaskFolder, find_attempt_folder
from core.episodes.json_files import edit_object, set_members
from core.episodes.lifecycle.propagation import ENDED, LISTS, TASK_STATUS, propagate
from core.episodes.lifecycle.trajectory import MILESTONES, merge_milestones, read_milestone_entries
from core.episodes.log_summary import LogSummary
from core.episodes.strict_reader import StrictReader
from core.episodes.validation import MAX_TOTAL_SIZE, json_size
from core.records.episodes import Attempt, TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.storage.file_reader import Stamp

_RESULT: Final = ("status", "reason", "final_quality", "completion_percent")
_ORDER: Final = (*_RESULT, *LISTS, ENDED, MILESTONES, TASK_STATUS)
"""Order of the members of `outcome.json`."""


@dataclass(frozen=True, slots=True)
class CompletedAttempt:
    """An attempt that has ended.

    Attributes:
        derived: Whether the outcome was determined from the log.
        again: Whether the attempt had ended before; its earlier outcome stays.
        status: The status of the task.
        reflections: Reflections on this attempt, including drafts.
    """

    number: int
    outcome: Outcome
    derived: bool
    again: bool
    status: TaskStatus
    log: LogSummary
    reflections: tuple[Reflection, ...]


class LogAhead(NamedTuple):
    """The summary of a log, computed before locking, since it takes seconds."""

    number: int
    stamp: Stamp
    summary: LogSummary

    def is_current(self, place: AttemptFolder) -> bool:
        """Whether it belongs to this attempt and the log has not changed since."""
        return self.number == place.number and self.stamp == _stamp(place)


def read_log_ahead(folder: TaskFolder, attempt: int | None) -> LogAhead | None:
    """Summarize the log of an attempt, if there is one; by default the newest."""
    try:
        place = find_attempt_folder(folder, attempt)
    except (Refused, UnknownRecord):  # another process may start it before the lock is taken
        return None
    stamp = _stamp(place)
    return LogAhead(place.number, stamp, StrictReader(folder).log(place)) if stamp is not None else None


def _stamp(place: AttemptFolder) -> Stamp | None:
    try:
        return Stamp.of(place.actions.lstat())
    except FileNotFoundError:
        return None


def determine_outcome(known: Attempt, log: LogSummary | None, outcome: Outcome | None) -> Outcome:
    """The given outcome, else the one that the log proves.

    Args:
        log: Required if `outcome` is None and the attempt is open.

    Raises:
        BadInput: No outcome is given and the log proves none.
        Refused: The attempt has ended with another outcome.
    """
    if known.outcome is not Outcome.UNKNOWN:
        if outcome not in (None, known.outcome):
            raise Refused(f"attempt {known.number} at {known.task_id} ended in {known.outcome.value} already")
        return known.outcome
    found = outcome or (log.outcome if log is not None else Outcome.UNKNOWN)
    if found is Outcome.UNKNOWN:
        raise BadInput(
            f"the log does not show the outcome of attempt {known.number} at {known.task_id}; "
            "give --success, --failure or --timeout"
        )
    return found


def check_task_end(folder: TaskFolder, outcome: Outcome, task_done: bool, *, is_newest: bool) -> None:
    """Raise `Refused` if an attempt with this outcome cannot end its task."""
    if not is_newest:
        raise Refused(f"only the newest attempt at {folder.id} can end the task")
    if task_done and outcome is not Outcome.SUCCESS:
        raise Refused(f"the attempt ended in {outcome.value}; {folder.id} can only be completed by a success")


def end_attempt(
    folder: TaskFolder, place: AttemptFolder, result: Mapping[str, Any], *, now: datetime, log: LogSummary | None = None
) -> LogSummary:
    """Write `outcome.json`, which ends the attempt, and update all other files.

    Args:
        result: Members of `outcome.json`; None values are left out.
        log: The summary of the log, if it is known.
    """
    repair_log(place)
    milestones = merge_milestones(read_milestone_entries(folder, place.number), result.get(MILESTONES, ()))
    whole: dict[str, Any] = {"reason": "", **{name: [] for name in LISTS}, **result, ENDED: iso(now)}
    # Other programs may have recorded more milestones than fit; the trajectory keeps them.
    fits = json_size(milestones) <= MAX_TOTAL_SIZE and (milestones or MILESTONES in result)
    whole |= {MILESTONES: milestones if fits else None}
    members = {name: whole[name] for name in _ORDER if whole.get(name) is not None}
    edit_object(place.outcome, lambda document: set_members(document, (), members), {})
    return propagate(folder, place, seen_at=now, log=log)


def repeat_end(
    folder: TaskFolder,
    place: AttemptFolder,
    outcome: Outcome,
    status: str | None,
    now: datetime,
    *,
    log: LogSummary | None = None,
) -> LogSummary:
    """Complete an interrupted end of an attempt; `status` also ends the task."""
    if status is not None:
        members = {"status": outcome.value, TASK_STATUS: status}
        edit_object(place.outcome, lambda document: set_members(document, (), members), {})
    return propagate(folder, place, seen_at=now, log=log)
