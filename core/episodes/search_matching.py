"""Where the words of a query occur in the episodic memory; decodes only what may have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from core.base.errors import RalphdeckError
from core.config.paths import ProjectPaths
from core.episodes.history import MAX_RESULTS, read_attempts
from core.episodes.search_words import SearchWords
from core.episodes.task_lookup import entries_of, find_attempt
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.findings import Finding
from core.records.times import parse_time
from core.sources import normalize
from core.sources.actions import LEADING_BYTES, MAX_TEXT, ActionSummary, to_text
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.episodes import (
    ACTIONS,
    ATTEMPT,
    ATTEMPTS,
    METADATA,
    OUTCOME,
    PLAN,
    REFLECTIONS,
    RESULTS,
    SUMMARY,
    TRAJECTORY,
    parse_attempts,
    parse_tasks,
    read_milestones,
    select_attempt_folders,
)
from core.sources.events import EventLog
from core.sources.fields import Fields
from core.sources.record_kinds import DEBUG_SESSIONS
from core.sources.reflections import read_reflections
from core.sources.sweep import scan_path
from core.storage.decoded import MAX_DEPTH, Problem
from core.storage.file_reader import MAX_BYTES, MAX_PATTERN_BYTES, RawFile, decode, read_file
from core.storage.json_reader import decode_json, decode_jsonl

_ACTION_TEXTS: Final = ("type", "tool", "params", "error", "output", "reasoning", "expected_outcome")
_ENDED: Final = ("ended", "timestamp", "at")
"""Where a result tells its time; the time of its file is that of the last copy."""
_KEPT_OWNERS: Final = 1024


class SearchPlace(StrEnum):
    """What is looked through."""

    TASKS = "tasks"
    ACTIONS = "actions"
    REFLECTIONS = "reflections"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where the words were found; every text is untrusted.

    Attributes:
        place: A failed action is an error if errors are looked for.
        task_id, attempt: "" and None where none is named.
        action: The number of the action in its log, from 1.
        subject: The loop that the error log names, or the debug session; "" elsewhere.
        agent: Of the debug session; those of tasks and attempts stand with them.
        text: Everything that was searched, a line a field.
    """

    place: SearchPlace
    file: str
    pointer: str = ""
    task_id: str = ""
    attempt: int | None = None
    action: int | None = None
    subject: str = ""
    at: datetime | None = None
    agent: str = ""
    text: str = field(repr=False)


class Owner(NamedTuple):
    """The task that a hit belongs to, and the attempts at it by number."""

    task: Task
    attempts: Mapping[int, Attempt]


