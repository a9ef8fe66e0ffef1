"""Read the files of a task.

`TaskReader` reads tolerantly for those who show them, strictly for those who will write them. In a `TaskHistory`,
problems with files are findings, not errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.base.validation import MAX_NAMED
from core.files.file_reader import UNREADABLE, Problem, RawFile, decode_json, decode_jsonl, read_file
from core.records.episodes import Attempt, Milestone, Task
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.sources import episodes as sources
from core.sources.episodes import MAX_ACTION_TEXT, TRAJECTORY, Actions, join_attempts, to_text
from core.sources.normalize import Fields, document
from core.tasks.task_files import TaskFolder, find_task, list_entries, read_last_lines, read_object

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.file_reader import Line
    from core.tasks.log_summary import LogSummary

MAX_COUNTED: Final = 100  # if a task has more attempts, the trajectory's counts of ended attempts are not verified
COUNT_DIFFERS: Final = "count-differs"  # code of the finding that the trajectory and the log have different counts


MAX_RESULTS: Final = 1000  # maximum number of result files per attempt, and of folders that are searched for them
_MAX_CACHED: Final = 4 << 20  # size of a file of reflections, in bytes, above which it is always parsed
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TaskReader:
    """Reads the files of one task.

    A problem with a file is a finding, and JSON documents are cached. A strict reader, for a caller that will write the
    files, reads them at each call, and raises `Conflict` for a malformed one. The list of attempts is always cached, so
    a new reader is needed after an attempt was started.
    """

    def __init__(self, paths: ProjectPaths, task_id: str, *, strict: bool = False) -> None:
        self.task_id: Final = task_id
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._strict: Final = strict
        self._name: Final = f"{paths.relative(paths.tasks)}/{task_id}"
        self._documents: dict[str, Fields] = {}

    @cached_property
    def numbers(self) -> dict[int, str]:
        """Names of attempt folders by number; `BadInput` if strict and reached by a link."""
        if self._strict:
            self._paths.unlinked(self.path(sources.ATTEMPTS))
        entries = self._list(self.path(sources.ATTEMPTS))
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        selected = sources.select_attempt_folders(names)
        for name in sources.skipped_attempt_folders(names, selected)[:MAX_NAMED]:
            why = f"another folder has the same number, or the number is not below {sources.MAX_ATTEMPTS:,}"
            file, message = self.path(f"{sources.ATTEMPTS}/{name}"), f"is not used as an attempt: {why}"
            self.findings.append(Finding(file, "", Severity.WARNING, "no-attempt", message))
        return selected

    def document(self, name: str) -> Fields:
        """Return a JSON object in the task folder; empty if missing or unreadable."""
        if self._strict:
            file = self.path(name)
            return Fields(file, read_object(self._paths.project / file, self._paths.aiwg) or {}, self.findings)
        if name not in self._documents:
            file = self.path(name)
            self._documents[name] = Fields(file, {}, self.findings)
            raw = self._read(file)
            if raw is not None:
                decoded = decode_json(raw.data)
                self._note(file, decoded.problems)
                if not decoded.failed:
                    self._documents[name] = document(file, decoded.value, self.findings) or self._documents[name]
        return self._documents[name]

    def task(self) -> Task:
        """Return the task; without metadata, only its ID is set."""
        fields = self.document(sources.METADATA)
        tasks, findings = sources.parse_tasks(fields.file, fields.mapping)
        self.findings += findings
        return tasks[0]

    def attempts(self, name: str) -> list[Attempt]:
        """Return the attempts that a JSON document contains."""
        fields = self.document(name)
        return self._parse_attempts(fields.file, fields.mapping)

    def _parse_attempts(self, file: str, value: Mapping[str, Any]) -> list[Attempt]:
        attempts, findings = sources.parse_attempts(file, value) if value else ((), ())
        self.findings += findings
        return list(attempts)

    def all_attempts(self) -> dict[int, Attempt]:
        """Return all attempts by number; those ended in the trajectory from it alone."""
        found = self.attempts(sources.TRAJECTORY)
        ended = {attempt.number for attempt in found if attempt.outcome is not Outcome.UNKNOWN}
        for number in self.numbers.keys() - ended:
            found += self.attempt_parts(number) or [Attempt(task_id=self.task_id, number=number)]
        return dict(sorted((attempt.number, attempt) for attempt in join_attempts(found).values()))

    def attempt(self, number: int) -> Attempt:
        """Return one attempt, including the data in its own files."""
        fields = self.document(sources.TRAJECTORY)
        found = self._parse_attempts(fields.file, {"attempts": find_entries(fields.mapping, number)})
        found += self.attempt_parts(number) if number in self.numbers else []
        unknown = Attempt(task_id=self.task_id, number=number)
        return join_attempts(found).get(unknown.id, unknown)

    def outcome(self, number: int) -> list[Attempt]:
        return self.attempts(self._attempt_file(number, sources.OUTCOME)) if number in self.numbers else []

    def attempt_parts(self, number: int) -> list[Attempt]:
        """Return what `attempt.json` and `outcome.json` contain about an attempt."""
        record, outcome = (self._attempt_file(number, name) for name in (sources.ATTEMPT, sources.OUTCOME))
        return self.attempts(record) + self.attempts(outcome)

    @cached_property
    def trajectory_attempts(self) -> dict[int, list[Attempt]]:
        """Entries of the trajectory by attempt number; a number may have several entries."""
        found: dict[int, list[Attempt]] = {}
        for attempt in self.attempts(sources.TRAJECTORY):
            found.setdefault(attempt.number, []).append(attempt)
        return found

    @cached_property
    def milestones(self) -> tuple[Milestone, ...]:
        return sources.read_milestones(self.document(sources.TRAJECTORY))

    def plan(self, number: int) -> Fields | None:
        """Return the plan in `attempt.json`, or None."""
        fields = self.document(self._attempt_file(number, sources.ATTEMPT))
        return fields.inside("plan") if isinstance(fields.mapping.get("plan"), dict) else None

    def actions(self, number: int) -> Actions:
        return Actions(self._paths, self.path(sources.ACTIONS, number))

    def log(self, number: int) -> LogSummary:
        """Summarize the newest actions in the log of an attempt."""
        from core.tasks.log_summary import summarize_newest  # not needed to append actions

        return summarize_newest(self.actions(number))

    def text(self, number: int, name: str) -> str:
        """Return a text file of an attempt, truncated; "" if it does not exist."""
        raw = self._read(self.path(name, number))
        return raw.data.decode("utf-8", "replace")[:MAX_ACTION_TEXT] if raw else ""

    def results(self, number: int) -> tuple[str, ...]:
        """Return the paths of result files, relative to `results/` of an attempt."""
        top = self.path(sources.RESULTS, number)
        found: list[str] = []
        for entry in islice(self._list(top), MAX_RESULTS):
            if entry.is_dir(follow_symlinks=False):
                inside = islice(self._list(f"{top}/{entry.name}"), MAX_RESULTS)
                found += (f"{entry.name}/{inner.name}" for inner in inside)
            else:
                found.append(entry.name)
        return tuple(sorted(found)[:MAX_RESULTS])

    @cached_property
    def reflections(self) -> tuple[Reflection, ...]:
        """Reflections on the task, in file order."""
        file = self.path(sources.REFLECTIONS)
        raw = self._read(file)
        if raw is None:
            return ()
        parse = _parse_reflections if len(raw.data) > _MAX_CACHED else _parse_cached
        reflections, findings = parse(file, raw.data, raw.stamp.modified_at)
        self.findings += findings
        return reflections

    def newest_reflections(self) -> tuple[Reflection, ...]:
        """Return reflections in file order, read at each call; the last of a long file."""
        from core.sources.reflections import read_reflections

        return read_reflections(self.path(sources.REFLECTIONS), self.reflection_lines(), _LONG_AGO)[0]

    def reflection_lines(self) -> list[Line]:
        """Return the lines of `reflections.jsonl`; of a very long file, the last ones."""
        return read_last_lines(self._paths.project / self.path(sources.REFLECTIONS), self._paths.aiwg)

    def path(self, name: str, attempt: int | None = None) -> str:
        """Return the project-relative path of a file of the task or of an attempt."""
        return f"{self._name}/{name if attempt is None else self._attempt_file(attempt, name)}"

    def _attempt_file(self, number: int, name: str) -> str:
        return f"{sources.ATTEMPTS}/{self.numbers.get(number, f'{number:03d}')}/{name}"

    def _list(self, folder: str) -> Iterator[os.DirEntry[str]]:
        errors: list[OSError] = []
        yield from list_entries(self._paths.project / folder, errors)
        self._note(folder, [Problem(UNREADABLE, f"cannot be listed: {error.strerror}") for error in errors])

    def _read(self, file: str) -> RawFile | None:
        raw = read_file(self._paths.project / file, self._paths.aiwg)
        if isinstance(raw, Problem):
            self._note(file, (raw,))
            return None
        return raw

    def _note(self, file: str, problems: Sequence[Problem]) -> None:
        self.findings += (problem.finding(file) for problem in problems)


def _parse_reflections(
    file: str, data: bytes, modified_at: datetime
) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    from core.sources.reflections import join_reflections, read_reflections  # not needed to append actions

    lines, problems = decode_jsonl(data)
    found, findings = read_reflections(file, lines, modified_at)
    return tuple(join_reflections(found, {}).values()), (*(one.finding(file) for one in problems), *findings)


_parse_cached: Final = lru_cache(4)(_parse_reflections)  # a screen reads them again after each action


def is_entry(value: Any, number: int) -> bool:
    """Whether a value is the trajectory entry of attempt `number`."""
    return isinstance(value, dict) and value.get("attempt_id", value.get("attempt", value.get("id"))) == number


def find_entries(trajectory: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the entries of an attempt in a trajectory, unvalidated."""
    entries = trajectory.get("attempts")
    return [one for one in entries if is_entry(one, number)] if isinstance(entries, list) else []


def strict_reader(folder: TaskFolder) -> TaskReader:
    """Return a reader of a task that raises `Conflict` for a malformed file."""
    return TaskReader(folder.project, folder.id, strict=True)


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
