"""One task of the episodic memory, read when somebody asks for it: its history, and one attempt in detail (1).

Nothing of the library is needed, and nothing here fails over a bad file: what is wrong is a finding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.episodes.task_lookup import MOST_NAMED, entries_of, find_task
from core.records.episodes import Attempt, Milestone, Task
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.sources.actions import MAX_TEXT, Actions, to_text
from core.sources.episodes import (
    ACTIONS,
    ATTEMPT,
    ATTEMPTS,
    MAX_ATTEMPTS,
    METADATA,
    OUTCOME,
    PLAN,
    REFLECTIONS,
    RESULTS,
    SUMMARY,
    TRAJECTORY,
    join_attempts,
    parse_attempts,
    parse_tasks,
    read_completion,
    read_milestones,
    select_attempt_folders,
    skipped_attempt_folders,
)
from core.sources.fields import Fields, document
from core.sources.reflection_join import join_reflections
from core.sources.reflections import read_reflections
from core.storage.decoded import Problem
from core.storage.file_reader import RawFile, read_file
from core.storage.json_reader import decode_json, decode_jsonl

MAX_COUNTED: Final = 100
"""Of a task with more attempts the history takes the trajectory's word for those that ended."""
COUNT_DIFFERS: Final = "count-differs"
"""Code of the finding that the trajectory and the log of an attempt do not agree on its actions."""
MAX_RESULTS: Final = 1000
"""Most names of results of one attempt, and most of its iterations that are looked into."""


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """What was tried at one task; every text is untrusted.

    Attributes:
        attempts: By number. Without the quality of single iterations, which only `read_attempt` reads.
        reflections: In the order in which they were written.
        milestones: Of the whole task and of single attempts, as the trajectory tells them.
        final_quality, completion: 0..1, where the trajectory tells them of the whole task.
        summary: Name and text of what `summary.json` says, in its order.
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

    Attributes:
        plan_text: `plan.md`; a long one is cut.
        steps: The steps of the plan.
        estimated_iterations: How many the plan reckons with, or None.
        actions: Decoded when they are looked at.
        results: Names below `results/`, such as `iter-001/tests.log`, sorted.
        milestones: Its own, and those of the task in the time from its start to its end.
        reflections: On this attempt.
        findings: What is wrong with its files, the actions apart: those tell themselves.
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
    """A task with everything about each of its attempts, in their order."""

    task: TaskHistory
    attempts: tuple[AttemptDetail, ...]

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        """In the order in which they were written."""
        return self.task.reflections

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the files, as far as the actions were looked at."""
        return *self.task.findings, *(finding for one in self.attempts for finding in one.actions.findings)


def read_history(paths: ProjectPaths, task_id: str) -> TaskHistory:
    """What was tried at the task with this id, or whose id begins so.

    Reads the four files of the task and the names of its attempts; an attempt that the trajectory lacks is read by
    itself, and so is one that is open. The outcomes of the others are read, and their actions counted, only where the
    task has few attempts (`MAX_COUNTED`), so that 1,000 attempts with 100,000 actions take as long as without any.

    Raises:
        UnknownRecord: There is no such task, or several could be meant.
    """
    folder = _Folder(paths, find_task(paths, task_id))
    counting = len(folder.numbers) <= MAX_COUNTED
    told = [attempt for attempts in folder.told.values() for attempt in attempts]
    attempts = []
    for one in told:
        attempts.append(_trusting_log(folder, one) if counting or one.is_open else one)
        if one.is_open:
            attempts += folder.of_attempt(one.number)
        elif counting:
            attempts += folder.outcome(one.number)
    for number in sorted(folder.numbers.keys() - folder.told.keys()):
        attempts += folder.of_attempt(number)
        attempts.append(_counted(folder.task_id, number, folder.actions(number)))
    return _history(folder, join_attempts(attempts).values())


def query_history(
    paths: ProjectPaths,
    task_id: str,
    *,
    outcomes: Collection[Outcome] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> TaskHistory:
    """(1) query_history: `read_history` with only the attempts that pass, and what was learned and reached in them.

    Args:
        outcomes: How they came out; unknown while nobody has said. None: any.
        since, until: When they were started, both inclusive, aware; one without a start does not pass then.

    Raises:
        UnknownRecord: There is no such task, or several could be meant.
    """

    def passes(attempt: Attempt) -> bool:
        at = attempt.started_at
        timely = (since is None or (at is not None and at >= since)) and (
            until is None or (at is not None and at <= until)
        )
        return timely and (not outcomes or attempt.outcome in outcomes)

    return filter_history(read_history(paths, task_id), passes)


def filter_history(history: TaskHistory, passes: Callable[[Attempt], bool]) -> TaskHistory:
    """A history with only some of its attempts, and the reflections and milestones that are of these."""
    kept = tuple(filter(passes, history.attempts))
    numbers = {one.number for one in kept}
    return dataclasses.replace(
        history,
        attempts=kept,
        reflections=tuple(one for one in history.reflections if one.attempt in numbers),
        milestones=tuple(one for one in history.milestones if any(_is_of(one, attempt) for attempt in kept)),
    )


def read_whole_history(paths: ProjectPaths, task_id: str) -> WholeHistory:
    """Everything about the task with this id, or whose id begins so; every file of it is read.

    Raises:
        UnknownRecord: There is no such task, or several could be meant.
    """
    folder = _Folder(paths, find_task(paths, task_id))
    details = tuple(_detail(folder, number) for number in sorted({*folder.numbers, *folder.told}))
    return WholeHistory(_history(folder, (detail.attempt for detail in details)), details)


def _history(folder: _Folder, attempts: Iterable[Attempt]) -> TaskHistory:
    trajectory = folder.document(TRAJECTORY)
    return TaskHistory(
        task=folder.task(),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt.number)),
        reflections=folder.reflections(),
        milestones=folder.milestones,
        final_quality=trajectory.rate("final_quality"),
        completion=read_completion(trajectory),
        summary=tuple((name, to_text(value)) for name, value in folder.document(SUMMARY).mapping.items()),
        findings=tuple(dict.fromkeys(folder.findings)),
    )


