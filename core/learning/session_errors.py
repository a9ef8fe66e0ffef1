"""Which loop or attempt a debug session belongs to; docs/scoring.md#errors-of-a-loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, by_task
from core.records.loops import Loop
from core.records.snapshot import Delta, Snapshot


def group_sessions_by_work(snapshot: Snapshot, row_id: Callable[[str], str]) -> dict[str, tuple[DebugSession, ...]]:
    """Group debug sessions by the ID of their loop or attempt, each session once.

    A loop that the session names has priority over a task. A session of a task belongs to the attempt that was running
    when it began, or to the only attempt if times are missing. Others are left out.

    Args:
        row_id: Maps an ID or alias to the ID of the loop, else to itself.
    """
    attempts: Mapping[str, Sequence[Attempt]] | None = None
    found: dict[str, list[DebugSession]] = {}
    for session in snapshot.debug_sessions.values():
        work_id = row_id(session.loop_id)
        if work_id not in snapshot.loops:
            names = [name for name in (session.loop_id, session.task_id) if name]
            if attempts is None and names:
                attempts = by_task(snapshot.attempts.values())
            work_id = _attempt(session, names, snapshot.attempts, attempts or {})
        if work_id:
            found.setdefault(work_id, []).append(session)
    return {work_id: tuple(sessions) for work_id, sessions in found.items()}


def changes_owners(before: Snapshot, after: Snapshot, delta: Delta) -> bool:
    """Return whether a change may assign sessions to other work items; the progress of these does not matter."""
    if delta.debug_sessions or not after.debug_sessions:
        return bool(delta.debug_sessions)
    loops, attempts = (before.loops, after.loops), (before.attempts, after.attempts)
    return any(_aliases(loops[0].get(id)) != _aliases(loops[1].get(id)) for id in delta.loops) or any(
        _begin(attempts[0].get(id)) != _begin(attempts[1].get(id)) for id in delta.attempts
    )


def _attempt(
    session: DebugSession,
    names: Iterable[str],
    attempts: Mapping[str, Attempt],
    of_task: Mapping[str, Sequence[Attempt]],
) -> str:
    """Return the ID of the attempt that a session belongs to; "" if unknown."""
    for name in names:
        if name in attempts:
            return name
        if name in of_task:
            return _running_at(of_task[name], _began(session))
    return ""


def _running_at(attempts: Sequence[Attempt], at: datetime | None) -> str:
    """Return the ID of the attempt that was running at a time."""
    started = [attempt for attempt in attempts if attempt.started_at is not None]
    if at is None or not started:
        return attempts[0].id if len(attempts) == 1 else ""
    before = [(one.started_at, one.number, one.id) for one in started if one.started_at and one.started_at <= at]
    return max(before)[2] if before else ""


def _began(session: DebugSession) -> datetime | None:
    runs = (run.at for run in session.executions if run.at is not None)
    return session.created_at or min(runs, default=session.updated_at)


def _aliases(loop: Loop | None) -> tuple[str, ...] | None:
    return loop.aliases if loop is not None else None


def _begin(attempt: Attempt | None) -> tuple[datetime | None] | None:
    return (attempt.started_at,) if attempt is not None else None
