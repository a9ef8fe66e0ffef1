"""Read the searched records of task folders, error log and debug memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.paths import is_safe_id
from core.files.file_reader import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PATTERN_BYTES,
    Problem,
    RawFile,
    decode,
    decode_json,
    decode_jsonl,
    read_file,
)
from core.index.search_words import (
    ALL_PLACES,
    EVERYTHING,
    HitKind,
    SearchFilters,
    SearchHit,
    SearchPlace,
    SearchWords,
)
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.events import EventView
from core.records.loops import Outcome
from core.records.times import parse_time
from core.sources import episodes as sources
from core.sources import normalize
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.episodes import LEADING_BYTES, MAX_ACTION_TEXT, ActionSummary, to_text
from core.sources.events import decode_event
from core.sources.normalize import Fields
from core.sources.record_kinds import DEBUG_SESSIONS, scan_path
from core.sources.reflections import read_reflections
from core.tasks.history import read_attempts
from core.tasks.task_files import list_entries

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.debug_sessions import DebugSession
    from core.records.events import Event
    from core.records.findings import Finding
    from core.records.snapshot import Snapshot
    from core.tasks.history import TaskReader


_ACTION_TEXTS: Final = ("type", "tool", "params", "error", "output", "reasoning", "expected_outcome")
_ENDED: Final = ("ended", "timestamp", "at")  # keys of the time of a result; the file's mtime may be that of a copy
_MAX_TOOL: Final = 80  # characters of the name of a tool
_MAX_CACHED_OWNERS: Final = 1024

_ATTEMPT: Final = re.compile(r"(.+)\.(0|[1-9][0-9]{0,8})")


class SearchReader:
    """Reads files that may match a query; `findings` are problems with parsed files."""

    def __init__(self, paths: ProjectPaths, words: SearchWords) -> None:
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._words: Final = words
        self._root: Final = paths.aiwg

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of complete lines that may match."""
        if self._words.may_be_in(data):
            for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), 1):
                if line and self._words.may_be_in(line):
                    yield number, line

    def _match(self, texts: Iterable[str]) -> str:
        """Return the texts joined by line feeds if they contain all words; otherwise ""."""
        text = "\n".join(filter(None, dict.fromkeys(texts)))
        return text if self._words.are_in(text) else ""

    def _read(self, file: str, limit: int = MAX_BYTES) -> RawFile | None:
        raw = read_file(f"{self._paths.project}/{file}", self._root, limit)
        if isinstance(raw, Problem):
            self.findings.append(raw.finding(file))
            return None
        return raw

    def _decode(self, file: str, data: bytes) -> Any:
        decoded = decode(file, data, every=DEBUG_SESSIONS.matches(file))
        self.findings += (problem.finding(file) for problem in decoded.problems)
        return decoded.value

    def _object(self, file: str, wanted: Callable[[bytes], bool] | None = None) -> dict[str, Any]:
        """Read a JSON object; return {} if there is none or its bytes are not `wanted`."""
        raw = self._read(file)
        value = self._decode(file, raw.data) if raw and (wanted is None or wanted(raw.data)) else None
        return value if isinstance(value, dict) else {}


class Owner(Struct, frozen=True, array_like=True):
    """What filters need to know of a task; an attempt has an outcome and an agent."""

    status: TaskStatus = TaskStatus.UNKNOWN
    agent: str = ""
    attempts: dict[int, tuple[Outcome, str]] = {}  # by number

    @classmethod
    def of(cls, task: Task, attempts: Mapping[int, Attempt]) -> Owner:
        return cls(task.status, task.agent, {number: (one.outcome, one.agent) for number, one in attempts.items()})


class LogPart:
    """A part of an action log, to line number `lines` and action number `actions`."""

    __slots__ = ("actions", "attempt", "file", "lines", "task_id")

    def __init__(self, file: str, task_id: str, attempt: int, lines: int = 0, actions: int = 0) -> None:
        self.file, self.task_id, self.attempt = file, task_id, attempt
        self.lines, self.actions = lines, actions