def read_attempt(paths: ProjectPaths, task_id: str, number: int) -> AttemptDetail:
    """Everything about one attempt at the task with this id, or whose id begins so.

    Raises:
        UnknownRecord: There is no such task or attempt, or several tasks could be meant.
    """
    folder = _Folder(paths, find_task(paths, task_id))
    known = {*folder.numbers, *folder.told}
    if number not in known:
        there = ", ".join(map(str, sorted(known)[-MOST_NAMED:])) or "none"
        raise UnknownRecord(f"no attempt {number} at {visible_line(folder.task_id, 80)}; the last ones are: {there}")
    detail = _detail(folder, number)
    return dataclasses.replace(detail, findings=tuple(dict.fromkeys(folder.findings)))


def _detail(folder: _Folder, number: int) -> AttemptDetail:
    """One attempt; what is wrong with its files is told by the folder."""
    actions = folder.actions(number)
    counted = replace(_counted(folder.task_id, number, actions), errors=len(actions.errors))
    parts = [_trusting_log(folder, part) for part in folder.told.get(number, ())]
    known_of_it = [*parts, *folder.of_attempt(number), *([counted] if actions else [])]
    # Where none of its files can be read, its folder still shows that it was begun.
    [joined] = join_attempts(known_of_it or [Attempt(task_id=folder.task_id, number=number)]).values()
    return AttemptDetail(
        attempt=joined,
        actions=actions,
        plan_text=folder.text(number, PLAN),
        steps=folder.steps(number),
        estimated_iterations=folder.estimated(number),
        results=folder.results(number),
        milestones=tuple(one for one in folder.milestones if _is_of(one, joined)),
        reflections=tuple(reflection for reflection in folder.reflections() if reflection.attempt == number),
    )


def read_attempts(paths: ProjectPaths, task_id: str) -> tuple[Task, dict[int, Attempt]]:
    """The task with exactly this id and its attempts by number, as all documents but the logs tell of them."""
    folder = _Folder(paths, task_id)
    parts = folder.attempts(TRAJECTORY) + [part for number in folder.numbers for part in folder.of_attempt(number)]
    return folder.task(), {attempt.number: attempt for attempt in join_attempts(parts).values()}


def _counted(task_id: str, number: int, actions: Actions) -> Attempt:
    """What the log of an attempt says by its length and its end."""
    return Attempt(
        task_id=task_id,
        number=number,
        actions=len(actions),
        last_action_at=actions[-1].at if actions else None,
        file=actions.file,
    )


def _trusting_log(folder: _Folder, attempt: Attempt) -> Attempt:
    """An attempt of the trajectory with as many actions as its log has, if it has one; a finding where they differ."""
    log = folder.actions(attempt.number)
    logged = len(log)
    if not logged or attempt.actions == logged:
        return attempt
    if attempt.is_open:  # the log is ahead, and shows whether somebody works at it
        return replace(attempt, actions=logged, last_action_at=log[-1].at)
    if attempt.actions is not None and attempt.outcome is not Outcome.UNKNOWN:
        message = f"says {attempt.actions:,} actions of attempt {attempt.number}; its log has {logged:,}, which counts"
        folder.findings.append(Finding(attempt.file, "/attempts", Severity.WARNING, COUNT_DIFFERS, message))
    return replace(attempt, actions=logged)


def _is_of(milestone: Milestone, attempt: Attempt) -> bool:
    if milestone.attempt is not None:
        return milestone.attempt == attempt.number
    if milestone.at is None or attempt.started_at is None:
        return False
    return attempt.started_at <= milestone.at and (attempt.ended_at is None or milestone.at <= attempt.ended_at)


