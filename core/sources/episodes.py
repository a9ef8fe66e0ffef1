"""Read tasks and attempts, action logs on demand; docs/file-formats.md#tasks."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec
from msgspec.structs import replace

from core.base.steps import group_pairs
from core.files.file_reader import MAX_BYTES, MAX_PATTERN_BYTES, Problem, decode_json, open_file
from core.records.episodes import Action, Attempt, Milestone, Quality, Task
from core.records.findings import Finding, Severity
from core.records.times import parse_time
from core.sources import normalize
from core.sources.normalize import Fields, document, fill_gaps

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

TRAJECTORY: Final = "trajectory.json"
METADATA: Final = "metadata.json"
ATTEMPT: Final = "attempt.json"
OUTCOME: Final = "outcome.json"
ACTIONS: Final = "actions.jsonl"
REFLECTIONS: Final = "reflections.jsonl"
SUMMARY: Final = "summary.json"
PLAN: Final = "plan.md"
ATTEMPTS: Final = "attempts"
RESULTS: Final = "results"  # File and folder names of tasks and attempts.
MAX_ATTEMPTS: Final = 1_000_000  # Attempts with this number or a higher one are skipped as mistakes in a file.
MAX_TEXT: Final = 4096  # Maximum length of a text in memory, in characters; the files are never changed.
MAX_ENTRIES: Final = 1000  # Maximum entries of one list of an attempt; the quality history keeps the last ones.

_NUMBERED: Final = re.compile(r"[0-9]{1,9}")
_PRECEDENCE: Final = {OUTCOME: 0, TRAJECTORY: 1, ATTEMPT: 2, ACTIONS: 3}
"""Rank of the files of an attempt, best first: the file that is written last."""


def select_attempt_folders(names: Iterable[str]) -> dict[int, str]:
    """Return the folder of each attempt by number, in ascending order.

    If several folders have the same number, the name with three digits (`001`) is used, otherwise the shortest.
    """
    found: dict[int, str] = {}
    numbered = [(int(name), name) for name in names if _NUMBERED.fullmatch(name)]
    for number, name in sorted(numbered, key=lambda one: (one[0], one[1] != f"{one[0]:03}", len(one[1]))):
        if number < MAX_ATTEMPTS:
            found.setdefault(number, name)
    return found


def skipped_attempt_folders(names: Iterable[str], selected: Mapping[int, str]) -> list[str]:
    """Return the attempt folders that `select_attempt_folders` left out."""
    return sorted(filter(_NUMBERED.fullmatch, set(names).difference(selected.values())))


def parse_tasks(file: str, value: Any) -> tuple[tuple[Task, ...], tuple[Finding, ...]]:
    """Read a task from one decoded document; its ID is the name of its folder.

    Only `metadata.json` has details; any other file only shows that the task exists.
    """
    findings: list[Finding] = []
    if not file.endswith(f"/{METADATA}"):
        return ((Task(id=_task_id(file), file=file),) if isinstance(value, dict) else ()), ()
    fields = document(file, value, findings)
    return ((_task(fields, _task_id(file)),) if fields is not None else ()), tuple(findings)


def parse_attempts(file: str, value: Any) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """Read the attempts of a `trajectory.json`, `attempt.json` or `outcome.json`.

    The task ID is the name of the task's folder. The attempt number is that of the attempt's folder, if there is one,
    otherwise that of the entry.
    """
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    number = attempt_number(file)
    if number is None:
        return tuple(_trajectory_attempts(fields, _task_id(file))), tuple(findings)
    if number >= MAX_ATTEMPTS:
        fields.add("no-attempt", f"attempt number {number:,} is not below {MAX_ATTEMPTS:,}; skipped", fields.pointer)
        return (), tuple(findings)
    read = _attempt if file.endswith(f"/{ATTEMPT}") else _attempt_outcome
    return (read(fields, _task_id(file), number),), tuple(findings)


def attempt_number(file: str) -> int | None:
    """Return the number of the attempt whose folder contains a file, or None."""
    parts = file.split("/")
    return int(parts[5]) if len(parts) == 7 and _NUMBERED.fullmatch(parts[5]) else None


def _task_id(file: str) -> str:
    return file.split("/", 4)[3]


def _task(fields: Fields, task_id: str) -> Task:
    return fields.convert(
        Task,
        MAX_TEXT,
        id=task_id,
        description=_text(fields, "description", *normalize.TASK),
        criteria=_text(fields, "completion_criteria", "completionCriteria", "criteria"),
        created_at=fields.time("created", "created_at"),
        updated_at=fields.time("updated", "updated_at"),
        completed_at=fields.time("completed", "completed_at"),
        status=normalize.task_status(fields.text("status")),
        raw_status=_text(fields, "status"),
        tags=fields.texts("tags")[:MAX_ENTRIES],
        related=fields.texts("related_tasks")[:MAX_ENTRIES],
        loop_id=_text(fields, "loop_id", "loopId"),
        file=fields.file,
    )


def _trajectory_attempts(fields: Fields, task_id: str) -> Iterator[Attempt]:
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
            entry.add("missing-id", f"the attempt has no attempt_id; it is shown as attempt {number}", entry.pointer)
        if number >= MAX_ATTEMPTS:
            entry.add("no-attempt", f"attempt number {number:,} is not below {MAX_ATTEMPTS:,}; skipped", entry.pointer)
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
            completion=read_completion(entry),
            file=fields.file,
        )


def _attempt(fields: Fields, task_id: str, number: int) -> Attempt:
    empty = Fields(fields.file, {}, fields.findings)
    plan = fields.mapping.get("plan")
    execution = fields.inside("execution") or empty
    result = fields.inside("outcome") if isinstance(fields.mapping.get("outcome"), dict) else None
    # The format has these lists next to `outcome`, but many agents write them inside it.
    inner = _attempt_outcome(result or empty, task_id, number)
    outer = _attempt_outcome(fields, task_id, number)
    return replace(
        inner,
        started_at=fields.time("started", *normalize.STARTED),
        ended_at=fields.time("ended", *normalize.ENDED),
        outcome=inner.outcome if result else normalize.outcome(fields.mapping.get("outcome")),
        plan=plan[:MAX_TEXT] if isinstance(plan, str) else _text(fields.inside("plan") or empty, "approach"),
        agent=_text(execution, "agent") or _text(fields, "agent"),
        iterations=execution.count("iterations"),
        actions=execution.count("actions_performed"),
        quality=tuple(_quality_history(execution)),
        worked=inner.worked or outer.worked,
        failed=inner.failed or outer.failed,
        suggestions=inner.suggestions or outer.suggestions,
        loop_id=_text(fields, "loop_id", "loopId"),
    )


def _quality_history(execution: Fields) -> Iterator[Quality]:
    before: float | None = None
    for _, entry in deque(execution.objects("quality_history"), MAX_ENTRIES):
        quality = entry.rate("quality")
        if quality is not None:
            delta = entry.number("delta")
            if before is None:
                delta = delta or None  # programs write 0 for an entry without a previous one
            elif delta is None:
                delta = round(quality - before, 6)
            yield Quality(entry.count("iteration"), quality, delta)
            before = quality


def _attempt_outcome(fields: Fields, task_id: str, number: int) -> Attempt:
    return Attempt(
        task_id=task_id,
        number=number,
        outcome=normalize.outcome(fields.mapping.get("status")),
        reason=_text(fields, "reason"),
        final_quality=fields.rate("final_quality"),
        completion=read_completion(fields),
        worked=_texts(fields, "what_worked"),
        failed=_texts(fields, "what_didnt_work"),
        suggestions=_texts(fields, "suggestions_for_next_time"),
        file=fields.file,
    )


def read_completion(fields: Fields) -> float | None:
    """Read `completion_percent` as 0..1; None if it is missing or out of range."""
    percent = fields.number("completion_percent")
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None


def _text(fields: Fields, *names: str) -> str:
    return fields.text(*names)[:MAX_TEXT]


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(text[:MAX_TEXT] for text in fields.texts(name)[:MAX_ENTRIES])


def read_milestones(fields: Fields) -> tuple[Milestone, ...]:
    """Read the milestones of the task, then those of its attempts."""
    found = list(_milestones(fields, None))
    for _, entry in fields.objects("attempts"):
        found += _milestones(entry, entry.count("attempt_id", "attempt", "id"))
    return tuple(found[:MAX_ENTRIES])


def _milestones(fields: Fields, attempt: int | None) -> Iterator[Milestone]:
    for _, entry in fields.objects("milestones"):
        yield Milestone(
            at=entry.time("timestamp"), event=_text(entry, "event"), details=_text(entry, "details"), attempt=attempt
        )


def join_tasks(tasks: Iterable[Task]) -> dict[str, Task]:
    """Join tasks by ID; values from `metadata.json` take precedence."""
    joined: dict[str, Task] = {}
    for task in tasks:
        if task.id not in joined or task.file.endswith(METADATA):
            joined[task.id] = task
    return joined


def join_attempts(attempts: Iterable[Attempt]) -> dict[str, Attempt]:
    """Join attempts by ID, field by field in the order of `_PRECEDENCE`.

    If a file has several entries for an attempt, the last one is used.
    """
    parts = group_pairs((attempt.id, attempt) for attempt in attempts)
    return {id: _join_parts(same) for id, same in parts.items()}


def _join_parts(parts: list[Attempt]) -> Attempt:
    if len(parts) == 1:
        return parts[0]
    folders = [part.file.split("/")[5] if attempt_number(part.file) is not None else None for part in parts]
    if len(names := {name for name in folders if name is not None}) > 1:
        selected = select_attempt_folders(names)[parts[0].number]
        parts = [part for part, name in zip(parts, folders, strict=True) if name in (None, selected)]
    by_file = {part.file: part for part in parts}
    first, *others = sorted(
        by_file.values(), key=lambda part: _PRECEDENCE.get(part.file.rpartition("/")[2], len(_PRECEDENCE))
    )
    merged = fill_gaps(first, *others)
    log = next((part for part in others if part.file.endswith(ACTIONS)), None)
    # The action log has the exact counts.
    return merged if log is None else replace(merged, actions=log.actions, errors=log.errors)


def count_actions(file: str, data: bytes) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """Count an attempt's actions in `actions.jsonl`; none outside attempt folders."""
    number = attempt_number(file)
    if number is None or number >= MAX_ATTEMPTS:
        return (), ()
    actions = errors = invalid = first_invalid = 0
    last_time: Any = None
    for place, line in enumerate(data.split(b"\n")[:-1], start=1):
        if not line.strip():
            continue
        summary = summarize_action(line)
        if summary is None:
            invalid += 1
            first_invalid = first_invalid or place
            continue
        actions += 1
        errors += summary.has_failed
        last_time = summary.timestamp if summary.timestamp is not None else last_time
    attempt = Attempt(
        task_id=_task_id(file),
        number=number,
        actions=actions,
        errors=errors,
        last_action_at=parse_time(last_time),
        file=file,
    )
    return (attempt,), (invalid_action_finding(file, first_invalid, invalid),) if invalid else ()


