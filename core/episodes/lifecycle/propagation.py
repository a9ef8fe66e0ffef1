"""What follows from the outcome of an attempt, file by file; whatever a kill left out is made up for by another run.

The outcome is the fact. The attempt's own record, the reflections, the metadata, the summary and the index follow from
it and from the log, so that to run this again changes nothing. The trajectory comes last: an attempt that it knows to
have ended needs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.episodes.folders import AttemptFolder, TaskFolder
from core.episodes.json_files import check_editable, edit_object, ensure, expect, put, read_object
from core.episodes.log_summary import LogSummary
from core.episodes.reflection_drafts import TASK_COMPLETION, AttemptWork, draft_completion, draft_reflection
from core.episodes.strict_reader import TRAJECTORY_SHAPES, StrictReader, is_entry
from core.episodes.task_indexes import index_task
from core.episodes.validation import MAX_SAID, check_total_size, json_size
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso, parse_time
from core.sources.episodes import MAX_ENTRIES
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_BYTES
from core.storage.json_editor import JsonText

TASK_STATUS: Final = "task_status"
ENDED: Final = "ended"
MILESTONES: Final = "milestones"
"""What our `outcome.json` tells beside the fields of (1), so that all other files can follow from it."""
LISTS: Final = ("what_worked", "what_didnt_work", "suggestions_for_next_time")
_RESULT: Final = ("status", "reason", "final_quality", "completion_percent")
_MOST_REACHED: Final = MAX_BYTES // 2
"""Bytes of a trajectory up to which milestones are taken: the entries of attempts to come have the rest."""
_MOST_PLANNED: Final = MAX_BYTES // 4 * 3
"""Bytes of a trajectory up to which it repeats the plans of attempts."""
MAX_LEARNINGS: Final = 100
"""Learnings that a summary repeats, the newest."""


def propagate(
    folder: TaskFolder, place: AttemptFolder, *, seen_at: datetime, log: LogSummary | None = None
) -> LogSummary:
    """Bring all other files of a task to what the outcome of one of its attempts says; see the module.

    The caller holds the lock of the task.

    Args:
        seen_at: When to say that its reflections were written, where no file tells when it ended.
        log: What its log amounts to, if that is known by now.

    Raises:
        Conflict: A file cannot be understood; it is as it was, and the message names it.
        Unwritable: The disk, a lock or a permission forbids it.
    """
    reader = StrictReader(folder)
    result = read_object(place.outcome, folder.project.aiwg) or {}
    attempt, log = reader.attempt(place.number), log or reader.log(place)
    ended = parse_time(result.get(ENDED)) or attempt.ended_at or log.last_at
    _finish_attempt(folder, place, result, log, ended)
    attempt = reader.attempt(place.number)
    attempts = [*reader.attempts().values()]
    newest = attempts[-1].number == place.number
    over = newest and result.get(TASK_STATUS) in (TaskStatus.COMPLETED, TaskStatus.FAILED)
    _reflect(
        folder, reader, AttemptWork(attempt, log), attempts if over else (), result.get(TASK_STATUS), ended or seen_at
    )
    if newest:
        _tell_metadata(folder, place.number, result, ended)
    task = reader.task()
    counted = [_counted(one, attempt, log) for one in attempts]
    _summarise(folder, task, counted, reader.reflections())
    index_task(folder, task.status.value, agents(task, attempts))
    # What the trajectory counted while the attempt was open is out of date.
    iterations = reader.own(place).iterations
    attempt = attempt if iterations is None else msgspec.structs.replace(attempt, iterations=iterations)
    _tell_trajectory(folder, attempt, result, log, ended)
    return log


def propagate_all(folder: TaskFolder, *, seen_at: datetime) -> None:
    """`propagate` for every attempt that has an outcome of which the trajectory does not know, oldest first."""
    reader = StrictReader(folder)
    known = reader.trajectory()
    for number, place in folder.attempts().items():
        if number not in known and reader.attempt(number).outcome is not Outcome.UNKNOWN:
            propagate(folder, place, seen_at=seen_at)


def agents(task: Task, attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """Everybody who has worked at a task."""
    return tuple(dict.fromkeys(name for name in (task.agent, *(one.agent for one in attempts)) if name))


def _finish_attempt(
    folder: TaskFolder, place: AttemptFolder, result: Mapping[str, Any], log: LogSummary, ended: datetime | None
) -> None:
    """(1) `finalize_attempt_metrics`: exact, from the log; what another maker has in another shape stays as it is."""

    def edit(document: JsonText) -> None:
        if ended is not None and not document.value.get("ended"):
            put(document, (), {"ended": iso(ended)})
        execution = ensure(document, "execution", {})
        if isinstance(execution, dict):
            iterations = execution.get("iterations")
            told = iterations if isinstance(iterations, int) else 0
            counts = {"iterations": max(told, log.iterations), "actions_performed": log.actions}
            # An attempt of another maker may have no log, and tell of one all the same.
            put(document, ("execution",), counts if log.actions or not execution else {})
        if result:
            if isinstance(ensure(document, "outcome", {}), dict):
                put(document, ("outcome",), {name: result[name] for name in _RESULT if name in result})
            put(document, (), {name: result[name] for name in LISTS if name in result})

    edit_object(place.attempt, edit, {"id": place.number, "task_id": folder.id})


def _reflect(
    folder: TaskFolder, reader: StrictReader, told: AttemptWork, over: Sequence[Attempt], status: Any, ended: datetime
) -> None:
    """(1) `generate_reflection`, unless somebody has reflected on the attempt, or a draft is there already.

    Args:
        over: All attempts at a task that this one has ended, with this status.
    """
    number = told.attempt.number
    lines = [line.value for line in reader.reflection_lines() if isinstance(line.value, dict)]
    mine = [line for line in lines if line.get("attempt_id", line.get("attempt")) == number]
    there = {str(line.get("trigger", "")) for line in mine}
    drafts: list[dict[str, Any]] = []
    if told.attempt.outcome in (Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT) and not there - {TASK_COMPLETION}:
        before = [other for other in folder.attempts() if other < number]
        earlier = _told(folder, reader, before[-1]) if before else None
        drafts.append(draft_reflection(told, ended, earlier))
    if over and TASK_COMPLETION not in there:
        whole = [_counted(one, told.attempt, told.log) for one in over]
        failed = [one.number for one in over if one.outcome is not Outcome.SUCCESS]
        last_failed = _told(folder, reader, failed[-1]) if failed else None
        given_up = status == TaskStatus.FAILED
        drafts.append(draft_completion(whole, ended, told.log, last_failed, given_up=given_up))
    if drafts:
        AppendLog(folder.reflections).append([msgspec.json.encode(draft) for draft in drafts])


def _told(folder: TaskFolder, reader: StrictReader, number: int) -> AttemptWork:
    """An attempt and what was done in it, as far as its files are still there."""
    place = folder.attempts().get(number)
    return AttemptWork(reader.attempt(number), reader.log(place) if place else LogSummary())


def _counted(one: Attempt, attempt: Attempt, log: LogSummary) -> Attempt:
    """`one`; if it is `attempt`, with what its log amounts to."""
    if one.number != attempt.number:
        return one
    logged = (log.actions, log.errors) if log.actions else (attempt.actions, attempt.errors)
    return msgspec.structs.replace(attempt, actions=logged[0], errors=logged[1])


def attempt_counts(metadata: Mapping[str, Any], number: int) -> dict[str, int]:
    """The counts of a task's metadata once it has come to an attempt."""
    total = metadata.get("total_attempts")
    return {"current_attempt": number, "total_attempts": max(total, number) if isinstance(total, int) else number}


