"""Create tasks, start attempts with a plan, and resume open attempts."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from core.base.errors import Refused, Unwritable
from core.base.prompt_text import escape_inline, escape_line
from core.base.text import plural
from core.files.file_access import open_regular
from core.files.file_reader import MAX_BYTES
from core.records.episodes import Attempt, TaskStatus
from core.records.loops import Outcome
from core.records.times import iso
from core.sources.episodes import ATTEMPTS, MAX_ATTEMPTS, METADATA, TRAJECTORY
from core.tasks.completion import attempt_counts, end_attempt, index_task, list_agents
from core.tasks.reader import strict_reader
from core.tasks.reflections import LEFT_UNFINISHED
from core.tasks.task_files import (
    AttemptFolder,
    TaskFolder,
    check_inside,
    create_folder,
    edit_object,
    encode_object,
    lock_index,
    read_object,
    set_members,
    task_ids,
)

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.json_editor import JsonText
    from core.records.reflections import Reflection
    from core.tasks.reader import TaskReader
    from core.tasks.validation import StartArguments


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