MAX_ACTION_TEXT: Final = 1 << 16  # Maximum length of a text in memory, in characters; the file is never changed.
MAX_PARAMS: Final = 100  # Maximum parameters read from one action.
MAX_ACTIONS: Final = 1_000_000  # Maximum actions read from one log; the rest is ignored.
MAX_FINDINGS: Final = 200  # Maximum findings on the lines of one log.
_CHUNK: Final = 1 << 20  # Size of one read while finding lines, in bytes.
LEADING_BYTES: Final = b" \t\r\xef\xbb\xbf"
"""Bytes before the first character of a line: white space and a byte order mark."""


class ActionSummary(msgspec.Struct, gc=False):
    """The fields of an action that lists and counts use."""

    timestamp: str | int | float | None = None
    success: bool | None = None
    error: Any = None

    @property
    def has_failed(self) -> bool:
        return self.success is False or (self.success is None and bool(self.error))


_decoder: Final = msgspec.json.Decoder(ActionSummary)


def summarize_action(line: bytes) -> ActionSummary | None:
    """Decode only the fields that lists need; None if the line is not an object."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
        if not isinstance(value, dict):
            return None
        return ActionSummary(value.get("timestamp"), normalize.flag(value.get("success")), value.get("error"))


def invalid_action_finding(file: str, line: int, count: int) -> Finding:
    """Return one finding for `count` invalid lines, of which `line` is the first."""
    more = f", and {count - 1:,} more lines like it" if count > 1 else ""
    message = f"is not an action (a JSON object){more}; skipped"
    return Finding(file, f"line {line}", Severity.WARNING, "wrong-type", message)


def read_action(number: int, fields: Fields) -> Action:
    """Read the action of one decoded line; long texts are truncated."""
    params = fields.mapping.get("params")
    if params is not None and not isinstance(params, dict):
        params = {"params": params}
    error = fields.mapping.get("error")
    return Action(
        number=number,
        at=fields.time("timestamp", "at"),
        iteration=fields.count("iteration"),
        type=to_text(fields.mapping.get("type")),
        tool=to_text(fields.mapping.get("tool")),
        params=tuple(
            (str(name)[:MAX_ACTION_TEXT], to_text(value)) for name, value in list((params or {}).items())[:MAX_PARAMS]
        ),
        success=fields.flag("success"),
        output=to_text(fields.mapping.get("output")),
        error=to_text(error) if error else "",
        reasoning=to_text(fields.mapping.get("reasoning")),
        expected=to_text(fields.mapping.get("expected_outcome")),
    )


def to_text(value: Any, limit: int = MAX_ACTION_TEXT) -> str:
    """Return a text, None as "" and any other value as JSON; truncated."""
    if isinstance(value, str):
        return value[:limit]
    return "" if value is None else msgspec.json.encode(value).decode()[:limit]


class Actions(Sequence[Action]):
    """The actions of one log, in the order of the file. Bad files never raise.

    Only the offsets of lines are held in memory. Each line that starts with `{` counts as an action. If it cannot be
    decoded, it gives a finding and an action with only a number. An incomplete last line is ignored.
    """

    def __init__(self, paths: ProjectPaths, file: str) -> None:
        """Find the lines of the project-relative `file`; a missing file has none."""
        self._paths: Final = paths
        self.file: Final = file
        self._lines = _Lines()
        self._problems: dict[str, Finding] = {}
        self._errors: Sequence[int] | None = None
        with self._opened() as descriptor:
            if descriptor is not None:
                self._lines.read(descriptor)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings for the file and for the lines decoded so far."""
        return *self._lines.findings(self.file), *self._problems.values()

    @property
    def errors(self) -> Sequence[int]:
        """Ascending positions (from 0) of failed actions; decodes every line once."""
        if self._errors is None:
            found, start = array("Q"), 0
            starts, ends = self._lines.starts, self._lines.ends
            while start < len(self):
                end = max(bisect_left(ends, starts[start] + _CHUNK), start + 1)
                summaries = enumerate(self._summarize(start, end), start)
                found.extend(place for place, one in summaries if one is not None and one.has_failed)
                start = end
            self._errors = found
        return self._errors

    def _summarize(self, start: int, end: int) -> Sequence[ActionSummary | None]:
        """Decode what lists need of some actions, at once if all lines are valid."""
        first, last = self._lines.starts[start], self._lines.ends[end - 1]
        if last - first <= MAX_BYTES:
            with self._opened() as descriptor, suppress(msgspec.MsgspecError, ValueError, RecursionError):
                lines = os.pread(descriptor, last - first, first) if descriptor is not None else b""
                if len(summaries := _decoder.decode_lines(lines)) == end - start:
                    return summaries
        return [summarize_action(line) for line in self._raw(range(start, end))]

    def find_newest(self, most: int, size: int) -> int:
        """Return where the newest actions begin: at most `most`, of at most `size` bytes."""
        ends = self._lines.ends
        by_size = bisect_left(self._lines.starts, ends[-1] - size) if ends else 0
        return max(len(self) - most, by_size, 0)

    def __len__(self) -> int:
        return len(self._lines.starts)

    @overload
    def __getitem__(self, place: int) -> Action: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Action, ...]: ...
    def __getitem__(self, place: int | slice) -> Action | tuple[Action, ...]:
        wanted = range(len(self))[place]
        if isinstance(wanted, int):
            return next(self._decoded(range(wanted, wanted + 1)))
        return tuple(self._decoded(wanted))

    def __iter__(self) -> Iterator[Action]:
        return self._decoded(range(len(self)))

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        opened = open_file(self._paths.project / self.file, self._paths.aiwg)
        if isinstance(opened, Problem):
            self._note("", opened)
        if not isinstance(opened, int):
            yield None
            return
        try:
            yield opened
        finally:
            os.close(opened)

    def _raw(self, places: Iterable[int]) -> Iterator[bytes]:
        """Read the bytes of some lines; b"" for a line that is too long or unreadable."""
        starts, ends = self._lines.starts, self._lines.ends
        with self._opened() as descriptor:
            for place in places:
                length = ends[place] - starts[place]
                if descriptor is None or length > MAX_BYTES:
                    yield b""
                else:
                    yield os.pread(descriptor, length, starts[place])

    def _decoded(self, places: Sequence[int]) -> Iterator[Action]:
        return map(self._action, places, self._raw(places))

    def _action(self, place: int, line: bytes) -> Action:
        pointer = f"line {self._lines.numbers[place]}"
        if not line:
            self._note(pointer, Problem("too-large", f"is missing or longer than {MAX_BYTES:,} bytes; skipped"))
            return Action(number=place + 1)
        decoded = decode_json(line)
        for problem in decoded.problems:
            self._note(pointer, problem)
        if not isinstance(decoded.value, dict):
            return Action(number=place + 1)
        wrong: list[Finding] = []
        action = read_action(place + 1, Fields(self.file, decoded.value, wrong, pointer))
        for finding in wrong:
            self._problems.setdefault(finding.pointer, finding)
        return action

    def _note(self, pointer: str, problem: Problem) -> None:
        if len(self._problems) < MAX_FINDINGS:
            self._problems.setdefault(pointer, replace(problem, place=pointer).finding(self.file))


