"""Read the files of one task; problems are collected as findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from core.config.paths import ProjectPaths
from core.episodes.task_lookup import MAX_NAMED, list_entries
from core.records.episodes import Attempt, Milestone, Task
from core.records.findings import Finding, Severity
from core.records.reflections import Reflection
from core.sources import episodes as sources
from core.sources.actions import MAX_TEXT, Actions
from core.sources.fields import Fields, document
from core.sources.reflections import join_reflections, read_reflections
from core.storage.decoded import Problem
from core.storage.file_reader import RawFile, read_file
from core.storage.json_reader import decode_json, decode_jsonl

MAX_RESULTS: Final = 1000  # maximum number of result names per attempt, and of iterations that are searched


class TaskFiles:
    """The files of one task, each read at most once."""

    def __init__(self, paths: ProjectPaths, task_id: str) -> None:
        self.task_id: Final = task_id
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._name: Final = f"{paths.relative(paths.tasks)}/{task_id}"
        self._documents: dict[str, Fields] = {}
        self._reflections: tuple[Reflection, ...] | None = None

    @cached_property
    def numbers(self) -> dict[int, str]:
        """The names of attempt folders by number."""
        entries = list_entries(self._paths.project / self._name / sources.ATTEMPTS)
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in sources.skipped_attempt_folders(names)[:MAX_NAMED]:
            why = f"another folder has its number, or it is not below {sources.MAX_ATTEMPTS:,}"
            file, message = self.path(f"{sources.ATTEMPTS}/{name}"), f"is not used as an attempt: {why}"
            self.findings.append(Finding(file, "", Severity.WARNING, "no-attempt", message))
        return sources.select_attempt_folders(names)

    def document(self, name: str) -> Fields:
        """A JSON object of the task folder; an empty one if there is none."""
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
        """The task from its metadata, or with only its ID."""
        fields = self.document(sources.METADATA)
        tasks, findings = sources.parse_tasks(fields.file, fields.mapping)
        self.findings += findings
        return tasks[0]

    def attempts(self, name: str) -> list[Attempt]:
        fields = self.document(name)
        if not fields.mapping:
            return []
        attempts, findings = sources.parse_attempts(fields.file, fields.mapping)
        self.findings += findings
        return list(attempts)

    def outcome(self, number: int) -> list[Attempt]:
        return self.attempts(self._attempt_file(number, sources.OUTCOME)) if number in self.numbers else []

    def attempt_parts(self, number: int) -> list[Attempt]:
        """The attempt from its own two files."""
        return [
            part
            for name in (sources.ATTEMPT, sources.OUTCOME)
            for part in self.attempts(self._attempt_file(number, name))
        ]

    @cached_property
    def trajectory_attempts(self) -> dict[int, list[Attempt]]:
        """The attempts in the trajectory by number; there may be several entries for one."""
        found: dict[int, list[Attempt]] = {}
        for attempt in self.attempts(sources.TRAJECTORY):
            found.setdefault(attempt.number, []).append(attempt)
        return found

    @cached_property
    def milestones(self) -> tuple[Milestone, ...]:
        return sources.read_milestones(self.document(sources.TRAJECTORY))

    def plan(self, number: int) -> Fields | None:
        """The plan in `attempt.json`."""
        fields = self.document(self._attempt_file(number, sources.ATTEMPT))
        return fields.inside("plan") if isinstance(fields.mapping.get("plan"), dict) else None

    def actions(self, number: int) -> Actions:
        return Actions(self._paths, self.path(sources.ACTIONS, number))

    def text(self, number: int, name: str) -> str:
        """A text file of an attempt, cut if it is long; "" if there is none."""
        raw = self._read(self.path(name, number))
        return raw.data.decode("utf-8", "replace")[:MAX_TEXT] if raw else ""

    def results(self, number: int) -> tuple[str, ...]:
        """Names below `results/` of an attempt."""
        top = self._paths.project / self.path(sources.RESULTS, number)
        found: list[str] = []
        for entry in islice(list_entries(top), MAX_RESULTS):
            if entry.is_dir(follow_symlinks=False):
                found += (f"{entry.name}/{inner.name}" for inner in islice(list_entries(top / entry.name), MAX_RESULTS))
            else:
                found.append(entry.name)
        return tuple(sorted(found)[:MAX_RESULTS])

    def reflections(self) -> tuple[Reflection, ...]:
        """The reflections on the task, in file order."""
        if self._reflections is None:
            file = self.path(sources.REFLECTIONS)
            raw = self._read(file)
            lines, problems = decode_jsonl(raw.data) if raw else ([], ())
            self._note(file, problems)
            found, findings = read_reflections(file, lines, raw.stamp.modified_at) if raw else ((), ())
            self.findings += findings
            self._reflections = tuple(join_reflections(found, {}).values())
        return self._reflections

    def path(self, name: str, attempt: int | None = None) -> str:
        """The project-relative path of a file of the task or of an attempt."""
        return f"{self._name}/{name if attempt is None else self._attempt_file(attempt, name)}"

    def _attempt_file(self, number: int, name: str) -> str:
        return f"{sources.ATTEMPTS}/{self.numbers.get(number, f'{number:03d}')}/{name}"

    def _read(self, file: str) -> RawFile | None:
        raw = read_file(self._paths.project / file, self._paths.aiwg)
        if isinstance(raw, Problem):
            self._note(file, (raw,))
            return None
        return raw

    def _note(self, file: str, problems: Sequence[Problem]) -> None:
        self.findings += (problem.finding(file) for problem in problems)
