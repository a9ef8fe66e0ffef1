"""Keys of the rows of Memory: three groups, and attempts below their tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core.debug_memory.escalations import newest_escalation_first
from core.debug_memory.index import newest_first
from core.documents.tasks import final_quality
from core.queries.filter_parser import Query
from core.queries.record_filters import FoundTask, MemoryCatalog
from core.records.episodes import Attempt, Task

ESCALATIONS: Final = "group/escalations"
TASKS: Final = "group/tasks"
SESSIONS: Final = "group/sessions"
GROUPS: Final = {ESCALATIONS: "Escalations", TASKS: "Tasks", SESSIONS: "Debug sessions"}
"""Names of the groups by key, in order."""
LAST_ATTEMPTS: Final = 6
"""Newest attempts shown of an unfolded task; earlier ones are hidden in one row."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def task_key(task_id: str) -> str:
    """Return the key of a task."""
    return f"task/{task_id}"


def earlier_key(task_id: str) -> str:
    """Return the key of the row of earlier attempts."""
    return f"earlier/{task_id}"


def attempt_key(attempt_id: str) -> str:
    """Return the key of an attempt."""
    return f"attempt/{attempt_id}"


def session_key(session_id: str) -> str:
    """Return the key of a debug session."""
    return f"session/{session_id}"


def parts(key: str) -> tuple[str, str]:
    """Split a key into its kind (group, task, earlier, attempt or session) and the ID."""
    kind, _, record_id = key.partition("/")
    return kind, record_id


@dataclass(frozen=True, slots=True)
class Tree:
    """The rows for a filter.

    Attributes:
        keys: Visible rows in order.
        counts: Matching tasks or sessions by group, visible or not.
        folds: Whether each row with rows below it is folded.
        earlier: Number of attempts below each row of earlier ones.
    """

    keys: Sequence[str]
    counts: Mapping[str, int]
    folds: Mapping[str, bool]
    earlier: Mapping[str, int]


def tree(catalog: MemoryCatalog, query: Query, sort: tuple[str, bool], folded: Mapping[str, bool]) -> Tree:
    """Build the rows for a filter; a task is shown if one of its attempts matches.

    Args:
        sort: Order of tasks, a name of `ORDERS`, and whether it is descending. Sessions are always newest first, by
            their escalation or last change.
        folded: Rows that the user folded (True) or unfolded. By default ended tasks and earlier attempts are folded.
    """
    sessions = sorted(catalog.select_sessions(query), key=newest_first)
    matching = {session.id for session in sessions}
    found = catalog.select_tasks(query)
    order, descending = sort
    found.sort(key=lambda one: ORDERS[order](one.task, catalog.attempts.get(one.task.id, ())), reverse=descending)
    groups: dict[str, list[str]] = {
        ESCALATIONS: [
            session_key(one.session.id)
            for one in sorted(catalog.escalated.values(), key=newest_escalation_first)
            if one.session.id in matching
        ],
        TASKS: [],
        SESSIONS: [session_key(one.id) for one in sessions if one.id not in catalog.escalated],
    }
    counts = {key: len(rows) for key, rows in groups.items()} | {TASKS: len(found)}
    folds: dict[str, bool] = {}
    earlier: dict[str, int] = {}
    for one in found:
        groups[TASKS] += _rows(one, folded, folds, earlier)
    keys: list[str] = []
    for group, rows in groups.items():
        if rows:
            folds[group] = folded.get(group, False)
            keys += [group] if folds[group] else [group, *rows]
    return Tree(keys, counts, folds, earlier)


def _rows(found: FoundTask, folded: Mapping[str, bool], folds: dict[str, bool], earlier: dict[str, int]) -> list[str]:
    key = task_key(found.task.id)
    if not found.attempts:
        return [key]
    folds[key] = found.own and folded.get(key, found.task.status.ended)
    if folds[key]:
        return [key]
    rows = [attempt_key(attempt.id) for attempt in found.attempts]
    before = len(rows) - LAST_ATTEMPTS
    if before < 2:
        return [key, *rows]
    header = earlier_key(found.task.id)
    folds[header], earlier[header] = folded.get(header, True), before
    return [key, header, *rows[before if folds[header] else 0 :]]


def task_activity(task: Task, attempts: Sequence[Attempt]) -> datetime | None:
    """Return the last activity of a task: the newest of its own times and those of its attempts."""
    moments = [task.updated_at, task.completed_at, task.created_at, *(attempt.last_activity for attempt in attempts)]
    return max(filter(None, moments), default=None)


def _newest(task: Task, attempts: Sequence[Attempt]) -> tuple[datetime, str]:
    first = task.created_at or (attempts[0].started_at if attempts else None)
    return first or _LONG_AGO, task.id


def _best(attempts: Sequence[Attempt]) -> float:
    return max((quality for quality in map(final_quality, attempts) if quality is not None), default=-1.0)


ORDERS: Final[Mapping[str, Callable[[Task, Sequence[Attempt]], tuple[datetime | float | str, str]]]] = {
    "newest": _newest,
    "status": lambda task, attempts: (task.status.value, task.id),
    "tries": lambda task, attempts: (len(attempts), task.id),
    "errors": lambda task, attempts: (sum(attempt.errors or 0 for attempt in attempts), task.id),
    "quality": lambda task, attempts: (_best(attempts), task.id),
    "sign": lambda task, attempts: (task_activity(task, attempts) or _LONG_AGO, task.id),
}
"""Sort keys of tasks; equal values are ordered by ID."""
