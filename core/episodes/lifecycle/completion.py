"""How an attempt ends: how it came out, and that it did (1) complete_attempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from core.base.errors import BadInput, Refused
from core.episodes.action_log import repair_log
from core.episodes.folders import AttemptFolder, TaskFolder
from core.episodes.json_files import edit_object, put
from core.episodes.lifecycle.propagation import (
    ENDED,
    LISTS,
    MILESTONES,
    TASK_STATUS,
    merge_milestones,
    propagate,
    read_milestone_entries,
)
from core.episodes.log_summary import LogSummary
from core.episodes.validation import MAX_SAID, json_size
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.times import iso

_ORDER: Final = (
    "status",
    "reason",
    "final_quality",
    "completion_percent",
    *LISTS,
    ENDED,
    MILESTONES,
    TASK_STATUS,
)
"""Of the members of `outcome.json`."""


def determine_outcome(known: Attempt, log: LogSummary | None, outcome: Outcome | None) -> Outcome:
    """(1) `determine_outcome`: what was said, else what the log proves; never a guess.

    Args:
        log: Needed only where nobody has said it.

    Raises:
        BadInput: Nobody says it, and the log proves nothing.
        Refused: It ended otherwise already.
    """
    if known.outcome is not Outcome.UNKNOWN:
        if outcome not in (None, known.outcome):
            raise Refused(f"attempt {known.number} at {known.task_id} ended in {known.outcome.value} already")
        return known.outcome
    found = outcome or (log.outcome if log is not None else Outcome.UNKNOWN)
    if found is Outcome.UNKNOWN:
        raise BadInput(
            f"the log does not tell how attempt {known.number} at {known.task_id} came out; "
            "say it (--success, --failure or --timeout)"
        )
    return found


def check_task_end(folder: TaskFolder, outcome: Outcome, task_done: bool, *, newest: bool) -> None:
    """Whether an attempt that came out so can end its task.

    Raises:
        Refused: It cannot.
    """
    if not newest:
        raise Refused(f"only the newest attempt at {folder.id} can end the task")
    if task_done and outcome is not Outcome.SUCCESS:
        raise Refused(f"the attempt ended in {outcome.value}; {folder.id} can be done only by one that succeeded")


def end(
    folder: TaskFolder, place: AttemptFolder, told: Mapping[str, Any], *, now: datetime, log: LogSummary | None = None
) -> LogSummary:
    """(1) `write_outcome_json`, with which the attempt is over; then all that follows from it.

    Args:
        told: Members of `outcome.json`, None where there is nothing to tell.
        log: What its log amounts to, if that is known by now.
    """
    repair_log(place)
    reached = merge_milestones(read_milestone_entries(folder, place.number), told.get(MILESTONES, ()))
    whole: dict[str, Any] = {"reason": "", **{name: [] for name in LISTS}, **told, ENDED: iso(now)}
    # Those of another maker may be more; the trajectory keeps them.
    fits = json_size(reached) <= MAX_SAID and (reached or MILESTONES in told)
    whole |= {MILESTONES: reached if fits else None}
    result = {name: whole[name] for name in _ORDER if whole.get(name) is not None}
    edit_object(place.outcome, lambda document: put(document, (), result), {})
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
    """Make up for what a kill left out of the end of an attempt, and end the task, too, where a status says so."""
    if status is not None:
        said = {"status": outcome.value, TASK_STATUS: status}
        edit_object(place.outcome, lambda document: put(document, (), said), {})
    return propagate(folder, place, seen_at=now, log=log)
