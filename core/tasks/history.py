"""Read the files of a task; problems with files are findings, not errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.base.validation import MAX_NAMED
from core.records.episodes import Attempt, Milestone, Task
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.sources import episodes as sources
from core.sources.episodes import TRAJECTORY, Actions, join_attempts, to_text
from core.tasks.reader import MAX_RESULTS, TaskReader
from core.tasks.task_files import find_task

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

MAX_COUNTED: Final = 100  # if a task has more attempts, the trajectory's counts of ended attempts are not verified
COUNT_DIFFERS: Final = "count-differs"  # code of the finding that the trajectory and the log have different counts


class TaskHistory(Struct, frozen=True):
    """A task with its attempts; every text is untrusted."""

    task: Task
    attempts: tuple[Attempt, ...] = ()  # sorted by number; ended ones have no quality per iteration (`read_attempt`)
    reflections: tuple[Reflection, ...] = ()  # in file order
    milestones: tuple[Milestone, ...] = ()  # of the task and of its attempts
    final_quality: float | None = None  # of the whole task, 0..1
    completion: float | None = None  # of the whole task, 0..1
    summary: tuple[tuple[str, str], ...] = ()  # keys and values of `summary.json`, in file order
    findings: tuple[Finding, ...] = ()


class AttemptDetail(Struct, frozen=True):
    """Everything about one attempt; every text is untrusted."""

    attempt: Attempt
    actions: Actions
    plan_text: str = ""  # content of `plan.md`, truncated
    steps: tuple[str, ...] = ()
    estimated_iterations: int | None = None
    results: tuple[str, ...] = ()
    milestones: tuple[Milestone, ...] = ()  # of the attempt, and of the task during the attempt
    reflections: tuple[Reflection, ...] = ()
    findings: tuple[Finding, ...] = ()  # problems with the files, except for the log (`actions.findings`)


class WholeHistory(Struct, frozen=True):
    """A task with all details of its attempts, sorted by number."""

    task: TaskHistory
    attempts: tuple[AttemptDetail, ...]

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        return self.task.reflections

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Problems with all files; of logs, only with lines that were decoded so far."""
        return *self.task.findings, *(finding for one in self.attempts for finding in one.actions.findings)