class _Folder:
    """The folder of one task, each file of it read at most once; what is wrong is collected in `findings`."""

    def __init__(self, paths: ProjectPaths, task_id: str) -> None:
        self.task_id: Final = task_id
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._name: Final = f"{paths.relative(paths.tasks)}/{task_id}"
        paths.inside(self._name)
        self._documents: dict[str, Fields] = {}
        self._reflections: tuple[Reflection, ...] | None = None

    @cached_property
    def numbers(self) -> dict[int, str]:
        """The attempts that have a folder, with its name."""
        entries = entries_of(self._paths.project / self._name / ATTEMPTS)
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in skipped_attempt_folders(names)[:MOST_NAMED]:
            message = f"is no folder of an attempt: another one has its number, or it is not below {MAX_ATTEMPTS:,}"
            self.findings.append(
                Finding(f"{self._name}/{ATTEMPTS}/{name}", "", Severity.WARNING, "no-attempt", message)
            )
        return select_attempt_folders(names)

    def document(self, name: str) -> Fields:
        """A JSON object of this folder; an empty one where there is none."""
        if name not in self._documents:
            file = f"{self._name}/{name}"
            self._documents[name] = Fields(file, {}, self.findings)
            raw = self._read(file)
            if raw is not None:
                decoded = decode_json(raw.data)
                self._note(file, decoded.problems)
                if not decoded.failed:
                    self._documents[name] = document(file, decoded.value, self.findings) or self._documents[name]
        return self._documents[name]

    def task(self) -> Task:
        """The task; only its id where nothing tells more."""
        fields = self.document(METADATA)
        tasks, findings = parse_tasks(fields.file, fields.mapping)
        self.findings += findings
        return tasks[0]

    def attempts(self, name: str) -> list[Attempt]:
        """The attempts that a document of this folder tells of."""
        fields = self.document(name)
        if not fields.mapping:
            return []
        attempts, findings = parse_attempts(fields.file, fields.mapping)
        self.findings += findings
        return list(attempts)

    def outcome(self, number: int) -> list[Attempt]:
        """The attempt as its outcome tells it, which knows more than the trajectory."""
        return self.attempts(self._inside(number, OUTCOME)) if number in self.numbers else []

    def of_attempt(self, number: int) -> list[Attempt]:
        """The attempt as its own two files tell it."""
        return self.attempts(self._inside(number, ATTEMPT)) + self.attempts(self._inside(number, OUTCOME))

    @cached_property
    def told(self) -> dict[int, list[Attempt]]:
        """What the trajectory tells, by the number of the attempt."""
        found: dict[int, list[Attempt]] = {}
        for attempt in self.attempts(TRAJECTORY):
            found.setdefault(attempt.number, []).append(attempt)
        return found

    @cached_property
    def milestones(self) -> tuple[Milestone, ...]:
        """Of the whole task and of single attempts."""
        return read_milestones(self.document(TRAJECTORY))

    def steps(self, number: int) -> tuple[str, ...]:
        """(1) attempt `plan.steps`."""
        plan = self._plan(number)
        return plan.texts("steps")[:MAX_RESULTS] if plan else ()

    def estimated(self, number: int) -> int | None:
        """(1) attempt `plan.estimated_iterations`."""
        plan = self._plan(number)
        return plan.count("estimated_iterations") if plan else None

    def _plan(self, number: int) -> Fields | None:
        fields = self.document(self._inside(number, ATTEMPT))
        return fields.inside("plan") if isinstance(fields.mapping.get("plan"), dict) else None

    def actions(self, number: int) -> Actions:
        """The log of an attempt."""
        return Actions(self._paths, f"{self._name}/{self._inside(number, ACTIONS)}")

    def text(self, number: int, name: str) -> str:
        """A text of an attempt's folder, cut if it is long; "" if there is none."""
        raw = self._read(f"{self._name}/{self._inside(number, name)}")
        return raw.data.decode("utf-8", "replace")[:MAX_TEXT] if raw else ""

    def results(self, number: int) -> tuple[str, ...]:
        """Names below `results/` of an attempt."""
        top = self._paths.project / self._name / self._inside(number, RESULTS)
        found: list[str] = []
        for entry in islice(entries_of(top), MAX_RESULTS):
            if entry.is_dir(follow_symlinks=False):
                found += (f"{entry.name}/{inner.name}" for inner in islice(entries_of(top / entry.name), MAX_RESULTS))
            else:
                found.append(entry.name)
        return tuple(sorted(found)[:MAX_RESULTS])

    def reflections(self) -> tuple[Reflection, ...]:
        """What was learned, in the order of the file."""
        if self._reflections is None:
            file = f"{self._name}/{REFLECTIONS}"
            raw = self._read(file)
            lines, problems = decode_jsonl(raw.data) if raw else ([], ())
            self._note(file, problems)
            told, findings = read_reflections(file, lines, raw.stamp.modified_at) if raw else ((), ())
            self.findings += findings
            self._reflections = tuple(join_reflections(told, {}).values())
        return self._reflections

    def _inside(self, number: int, name: str) -> str:
        return f"{ATTEMPTS}/{self.numbers.get(number, f'{number:03d}')}/{name}"

    def _read(self, file: str) -> RawFile | None:
        raw = read_file(self._paths.project / file, self._paths.aiwg)
        if isinstance(raw, Problem):
            self._note(file, (raw,))
            return None
        return raw

    def _note(self, file: str, problems: Sequence[Problem]) -> None:
        self.findings += (problem.finding(file) for problem in problems)
