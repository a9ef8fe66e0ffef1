"""Read one task with its attempts, or one attempt in detail.

Only the files of the task are read. Bad files do not raise errors; problems are findings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.episodes.task_files import MAX_RESULTS, TaskFiles
from core.episodes.task_lookup import MAX_NAMED, find_task
from core.records.episodes import Attempt, Milestone, Task
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.sources.actions import Actions, to_text
from core.sources.episodes import PLAN, SUMMARY, TRAJECTORY, join_attempts, read_completion

MAX_COUNTED: Final = 100  # for a task with more attempts, the counts of ended attempts are taken from the trajectory
COUNT_DIFFERS: Final = "count-differs"
"""Code of the finding that trajectory and log of an attempt contain different numbers of actions."""


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """The attempts at one task; every text is untrusted.

    `attempts` are sorted by number, without the quality of iterations, which only `read_attempt` reads; `reflections`
    are in file order. `milestones` are those of the task and of its attempts, `final_quality` and `completion` (0..1)
    those of the whole task. `summary` contains names and texts of `summary.json`, in file order.
    """

    task: Task
    attempts: tuple[Attempt, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    final_quality: float | None = None
    completion: float | None = None
    summary: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptDetail:
    """Everything about one attempt; every text is untrusted.

    `plan_text` is `plan.md`, cut if it is long. `milestones` are those of the attempt, and of the task during the
    attempt. `findings` are problems with its files; those of the actions are in `actions`.
    """

    attempt: Attempt
    actions: Actions
    plan_text: str = ""
    steps: tuple[str, ...] = ()
    estimated_iterations: int | None = None
    results: tuple[str, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeHistory:
    """A task with all details of its attempts, in their order."""

    task: TaskHistory
    attempts: tuple[AttemptDetail, ...]

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        return self.task.reflections

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Problems with the files, as far as the actions were decoded."""
        return *self.task.findings, *(finding for one in self.attempts for finding in one.actions.findings)


def read_history(paths: ProjectPaths, task_id: str) -> TaskHistory:
    """Read the task with this ID or unambiguous ID prefix, else `UnknownRecord`.

    Reads the four files of the task and the names of its attempts. Attempts that are open or not in the trajectory are
    read from their own files. The outcomes of the others are read, and their actions counted, only for a task with few
    attempts (`MAX_COUNTED`), so that the time does not grow with the number of actions.
    """
    files = _open_task(paths, find_task(paths, task_id))
    counting = len(files.numbers) <= MAX_COUNTED
    attempts = []
    for one in [attempt for parts in files.trajectory_attempts.values() for attempt in parts]:
        attempts.append(_use_log_count(files, one) if counting or one.is_open else one)
        if one.is_open:
            attempts += files.attempt_parts(one.number)
        elif counting:
            attempts += files.outcome(one.number)
    for number in sorted(files.numbers.keys() - files.trajectory_attempts.keys()):
        attempts += files.attempt_parts(number)
        attempts.append(_count_actions(files.task_id, number, files.actions(number)))
    return _history(files, join_attempts(attempts).values())


def filter_history(history: TaskHistory, passes: Callable[[Attempt], bool]) -> TaskHistory:
    """A history with only some of its attempts and their reflections and milestones."""
    attempts = tuple(filter(passes, history.attempts))
    numbers = {one.number for one in attempts}
    return dataclasses.replace(
        history,
        attempts=attempts,
        reflections=tuple(one for one in history.reflections if one.attempt in numbers),
        milestones=tuple(one for one in history.milestones if any(_belongs_to(one, attempt) for attempt in attempts)),
    )


def read_whole_history(paths: ProjectPaths, task_id: str) -> WholeHistory:
    """Read all files of the task with this ID or prefix, else `UnknownRecord`."""
    files = _open_task(paths, find_task(paths, task_id))
    details = tuple(_detail(files, number) for number in sorted({*files.numbers, *files.trajectory_attempts}))
    return WholeHistory(_history(files, (detail.attempt for detail in details)), details)


def _open_task(paths: ProjectPaths, task_id: str) -> TaskFiles:
    paths.inside(f"{paths.relative(paths.tasks)}/{task_id}")  # the folder may be a link
    return TaskFiles(paths, task_id)


