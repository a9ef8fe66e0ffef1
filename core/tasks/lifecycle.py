"""Create tasks; start, resume and end attempts; update files that depend on them.

`attempt.json`, the drafts of reflections, the metadata, the summary and the index are derived from `outcome.json` and
the log, so the update can be repeated. The trajectory is written last: if it has an outcome for an attempt, all other
files have been updated.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Conflict, Refused, UnknownRecord, Unwritable
from core.base.prompt_text import escape_inline, escape_line
from core.base.text import plural
from core.files.append_log import AppendLog, sync_folder
from core.files.atomic_write import put
from core.files.file_access import open_regular
from core.files.file_reader import MAX_BYTES, Stamp, decode_json
from core.records.episodes import TASK_STATUSES, Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso, parse_time
from core.sources.episodes import ATTEMPTS, MAX_ATTEMPTS, METADATA, TRAJECTORY, join_attempts
from core.tasks.action_log import (
    MILESTONES,
    merge_milestones,
    read_milestone_entries,
    remove_members,
    set_entry,
)
from core.tasks.history import TaskReader, strict_reader
from core.tasks.log_summary import LogSummary
from core.tasks.reflections import LEFT_UNFINISHED, TASK_COMPLETION, AttemptWork, draft_completion, draft_reflection
from core.tasks.task_files import (
    AttemptFolder,
    Shapes,
    TaskFolder,
    check_editable,
    check_inside,
    check_shapes,
    create_folder,
    edit_object,
    encode_object,
    find_attempt_folder,
    lock_index,
    read_object,
    set_default,
    set_members,
    task_ids,
)
from core.tasks.validation import MAX_TOTAL_SIZE, json_size

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.json_editor import JsonText
    from core.tasks.validation import StartArguments

LISTS: Final = ("what_worked", "what_didnt_work", "suggestions_for_next_time")
TASK_STATUS: Final = "task_status"
_ENDED: Final = "ended"
_RESULT: Final = ("status", "reason", "final_quality", "completion_percent")
_ORDER: Final = (*_RESULT, *LISTS, _ENDED, MILESTONES, TASK_STATUS)  # members of `outcome.json`, in order
MAX_LEARNINGS: Final = 100  # maximum number of learnings in a summary, the newest ones
_TASK: Final = "task-"
_NUMBERED: Final = re.compile(rf"{_TASK}([0-9]{{1,6}})")  # a longer number is a date or the like
MAX_CHARS: Final = 500  # maximum length of a text in a plan
MAX_EARLIER: Final = 10  # maximum number of earlier attempts in a plan, the newest ones
MAX_SIMILAR: Final = 10  # maximum number of learnings from similar tasks
MAX_ITEMS: Final = 10  # maximum number of entries from each list of an attempt


class StartedAttempt(Struct, frozen=True):
    """Result of `start_attempt`: an attempt that was started or resumed."""

    number: int
    plan_path: str  # project-relative path of `plan.md`
    plan: str
    learnings: tuple[AttemptLessons, ...] = ()  # earlier attempts and the reflections on them, oldest first
    resumed: bool = False


def find_resumable(folder: TaskFolder, *, abandon: bool, resume: bool, now: datetime) -> AttemptFolder | None:
    """Return the open attempt to resume, or None if a new one must be started.

    `abandon` ends open attempts with the outcome timeout. Raises Refused if there is an open attempt, and neither
    `abandon` nor `resume` is set.
    """
    reader = strict_reader(folder)
    task, places = reader.task(), folder.attempts()
    open_numbers = [number for number, attempt in reader.all_attempts().items() if attempt.is_open and number in places]
    if not open_numbers:
        return None
    newest = places[open_numbers[-1]]
    # If a start was killed before its last step, the metadata do not count the attempt; it can be resumed.
    was_started = newest.number <= (task.total_attempts or 0) or newest.actions.exists()
    if resume or (task.status is TaskStatus.PAUSED and not abandon) or not was_started:
        return newest
    if not abandon:
        raise Refused(
            f"attempt {newest.number} at {folder.id} is still open; complete it, resume it (--resume), or end it as "
            "left unfinished and start another attempt (--abandon)"
        )
    folder.check_editable(*(places[number] for number in open_numbers))
    for number in open_numbers:
        end_attempt(folder, places[number], {"status": Outcome.TIMEOUT.value, "reason": LEFT_UNFINISHED}, now=now)
    return None


def mark_running(folder: TaskFolder, number: int, *, now: datetime) -> None:
    """Set the task to running in the index, the summary and the metadata."""
    update_index(folder, TaskStatus.RUNNING)

    def edit(document: JsonText) -> None:
        members = {"status": TaskStatus.RUNNING.value, **attempt_counts(document.value, number)}
        if any(document.value.get(key) != value for key, value in members.items()):
            set_members(document, (), {"updated": iso(now), **members})
        if "completed" in document.value:  # the task continues
            document.remove(("completed",))

    # The metadata are written last: an attempt that they count has started completely.
    edit_object(folder.metadata, edit, {"id": folder.id})


def update_index(folder: TaskFolder, status: TaskStatus) -> None:
    """Set the status of a task in the index and, if it exists, in the summary."""
    reader = strict_reader(folder)
    index_task(folder, status.value, list_agents(reader.task(), reader.all_attempts().values()))
    if folder.summary.exists():
        edit_object(folder.summary, lambda document: set_members(document, (), {"status": status.value}), {})


def resume_attempt(folder: TaskFolder, place: AttemptFolder) -> StartedAttempt:
    """Read the plan of an open attempt ("" if missing) and the earlier learnings."""
    reader = strict_reader(folder)
    before = {number: one for number, one in reader.all_attempts().items() if number < place.number}
    check_inside(folder.project, place.path)
    try:
        with os.fdopen(open_regular(place.plan, os.O_RDONLY), "rb") as file:
            plan = file.read(MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        plan = ""
    except OSError as error:
        raise Unwritable(f"cannot read {place.plan}: {error.strerror}") from None
    lessons = _read_lessons(reader, before)
    return StartedAttempt(place.number, folder.project.relative(place.plan), plan, lessons, resumed=True)


def create_attempt(folder: TaskFolder, intent: StartArguments, now: datetime, *, orders: bool) -> StartedAttempt:
    """Create the folder of a new attempt with its plan; raise `Refused` if it exists."""
    reader = strict_reader(folder)
    task, attempts = reader.task(), reader.all_attempts()
    used = [*attempts, task.total_attempts or 0, task.current_attempt or 0]
    number = max((number for number in used if number < MAX_ATTEMPTS), default=0) + 1
    if number >= MAX_ATTEMPTS:
        raise Refused(f"attempt {number - 1:,} at {folder.id} has the highest allowed number; move its folder away")
    lessons = _read_lessons(reader, attempts)
    plan = render_plan(
        number,
        description=task.description,
        criteria=task.criteria,
        approach=intent.approach,
        steps=intent.steps,
        estimated_iterations=intent.estimated_iterations,
        lessons=lessons,
        similar=intent.similar,
        orders=orders,
    )
    planned: dict[str, Any] = {"approach": intent.approach, "steps": intent.steps}
    if intent.estimated_iterations is not None:
        planned["estimated_iterations"] = intent.estimated_iterations
    execution = {"agent": intent.agent or task.agent, "iterations": 0, "actions_performed": 0, "quality_history": []}
    record = {"id": number, "task_id": folder.id, "started": iso(now), "plan": planned, "execution": execution}
    if intent.loop_id not in ("", task.loop_id):
        record["loop_id"] = intent.loop_id
    place = AttemptFolder(folder.path / ATTEMPTS, f"{number:03}", number)
    files = {place.plan.name: plan.encode("utf-8", "replace"), place.attempt.name: encode_object(record)}
    if not create_folder(folder.project, place.path, files):
        raise Refused(f"{folder.project.relative(place.path)} exists and is not an attempt; move it away")
    return StartedAttempt(number, folder.project.relative(place.plan), plan, lessons)


def _read_lessons(reader: TaskReader, attempts: Mapping[int, Attempt]) -> tuple[AttemptLessons, ...]:
    """Read earlier attempts, oldest first; details only if a plan shows them."""
    by_attempt: dict[int | None, list[Reflection]] = {}
    for reflection in reader.newest_reflections():
        if not reflection.superseded:
            by_attempt.setdefault(reflection.attempt, []).append(reflection)
    detailed = set(list(attempts)[-MAX_EARLIER:])
    return tuple(
        AttemptLessons(reader.attempt(number) if number in detailed else attempt, tuple(by_attempt.get(number, ())))
        for number, attempt in attempts.items()
    )


def create_task(project: ProjectPaths, metadata: Mapping[str, Any], task_id: str | None) -> str:
    """Create a task folder with metadata and an empty trajectory; return the ID.

    `metadata` contains all members except for the ID. `task_id` is by default the next free `task-NNN`. If an equal
    task with this ID and no attempts exists, it is used. Raises Refused if another task has this ID.
    """
    check_inside(project, project.tasks)
    with lock_index(project):
        numbers = [int(found[1]) for id in task_ids(project) if (found := _NUMBERED.fullmatch(id))]
        free_ids = (f"{_TASK}{number:03}" for number in itertools.count(max(numbers, default=0) + 1))
        for id in free_ids if task_id is None else (task_id,):
            files = {
                METADATA: encode_object({"id": id, **metadata}),
                TRAJECTORY: encode_object({"task_id": id, "attempts": []}),
            }
            if create_folder(project, project.tasks / id, files):
                return id
        assert task_id is not None
        folder = TaskFolder.of(project, task_id)
        present = read_object(folder.metadata, project.aiwg) or {}
        same = all(present.get(key) == metadata[key] for key in ("description", "completion_criteria", "status"))
        if not same or folder.attempts():
            raise Refused(f"{task_id} already exists; choose another ID, or start an attempt at it")
        return task_id


class AttemptLessons(NamedTuple):
    """An earlier attempt and the reflections on it."""

    attempt: Attempt
    reflections: tuple[Reflection, ...]


def render_plan(
    number: int,
    *,
    description: str,
    criteria: str = "",
    approach: str = "",
    steps: Sequence[str] = (),
    estimated_iterations: int | None = None,
    lessons: Sequence[AttemptLessons] = (),
    similar: Sequence[tuple[str, str]] = (),
    orders: bool = True,
) -> str:
    """Render the plan of attempt `number` as Markdown, each text escaped in one line.

    `description` and `criteria` are those of the task. `lessons` are the earlier attempts, oldest first. `similar` are
    pairs of task and learning, most useful first. If `orders` is set, texts of other attempts that give orders are left
    out (docs/safety.md#held-texts).
    """
    task = f"Task: {escape_inline(description, MAX_CHARS) or 'not described'}"
    task += f"\nCompletion criteria: {escape_inline(criteria, MAX_CHARS)}" if criteria else ""
    parts = [f"# Plan for attempt {number}", task]
    if approach:
        parts.append(f"## Approach\n\n{escape_line(approach, MAX_CHARS)}")
    if steps:
        numbered = "\n".join(f"{at}. {escape_inline(step, MAX_CHARS)}" for at, step in enumerate(steps, 1))
        parts.append(f"## Steps\n\n{numbered}")
    if estimated_iterations is not None:
        parts.append(f"Estimated iterations: {estimated_iterations}")
    return "\n\n".join([*parts, *_learnings("\n\n".join(parts), lessons, similar, orders)]) + "\n"


def _learnings(
    before: str, lessons: Sequence[AttemptLessons], similar: Sequence[tuple[str, str]], orders: bool
) -> Iterator[str]:
    """Render the learnings; leave out texts that are harmful in combination."""
    parts = []
    if lessons:
        parts.append("## Learnings from earlier attempts")
        omitted = len(lessons) - MAX_EARLIER
        if omitted > 0:
            parts.append(f"{plural(omitted, 'earlier attempt')} not shown; see reflections.jsonl of the task.")
        taught: set[str] = set()
        for attempt, reflections in reversed(lessons[-MAX_EARLIER:]):
            drafted = [_safe_text(reflection.text, orders) for reflection in reflections if reflection.draft]
            outcome = "left open" if attempt.outcome is Outcome.UNKNOWN else attempt.outcome.value
            lines = [f"### Attempt {attempt.number} ({outcome})\n"]
            if attempt.reason:
                lines.append(f"- Reason: {_safe_text(attempt.reason, orders, happened=True)}")
            approach = _safe_text(attempt.plan, orders) if attempt.plan else ""
            if approach and not _is_among(approach, drafted):
                lines.append(f"- Approach: {approach}")
            learnings = dict.fromkeys(_all_learnings(attempt, reflections, drafted, orders))
            new = [text for text in learnings if text not in taught]
            taught.update(new)
            parts.append("\n".join([*lines, *new]))
    if similar:
        texts = "\n".join(
            f"- {_safe_text(task, orders)}: {_safe_text(learning, orders)}" for task, learning in similar[:MAX_SIMILAR]
        )
        parts.append(f"## Learnings from similar tasks\n\n{texts}")
    if parts:
        from core.base.scanning.verdict import (
            withhold_combined_harm,  # slow import, needed only to start an attempt
        )

        yield withhold_combined_harm("\n\n".join(parts), before, orders=orders)


def _all_learnings(
    attempt: Attempt, reflections: Sequence[Reflection], drafted: Sequence[str], orders: bool
) -> Iterator[str]:
    def own(label: str, texts: Sequence[str], *, avoided: bool = False) -> Iterator[str]:
        safe = (_safe_text(text, orders, avoided=avoided) for text in texts[:MAX_ITEMS])
        return (f"- {label}: {text}" for text in safe if not _is_among(text, drafted))

    for reflection in reflections:
        if reflection.has_learning:
            label = "Learning (drafted from the log)" if reflection.draft else "Learning"
            yield f"- {label}: {_safe_text(reflection.text, orders)}"
        yield from own("Action item", reflection.actions)
    yield from own("Worked", attempt.worked)
    yield from own("Did not work", attempt.failed, avoided=True)
    known = {item for reflection in reflections for item in reflection.actions}
    yield from own("Suggested", [text for text in attempt.suggestions if text not in known])


def _is_among(text: str, drafted: Sequence[str]) -> bool:
    return any(f"{before}{text}{after}" in one for one in drafted for before in (": ", "; ") for after in (";", "."))


def _safe_text(text: str, orders: bool, *, avoided: bool = False, happened: bool = False) -> str:
    """Escape a text of another attempt; replace it by a note if it is harmful."""
    from core.base.scanning.verdict import render_if_safe  # slow import, needed only to start an attempt

    return render_if_safe(
        text, lambda text: escape_inline(text, MAX_CHARS), orders=orders, avoided=avoided, happened=happened
    )


class CompletedAttempt(Struct, frozen=True):
    """Result of `complete_attempt`."""

    number: int
    outcome: Outcome
    derived: bool  # whether the outcome was determined from the log
    again: bool  # whether the attempt had ended before; its outcome was not changed then
    status: TaskStatus  # of the task
    log: LogSummary
    reflections: tuple[Reflection, ...]  # on this attempt, including drafts


def read_log_ahead(folder: TaskFolder, attempt: int | None) -> dict[Stamp | None, LogSummary]:
    """Summarize the log of an attempt (default: newest), as {stamp: summary} or {}."""
    try:
        place = find_attempt_folder(folder, attempt)
    except (Refused, UnknownRecord):  # another process may start the attempt before the caller has the lock
        return {}
    stamp = read_log_stamp(place)  # this runs before the task is locked, since a long log takes seconds
    return {stamp: strict_reader(folder).log(place.number)} if stamp is not None else {}


def read_log_stamp(place: AttemptFolder) -> Stamp | None:
    try:
        return Stamp.of(place.actions.lstat())
    except FileNotFoundError:
        return None


def determine_outcome(known: Attempt, log: LogSummary | None, outcome: Outcome | None) -> Outcome:
    """Return the recorded outcome, or `outcome`, or the one that the log proves.

    Raises BadInput if the log proves no outcome, and Refused if the attempt has ended with another outcome.
    """
    if known.outcome is not Outcome.UNKNOWN:
        if outcome not in (None, known.outcome):
            raise Refused(f"attempt {known.number} at {known.task_id} has already ended in {known.outcome.value}")
        return known.outcome
    found = outcome or (log.outcome if log is not None else Outcome.UNKNOWN)
    if found is Outcome.UNKNOWN:
        raise BadInput(
            f"the log does not show the outcome of attempt {known.number} at {known.task_id}; "
            "use --success, --failure or --timeout"
        )
    return found


def end_attempt(
    folder: TaskFolder, place: AttemptFolder, result: Mapping[str, Any], *, now: datetime, log: LogSummary | None = None
) -> LogSummary:
    """Write `outcome.json`, which ends the attempt, and update all other files."""
    AppendLog(place.actions).undo_incomplete_batch()
    milestones = merge_milestones(read_milestone_entries(folder, place.number), result.get(MILESTONES, ()))
    whole: dict[str, Any] = {"reason": "", **{name: [] for name in LISTS}, **result, _ENDED: iso(now)}
    # Other programs may have recorded more milestones than are allowed; then only the trajectory contains them.
    fits = json_size(milestones) <= MAX_TOTAL_SIZE and (milestones or MILESTONES in result)
    whole |= {MILESTONES: milestones if fits else None}
    members = {name: whole[name] for name in _ORDER if whole.get(name) is not None}
    edit_object(place.outcome, lambda document: set_members(document, (), members), {})
    return propagate(folder, place, now=now, log=log)


def reopen_attempt(folder: TaskFolder, place: AttemptFolder) -> None:
    """Undo `end_attempt`: remove drafts and outcome fields, and `outcome.json` last."""

    def edit(document: JsonText) -> None:
        for name in (_ENDED, "outcome", *LISTS):
            if name in document.value:
                document.remove((name,))

    edit_object(place.attempt, edit, {"id": place.number, "task_id": folder.id})
    remove_members(folder, place.number, (_ENDED, "outcome", "final_quality", "completion_percent"))
    _remove_drafts(folder, place.number)
    place.outcome.unlink(missing_ok=True)
    sync_folder(place.path)


def _remove_drafts(folder: TaskFolder, number: int) -> None:
    log = AppendLog(folder.reflections)
    with log.locked():
        lines = log.read()[0].splitlines(keepends=True)
        kept = [line for line in lines if not _is_draft_on(decode_json(line).value, number)]
        if len(kept) < len(lines):
            put(folder.reflections, b"".join(kept))


def _is_draft_on(value: Any, number: int) -> bool:
    return isinstance(value, dict) and value.get("draft") is True and value.get("attempt_id") == number


def propagate(folder: TaskFolder, place: AttemptFolder, *, now: datetime, log: LogSummary | None = None) -> LogSummary:
    """Update the files of a locked task from the outcome of an attempt.

    `now` is the time of drafted reflections if no file contains the end of the attempt. `log` is the summary of the
    log; it is read if None.
    """
    reader = strict_reader(folder)
    result = read_object(place.outcome, folder.project.aiwg) or {}
    attempt, log = reader.attempt(place.number), log or reader.log(place.number)
    ended = parse_time(result.get(_ENDED)) or attempt.ended_at or log.last_at
    _update_attempt(folder, place, result, log, ended)
    attempt = reader.attempt(place.number)
    attempts = [*reader.all_attempts().values()]
    is_newest = attempts[-1].number == place.number
    status = result.get(TASK_STATUS)
    ends_task = is_newest and status in (TaskStatus.COMPLETED, TaskStatus.FAILED)
    work = AttemptWork(attempt, log)
    _draft_reflections(folder, reader, work, attempts if ends_task else (), status, ended or now)
    if is_newest:
        _update_metadata(folder, place.number, status, ended)
    task = reader.task()
    _write_summary(folder, task, [_with_counts(one, work) for one in attempts], reader.newest_reflections())
    index_task(folder, task.status.value, list_agents(task, attempts))
    # The trajectory's count of iterations may be outdated: it was written while the attempt was open.
    iterations = next((own.iterations for own in join_attempts(reader.attempt_parts(place.number)).values()), None)
    attempt = attempt if iterations is None else replace(attempt, iterations=iterations)
    set_entry(folder, attempt.number, _trajectory_entry(AttemptWork(attempt, log), result, ended))
    return log


def propagate_all(folder: TaskFolder, *, now: datetime) -> None:
    """Call `propagate` for each outcome that the trajectory does not contain."""
    reader = strict_reader(folder)
    known = {attempt.number for attempt in reader.attempts(TRAJECTORY) if attempt.outcome is not Outcome.UNKNOWN}
    for number, place in folder.attempts().items():
        if number not in known and reader.attempt(number).outcome is not Outcome.UNKNOWN:
            propagate(folder, place, now=now)


def _update_attempt(
    folder: TaskFolder, place: AttemptFolder, result: Mapping[str, Any], log: LogSummary, ended: datetime | None
) -> None:
    """Write end, counts and outcome to `attempt.json`; skip members of a wrong type."""

    def edit(document: JsonText) -> None:
        if ended is not None and not document.value.get("ended"):
            set_members(document, (), {"ended": iso(ended)})
        execution = set_default(document, "execution", {})
        if isinstance(execution, dict):
            iterations = execution.get("iterations")
            recorded = iterations if isinstance(iterations, int) else 0
            counts = {"iterations": max(recorded, log.iterations), "actions_performed": log.actions}
            # Without logged actions, keep the counts that another program may have recorded.
            set_members(document, ("execution",), counts if log.actions or not execution else {})
        if result:
            if isinstance(set_default(document, "outcome", {}), dict):
                set_members(document, ("outcome",), {name: result[name] for name in _RESULT if name in result})
            set_members(document, (), {name: result[name] for name in LISTS if name in result})

    edit_object(place.attempt, edit, {"id": place.number, "task_id": folder.id})


def _draft_reflections(
    folder: TaskFolder,
    reader: TaskReader,
    work: AttemptWork,
    all_attempts: Sequence[Attempt],
    status: Any,
    ended: datetime,
) -> None:
    """Draft the missing reflections on the attempt and, if it has ended, on the task."""
    number = work.attempt.number
    records = (line.value for line in reader.reflection_lines())
    mine = [one for one in records if isinstance(one, dict) and one.get("attempt_id", one.get("attempt")) == number]
    triggers = {str(one.get("trigger", "")) for one in mine}
    drafts: list[dict[str, Any] | None] = []

    def read_work(other: int) -> AttemptWork:
        place = folder.attempts().get(other)
        return AttemptWork(reader.attempt(other), reader.log(place.number) if place else LogSummary())

    has_ended = work.attempt.outcome in (Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT)
    if has_ended and not triggers - {TASK_COMPLETION}:
        before = [other for other in folder.attempts() if other < number]
        drafts.append(draft_reflection(work, ended, read_work(before[-1]) if before else None))
    if all_attempts and TASK_COMPLETION not in triggers:
        counted = [_with_counts(one, work) for one in all_attempts]
        failed = [one.number for one in all_attempts if one.outcome is not Outcome.SUCCESS]
        last_failed = read_work(failed[-1]) if failed else None
        given_up = status == TaskStatus.FAILED
        drafts.append(draft_completion(counted, ended, work.log, last_failed, given_up=given_up))
    if lines := [msgspec.json.encode(draft) for draft in drafts if draft is not None]:
        AppendLog(folder.reflections).append(lines)


def _with_counts(one: Attempt, work: AttemptWork) -> Attempt:
    """Return `one`; if it is the attempt of `work`, with the counts of its log."""
    attempt, log = work
    if one.number != attempt.number:
        return one
    return replace(attempt, actions=log.actions, errors=log.errors) if log.actions else attempt


def attempt_counts(metadata: Mapping[str, Any], number: int) -> dict[str, int]:
    """Return the members of the metadata that count attempts, for attempt `number`."""
    total = metadata.get("total_attempts")
    return {"current_attempt": number, "total_attempts": max(total, number) if isinstance(total, int) else number}


def _update_metadata(folder: TaskFolder, number: int, status: Any, ended: datetime | None) -> None:
    def edit(document: JsonText) -> None:
        value = document.value
        updated = parse_time(value.get("updated"))
        is_later = ended is not None and (updated is None or updated < ended)
        members: dict[str, Any] = {"updated": iso(ended)} if is_later else {}
        members |= attempt_counts(value, number)
        if status:
            members["status"] = status
        if status == TaskStatus.COMPLETED and ended is not None and not value.get("completed"):
            members["completed"] = iso(ended)
        set_members(document, (), members)

    edit_object(folder.metadata, edit, {"id": folder.id})


def _write_summary(
    folder: TaskFolder, task: Task, attempts: Sequence[Attempt], reflections: Sequence[Reflection]
) -> None:
    """Write `summary.json`, with as many of the newest learnings as fit."""
    durations = [(one.ended_at - one.started_at) for one in attempts if one.ended_at and one.started_at]
    outcomes = [one.outcome for one in attempts]
    taught = [one for one in reflections if one.has_learning and not one.superseded][-MAX_LEARNINGS:]
    learnings = [{"attempt_id": one.attempt, "learning": one.text, "draft": one.draft} for one in taught]
    sizes = accumulate(json_size(one) for one in reversed(learnings))
    omitted = sum(size > MAX_TOTAL_SIZE for size in sizes)
    summary = {
        "task_id": folder.id,
        "status": task.raw_status or task.status.value,
        "attempts": len(attempts),
        "successes": outcomes.count(Outcome.SUCCESS),
        "failures": outcomes.count(Outcome.FAILURE),
        "timeouts": outcomes.count(Outcome.TIMEOUT),
        "actions": sum(one.actions or 0 for one in attempts),
        "errors": sum(one.errors or 0 for one in attempts),
        "duration_ms": round(sum(max(duration.total_seconds(), 0) for duration in durations) * 1000),
        "best_quality": max((one.final_quality for one in attempts if one.final_quality is not None), default=None),
        "learnings": learnings[omitted:],
    }
    edit_object(folder.summary, lambda document: set_members(document, (), summary), {})


def _trajectory_entry(work: AttemptWork, result: Mapping[str, Any], ended: datetime | None) -> dict[str, Any]:
    attempt = _with_counts(work.attempt, work)
    entry: dict[str, Any] = {
        "attempt_id": attempt.number,
        "started": iso(attempt.started_at),
        "ended": iso(attempt.ended_at or ended),
        "outcome": attempt.outcome.value,
        "plan": attempt.plan or None,
        "actions": attempt.actions,
        "iterations": attempt.iterations,
        "milestones": result.get(MILESTONES),
        "final_quality": attempt.final_quality,
        "completion_percent": None if attempt.completion is None else round(attempt.completion * 100, 6),
        "agent": attempt.agent or None,
        "errors": attempt.errors,
    }
    return {name: value for name, value in entry.items() if value is not None}


# Indexes of tasks by status and agent

BY_STATUS: Final = "by-status.json"
BY_AGENT: Final = "by-agent.json"
"""Keys that the index always contains; tasks without a valid status are listed under `unknown`."""
STATUS_SHAPES: Final[Shapes] = {(status,): list for status in TaskStatus}  # expected types in the index by status


def index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    """Set the status (one of `TASK_STATUSES`) and the agents of a task in the index.

    Missing tasks are added from their files, so that a missing or damaged index is rebuilt, and tasks without a folder
    are removed. A problem is added to `folder.warnings` and does not stop the call, since the index can be rebuilt.
    """
    try:
        with lock_index(folder.project):
            _index_task(folder, status, agents)
    except (BadInput, Conflict, Unwritable) as error:
        folder.warnings.append(_warning(folder, error))


def _index_task(folder: TaskFolder, status: str, agents: Sequence[str]) -> None:
    project, task_id = folder.project, folder.id
    shapes: dict[str, Shapes] = {BY_STATUS: STATUS_SHAPES, BY_AGENT: {}}
    indexed = {name: _read_ids(project, name) for name in shapes if _is_writable(folder, name, shapes[name])}
    others = {id for id in task_ids(project) if id != task_id}
    lacking = sorted(others - indexed[BY_STATUS]) if BY_STATUS in indexed else []
    removed = set().union(*indexed.values()) - others - {task_id}
    # Tasks without an agent are never in this index, so others are added only if the whole file is missing.
    unnamed = lacking if (project.task_index / BY_AGENT).exists() else sorted(others)
    if BY_STATUS in indexed:
        statuses = ((id, (TaskReader(project, id).task().status.value,)) for id in lacking)
        _write(project.task_index / BY_STATUS, [(task_id, (status,)), *statuses], removed, exclusive=True)
    if BY_AGENT in indexed:
        worked = ((id, _read_agents(TaskReader(project, id))) for id in unnamed)
        _write(project.task_index / BY_AGENT, [(task_id, agents), *worked], removed, exclusive=False)


def _is_writable(folder: TaskFolder, name: str, shapes: Shapes) -> bool:
    """Return whether an index file can be edited; rename it first if it is damaged."""
    path = folder.project.task_index / name
    try:
        check_editable(path, folder.project.aiwg, shapes)
        return True
    except Conflict as error:
        if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
            folder.warnings.append(_warning(folder, error))
            return False
    aside = path.with_name(f"{path.name}.damaged-{os.urandom(4).hex()}")
    try:
        path.rename(aside)
        sync_folder(path.parent)
    except OSError as error:
        folder.warnings.append(_warning(folder, f"cannot move {path} away: {error.strerror}"))
        return False
    folder.warnings.append(
        f"{path} could not be parsed; it was rebuilt from the tasks, and the old file was renamed to {aside.name}"
    )
    return True


def _warning(folder: TaskFolder, error: Exception | str) -> str:
    reason = str(error).replace("; nothing was changed", "")
    return f"the index does not contain the status of {folder.id}: {reason}"


def _read_agents(files: TaskReader) -> tuple[str, ...]:
    own = (part for number in files.numbers for part in files.attempt_parts(number))
    return list_agents(files.task(), (*files.attempts(TRAJECTORY), *own))


def list_agents(task: Task, attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the agents of a task and its attempts, without duplicates."""
    return tuple(dict.fromkeys(name for name in (task.agent, *(one.agent for one in attempts)) if name))


def _read_ids(project: ProjectPaths, name: str) -> set[str]:
    value = read_object(project.task_index / name, project.aiwg) or {}
    return {id for ids in value.values() if isinstance(ids, list) for id in ids if isinstance(id, str)}


def _write(path: Path, entries: Iterable[tuple[str, Sequence[str]]], removed: Set[str], *, exclusive: bool) -> None:
    """Add IDs to the lists of their keys, and remove the `removed` IDs.

    If `exclusive`, also remove each added ID from all other lists.
    """
    wanted = {id: frozenset(key for key in keys if key) for id, keys in entries}
    added: dict[str, list[str]] = {}
    for id, keys in wanted.items():
        for key in keys:
            added.setdefault(key, []).append(id)

    def edit(document: JsonText) -> None:
        check_shapes(document.value, STATUS_SHAPES if exclusive else {})
        for key in dict.fromkeys((*document.value, *added)):
            present = document.value.get(key, [])
            if not isinstance(present, list):  # another program added this member
                continue
            dropped = removed | {id for id, keys in wanted.items() if exclusive and key not in keys}
            ids = [id for id in present if not isinstance(id, str) or id not in dropped]
            known = {id for id in ids if isinstance(id, str)}
            ids += [id for id in added.get(key, ()) if id not in known]
            if ids != present:
                document.set((), key, ids)

    initial: dict[str, list[str]] = {key: [] for key in TASK_STATUSES} if exclusive else {}
    edit_object(path, edit, initial)