class _Lines:
    """Offsets (in bytes) and numbers (from 1) of the lines that start with `{`."""

    def __init__(self) -> None:
        self.starts, self.ends, self.numbers = array("Q"), array("Q"), array("Q")
        self._end = self._read = 0  # bytes and lines that were scanned
        self._skipped = self._first_skipped = 0
        self._cut = False

    def read(self, descriptor: int) -> None:
        """Find the lines of the file open at `descriptor`."""
        size = os.fstat(descriptor).st_size
        end = min(size, MAX_PATTERN_BYTES)
        position = 0
        start = b""  # first character of the current line
        while position < end and len(self.starts) < MAX_ACTIONS:
            chunk = os.pread(descriptor, min(_CHUNK, end - position), position)
            if not chunk:
                break
            *pieces, rest = chunk.split(b"\n")
            for piece in pieces:
                position += len(piece) + 1
                self._add(start or piece.lstrip(LEADING_BYTES)[:1], position)
                start = b""
            start = start or rest.lstrip(LEADING_BYTES)[:1]
            position += len(rest)
        self._cut = size > MAX_PATTERN_BYTES or len(self.starts) >= MAX_ACTIONS

    def _add(self, start: bytes, end: int) -> None:
        self._read += 1
        if start == b"{":
            self.starts.append(self._end)
            self.ends.append(end - 1)
            self.numbers.append(self._read)
        elif start:
            self._skipped += 1
            self._first_skipped = self._first_skipped or self._read
        self._end = end

    def findings(self, file: str) -> Iterator[Finding]:
        """Findings for a log that is too long, and for lines that are not actions."""
        if self._cut:
            message = f"is too long; lines after line {self._read:,} are ignored"
            yield Finding(file, "", Severity.WARNING, "too-large", message)
        if self._skipped:
            yield invalid_action_finding(file, self._first_skipped, self._skipped)