class TaskRecords(SearchReader):
    """Reads the records of task folders that contain all words; by default, all.

    A record may be found several times: as an entry of the trajectory or in the summary besides its own file.
    """

    def __init__(
        self, paths: ProjectPaths, words: SearchWords = EVERYTHING, places: frozenset[SearchPlace] = ALL_PLACES
    ) -> None:
        super().__init__(paths, words)
        self._places: Final = places
        self.read: Final[tuple[list[Task], list[Attempt]]] = [], []  # what `documents` has parsed
        self.task_of: Final = lru_cache(_MAX_CACHED_OWNERS)(self._read_task)

    def _read_task(self, task_id: str) -> tuple[Task, Mapping[int, Attempt]]:
        """Return the task with an ID, and its attempts by number."""
        return read_attempts(self._paths, task_id) if task_id else (Task(id=""), {})

    def documents(self, files: TaskReader) -> Iterator[SearchHit]:
        """Yield the records of a task outside of the action logs, the summary last."""
        if SearchPlace.REFLECTIONS in self._places:
            yield from self._reflections(files.path(sources.REFLECTIONS), files.task_id)
        if SearchPlace.TASKS in self._places:
            yield from self._documents(files)
            yield from self._summary(files.path(sources.SUMMARY), files.task_id)

    def _documents(self, files: TaskReader) -> Iterator[SearchHit]:
        """Search the metadata, the attempts, their results, and the milestones."""
        yield from self._metadata(files.path(sources.METADATA), files.task_id)
        trajectory = files.path(sources.TRAJECTORY)
        value = self._object(trajectory, self._words.may_be_in)
        entries = sources.parse_attempts(trajectory, value)[0] if value else ()
        self.read[1].extend(entries)
        for number in files.numbers:
            yield from self._attempt(files, number)
            yield from self._results(files, number)
        for one in entries:
            if text := self._match(_attempt_texts((one,))):
                yield self._of_attempt(one, trajectory, text, HitKind.ENTRY)
        for milestone in sources.read_milestones(Fields(trajectory, value, [])):
            if text := self._match((milestone.event, milestone.details)):
                yield SearchHit(
                    trajectory, files.task_id, text, milestone.at, milestone.attempt, "/milestones", HitKind.DOCUMENT
                )

    def _metadata(self, file: str, task_id: str) -> Iterator[SearchHit]:
        value = self._object(file, lambda data: self._words.may_be_in(data + task_id.encode("utf-8", "replace")))
        tasks = sources.parse_tasks(file, value)[0] if value else ()
        self.read[0].extend(tasks)
        for task in tasks:
            texts = (task.description, task.criteria, *task.tags, *task.related, task.agent, task.loop_id, task_id)
            if text := self._match(texts):
                yield SearchHit(file, task_id, text, task.updated_at or task.created_at)

    def _attempt(self, files: TaskReader, number: int) -> Iterator[SearchHit]:
        """Search the files of an attempt as one record; words may be in different files."""
        paths = [files.path(name, number) for name in (sources.ATTEMPT, sources.OUTCOME, sources.PLAN)]
        raws = {file: raw for file in paths if (raw := self._read(file)) is not None}
        name = f"{files.task_id}.{number}"
        together = b"\n".join((*(raw.data for raw in raws.values()), name.encode("utf-8", "replace")))
        if not raws or not self._words.may_be_in(together):
            return
        parts: list[Attempt] = []
        steps: list[str] = []
        for file in [file for file in paths[:2] if file in raws]:
            value = self._decode(file, raws[file].data)
            parts += sources.parse_attempts(file, value)[0] if isinstance(value, dict) else ()
            steps += _collect_texts(value["plan"]) if isinstance(value, dict) and "plan" in value else ()
        plan = raws.get(paths[2])
        self.read[1].extend(parts)
        written = plan.data.decode("utf-8", "replace")[:MAX_ACTION_TEXT] if plan else ""
        if text := self._match((*_attempt_texts(parts), *steps, written, name)):
            one = parts[0] if parts else Attempt(task_id=files.task_id, number=number)
            yield self._of_attempt(one, next(iter(raws)), text, HitKind.ATTEMPT)

    def _of_attempt(self, one: Attempt, file: str, text: str, kind: HitKind) -> SearchHit:
        at = one.ended_at or one.started_at
        if at is None and (known := self.task_of(one.task_id)[1].get(one.number)):
            at = known.ended_at or known.started_at
        return SearchHit(file, one.task_id, text, at, one.number, kind=kind)

    def _results(self, files: TaskReader, number: int) -> Iterator[SearchHit]:
        for name in files.results(number):
            file = f"{files.path(sources.RESULTS, number)}/{name}"
            raw = self._read(file)
            if raw is None or not self._words.may_be_in(raw.data + name.encode("utf-8", "replace")):
                continue
            value = decode_json(raw.data).value if name.endswith(".json") else None
            texts = _collect_texts(value) if value is not None else [raw.data.decode("utf-8", "replace")]
            if text := self._match((name, *texts)):
                times = [parse_time(value.get(key)) for key in _ENDED] if isinstance(value, dict) else []
                known = self.task_of(files.task_id)[1].get(number)
                times += (known.ended_at, known.started_at) if known else ()
                yield SearchHit(
                    file, files.task_id, text, next(filter(None, times), None), number, kind=HitKind.DOCUMENT
                )

    def _summary(self, file: str, task_id: str) -> Iterator[SearchHit]:
        if text := self._match(_collect_texts(self._object(file, self._words.may_be_in))):
            task = self.task_of(task_id)[0]
            yield SearchHit(file, task_id, text, task.updated_at or task.created_at, kind=HitKind.SUMMARY)

    def _reflections(self, file: str, task_id: str) -> Iterator[SearchHit]:
        raw = self._read(file)
        if raw is None or not any(self._lines(raw.data)):
            return
        lines, problems = decode_jsonl(raw.data)
        self.findings += (problem.finding(file) for problem in problems)
        for one in read_reflections(file, lines, raw.stamp.modified_at)[0]:
            if text := self._match((one.learning, one.analysis, one.observation, *one.actions)):
                yield SearchHit(file, task_id, text, one.at, one.attempt, one.pointer, HitKind.REFLECTION)

    def log(self, file: str, task_id: str, attempt: int) -> Iterator[SearchHit]:
        """Yield the actions of one log."""
        raw = self._read(file, MAX_PATTERN_BYTES)
        if raw is not None and self._words.may_be_in(raw.data):
            yield from self.lines(raw.data[: raw.data.rfind(b"\n") + 1], LogPart(file, task_id, attempt))

    def lines(self, data: bytes, part: LogPart) -> Iterator[SearchHit]:
        """Yield the actions of complete lines; `part` counts all of them."""
        for line in data.split(b"\n")[:-1]:
            part.lines += 1
            if line.lstrip(LEADING_BYTES)[:1] != b"{":
                continue
            part.actions += 1
            if len(line) > MAX_BYTES or not self._words.may_be_in(line):
                continue
            value = _decode_line(line)
            text = self._match(_action_texts(value))
            summary = ActionSummary(success=normalize.flag(value.get("success")), error=value.get("error"))
            kind = HitKind.FAILED if summary.has_failed else HitKind.ACTION
            if text and any(kind in place.kinds for place in self._places):
                at = parse_time(value.get("timestamp")) or parse_time(value.get("at"))
                pointer = f"line {part.lines}"
                hit = SearchHit(part.file, part.task_id, text, at, part.attempt, pointer, kind, part.actions)
                yield hit._replace(tool=to_text(value.get("tool") or value.get("type"))[:_MAX_TOOL])


