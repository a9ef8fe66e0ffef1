"""What a loop or a debug session left behind, put together for extraction (0) 1_analyze_loop_history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar

from msgspec.structs import replace

from core.errors import UnknownRecord
from core.paths import ProjectPaths
from core.records.debug_sessions import DebugSession
from core.records.events import Event
from core.records.loops import Iteration, Loop
from core.records.material import Material
from core.records.reflections import Reflection
from core.snapshot import Snapshot
from core.sources.story import read_story
from core.text import visible_line

_Record = TypeVar("_Record", Event, Reflection, DebugSession)
MAX_RECORDS: Final = 500
"""Most iterations, reflections and errors of one loop that are looked at, the newest ones; loops have tens of them."""
MAX_SESSIONS: Final = 20
MAX_RUNS: Final = 50
"""Most executions of one session, the last ones."""
MAX_FAILURES: Final = 20
"""Most failures of one iteration or execution."""
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Materials:
    """The material of every loop and session of one snapshot; only the loops' own files are read, and late."""

    def __init__(self, paths: ProjectPaths, snapshot: Snapshot) -> None:
        self._paths = paths
        self._snapshot = snapshot
        self._ids = {alias: loop.id for loop in snapshot.loops.values() for alias in (*loop.aliases, loop.id)}
        self._sessions = self._by_loop(snapshot.debug_sessions.values())
        self._reflections = self._by_loop(snapshot.reflections.values())
        self._errors = self._by_loop(event for event in snapshot.events if event.kind == "error")
        self._resolved = self._by_loop(event for event in snapshot.events if event.kind == "resolved")

    def read(self, source_id: str) -> Material:
        """The material of a loop (by any of its ids) or debug session.

        Raises:
            UnknownRecord: There is neither a loop nor a session of this id.
        """
        loop = self._snapshot.loops.get(self._ids.get(source_id, ""))
        if loop is not None:
            return self._of_loop(loop)
        session = self._snapshot.debug_sessions.get(source_id)
        if session is not None:
            home = self._snapshot.loops.get(self._ids.get(session.loop_id, ""))
            return Material(source_id=session.id, loop=home, sessions=(_cut_session(session),))
        raise UnknownRecord(f"no loop and no debug session {visible_line(source_id, 120)!r} in {self._paths.project}")

    def _of_loop(self, loop: Loop) -> Material:
        sessions = self._sessions.get(loop.id, ())
        return Material(
            source_id=loop.id,
            loop=loop,
            iterations=tuple(map(_cut_iteration, read_story(self._paths, loop).iterations[-MAX_RECORDS:])),
            sessions=tuple(map(_cut_session, sorted(sessions, key=_age)[-MAX_SESSIONS:])),
            reflections=tuple(self._reflections.get(loop.id, ())[:MAX_RECORDS]),
            errors=tuple(self._errors.get(loop.id, ())[-MAX_RECORDS:]),
            resolved=tuple(self._resolved.get(loop.id, ())),
        )

    def _by_loop(self, records: Iterable[_Record]) -> Mapping[str, list[_Record]]:
        grouped: dict[str, list[_Record]] = defaultdict(list)
        for record in records:
            if loop_id := self._ids.get(record.loop_id):
                grouped[loop_id].append(record)
        return grouped


def _age(session: DebugSession) -> tuple[datetime, str]:
    return session.created_at or session.updated_at or _EARLIEST, session.id


def _cut_iteration(iteration: Iteration) -> Iteration:
    if len(iteration.failures) <= MAX_FAILURES:
        return iteration
    return replace(iteration, failures=iteration.failures[:MAX_FAILURES])


def _cut_session(session: DebugSession) -> DebugSession:
    runs = (replace(run, failures=run.failures[:MAX_FAILURES]) for run in session.executions[-MAX_RUNS:])
    return replace(session, executions=tuple(runs))


def read_material(paths: ProjectPaths, snapshot: Snapshot, source_id: str) -> Material:
    """The material of one loop or debug session; see `Materials` for many.

    Raises:
        UnknownRecord: There is neither a loop nor a session of this id.
    """
    return Materials(paths, snapshot).read(source_id)