def _history(files: TaskFiles, attempts: Iterable[Attempt]) -> TaskHistory:
    trajectory = files.document(TRAJECTORY)
    return TaskHistory(
        task=files.task(),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt.number)),
        reflections=files.reflections(),
        milestones=files.milestones,
        final_quality=trajectory.rate("final_quality"),
        completion=read_completion(trajectory),
        summary=tuple((name, to_text(value)) for name, value in files.document(SUMMARY).mapping.items()),
        findings=tuple(dict.fromkeys(files.findings)),
    )


def read_attempt(paths: ProjectPaths, task_id: str, number: int) -> AttemptDetail:
    """Read one attempt at the task with this ID or prefix, else `UnknownRecord`."""
    files = _open_task(paths, find_task(paths, task_id))
    known = {*files.numbers, *files.trajectory_attempts}
    if number not in known:
        there = ", ".join(map(str, sorted(known)[-MAX_NAMED:])) or "none"
        raise UnknownRecord(f"no attempt {number} at {visible_line(files.task_id, 80)}; the last ones are: {there}")
    detail = _detail(files, number)
    return dataclasses.replace(detail, findings=tuple(dict.fromkeys(files.findings)))


def _detail(files: TaskFiles, number: int) -> AttemptDetail:
    """One attempt; problems with its files are added to `files.findings`."""
    actions = files.actions(number)
    counted = replace(_count_actions(files.task_id, number, actions), errors=len(actions.errors))
    parts = [_use_log_count(files, part) for part in files.trajectory_attempts.get(number, ())]
    known_of_it = [*parts, *files.attempt_parts(number), *([counted] if actions else [])]
    # If none of its files can be read, its folder still shows that it exists.
    [joined] = join_attempts(known_of_it or [Attempt(task_id=files.task_id, number=number)]).values()
    plan = files.plan(number)
    return AttemptDetail(
        attempt=joined,
        actions=actions,
        plan_text=files.text(number, PLAN),
        steps=plan.texts("steps")[:MAX_RESULTS] if plan else (),
        estimated_iterations=plan.count("estimated_iterations") if plan else None,
        results=files.results(number),
        milestones=tuple(one for one in files.milestones if _belongs_to(one, joined)),
        reflections=tuple(reflection for reflection in files.reflections() if reflection.attempt == number),
    )


def read_attempts(paths: ProjectPaths, task_id: str) -> tuple[Task, dict[int, Attempt]]:
    """The task with exactly this ID and its attempts by number, without logs."""
    files = _open_task(paths, task_id)
    parts = files.attempts(TRAJECTORY) + [part for number in files.numbers for part in files.attempt_parts(number)]
    return files.task(), {attempt.number: attempt for attempt in join_attempts(parts).values()}


def _count_actions(task_id: str, number: int, actions: Actions) -> Attempt:
    """Count and end time of the actions of an attempt."""
    return Attempt(
        task_id=task_id,
        number=number,
        actions=len(actions),
        last_action_at=actions[-1].at if actions else None,
        file=actions.file,
    )


def _use_log_count(files: TaskFiles, attempt: Attempt) -> Attempt:
    """An attempt with the count of its log; a finding if the counts differ."""
    log = files.actions(attempt.number)
    logged = len(log)
    if not logged or attempt.actions == logged:
        return attempt
    if attempt.is_open:  # the log is newer than the trajectory and shows the last activity
        return replace(attempt, actions=logged, last_action_at=log[-1].at)
    if attempt.actions is not None and attempt.outcome is not Outcome.UNKNOWN:
        message = f"has {attempt.actions:,} actions of attempt {attempt.number}; its log has {logged:,}, which counts"
        files.findings.append(Finding(attempt.file, "/attempts", Severity.WARNING, COUNT_DIFFERS, message))
    return replace(attempt, actions=logged)


def _belongs_to(milestone: Milestone, attempt: Attempt) -> bool:
    if milestone.attempt is not None:
        return milestone.attempt == attempt.number
    if milestone.at is None or attempt.started_at is None:
        return False
    return attempt.started_at <= milestone.at and (attempt.ended_at is None or milestone.at <= attempt.ended_at)
