"""Where the words of a query occur in the episodic memory; decodes only what may have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from core.episodes.history import read_attempts
from core.episodes.names import entries_of, find_attempt
from core.episodes.search_words import SearchWords
from core.errors import RalphdeckError
from core.paths import ProjectPaths
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task
from core.records.findings import Finding
from core.records.times import parse_time
from core.sources import dialects
from core.sources.actions import BLANK, Glimpse, spelled
from core.sources.debug_sessions import is_debug_memory, join_sessions, read_sessions
from core.sources.episodes import (
    ACTIONS,
    ATTEMPT,
    ATTEMPTS,
    METADATA,
    OUTCOME,
    REFLECTIONS,
    TRAJECTORY,
    numbered,
    read_episode,
    read_milestones,
)
from core.sources.events import EventLog
from core.sources.fields import Fields
from core.sources.reading import (
    MAX_BYTES,
    MAX_PATTERN_BYTES,
    Problem,
    RawFile,
    decode,
    decode_json,
    decode_jsonl,
    read_file,
)
from core.sources.reflections import read_reflections
from core.sources.scanning import scan_path

_ACTION_TEXTS: Final = ("type", "tool", "params", "output", "error", "reasoning", "expected_outcome")
_KEPT_OWNERS: Final = 1024


class Place(StrEnum):
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

    place: Place
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


class Matching:
    """One walk through the files of a project.

    Args:
        places: What is looked through.
    """

    def __init__(self, paths: ProjectPaths, words: SearchWords, places: Iterable[Place]) -> None:
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._words: Final = words
        self._places: Final = frozenset(places)
        self._logs: Final = bool(self._places & {Place.ACTIONS, Place.ERRORS})
        self._tasks: Final = paths.relative(paths.tasks)
        self._root: Final = paths.aiwg
        self.owner: Final = lru_cache(_KEPT_OWNERS)(self._owner)

    def hits(self) -> Iterator[Hit]:
        """Every record with all words, in no particular order."""
        for entry in entries_of(self._paths.tasks):
            if entry.is_dir(follow_symlinks=False):
                yield from self._task(entry.name)
        if Place.ERRORS in self._places:
            yield from self._error_log()
            # A session often lies in several files; the copy that counts is found, once.
            sessions = join_sessions(session for file in self._debug_files() for session in self._sessions(file))
            for session in sessions.values():
                yield from self._failures(session)

    def _owner(self, task_id: str) -> Owner:
        return Owner(*read_attempts(self._paths, task_id)) if task_id else Owner(Task(id=""), {})

    def _task(self, task_id: str) -> Iterator[Hit]:
        folder = f"{self._tasks}/{task_id}"
        documents = [f"{folder}/{METADATA}", f"{folder}/{TRAJECTORY}"] if Place.TASKS in self._places else []
        if Place.REFLECTIONS in self._places:
            yield from self._reflections(f"{folder}/{REFLECTIONS}", task_id)
        entries = entries_of(self._paths.project / folder / ATTEMPTS) if self._logs or documents else ()
        for number, name in numbered(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)).items():
            inside = f"{folder}/{ATTEMPTS}/{name}"
            if Place.TASKS in self._places:
                documents += (f"{inside}/{ATTEMPT}", f"{inside}/{OUTCOME}")
            if self._logs:
                yield from self._actions(f"{inside}/{ACTIONS}", task_id, number)
        told = set()
        for file in documents:
            for hit in self._document(file, task_id):
                # Several documents tell of one attempt, often in the same words.
                if (hit.attempt, hit.pointer) not in told or hit.pointer:
                    told.add((hit.attempt, hit.pointer))
                    yield hit

    def _document(self, file: str, task_id: str) -> Iterator[Hit]:
        """What a document says of a task, of attempts at it, and of milestones."""
        raw = self._read(file)
        value = self._decoded(file, raw.data) if raw and self._words.may_be_in(raw.data) else None
        if not isinstance(value, dict):
            return
        tasks, attempts, _ = read_episode(file, value)
        for task in tasks:
            texts = (task.description, task.criteria, *task.tags, task.agent, task.loop_id, task_id)
            if file.endswith(METADATA) and (text := self._matched(texts)):
                yield Hit(
                    place=Place.TASKS, file=file, task_id=task_id, at=task.updated_at or task.created_at, text=text
                )
        for one in attempts:
            texts = (one.plan, one.reason, *one.worked, *one.failed, *one.suggestions, one.agent)
            if text := self._matched(texts):
                at = one.ended_at or one.started_at or self._time_of(task_id, one.number)
                yield Hit(place=Place.TASKS, file=file, task_id=task_id, attempt=one.number, at=at, text=text)
        if file.endswith(TRAJECTORY):
            yield from self._milestones(file, value, task_id)

    def _milestones(self, file: str, value: dict[str, Any], task_id: str) -> Iterator[Hit]:
        for one in read_milestones(Fields(file, value, [])):
            if text := self._matched((one.event, one.details)):
                yield Hit(
                    place=Place.TASKS,
                    file=file,
                    pointer="/milestones",
                    task_id=task_id,
                    attempt=one.attempt,
                    at=one.at,
                    text=text,
                )

    def _time_of(self, task_id: str, number: int) -> datetime | None:
        attempt = self.owner(task_id).attempts.get(number)
        return (attempt.ended_at or attempt.started_at) if attempt else None

    def _reflections(self, file: str, task_id: str) -> Iterator[Hit]:
        raw = self._read(file)
        if raw is None or not any(self._lines(raw.data)):
            return
        lines, problems = decode_jsonl(raw.data)
        self.findings += (problem.finding(file) for problem in problems)
        for one in read_reflections(file, lines, raw.stamp.modified_at)[0]:
            if text := self._matched((one.learning, one.analysis, one.observation, *one.actions)):
                yield Hit(
                    place=Place.REFLECTIONS,
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
            if line.lstrip(BLANK)[:1] != b"{":
                continue
            action += 1
            if len(line) > MAX_BYTES or not self._words.may_be_in(line):
                continue
            value = _decoded_line(line)
            text = self._matched(spelled(value[name]) for name in _ACTION_TEXTS if name in value)
            place = self._place_of(value)
            if text and place is not None:
                yield Hit(
                    place=place,
                    file=file,
                    pointer=f"line {number}",
                    task_id=task_id,
                    attempt=attempt,
                    action=action,
                    at=parse_time(value.get("timestamp")),
                    text=text,
                )

    def _place_of(self, action: Mapping[str, Any]) -> Place | None:
        """Where an action belongs; None if that is not looked through."""
        seen = Glimpse(success=dialects.flag(action.get("success")), error=action.get("error"))
        if seen.went_wrong and Place.ERRORS in self._places:
            return Place.ERRORS
        return Place.ACTIONS if Place.ACTIONS in self._places else None

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
                    place=Place.ERRORS,
                    file=file,
                    pointer=f"line {number}",
                    task_id=task_id,
                    attempt=attempt,
                    subject=event.loop_id,
                    at=event.at,
                    text=text,
                )

    def _named(self, bead_id: str) -> tuple[str, int | None]:
        """The task and attempt that an id of (2) may name; "" and None where it names a loop."""
        try:
            task_id, attempt = find_attempt(self._paths, bead_id)
        except RalphdeckError:
            return "", None
        return (task_id, attempt) if bead_id in (task_id, f"{task_id}.{attempt}") else ("", None)

    def _debug_files(self) -> Iterator[str]:
        """The files of the debug memory (formats C26): beside the loops, and in the folder of each."""
        for root in (self._paths.ralph, self._paths.external):
            loops = chain(entries_of(root / "loops"), entries_of(root / "archive"))
            for folder in (str(root), *(entry.path for entry in loops)):
                memory = self._paths.relative(Path(folder) / "debug-memory")
                yield from filter(is_debug_memory, scan_path(self._paths, memory))

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
                        place=Place.ERRORS,
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
        text = "\n".join(filter(None, texts))
        return text if self._words.are_in(text) else ""

    def _read(self, file: str, limit: int = MAX_BYTES) -> RawFile | None:
        raw = read_file(f"{self._paths.project}/{file}", self._root, limit)
        if isinstance(raw, Problem):
            self.findings.append(raw.finding(file))
            return None
        return raw

    def _decoded(self, file: str, data: bytes) -> Any:
        decoded = decode(file, data)
        self.findings += (problem.finding(file) for problem in decoded.problems)
        return decoded.value


def _decoded_line(line: bytes) -> dict[str, Any]:
    """An object of a log; an empty one where the line is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
    return value if isinstance(value, dict) else {}