class MemorySearcher:
    """One walk through the files of a project.

    Args:
        places: What is looked through.
        statuses: Only tasks in one of these are looked into; none: all of them.
        task_id: Only this task is looked into; "": all of them.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        words: SearchWords,
        places: Iterable[SearchPlace],
        statuses: frozenset[TaskStatus] = frozenset(),
        task_id: str = "",
    ) -> None:
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._words: Final = words
        self._places: Final = frozenset(places)
        self._statuses: Final = statuses
        self._only: Final = task_id
        self._logs: Final = bool(self._places & {SearchPlace.ACTIONS, SearchPlace.ERRORS})
        self._tasks: Final = paths.relative(paths.tasks)
        self._root: Final = paths.aiwg
        self.owner: Final = lru_cache(_KEPT_OWNERS)(self._owner)

    def hits(self) -> Iterator[Hit]:
        """Every record with all words, in no particular order."""
        entries = () if self._only else entries_of(self._paths.tasks)
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        for name in (self._only,) if self._only else names:
            # One document tells the status: all others of a task that is not wanted stay closed.
            if not self._statuses or self._status(name) in self._statuses:
                yield from self._task(name)
        if SearchPlace.ERRORS in self._places:
            yield from self._error_log()
            # A session often lies in several files; the copy that counts is found, once.
            sessions = join_sessions(session for file in self._debug_files() for session in self._sessions(file))
            for session in sessions.values():
                yield from self._failures(session)

    def _owner(self, task_id: str) -> Owner:
        return Owner(*read_attempts(self._paths, task_id)) if task_id else Owner(Task(id=""), {})

    def _status(self, task_id: str) -> TaskStatus:
        file = f"{self._tasks}/{task_id}/{METADATA}"
        told, _ = parse_tasks(file, self._object(file))
        return told[0].status if told else TaskStatus.UNKNOWN

    def _task(self, task_id: str) -> Iterator[Hit]:
        folder = f"{self._tasks}/{task_id}"
        found = False
        if SearchPlace.REFLECTIONS in self._places:
            for hit in self._reflections(f"{folder}/{REFLECTIONS}", task_id):
                found = True
                yield hit
        in_tasks = SearchPlace.TASKS in self._places
        entries = entries_of(self._paths.project / folder / ATTEMPTS) if self._logs or in_tasks else ()
        numbers = select_attempt_folders(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        for number, name in numbers.items() if self._logs else ():
            yield from self._actions(f"{folder}/{ATTEMPTS}/{name}/{ACTIONS}", task_id, number)
        for hit in self._documents(folder, task_id, numbers) if in_tasks else ():
            found = True
            yield hit
        # A summary repeats the other files: it is told of only for what it alone has.
        if in_tasks and not found:
            yield from self._summary(f"{folder}/{SUMMARY}", task_id)

    def _documents(self, folder: str, task_id: str, numbers: Mapping[int, str]) -> Iterator[Hit]:
        """What the task, the attempts at it, their results, and the milestones say."""
        yield from self._metadata(f"{folder}/{METADATA}", task_id)
        told = set()
        for number, name in numbers.items():
            inside = f"{folder}/{ATTEMPTS}/{name}"
            for hit in self._attempt(inside, task_id, number):
                told.add(number)
                yield hit
            yield from self._results(f"{inside}/{RESULTS}", task_id, number)
        trajectory = f"{folder}/{TRAJECTORY}"
        value = self._object(trajectory, self._words.may_be_in)
        for one in parse_attempts(trajectory, value)[0] if value else ():
            # The files of an attempt often say the same in the same words.
            if one.number not in told and (text := self._matched(_attempt_texts((one,)))):
                told.add(one.number)
                yield self._of_attempt(one, trajectory, text)
        yield from self._milestones(trajectory, value, task_id)

    def _metadata(self, file: str, task_id: str) -> Iterator[Hit]:
        value = self._object(file, lambda data: self._words.may_be_in(data + task_id.encode("utf-8", "replace")))
        for task in parse_tasks(file, value)[0] if value else ():
            texts = (task.description, task.criteria, *task.tags, *task.related, task.agent, task.loop_id, task_id)
            if text := self._matched(texts):
                at = task.updated_at or task.created_at
                yield Hit(place=SearchPlace.TASKS, file=file, task_id=task_id, at=at, text=text)

    def _attempt(self, inside: str, task_id: str, number: int) -> Iterator[Hit]:
        """An attempt as its own files tell it: one record, in whichever of them each word stands."""
        files = [f"{inside}/{name}" for name in (ATTEMPT, OUTCOME, PLAN)]
        raws = {file: raw for file in files if (raw := self._read(file)) is not None}
        name = f"{task_id}.{number}"
        together = b"\n".join((*(raw.data for raw in raws.values()), name.encode("utf-8", "replace")))
        if not raws or not self._words.may_be_in(together):
            return
        parts: list[Attempt] = []
        steps: list[str] = []
        for file in raws.keys() - {f"{inside}/{PLAN}"}:
            value = self._decoded(file, raws[file].data)
            parts += parse_attempts(file, value)[0] if isinstance(value, dict) else ()
            steps += _texts_in(value["plan"]) if isinstance(value, dict) and "plan" in value else ()
        plan = raws.get(f"{inside}/{PLAN}")
        parts.sort(key=lambda part: part.file)
        written = plan.data.decode("utf-8", "replace")[:MAX_TEXT] if plan else ""
        if text := self._matched((*_attempt_texts(parts), *steps, written, name)):
            one = parts[0] if parts else Attempt(task_id=task_id, number=number)
            yield self._of_attempt(one, next(iter(raws)), text)

    def _of_attempt(self, one: Attempt, file: str, text: str) -> Hit:
        at = one.ended_at or one.started_at
        if at is None and (known := self.owner(one.task_id).attempts.get(one.number)):
            at = known.ended_at or known.started_at
        return Hit(place=SearchPlace.TASKS, file=file, task_id=one.task_id, attempt=one.number, at=at, text=text)

    def _results(self, top: str, task_id: str, number: int) -> Iterator[Hit]:
        """What the iterations of an attempt brought, a file each: its name and what it says."""
        for name in self._names_below(top):
            raw = self._read(f"{top}/{name}")
            if raw is None or not self._words.may_be_in(raw.data + name.encode("utf-8", "replace")):
                continue
            value = decode_json(raw.data).value if name.endswith(".json") else None
            told = _texts_in(value) if value is not None else [raw.data.decode("utf-8", "replace")]
            if text := self._matched((name, *told)):
                own = [parse_time(value.get(key)) for key in _ENDED] if isinstance(value, dict) else []
                known = self.owner(task_id).attempts.get(number)
                own += (known.ended_at, known.started_at) if known else ()
                yield Hit(
                    place=SearchPlace.TASKS,
                    file=f"{top}/{name}",
                    task_id=task_id,
                    attempt=number,
                    at=next(filter(None, own), None),
                    text=text,
                )

    def _names_below(self, top: str) -> Iterator[str]:
        """Files in a folder and in those inside it."""
        if not os.path.isdir(name := f"{self._paths.project}/{top}"):  # noqa: PTH112 (most attempts have none)
            return
        folder = Path(name)
        for entry in islice(entries_of(folder), MAX_RESULTS):
            if entry.is_dir(follow_symlinks=False):
                for inner in islice(entries_of(folder / entry.name), MAX_RESULTS):
                    if inner.is_file(follow_symlinks=False):
                        yield f"{entry.name}/{inner.name}"
            elif entry.is_file(follow_symlinks=False):
                yield entry.name

    def _summary(self, file: str, task_id: str) -> Iterator[Hit]:
        if text := self._matched(_texts_in(self._object(file, self._words.may_be_in))):
            task = self.owner(task_id).task
            at = task.updated_at or task.created_at
            yield Hit(place=SearchPlace.TASKS, file=file, task_id=task_id, at=at, text=text)

    def _object(self, file: str, wanted: Callable[[bytes], bool] | None = None) -> dict[str, Any]:
        """A JSON object; an empty one where there is none, or its bytes are not wanted."""
        raw = self._read(file)
        value = self._decoded(file, raw.data) if raw and (wanted is None or wanted(raw.data)) else None
        return value if isinstance(value, dict) else {}

    def _milestones(self, file: str, value: dict[str, Any], task_id: str) -> Iterator[Hit]:
        for one in read_milestones(Fields(file, value, [])):
            if text := self._matched((one.event, one.details)):
                yield Hit(
                    place=SearchPlace.TASKS,
                    file=file,
                    pointer="/milestones",
                    task_id=task_id,
                    attempt=one.attempt,
                    at=one.at,
                    text=text,
                )

    def _reflections(self, file: str, task_id: str) -> Iterator[Hit]:
        raw = self._read(file)
        if raw is None or not any(self._lines(raw.data)):
            return
        lines, problems = decode_jsonl(raw.data)
        self.findings += (problem.finding(file) for problem in problems)
        for one in read_reflections(file, lines, raw.stamp.modified_at)[0]:
            if text := self._matched((one.learning, one.analysis, one.observation, *one.actions)):
                yield Hit(
                    place=SearchPlace.REFLECTIONS,
                    file=file,
                    pointer=one.pointer,
                    task_id=task_id,
                    attempt=one.attempt,
                    at=one.at,
                    text=text,
                )

    def _actions(self, file: str, task_id: str, attempt: int) -> Iterator[Hit]:
        raw = self._read(file, MAX_PATTERN_BYTES)
        if raw is None or not self._words.may_be_in(raw.data):
            return
        action = 0
        for number, line in enumerate(raw.data[: raw.data.rfind(b"\n") + 1].split(b"\n"), 1):
            if line.lstrip(LEADING_BYTES)[:1] != b"{":
                continue
            action += 1
            if len(line) > MAX_BYTES or not self._words.may_be_in(line):
                continue
            value = _decoded_line(line)
            text = self._matched(_action_texts(value))
            place = self._place_of(value)
            if text and place is not None:
                yield Hit(
                    place=place,
                    file=file,
                    pointer=f"line {number}",
                    task_id=task_id,
                    attempt=attempt,
                    action=action,
                    at=parse_time(value.get("timestamp")) or parse_time(value.get("at")),
                    text=text,
                )

    def _place_of(self, action: Mapping[str, Any]) -> SearchPlace | None:
        """Where an action belongs; None if that is not looked through."""
        seen = ActionSummary(success=normalize.flag(action.get("success")), error=action.get("error"))
        if seen.has_failed and SearchPlace.ERRORS in self._places:
            return SearchPlace.ERRORS
        return SearchPlace.ACTIONS if SearchPlace.ACTIONS in self._places else None

    def _error_log(self) -> Iterator[Hit]:
        """(2) Recording Errors: those of loops and attempts, as `ralphdeck errors` lists them."""
        file = self._paths.relative(self._paths.events)
        raw = self._read(file, MAX_PATTERN_BYTES)
        for number, line in self._lines(raw.data) if raw else ():
            log = EventLog(file)
            log.read(line + b"\n")
            for event in log.events:
                note = event.error
                if note is None or not (
                    text := self._matched((note.message, note.stack_trace, note.tool_name, note.context))
                ):
                    continue
                task_id, attempt = self._named(event.loop_id)
                yield Hit(
                    place=SearchPlace.ERRORS,
                    file=file,
                    pointer=f"line {number}",
                    task_id=task_id,
                    attempt=attempt,
                    subject=event.loop_id,
                    at=event.at,
                    text=text,
                )

    def _named(self, work_id: str) -> tuple[str, int | None]:
        """The task and attempt that an id of (2) may name; "" and None where it names a loop."""
        try:
            task_id, attempt = find_attempt(self._paths, work_id)
        except RalphdeckError:
            return "", None
        return (task_id, attempt) if work_id in (task_id, f"{task_id}.{attempt}") else ("", None)

    def _debug_files(self) -> Iterator[str]:
        """The files of the debug memory (formats C26): beside the loops, and in the folder of each."""
        for root in (self._paths.ralph, self._paths.external):
            loops = chain(entries_of(root / "loops"), entries_of(root / "archive"))
            for folder in (str(root), *(entry.path for entry in loops)):
                memory = self._paths.relative(Path(folder) / "debug-memory")
                yield from filter(DEBUG_SESSIONS.matches, scan_path(self._paths, memory))

    def _sessions(self, file: str) -> Iterator[DebugSession]:
        """The sessions of a file that may have the words."""
        raw = self._read(file)
        if raw is None or not self._words.may_be_in(raw.data, b"\\"):
            return
        value = self._decoded(file, raw.data)
        yield from read_sessions(file, value)[0]

    def _failures(self, session: DebugSession) -> Iterator[Hit]:
        for execution in session.executions:
            analysis = execution.analysis
            for one in execution.failures:
                source = (one.message, one.error_type, one.test_name, one.test_file, one.file, one.function)
                about = (analysis.root_cause, analysis.strategy) if analysis else ()
                if text := self._matched((*source, *about, one.stack_trace, session.file_path)):
                    task_id, attempt = self._named(session.task_id) if session.task_id else ("", None)
                    yield Hit(
                        place=SearchPlace.ERRORS,
                        file=session.file,
                        pointer=session.pointer,
                        task_id=task_id,
                        attempt=attempt,
                        subject=session.id,
                        at=execution.at or session.updated_at or session.created_at,
                        agent=session.agent,
                        text=text,
                    )

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of the complete lines that may have the words."""
        if self._words.may_be_in(data):
            for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), 1):
                if line and self._words.may_be_in(line):
                    yield number, line

    def _matched(self, texts: Iterable[str]) -> str:
        """The texts as one if all words are in them, else ""."""
        text = "\n".join(filter(None, dict.fromkeys(texts)))
        return text if self._words.are_in(text) else ""

    def _read(self, file: str, limit: int = MAX_BYTES) -> RawFile | None:
        raw = read_file(f"{self._paths.project}/{file}", self._root, limit)
        if isinstance(raw, Problem):
            self.findings.append(raw.finding(file))
            return None
        return raw

    def _decoded(self, file: str, data: bytes) -> Any:
        decoded = decode(file, data, every=DEBUG_SESSIONS.matches(file))
        self.findings += (problem.finding(file) for problem in decoded.problems)
        return decoded.value


def _attempt_texts(parts: Sequence[Attempt]) -> Iterator[str]:
    """What some files say of one attempt; the same words once."""
    for one in parts:
        yield from (one.plan, one.reason, *one.worked, *one.failed, *one.suggestions, one.agent)


def _action_texts(action: Mapping[str, Any]) -> Iterator[str]:
    """What an action says, without the names of its fields and parameters; a tool that is called as its type once."""
    for name in _ACTION_TEXTS:
        value = action.get(name)
        if name == "params":
            yield from _texts_in(value, numbers=True)
        elif name != "tool" or normalize.word(value) != normalize.word(action.get("type")):
            yield to_text(value)


def _texts_in(value: Any, *, numbers: bool = False, levels: int = MAX_DEPTH) -> Iterator[str]:
    """The texts, and maybe numbers, of a JSON value, so many levels deep, without the keys."""
    if isinstance(value, dict | list):
        for item in (value.values() if isinstance(value, dict) else value) if levels else ():
            yield from _texts_in(item, numbers=numbers, levels=levels - 1)
    elif numbers or isinstance(value, str):
        yield to_text(value)


def _decoded_line(line: bytes) -> dict[str, Any]:
    """An object of a log; an empty one where the line is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
    return value if isinstance(value, dict) else {}
