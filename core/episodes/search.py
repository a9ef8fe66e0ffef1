"""Search the files of the task memory for tasks, actions, reflections and errors."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from core.base.errors import RalphdeckError
from core.episodes.history import TaskFiles, read_attempts
from core.episodes.search_reader import SearchFilters, SearchHit, SearchPlace, SearchReader, SearchWords
from core.episodes.task_lookup import find_attempt, list_entries
from core.records.episodes import Attempt, Task
from core.records.findings import Finding
from core.records.times import parse_time
from core.sources import episodes as sources
from core.sources import normalize
from core.sources.actions import LEADING_BYTES, MAX_TEXT, ActionSummary, to_text
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.events import EventLog
from core.sources.fields import Fields
from core.sources.record_kinds import DEBUG_SESSIONS
from core.sources.reflections import read_reflections
from core.sources.sweep import scan_path
from core.storage.decoded import MAX_DEPTH
from core.storage.file_reader import MAX_BYTES, MAX_PATTERN_BYTES
from core.storage.json_reader import decode_json, decode_jsonl

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.debug_sessions import DebugSession

_ACTION_TEXTS: Final = ("type", "tool", "params", "error", "output", "reasoning", "expected_outcome")
_ENDED: Final = ("ended", "timestamp", "at")  # keys of the time of a result; the file's mtime may be that of a copy
_MAX_CACHED_OWNERS: Final = 1024


class SearchResult(Struct, frozen=True):
    """Hits of a search, newest first, those without a time last."""

    hits: tuple[SearchHit, ...]  # at most the requested number
    total: int  # number of all hits
    findings: tuple[Finding, ...]  # problems with parsed files


def search(
    paths: ProjectPaths, words: SearchWords, filters: SearchFilters | None = None, limit: int | None = None
) -> SearchResult:
    """Find the records that contain all words and match the filters.

    Only files whose bytes may match are parsed. A search in 10,000 tasks takes one to two seconds.
    """
    filters = filters or SearchFilters()
    tasks, errors = TaskSearcher(paths, words, filters), ErrorSearcher(paths, words)
    found = chain(tasks.hits(), errors.hits() if SearchPlace.ERRORS in filters.places else ())
    total = 0

    def matching() -> Iterator[SearchHit]:
        nonlocal total
        for hit in found:
            if _matches(hit, filters, tasks):
                total += 1
                yield hit

    # `nsmallest(0)` would not iterate, but all hits must be counted.
    hits = sorted(matching(), key=_order) if limit is None else heapq.nsmallest(max(limit, 1), matching(), key=_order)
    return SearchResult(tuple(hits[:limit]), total, (*tasks.findings, *errors.findings))


def _order(hit: SearchHit) -> tuple[float, str, int, int]:
    newest = -hit.at.timestamp() if hit.at is not None else 0.0
    return newest, hit.task_id, hit.attempt or 0, hit.action or 0


def _matches(hit: SearchHit, filters: SearchFilters, tasks: TaskSearcher) -> bool:
    if filters.task_id and (hit.task_id != filters.task_id or filters.attempt not in (None, hit.attempt)):
        return False
    if filters.since is not None and (hit.at is None or hit.at < filters.since):
        return False
    if filters.until is not None and (hit.at is None or hit.at > filters.until):
        return False
    if not (filters.statuses or filters.agent or filters.outcomes):
        return True
    owner = tasks.owner(hit.task_id)
    attempt = owner.attempts.get(max(owner.attempts, default=0) if hit.attempt is None else hit.attempt)
    if filters.statuses and owner.task.status not in filters.statuses:
        return False
    if filters.outcomes and (attempt is None or attempt.outcome not in filters.outcomes):
        return False
    agents = {hit.agent, owner.task.agent, attempt.agent if attempt else ""}
    return not filters.agent or filters.agent.casefold() in {agent.casefold() for agent in agents}


class ErrorSearcher(SearchReader):
    """Searches the error log and the failures of debug sessions."""

    def hits(self) -> Iterator[SearchHit]:
        """Yield all matching errors, in no particular order."""
        yield from self._error_log()
        # If several files contain a session, only the copy that is used elsewhere is searched.
        sessions = join_sessions(session for file in self._debug_files() for session in self._sessions(file))
        for session in sessions.values():
            yield from self._failures(session)

    def _error_log(self) -> Iterator[SearchHit]:
        file = self._paths.relative(self._paths.events)
        raw = self._read(file, MAX_PATTERN_BYTES)
        for number, line in self._lines(raw.data) if raw else ():
            log = EventLog(file)
            log.read(line + b"\n")
            for event in log.events:
                error = event.error
                texts = (error.message, error.stack_trace, error.tool_name, error.context) if error else ()
                if text := self._match(texts):
                    task_id, attempt = self._resolve_work_id(event.loop_id)
                    place, subject = SearchPlace.ERRORS, event.loop_id
                    yield SearchHit(file, task_id, text, event.at, attempt, f"line {number}", place, subject=subject)

    def _resolve_work_id(self, work_id: str) -> tuple[str, int | None]:
        """Return task ID and attempt of a work item; "" and None for a loop."""
        try:
            task_id, attempt = find_attempt(self._paths, work_id)
        except RalphdeckError:
            return "", None
        return (task_id, attempt) if work_id in (task_id, f"{task_id}.{attempt}") else ("", None)

    def _debug_files(self) -> Iterator[str]:
        """Yield the files of the debug memory of the project and of each loop."""
        for root in (self._paths.ralph, self._paths.external):
            loops = chain(list_entries(root / "loops"), list_entries(root / "archive"))
            for folder in (str(root), *(entry.path for entry in loops)):
                memory = self._paths.relative(Path(folder) / "debug-memory")
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
                    hit = SearchHit(session.file, task_id, text, at, attempt, session.pointer, SearchPlace.ERRORS)
                    yield replace(hit, subject=session.id, agent=session.agent)


class Owner(NamedTuple):
    """Task of a hit, with its attempts by number."""

    task: Task
    attempts: Mapping[int, Attempt]


class TaskSearcher(SearchReader):
    """Searches the task folders; applies the filters by place, task and status."""

    def __init__(self, paths: ProjectPaths, words: SearchWords, filters: SearchFilters) -> None:
        super().__init__(paths, words)
        self._places: Final = filters.places
        self._statuses: Final = filters.statuses
        self._only: Final = filters.task_id
        self.owner: Final = lru_cache(_MAX_CACHED_OWNERS)(self._owner)

    def hits(self) -> Iterator[SearchHit]:
        """Yield all matching records, in no particular order."""
        entries = () if self._only else list_entries(self._paths.tasks)
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        for name in (self._only,) if self._only else names:
            files = TaskFiles(self._paths, name)
            # If the status of a task does not match, its other files are not opened.
            if not self._statuses or files.task().status in self._statuses:
                yield from self._task(files)
            else:
                self.findings += files.findings

    def _owner(self, task_id: str) -> Owner:
        return Owner(*read_attempts(self._paths, task_id)) if task_id else Owner(Task(id=""), {})

    def _task(self, files: TaskFiles) -> Iterator[SearchHit]:
        found = False
        if SearchPlace.REFLECTIONS in self._places:
            for hit in self._reflections(files.path(sources.REFLECTIONS), files.task_id):
                found = True
                yield hit
        for number in files.numbers if self._places & {SearchPlace.ACTIONS, SearchPlace.ERRORS} else ():
            yield from self._actions(files.path(sources.ACTIONS, number), files.task_id, number)
        if SearchPlace.TASKS not in self._places:
            return
        for hit in self._documents(files):
            found = True
            yield hit
        if not found:  # the summary mostly repeats the other files
            yield from self._summary(files.path(sources.SUMMARY), files.task_id)

    def _documents(self, files: TaskFiles) -> Iterator[SearchHit]:
        """Search the metadata, the attempts, their results, and the milestones."""
        yield from self._metadata(files.path(sources.METADATA), files.task_id)
        found = set()
        for number in files.numbers:
            for hit in self._attempt(files, number):
                found.add(number)
                yield hit
            yield from self._results(files, number)
        trajectory = files.path(sources.TRAJECTORY)
        value = self._object(trajectory, self._words.may_be_in)
        for one in sources.parse_attempts(trajectory, value)[0] if value else ():
            # The files of an attempt often contain the same texts.
            if one.number not in found and (text := self._match(_attempt_texts((one,)))):
                found.add(one.number)
                yield self._of_attempt(one, trajectory, text)
        for milestone in sources.read_milestones(Fields(trajectory, value, [])):
            if text := self._match((milestone.event, milestone.details)):
                yield SearchHit(trajectory, files.task_id, text, milestone.at, milestone.attempt, "/milestones")

    def _metadata(self, file: str, task_id: str) -> Iterator[SearchHit]:
        value = self._object(file, lambda data: self._words.may_be_in(data + task_id.encode("utf-8", "replace")))
        for task in sources.parse_tasks(file, value)[0] if value else ():
            texts = (task.description, task.criteria, *task.tags, *task.related, task.agent, task.loop_id, task_id)
            if text := self._match(texts):
                yield SearchHit(file, task_id, text, task.updated_at or task.created_at)

    def _attempt(self, files: TaskFiles, number: int) -> Iterator[SearchHit]:
        """Search the files of an attempt as one record; words may be in different files."""
        paths = [files.path(name, number) for name in (sources.ATTEMPT, sources.OUTCOME, sources.PLAN)]
        raws = {file: raw for file in paths if (raw := self._read(file)) is not None}
        name = f"{files.task_id}.{number}"
        together = b"\n".join((*(raw.data for raw in raws.values()), name.encode("utf-8", "replace")))
        if not raws or not self._words.may_be_in(together):
            return
        parts: list[Attempt] = []
        steps: list[str] = []
        for file in raws.keys() - {paths[2]}:
            value = self._decode(file, raws[file].data)
            parts += sources.parse_attempts(file, value)[0] if isinstance(value, dict) else ()
            steps += _collect_texts(value["plan"]) if isinstance(value, dict) and "plan" in value else ()
        plan = raws.get(paths[2])
        parts.sort(key=lambda part: part.file)
        written = plan.data.decode("utf-8", "replace")[:MAX_TEXT] if plan else ""
        if text := self._match((*_attempt_texts(parts), *steps, written, name)):
            one = parts[0] if parts else Attempt(task_id=files.task_id, number=number)
            yield self._of_attempt(one, next(iter(raws)), text)

    def _of_attempt(self, one: Attempt, file: str, text: str) -> SearchHit:
        at = one.ended_at or one.started_at
        if at is None and (known := self.owner(one.task_id).attempts.get(one.number)):
            at = known.ended_at or known.started_at
        return SearchHit(file, one.task_id, text, at, one.number)

    def _results(self, files: TaskFiles, number: int) -> Iterator[SearchHit]:
        for name in files.results(number):
            file = f"{files.path(sources.RESULTS, number)}/{name}"
            raw = self._read(file)
            if raw is None or not self._words.may_be_in(raw.data + name.encode("utf-8", "replace")):
                continue
            value = decode_json(raw.data).value if name.endswith(".json") else None
            texts = _collect_texts(value) if value is not None else [raw.data.decode("utf-8", "replace")]
            if text := self._match((name, *texts)):
                times = [parse_time(value.get(key)) for key in _ENDED] if isinstance(value, dict) else []
                known = self.owner(files.task_id).attempts.get(number)
                times += (known.ended_at, known.started_at) if known else ()
                yield SearchHit(file, files.task_id, text, next(filter(None, times), None), number)

    def _summary(self, file: str, task_id: str) -> Iterator[SearchHit]:
        if text := self._match(_collect_texts(self._object(file, self._words.may_be_in))):
            task = self.owner(task_id).task
            yield SearchHit(file, task_id, text, task.updated_at or task.created_at)

    def _reflections(self, file: str, task_id: str) -> Iterator[SearchHit]:
        raw = self._read(file)
        if raw is None or not any(self._lines(raw.data)):
            return
        lines, problems = decode_jsonl(raw.data)
        self.findings += (problem.finding(file) for problem in problems)
        for one in read_reflections(file, lines, raw.stamp.modified_at)[0]:
            if text := self._match((one.learning, one.analysis, one.observation, *one.actions)):
                yield SearchHit(file, task_id, text, one.at, one.attempt, one.pointer, place=SearchPlace.REFLECTIONS)

    def _actions(self, file: str, task_id: str, attempt: int) -> Iterator[SearchHit]:
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
            value = _decode_line(line)
            text = self._match(_action_texts(value))
            summary = ActionSummary(success=normalize.flag(value.get("success")), error=value.get("error"))
            is_error = summary.has_failed and SearchPlace.ERRORS in self._places
            place = SearchPlace.ERRORS if is_error else SearchPlace.ACTIONS
            if text and place in self._places:
                at = parse_time(value.get("timestamp")) or parse_time(value.get("at"))
                yield SearchHit(file, task_id, text, at, attempt, f"line {number}", place=place, action=action)


def _attempt_texts(parts: Sequence[Attempt]) -> Iterator[str]:
    for one in parts:
        yield from (one.plan, one.reason, *one.worked, *one.failed, *one.suggestions, one.agent)


def _action_texts(action: Mapping[str, Any]) -> Iterator[str]:
    for name in _ACTION_TEXTS:
        value = action.get(name)
        if name == "params":
            yield from _collect_texts(value, numbers=True)
        elif name != "tool" or normalize.word(value) != normalize.word(action.get("type")):
            yield to_text(value)


def _collect_texts(value: Any, *, numbers: bool = False, levels: int = MAX_DEPTH) -> Iterator[str]:
    """Yield all texts, and optionally numbers, in a JSON value, without its keys."""
    if isinstance(value, dict | list):
        for item in (value.values() if isinstance(value, dict) else value) if levels else ():
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