def _attempt_texts(parts: Sequence[Attempt]) -> Iterator[str]:
    for one in parts:
        yield from (one.plan, one.reason, *one.worked, *one.failed, *one.suggestions, one.agent)


def _action_texts(action: Mapping[str, Any]) -> list[str]:
    texts: list[str] = []
    for name in _ACTION_TEXTS:
        value = action.get(name)
        if name == "params":
            texts += _collect_texts(value, numbers=True)
        elif name != "tool" or not _is_same_word(value, action.get("type")):
            texts.append(to_text(value))
    return texts


def _is_same_word(one: Any, other: Any) -> bool:
    return one == other or normalize.word(one) == normalize.word(other)


def _collect_texts(value: Any, *, numbers: bool = False, levels: int = MAX_DEPTH) -> Iterator[str]:
    """Yield all texts, and optionally numbers, in a JSON value, without its keys."""
    if isinstance(value, dict | list):
        for item in (value.values() if isinstance(value, dict) else value) if levels else ():
            if isinstance(item, str):
                yield item[:MAX_ACTION_TEXT]
                continue
            yield from _collect_texts(item, numbers=numbers, levels=levels - 1)
    elif numbers or isinstance(value, str):
        yield to_text(value)


def _decode_line(line: bytes) -> dict[str, Any]:
    """Decode a JSON object in a log; return {} if the line does not contain one."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
    return value if isinstance(value, dict) else {}


class ErrorRecords(SearchReader):
    """Reads the matching records of the error log and of debug sessions."""

    def hits(self, snapshot: Snapshot | None = None) -> Iterator[SearchHit]:
        """Yield all matching errors, unordered: those of `snapshot`, or of the files."""
        if snapshot is not None:
            file = self._paths.relative(self._paths.events)
            yield from (hit for event in EventView.of(snapshot.events).errors for hit in self._of_event(event, file))
            sessions: Mapping[str, DebugSession] = snapshot.debug_sessions
        else:
            yield from self._error_log()
            # If several files contain a session, only the copy that is used elsewhere is searched.
            sessions = join_sessions(session for file in self._debug_files() for session in self._sessions(file))
        for session in sessions.values():
            if not self._is_view(session):  # the failed actions of its attempt are found
                yield from self._failures(session)

    def _is_view(self, session: DebugSession) -> bool:
        """Return whether a session was made from the log of an attempt that exists."""
        return bool(session.attempt_id) and self._resolve_work_id(session.attempt_id)[1] is not None

    def _error_log(self) -> Iterator[SearchHit]:
        file = self._paths.relative(self._paths.events)
        raw = self._read(file, MAX_PATTERN_BYTES)
        for number, line in self._lines(raw.data) if raw else ():
            if (event := decode_event(file, place := f"line {number}", line, [])) is not None:
                yield from self._of_event(event, file, place)

    def _of_event(self, event: Event, file: str, pointer: str = "") -> Iterator[SearchHit]:
        error = event.error
        texts = (error.message, error.stack_trace, error.tool_name, error.context) if error else ()
        if text := self._match(texts):
            task_id, attempt = self._resolve_work_id(event.loop_id)
            yield SearchHit(file, task_id, text, event.at, attempt, pointer, HitKind.ERROR, subject=event.loop_id)

    def _resolve_work_id(self, work_id: str) -> tuple[str, int | None]:
        """Return task ID and attempt of a work item; "" and None for a loop."""
        if self._is_task(work_id):
            return work_id, None
        found = _ATTEMPT.fullmatch(work_id)
        return (found[1], int(found[2])) if found and self._is_task(found[1]) else ("", None)

    def _is_task(self, work_id: str) -> bool:
        return is_safe_id(work_id) and (self._paths.tasks / work_id).is_dir()

    def _debug_files(self) -> Iterator[str]:
        """Yield the files of the debug memory of the project and of each loop."""
        for root in (self._paths.ralph, self._paths.external):
            loops = chain(list_entries(root / "loops"), list_entries(root / "archive"))
            for folder in (str(root), *(entry.path for entry in loops)):
                memory = self._paths.relative(Path(folder) / "debug-memory")
                if not os.path.lexists(f"{folder}/debug-memory"):
                    continue
                yield from filter(DEBUG_SESSIONS.matches, scan_path(self._paths, memory))

    def _sessions(self, file: str) -> Iterator[DebugSession]:
        raw = self._read(file)
        if raw is not None and self._words.may_be_in(raw.data, b"\\"):
            yield from read_sessions(file, self._decode(file, raw.data))[0]

    def _failures(self, session: DebugSession) -> Iterator[SearchHit]:
        for execution in session.executions:
            analysis = execution.analysis
            at = execution.at or session.updated_at or session.created_at
            for one in execution.failures:
                source = (one.message, one.error_type, one.test_name, one.test_file, one.file, one.function)
                about = (analysis.root_cause, analysis.strategy) if analysis else ()
                if text := self._match((*source, *about, one.stack_trace, session.file_path)):
                    task_id, attempt = self._resolve_work_id(session.task_id) if session.task_id else ("", None)
                    hit = SearchHit(session.file, task_id, text, at, attempt, session.pointer, HitKind.ERROR)
                    yield hit._replace(subject=session.id, agent=session.agent)


def scan_task(records: TaskRecords, files: TaskReader, filters: SearchFilters) -> Iterator[SearchHit]:
    """Yield the matching records of a task, each once."""
    # If the status of a task does not match, its other files are not opened.
    if not filters.statuses or files.task().status in filters.statuses:
        yield from drop_copies(records.documents(files))
        if filters.places & {SearchPlace.ACTIONS, SearchPlace.ERRORS}:
            for number in files.numbers:
                yield from records.log(files.path(sources.ACTIONS, number), files.task_id, number)
    else:
        records.findings += files.findings


def drop_copies(hits: Iterable[SearchHit]) -> Iterator[SearchHit]:
    """Drop entries of the trajectory and summaries whose content was found before."""
    attempts = set()
    is_found = False
    for hit in hits:
        if hit.kind in (HitKind.ATTEMPT, HitKind.ENTRY):
            if hit.attempt in attempts:
                continue
            attempts.add(hit.attempt)
        elif hit.kind is HitKind.SUMMARY and is_found:
            continue
        is_found = True
        yield hit


def is_wanted(hit: SearchHit, filters: SearchFilters, owner_of: Callable[[str], Owner]) -> bool:
    """Return whether a hit matches the filters other than the places."""
    if filters.task_id and (hit.task_id != filters.task_id or filters.attempt not in (None, hit.attempt)):
        return False
    if filters.tool and normalize.word(filters.tool) != normalize.word(hit.tool):
        return False
    if filters.since is not None and (hit.at is None or hit.at < filters.since):
        return False
    if filters.until is not None and (hit.at is None or hit.at > filters.until):
        return False
    if not (filters.statuses or filters.agent or filters.outcomes):
        return True
    owner = owner_of(hit.task_id)
    number = max(owner.attempts, default=0) if hit.attempt is None else hit.attempt
    outcome, agent = owner.attempts.get(number, (None, ""))
    if filters.statuses and owner.status not in filters.statuses:
        return False
    if filters.outcomes and outcome not in filters.outcomes:
        return False
    return not filters.agent or filters.agent.casefold() in {
        name.casefold() for name in (hit.agent, owner.agent, agent)
    }