def _tell_metadata(folder: TaskFolder, number: int, result: Mapping[str, Any], ended: datetime | None) -> None:
    """(1) `update_task_metadata`."""
    status = result.get(TASK_STATUS)

    def edit(document: JsonText) -> None:
        value = document.value
        updated = parse_time(value.get("updated"))
        later = ended is not None and (updated is None or updated < ended)
        told: dict[str, Any] = {"updated": iso(ended)} if later else {}
        told |= attempt_counts(value, number)
        if status:
            told["status"] = status
        if status == TaskStatus.COMPLETED and ended is not None and not value.get("completed"):
            told["completed"] = iso(ended)
        put(document, (), told)

    edit_object(folder.metadata, edit, {"id": folder.id})


def _summarise(folder: TaskFolder, task: Task, attempts: Sequence[Attempt], reflections: Sequence[Reflection]) -> None:
    """`summary.json`: (1) "aggregated task summary"."""
    took = [(one.ended_at - one.started_at) for one in attempts if one.ended_at and one.started_at]
    best = [one.final_quality for one in attempts if one.final_quality is not None]
    outcomes = [one.outcome for one in attempts]
    summary = {
        "task_id": folder.id,
        "status": task.raw_status or task.status.value,
        "attempts": len(attempts),
        "successes": outcomes.count(Outcome.SUCCESS),
        "failures": outcomes.count(Outcome.FAILURE),
        "timeouts": outcomes.count(Outcome.TIMEOUT),
        "actions": sum(one.actions or 0 for one in attempts),
        "errors": sum(one.errors or 0 for one in attempts),
        "duration_ms": round(sum(max(length.total_seconds(), 0) for length in took) * 1000),
        "best_quality": max(best, default=None),
        "learnings": _newest(
            [
                {"attempt_id": one.attempt, "learning": one.text, "draft": one.draft}
                for one in [one for one in reflections if one.teaches and not one.superseded][-MAX_LEARNINGS:]
            ]
        ),
    }
    edit_object(folder.summary, lambda document: put(document, (), summary), {})


