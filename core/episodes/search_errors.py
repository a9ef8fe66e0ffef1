"""Search the errors of loops, attempts and debug sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from core.base.errors import RalphdeckError
from core.episodes.search_reader import SearchHit, SearchPlace, SearchReader
from core.episodes.task_lookup import find_attempt, list_entries
from core.records.debug_sessions import DebugSession
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.events import EventLog
from core.sources.record_kinds import DEBUG_SESSIONS
from core.sources.sweep import scan_path
from core.storage.file_reader import MAX_PATTERN_BYTES


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
                if error is None or not (
                    text := self._match((error.message, error.stack_trace, error.tool_name, error.context))
                ):
                    continue
                task_id, attempt = self._resolve_work_id(event.loop_id)
                yield SearchHit(
                    place=SearchPlace.ERRORS,
                    file=file,
                    pointer=f"line {number}",
                    task_id=task_id,
                    attempt=attempt,
                    subject=event.loop_id,
                    at=event.at,
                    text=text,
                )

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
        if raw is None or not self._words.may_be_in(raw.data, b"\\"):
            return
        value = self._decode(file, raw.data)
        yield from read_sessions(file, value)[0]

    def _failures(self, session: DebugSession) -> Iterator[SearchHit]:
        for execution in session.executions:
            analysis = execution.analysis
            for one in execution.failures:
                source = (one.message, one.error_type, one.test_name, one.test_file, one.file, one.function)
                about = (analysis.root_cause, analysis.strategy) if analysis else ()
                if text := self._match((*source, *about, one.stack_trace, session.file_path)):
                    task_id, attempt = self._resolve_work_id(session.task_id) if session.task_id else ("", None)
                    yield SearchHit(
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
