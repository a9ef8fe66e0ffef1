"""Tasks and attempts for the lists: `tasks/<id>/` of (1), each file by itself; joined to one record an id."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

from msgspec.structs import asdict, replace

from core.records.episodes import Attempt, Milestone, Quality, Task, TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome
from core.records.times import parse_time
from core.sources import normalize
from core.sources.actions import glimpse, no_action
from core.sources.fields import Fields, document

TRAJECTORY: Final = "trajectory.json"
METADATA: Final = "metadata.json"
ATTEMPT: Final = "attempt.json"
OUTCOME: Final = "outcome.json"
ACTIONS: Final = "actions.jsonl"
REFLECTIONS: Final = "reflections.jsonl"
SUMMARY: Final = "summary.json"
PLAN: Final = "plan.md"
ATTEMPTS: Final = "attempts"
RESULTS: Final = "results"
"""(1) storage: the files of a task and of an attempt, and the folders of attempts and of their results."""
MAX_ATTEMPTS: Final = 1_000_000
"""An attempt of this number or a higher one is a mistake in a file, and does not count."""
_NUMBERED: Final = re.compile(r"[0-9]{1,9}")

MAX_TEXT: Final = 4096
"""Longest text of a list, in characters; the files themselves keep all of it."""
MAX_ENTRIES: Final = 1000
"""Most entries of one list of an attempt; of its quality history the last ones."""
_FILE: Final = re.compile(
    r"\.aiwg/ralph/tasks/(?P<task>[^/]+)/"
    r"(?:(?P<name>metadata\.json|trajectory\.json)"
    r"|attempts/(?P<number>[0-9]{1,9})/(?P<part>attempt\.json|outcome\.json|actions\.jsonl))"
)
_STATUSES: Final = frozenset(TaskStatus)
# What an agent calls a task that it works at, that waits, and so on, beside the four words of (1).
_OTHER_STATUSES: Final = {
    "active": TaskStatus.RUNNING,
    "in_progress": TaskStatus.RUNNING,
    "waiting": TaskStatus.PAUSED,
    "success": TaskStatus.COMPLETED,
    "done": TaskStatus.COMPLETED,
    "complete": TaskStatus.COMPLETED,
    "failure": TaskStatus.FAILED,
    "timeout": TaskStatus.FAILED,
}
_RANK: Final = {OUTCOME: 0, TRAJECTORY: 1, ATTEMPT: 2, ACTIONS: 3}
"""Which file is believed where several tell of one attempt: what was written last knows best how it came out."""
_UNTOLD: Final = (None, "", (), Outcome.UNKNOWN)


def numbered(names: Iterable[str]) -> dict[int, str]:
    """The folders of attempts by number, in their order: one that counts for each number.

    Of several names of one number that of three digits, `001`, else the shortest one.
    """
    called = [(int(name), name) for name in names if _NUMBERED.fullmatch(name)]
    found: dict[int, str] = {}
    for number, name in sorted(called, key=lambda one: (one[0], one[1] != f"{one[0]:03}", len(one[1]))):
        if number < MAX_ATTEMPTS:
            found.setdefault(number, name)
    return found


def passed_over(names: Iterable[str]) -> list[str]:
    """The folders that are called like attempts, but do not count as such."""
    called = [name for name in names if _NUMBERED.fullmatch(name)]
    return sorted(set(called) - set(numbered(called).values()))


def episode_file(file: str) -> str:
    """Which file of a task or attempt a project-relative path is: a constant of this module, or "" for none."""
    place = _FILE.fullmatch(file)
    return (place["name"] or place["part"]) if place else ""


def read_episode(file: str, value: Any) -> tuple[tuple[Task, ...], tuple[Attempt, ...], tuple[Finding, ...]]:
    """The task and the attempts that one decoded document of a task's folder tells of.

    The names of the folders count, whatever the file says of its ids.

    Args:
        file: A path that `episode_file` knows; not an action log.
        value: The decoded document, of any JSON type.
    """
    findings: list[Finding] = []
    place = _FILE.fullmatch(file)
    fields = document(file, value, findings)
    if place is None or fields is None:
        return (), (), tuple(findings)
    task_id = place["task"]
    if place["name"] == METADATA:
        return (_task(fields, task_id),), (), tuple(findings)
    there = (Task(id=task_id, file=file),)
    if place["name"] == TRAJECTORY:
        return there, tuple(_of_trajectory(fields, task_id)), tuple(findings)
    number = int(place["number"])
    if number >= MAX_ATTEMPTS:
        fields.add("no-attempt", f"is of attempt {number:,}; only those below {MAX_ATTEMPTS:,} count", fields.pointer)
        return there, (), tuple(findings)
    read = _of_attempt if place["part"] == ATTEMPT else _of_outcome
    return there, (read(fields, task_id, number),), tuple(findings)


def _task(fields: Fields, task_id: str) -> Task:
    word = normalize.word(fields.text("status"))
    known = TaskStatus(word) if word in _STATUSES else _OTHER_STATUSES.get(word, TaskStatus.UNKNOWN)
    return Task(
        id=task_id,
        description=_text(fields, "description", *normalize.TASK),
        criteria=_text(fields, "completion_criteria", "completionCriteria", "criteria"),
        created_at=fields.time("created", "created_at"),
        updated_at=fields.time("updated", "updated_at"),
        completed_at=fields.time("completed", "completed_at"),
        status=known,
        raw_status=_text(fields, "status"),
        current_attempt=fields.count("current_attempt"),
        total_attempts=fields.count("total_attempts"),
        tags=fields.texts("tags")[:MAX_ENTRIES],
        related=fields.texts("related_tasks")[:MAX_ENTRIES],
        agent=_text(fields, "agent"),
        loop_id=_text(fields, "loop_id", "loopId"),
        file=fields.file,
    )


def _of_trajectory(fields: Fields, task_id: str) -> Iterator[Attempt]:
    entries = fields.mapping.get("attempts")
    taken = {
        normalize.count(entry.get("attempt_id"))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    }
    for key, entry in fields.objects("attempts"):
        number = normalize.count(normalize.first(entry.mapping, ("attempt_id", "attempt", "id")))
        if number is None:
            number = int(key) + 1 if key.isdecimal() else 1
            while number in taken:
                number += 1
            taken.add(number)
            entry.add("missing-id", f"an attempt without attempt_id; shown as attempt {number}", entry.pointer)
        if number >= MAX_ATTEMPTS:
            entry.add("no-attempt", f"attempt {number:,}; only those below {MAX_ATTEMPTS:,} count", entry.pointer)
            continue
        yield Attempt(
            task_id=task_id,
            number=number,
            started_at=entry.time("started", *normalize.STARTED),
            ended_at=entry.time("ended", *normalize.ENDED),
            outcome=normalize.outcome(entry.text("outcome", "status")),
            plan=_text(entry, "plan"),
            agent=_text(entry, "agent"),
            iterations=entry.count("iterations"),
            actions=entry.count("actions"),
            errors=entry.count("errors"),
            final_quality=entry.rate("final_quality"),
            completion=completion(entry),
            file=fields.file,
        )


def _of_attempt(fields: Fields, task_id: str, number: int) -> Attempt:
    empty = Fields(fields.file, {}, fields.findings)
    plan = fields.mapping.get("plan")
    approach = plan[:MAX_TEXT] if isinstance(plan, str) else _text(fields.inside("plan") or empty, "approach")
    execution = fields.inside("execution") or empty
    result = fields.inside("outcome") if isinstance(fields.mapping.get("outcome"), dict) else None
    # In (1) the lists stand beside the outcome, in trees often inside it.
    told = _of_outcome(result or empty, task_id, number)
    beside = _of_outcome(fields, task_id, number)
    return Attempt(
        task_id=task_id,
        number=number,
        started_at=fields.time("started", *normalize.STARTED),
        ended_at=fields.time("ended", *normalize.ENDED),
        outcome=told.outcome if result else normalize.outcome(fields.mapping.get("outcome")),
        plan=approach,
        agent=_text(execution, "agent") or _text(fields, "agent"),
        iterations=execution.count("iterations"),
        actions=execution.count("actions_performed"),
        quality=tuple(_history(execution)),
        final_quality=told.final_quality,
        completion=told.completion,
        reason=told.reason,
        worked=told.worked or beside.worked,
        failed=told.failed or beside.failed,
        suggestions=told.suggestions or beside.suggestions,
        file=fields.file,
    )


def _history(execution: Fields) -> Iterator[Quality]:
    before: float | None = None
    # How an attempt ends counts more than how it began.
    for _, entry in deque(execution.objects("quality_history"), MAX_ENTRIES):
        quality = entry.rate("quality")
        if quality is not None:
            delta = None if before is None else entry.number("delta")
            if delta is None and before is not None:
                delta = round(quality - before, 6)
            yield Quality(entry.count("iteration"), quality, delta)
            before = quality


def _of_outcome(fields: Fields, task_id: str, number: int) -> Attempt:
    return Attempt(
        task_id=task_id,
        number=number,
        outcome=normalize.outcome(fields.mapping.get("status")),
        reason=_text(fields, "reason"),
        final_quality=fields.rate("final_quality"),
        completion=completion(fields),
        worked=_texts(fields, "what_worked"),
        failed=_texts(fields, "what_didnt_work"),
        suggestions=_texts(fields, "suggestions_for_next_time"),
        file=fields.file,
    )


def completion(fields: Fields) -> float | None:
    """(1) `completion_percent` as 0..1; None if there is none."""
    percent = fields.number("completion_percent")
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None


def _text(fields: Fields, *names: str) -> str:
    return fields.text(*names)[:MAX_TEXT]


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(text[:MAX_TEXT] for text in fields.texts(name)[:MAX_ENTRIES])


def read_milestones(fields: Fields) -> tuple[Milestone, ...]:
    """The milestones that a trajectory tells, those of the whole task first.

    (1) has them in each attempt, trees in the wild beside the attempts.
    """
    found = list(_milestones(fields, None))
    for _, entry in fields.objects("attempts"):
        found += _milestones(entry, entry.count("attempt_id", "attempt", "id"))
    return tuple(found[:MAX_ENTRIES])


def _milestones(fields: Fields, attempt: int | None) -> Iterator[Milestone]:
    for _, entry in fields.objects("milestones"):
        yield Milestone(
            at=entry.time("timestamp"),
            event=_text(entry, "event"),
            details=_text(entry, "details"),
            attempt=attempt,
        )


def join_tasks(tasks: Iterable[Task]) -> dict[str, Task]:
    """By id; what the metadata say counts, other files only show that there is such a task."""
    joined: dict[str, Task] = {}
    for task in tasks:
        if task.id not in joined or task.file.endswith(METADATA):
            joined[task.id] = task
    return joined


def join_attempts(attempts: Iterable[Attempt]) -> dict[str, Attempt]:
    """By id: field by field what the file says that is believed most; of two entries of one file the last one."""
    told: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        told.setdefault(attempt.id, []).append(attempt)
    return {id: _joined(parts) for id, parts in told.items()}


def _joined(parts: list[Attempt]) -> Attempt:
    if len(parts) == 1:
        return parts[0]
    folders = [place["number"] if (place := _FILE.fullmatch(part.file)) else None for part in parts]
    if len(names := {name for name in folders if name is not None}) > 1:
        counts = numbered(names)[parts[0].number]
        parts = [part for part, name in zip(parts, folders, strict=True) if name in (None, counts)]
    by_file = {part.file: part for part in parts}
    kept, *others = sorted(by_file.values(), key=lambda part: _RANK.get(part.file.rpartition("/")[2], len(_RANK)))
    found = {name: value for name, value in asdict(kept).items() if value not in _UNTOLD}
    for other in others:
        for name, value in asdict(other).items():
            if value not in _UNTOLD:
                found.setdefault(name, value)
    logged = next((part for part in others if part.file.endswith(ACTIONS)), None)
    if logged is not None:  # the log itself knows best what stands in it
        found |= {"actions": logged.actions, "errors": logged.errors}
    return replace(kept, **found)


class ActionTally:
    """An `actions.jsonl` as read so far: counts only; reads on where it stopped while the file only grows."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._forget()

    def _forget(self) -> None:
        self._actions = self._errors = self._lines = self._unread = 0
        self._first_unread = 0
        self._last: Any = None
        self._end = 0
        self._checked = 0

    def read(self, data: bytes) -> tuple[Attempt | None, tuple[Finding, ...]]:
        """The attempt with its counts, of the complete lines of `data`; None if the path names no attempt."""
        if crc32(memoryview(data)[: self._end]) != self._checked:
            self._forget()  # not only appended to
        end = data.rfind(b"\n") + 1
        for line in data[self._end : end].split(b"\n")[:-1]:
            self._lines += 1
            if line.strip():
                self._take(line)
        self._checked = crc32(memoryview(data)[self._end : end], self._checked)
        self._end = end
        place = _FILE.fullmatch(self._file)
        if place is None or int(place["number"]) >= MAX_ATTEMPTS:
            return None, ()
        tally = Attempt(
            task_id=place["task"],
            number=int(place["number"]),
            actions=self._actions,
            errors=self._errors,
            last_action_at=parse_time(self._last),
            file=self._file,
        )
        return tally, tuple(self._findings())

    def _take(self, line: bytes) -> None:
        found = glimpse(line)
        if found is None:
            self._unread += 1
            self._first_unread = self._first_unread or self._lines
            return
        self._actions += 1
        self._errors += found.went_wrong
        self._last = found.timestamp if found.timestamp is not None else self._last

    def _findings(self) -> Iterator[Finding]:
        if self._unread:
            yield no_action(self._file, self._first_unread, self._unread)