def _newest(learnings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The last of them, as many as there is room for."""
    sizes = accumulate(json_size(one) for one in reversed(learnings))
    most = sum(1 for size in sizes if size <= MAX_SAID)
    return [*learnings[len(learnings) - most :]]


def _tell_trajectory(
    folder: TaskFolder, attempt: Attempt, result: Mapping[str, Any], log: LogSummary, ended: datetime | None
) -> None:
    """(1) `update_trajectory`: the entry of the attempt; without its plan where very many have taken the room."""
    counted = _counted(attempt, attempt, log)
    entry: dict[str, Any] = {
        "attempt_id": attempt.number,
        "started": iso(attempt.started_at),
        "ended": iso(attempt.ended_at or ended),
        "outcome": attempt.outcome.value,
        "plan": attempt.plan or None,
        "actions": counted.actions,
        "iterations": attempt.iterations,
        "milestones": result.get(MILESTONES),
        "final_quality": attempt.final_quality,
        "completion_percent": None if attempt.completion is None else round(attempt.completion * 100, 6),
        "agent": attempt.agent or None,
        "errors": counted.errors,
    }
    told = {name: value for name, value in entry.items() if value is not None}

    def edit(document: JsonText) -> None:
        expect(document.value, TRAJECTORY_SHAPES)
        if len(document.encode()) > _MOST_PLANNED:
            told.pop("plan", None)
        entries = ensure(document, "attempts", [])
        at = next((at for at, one in enumerate(entries) if is_entry(one, attempt.number)), None)
        if at is None:
            document.append(("attempts",), {MILESTONES: [], **told})
        else:
            put(document, ("attempts", at), told)

    edit_object(folder.trajectory, edit, {"task_id": folder.id, "attempts": []})


def read_milestone_entries(folder: TaskFolder, number: int) -> list[Any]:
    """What was told to be reached on the way of an attempt, as the trajectory has it."""
    entries = (read_object(folder.trajectory, folder.project.aiwg) or {}).get("attempts")
    mine = (one.get(MILESTONES) for one in entries if is_entry(one, number)) if isinstance(entries, list) else ()
    found = next(mine, None) if mine else None
    return found if isinstance(found, list) else []


def check_milestones(folder: TaskFolder, number: int, new: Sequence[Mapping[str, Any]]) -> None:
    """Whether there is room for further milestones of an attempt, before anything is written.

    Raises:
        BadInput: There is none; the message says what to say shorter.
        Conflict: The trajectory cannot be understood.
    """
    if not new:
        return
    check_editable(folder.trajectory, folder.project.aiwg, TRAJECTORY_SHAPES)
    whole = merge_milestones(read_milestone_entries(folder, number), new)
    if len(whole) > MAX_ENTRIES:
        raise BadInput(f"{len(whole):,} milestones of attempt {number}; at most {MAX_ENTRIES:,} are kept: tell fewer")
    check_total_size(whole, f"the milestones of attempt {number}")
    size = json_size(new) + (folder.trajectory.stat().st_size if folder.trajectory.exists() else 0)
    if size > _MOST_REACHED:
        limit = f"{size:,} bytes in its trajectory; at most {_MOST_REACHED:,} are kept"
        raise BadInput(f"with these milestones {folder.id} has {limit}: say them shorter, or leave them out")


def record_milestones(folder: TaskFolder, number: int, started: str | None, new: Sequence[Mapping[str, Any]]) -> None:
    """Say in the trajectory at once what was reached in an attempt that is still open; not the same twice in a row.

    Args:
        started: When the attempt began, for an entry that is made.
    """

    def edit(document: JsonText) -> None:
        expect(document.value, TRAJECTORY_SHAPES)
        entries = ensure(document, "attempts", [])
        at = next((at for at, one in enumerate(entries) if is_entry(one, number)), None)
        if at is None:
            at = len(entries)
            document.append(("attempts",), {"attempt_id": number, **({"started": started} if started else {})})
        put(document, ("attempts", at), {MILESTONES: merge_milestones(known, new)})

    known = read_milestone_entries(folder, number)
    edit_object(folder.trajectory, edit, {"task_id": folder.id, "attempts": []})


def merge_milestones(known: Sequence[Any], new: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Milestones and further ones, those that say again what the last of them said left out."""

    def telling(one: Any) -> Any:
        return {name: one[name] for name in ("event", "details") if name in one} if isinstance(one, dict) else one

    again = len(new) > 0 and [telling(one) for one in known[-len(new) :]] == [telling(one) for one in new]
    return [*known, *(() if again else new)]
