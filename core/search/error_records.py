"""Read the searched records of the error log and of the debug memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.config.paths import is_safe_id
from core.episodes.task_lookup import list_entries
from core.records.event_log import EventView
from core.search.words import HitKind, SearchHit, SearchReader
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.events import EventLog
from core.sources.record_kinds import DEBUG_SESSIONS
from core.sources.sweep import scan_path
from core.storage.file_reader import MAX_PATTERN_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.records.debug_sessions import DebugSession
    from core.records.events import Event
    from core.records.snapshot import Snapshot

_ATTEMPT: Final = re.compile(r"(.+)\.(0|[1-9][0-9]{0,8})")


class ErrorRecords(SearchReader):
    """Reads the matching records of the error log and of debug sessions."""

    def hits(self, snapshot: Snapshot | None = None) -> Iterator[SearchHit]:
        """Yield all matching errors, in no particular order: those of `snapshot`, or of the files."""
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
            log = EventLog(file)
            log.read(line + b"\n")
            for event in log.events:
                yield from self._of_event(event, file, f"line {number}")

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