def read_history(paths: ProjectPaths, task_id: str) -> TaskHistory:
    """Read the task with this ID or unambiguous part of an ID.

    Reads the four files of the task, and the files of attempts that are open or not in the trajectory. If the task has
    at most `MAX_COUNTED` attempts, the outcomes and numbers of actions of the other attempts are read as well. The time
    does not grow with the number of actions. Raises UnknownRecord if the name matches no task, or several.
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
    """Return the history of only some attempts."""
    attempts = tuple(filter(passes, history.attempts))
    numbers = {one.number for one in attempts}
    return replace(
        history,
        attempts=attempts,
        reflections=tuple(one for one in history.reflections if one.attempt in numbers),
        milestones=tuple(one for one in history.milestones if any(_belongs_to(one, attempt) for attempt in attempts)),
    )


def read_whole_history(paths: ProjectPaths, task_id: str) -> WholeHistory:
    """Read all files of a task; see `read_history` for `task_id` and errors."""
    files = _open_task(paths, find_task(paths, task_id))
    details = tuple(_detail(files, number) for number in sorted({*files.numbers, *files.trajectory_attempts}))
    return WholeHistory(_history(files, (detail.attempt for detail in details)), details)


def _open_task(paths: ProjectPaths, task_id: str) -> TaskReader:
    paths.inside(f"{paths.relative(paths.tasks)}/{task_id}")  # raises an error if the folder is a link to elsewhere
    return TaskReader(paths, task_id)


def _history(files: TaskReader, attempts: Iterable[Attempt]) -> TaskHistory:
    trajectory = files.document(TRAJECTORY)
    return TaskHistory(
        task=files.task(),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt.number)),
        reflections=files.reflections,
        milestones=files.milestones,
        final_quality=trajectory.rate("final_quality"),
        completion=sources.read_completion(trajectory),
        summary=tuple((name, to_text(value)) for name, value in files.document(sources.SUMMARY).mapping.items()),
        findings=tuple(dict.fromkeys(files.findings)),
    )


def read_attempt(paths: ProjectPaths, task_id: str, number: int) -> AttemptDetail:
    """Read one attempt at a task; raise `UnknownRecord` if either does not exist."""
    files = _open_task(paths, find_task(paths, task_id))
    known = {*files.numbers, *files.trajectory_attempts}
    if number not in known:
        there = ", ".join(map(str, sorted(known)[-MAX_NAMED:])) or "none"
        raise UnknownRecord(f"no attempt {number} at {visible_line(files.task_id, 80)}; the newest ones are: {there}")
    detail = _detail(files, number)
    return replace(detail, findings=tuple(dict.fromkeys(files.findings)))


def _detail(files: TaskReader, number: int) -> AttemptDetail:
    """Read an attempt; problems with its files are added to `files.findings`."""
    actions = files.actions(number)
    counted = replace(_count_actions(files.task_id, number, actions), errors=len(actions.errors))
    parts = [_use_log_count(files, part) for part in files.trajectory_attempts.get(number, ())]
    known_of_it = [*parts, *files.attempt_parts(number), *([counted] if actions else [])]
    # Without any readable file, the attempt still exists, since its folder does.
    [joined] = join_attempts(known_of_it or [Attempt(task_id=files.task_id, number=number)]).values()
    plan = files.plan(number)
    return AttemptDetail(
        attempt=joined,
        actions=actions,
        plan_text=files.text(number, sources.PLAN),
        steps=plan.texts("steps")[:MAX_RESULTS] if plan else (),
        estimated_iterations=plan.count("estimated_iterations") if plan else None,
        results=files.results(number),
        milestones=tuple(one for one in files.milestones if _belongs_to(one, joined)),
        reflections=tuple(reflection for reflection in files.reflections if reflection.attempt == number),
    )


def read_attempts(paths: ProjectPaths, task_id: str) -> tuple[Task, dict[int, Attempt]]:
    """Read the task with this complete ID, and its attempts by number, without logs."""
    files = _open_task(paths, task_id)
    parts = files.attempts(TRAJECTORY) + [part for number in files.numbers for part in files.attempt_parts(number)]
    return files.task(), {attempt.number: attempt for attempt in join_attempts(parts).values()}


def _count_actions(task_id: str, number: int, actions: Actions) -> Attempt:
    """Return an attempt with only the count and last time of its actions."""
    return Attempt(
        task_id=task_id,
        number=number,
        actions=len(actions),
        last_action_at=actions[-1].at if actions else None,
        file=actions.file,
    )


def _use_log_count(files: TaskReader, attempt: Attempt) -> Attempt:
    """Return the attempt with the count of its log; add a finding if it differs."""
    log = files.actions(attempt.number)
    logged = len(log)
    if not logged or attempt.actions == logged:
        return attempt
    if attempt.is_open:  # the log is newer than the trajectory and shows the last activity
        return replace(attempt, actions=logged, last_action_at=log[-1].at)
    if attempt.actions is not None and attempt.outcome is not Outcome.UNKNOWN:
        message = (
            f"has {attempt.actions:,} actions for attempt {attempt.number}; its log, which is used, has {logged:,}"
        )
        files.findings.append(Finding(attempt.file, "/attempts", Severity.WARNING, COUNT_DIFFERS, message))
    return replace(attempt, actions=logged)


def _belongs_to(milestone: Milestone, attempt: Attempt) -> bool:
    if milestone.attempt is not None:
        return milestone.attempt == attempt.number
    if milestone.at is None or attempt.started_at is None:
        return False
    return attempt.started_at <= milestone.at and (attempt.ended_at is None or milestone.at <= attempt.ended_at)
