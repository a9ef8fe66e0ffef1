"""How an attempt begins: which open one is taken up, what is loaded from earlier ones, what is written first (1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from core.base.errors import Refused, Unwritable
from core.episodes.folders import AttemptFolder, TaskFolder, inside, publish
from core.episodes.json_files import edit_object, encode_object, put
from core.episodes.lifecycle.completion import end
from core.episodes.lifecycle.propagation import agents, attempt_counts
from core.episodes.plan_file import MAX_EARLIER, AttemptLessons, render_plan
from core.episodes.reflection_drafts import LEFT
from core.episodes.strict_reader import StrictReader
from core.episodes.task_indexes import index_task
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.sources.episodes import MAX_ATTEMPTS
from core.storage.file_reader import MAX_BYTES
from core.storage.json_editor import JsonText
from core.storage.locks import open_regular


class AttemptIntent(NamedTuple):
    """What an agent means to try, checked.

    Attributes:
        agent: Who works at it; "" for that of the task.
        similar: Task and learning, from other tasks.
        orders: Whether the plan leaves out texts of other attempts that give orders.
    """

    agent: str
    approach: str
    steps: Sequence[str]
    estimated_iterations: int | None
    similar: Sequence[tuple[str, str]]
    orders: bool = True


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """An attempt that can be worked at.

    Attributes:
        plan_path: `plan.md`, relative to the project.
        plan: Its text.
        learnings: The earlier attempts, with what they have taught by now, oldest first.
        resumed: Whether it had been begun before.
    """

    number: int
    plan_path: str
    plan: str
    learnings: tuple[AttemptLessons, ...] = ()
    resumed: bool = False


def find_resumable(folder: TaskFolder, *, abandon: bool, resume: bool, now: datetime) -> AttemptFolder | None:
    """The open attempt that a start takes up; None if a new one is to be made.

    Args:
        abandon: Close what was left open, as a timeout.
        resume: Go on with it.

    Raises:
        Refused: Somebody works at an attempt.
    """
    reader = StrictReader(folder)
    task, places = reader.task(), folder.attempts()
    open_ones = [number for number, attempt in reader.attempts().items() if attempt.is_open and number in places]
    if not open_ones:
        return None
    newest = places[open_ones[-1]]
    # A start that was killed in its last step: nobody has worked at it, and the metadata do not count it.
    begun = newest.number <= (task.total_attempts or 0) or newest.actions.exists()
    if resume or (task.status is TaskStatus.PAUSED and not abandon) or not begun:
        return newest
    if not abandon:
        raise Refused(
            f"attempt {newest.number} at {folder.id} is still open; complete it, go on with it (--resume), or start "
            "another one and close it as left unfinished (--abandon)"
        )
    reader.check(*(places[number] for number in open_ones))
    for number in open_ones:
        end(folder, places[number], {"status": Outcome.TIMEOUT.value, "reason": LEFT}, now=now)
    return None


def begin(folder: TaskFolder, number: int, *, now: datetime) -> None:
    """Say in the index, the summary and the metadata that somebody works at an attempt.

    The metadata come last: an attempt that they count has been begun, and is not begun again.
    """
    index(folder, TaskStatus.RUNNING)

    def edit(document: JsonText) -> None:
        told = {"status": TaskStatus.RUNNING.value, **attempt_counts(document.value, number)}
        if any(document.value.get(key) != value for key, value in told.items()):
            put(document, (), {"updated": iso(now), **told})
        if "completed" in document.value:  # the task goes on
            document.remove(("completed",))

    edit_object(folder.metadata, edit, {"id": folder.id})


def index(folder: TaskFolder, status: TaskStatus) -> None:
    """Say in the index, and in a summary that is there, that a task stands so."""
    reader = StrictReader(folder)
    workers = agents(reader.task(), tuple(reader.attempts().values()))
    index_task(folder, status.value, workers)
    if folder.summary.exists():
        edit_object(folder.summary, lambda document: put(document, (), {"status": status.value}), {})


def resume_attempt(folder: TaskFolder, place: AttemptFolder) -> StartedAttempt:
    """An attempt that goes on, with its plan as it was written; "" if there is none."""
    reader = StrictReader(folder)
    before = {number: one for number, one in reader.attempts().items() if number < place.number}
    plan = _read_plan(folder, place)
    return StartedAttempt(place.number, folder.relative(place.plan), plan, _lessons(reader, before), resumed=True)


def create_attempt(folder: TaskFolder, intent: AttemptIntent, now: datetime) -> StartedAttempt:
    """(1) `create_attempt_directory`, `write_plan_md`, `write_attempt_json`, at once.

    The plan takes in what earlier attempts have taught.

    Raises:
        Refused: Something else has its name, or no number is left.
        Unwritable: The disk or a permission forbids it.
    """
    reader = StrictReader(folder)
    task, attempts = reader.task(), reader.attempts()
    number, learned = _next_number(task, attempts), _lessons(reader, attempts)
    if number >= MAX_ATTEMPTS:
        raise Refused(f"{folder.id} has an attempt {number - 1:,}, and no number is left; move its folder away")
    plan = render_plan(
        number,
        description=task.description,
        criteria=task.criteria,
        approach=intent.approach,
        steps=intent.steps,
        estimated_iterations=intent.estimated_iterations,
        lessons=learned,
        similar=intent.similar,
        orders=intent.orders,
    )
    place = folder.new_attempt(number)
    record = _record(folder.id, number, intent.agent or task.agent, intent, now)
    files = {place.plan.name: plan.encode("utf-8", "replace"), place.attempt.name: encode_object(record)}
    if not publish(folder.project, place.path, files):
        raise Refused(f"{folder.relative(place.path)} exists already, and is no folder of an attempt")
    return StartedAttempt(number, folder.relative(place.plan), plan, learned)


def _next_number(task: Task, attempts: Mapping[int, Attempt]) -> int:
    """(1) `increment_attempt_count`: no number that a file has used."""
    used = [*attempts, task.total_attempts or 0, task.current_attempt or 0]
    return max((number for number in used if number < MAX_ATTEMPTS), default=0) + 1


def _lessons(reader: StrictReader, attempts: Mapping[int, Attempt]) -> tuple[AttemptLessons, ...]:
    """(1) `load_previous_reflections`, oldest attempt first; in detail for those that a plan has room for."""
    by_attempt: dict[int | None, list[Reflection]] = {}
    for reflection in reader.reflections():
        if not reflection.superseded:
            by_attempt.setdefault(reflection.attempt, []).append(reflection)
    detailed = set(list(attempts)[-MAX_EARLIER:])
    return tuple(
        AttemptLessons(reader.attempt(number) if number in detailed else attempt, tuple(by_attempt.get(number, ())))
        for number, attempt in attempts.items()
    )


def _read_plan(folder: TaskFolder, place: AttemptFolder) -> str:
    """The text of `plan.md`, "" if there is none."""
    inside(folder.project, place.path)
    try:
        with os.fdopen(open_regular(place.plan, os.O_RDONLY), "rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Unwritable(f"cannot read {place.plan}: {error.strerror}") from None


def _record(task_id: str, number: int, agent: str, intent: AttemptIntent, now: datetime) -> dict[str, Any]:
    """(1) `attempt`, as far as it is known at the start."""
    plan: dict[str, Any] = {"approach": intent.approach, "steps": list(intent.steps)}
    if intent.estimated_iterations is not None:
        plan["estimated_iterations"] = intent.estimated_iterations
    execution = {"agent": agent, "iterations": 0, "actions_performed": 0, "quality_history": []}
    return {"id": number, "task_id": task_id, "started": iso(now), "plan": plan, "execution": execution}
