"""Search tasks, actions, reflections and errors directly in the files."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from core.base.errors import RalphdeckError
from core.config.paths import ProjectPaths
from core.episodes.search_reader import SearchFilters, SearchHit, SearchPlace, SearchReader, SearchWords
from core.episodes.search_tasks import TaskSearcher
from core.episodes.task_lookup import find_attempt, list_entries
from core.records.debug_sessions import DebugSession
from core.records.findings import Finding
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.events import EventLog
from core.sources.record_kinds import DEBUG_SESSIONS
from core.sources.sweep import scan_path
from core.storage.file_reader import MAX_PATTERN_BYTES


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, newest first and those without a time last, at most the requested number.

    `total` is the number of all hits; `findings` are problems with the files that were parsed.
    """

    hits: tuple[SearchHit, ...]
    total: int
    findings: tuple[Finding, ...]


def search(
    paths: ProjectPaths, words: SearchWords, filters: SearchFilters | None = None, limit: int | None = None
) -> SearchResult:
    """The records that contain all words and match the filters.

    A file is parsed only if its bytes may match: searching 10,000 tasks takes one to two seconds.
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

    # At least one is taken, since all hits are counted even if the limit is 0.
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
        """Every matching error, in no particular order."""
        yield from self._error_log()
        # A session may be in several files; only the copy that counts is found, once.
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
        """The task and attempt with this ID; "" and None if it is the ID of a loop."""
        try:
            task_id, attempt = find_attempt(self._paths, work_id)
        except RalphdeckError:
            return "", None
        return (task_id, attempt) if work_id in (task_id, f"{task_id}.{attempt}") else ("", None)

    def _debug_files(self) -> Iterator[str]:
        """The files of the debug memory, next to the loops and in their folders."""
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
