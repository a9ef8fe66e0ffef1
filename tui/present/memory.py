"""Tree of tasks, attempts and debug sessions as rows of one list."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import visible_line
from core.debug_memory.escalations import EscalatedSession, describe_first_failure, newest_escalation_first
from core.documents.document import Sign
from core.documents.signs import attempt_sign, session_sign, task_sign
from core.documents.tasks import final_quality
from core.episodes.attempt_state import AttemptCondition, AttemptState
from core.index.debug_sessions import newest_first
from tui.present.glyphs import ASCII, Cells, Glyphs, draw
from tui.present.numbers import ago, percent, sparkline

if TYPE_CHECKING:
    from core.queries.filter_parser import Query
    from core.queries.record_filters import FoundTask, MemoryCatalog
    from core.records.debug_sessions import DebugSession, Execution
    from core.records.episodes import Attempt, Task

ESCALATIONS: Final = "group/escalations"
TASKS: Final = "group/tasks"
SESSIONS: Final = "group/sessions"
GROUPS: Final = {ESCALATIONS: "Escalations", TASKS: "Tasks", SESSIONS: "Debug sessions"}
"""Names of the groups by key, in order."""
LAST_ATTEMPTS: Final = 6  # Newest attempts shown of an unfolded task; earlier ones are hidden in one row.
SPARKS: Final = 5  # Newest quality values drawn in a row.
_PATH_CELLS: Final = 28
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


task_key: Final = "task/{}".format  # Return the key of the row of a task.
earlier_key: Final = "earlier/{}".format  # Return the key of the row that hides the earlier attempts at a task.
attempt_key: Final = "attempt/{}".format
session_key: Final = "session/{}".format


def parts(key: str) -> tuple[str, str]:
    """Split a key into its kind, such as `task`, and the ID."""
    kind, _, record_id = key.partition("/")
    return kind, record_id


@dataclass(frozen=True, slots=True)
class Tree:
    """The keys of the visible rows in order, and details of some rows by key.

    `counts` has the number of matching tasks or sessions per group, including folded ones. `folds` has whether a row
    with rows below it is folded, and `earlier` the number of attempts that a row of earlier attempts hides. `headings`
    are the rows that do not match themselves.
    """

    keys: Sequence[str]
    counts: Mapping[str, int]
    folds: Mapping[str, bool]
    earlier: Mapping[str, int]
    headings: Set[str]


def tree(
    catalog: MemoryCatalog,
    query: Query,
    sort: tuple[str, bool],
    folded: Mapping[str, bool],
    found_ids: Container[str] = (),
) -> Tree:
    """Build the rows for a filter; a task is shown if one of its attempts matches.

    `sort` is an order of tasks in `ORDERS`, and whether it is descending; sessions are always newest first, by their
    escalation or last change. `folded` has the rows that the user folded (True) or unfolded; by default ended tasks and
    earlier attempts are folded. `found_ids` are those of `MemoryCatalog.select_tasks`.
    """
    sessions = sorted(catalog.select_sessions(query), key=newest_first)
    matching = {session.id for session in sessions}
    found = catalog.select_tasks(query, found_ids)
    order, descending = sort
    rank = ORDERS[order]
    found.sort(key=lambda one: (rank(one.task, catalog.attempts.get(one.task.id, ())), one.task.id), reverse=descending)
    escalated = [one.session.id for one in sorted(catalog.escalated.values(), key=newest_escalation_first)]
    groups: dict[str, list[str]] = {
        ESCALATIONS: [session_key(id) for id in escalated if id in matching],
        TASKS: [],
        SESSIONS: [session_key(one.id) for one in sessions if one.id not in catalog.escalated],
    }
    counts = {key: len(rows) for key, rows in groups.items()} | {TASKS: len(found)}
    folds: dict[str, bool] = {}
    earlier: dict[str, int] = {}
    for one in found:
        groups[TASKS] += _rows(one, folded, folds, earlier)
    headings = {*groups, *earlier, *(task_key(one.task.id) for one in found if not one.own)}
    keys: list[str] = []
    for group, rows in groups.items():
        if rows:
            folds[group] = folded.get(group, False)
            keys += [group] if folds[group] else [group, *rows]
    return Tree(keys, counts, folds, earlier, headings)


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
    """Return the newest time of a task and its attempts."""
    moments = [task.updated_at, task.completed_at, task.created_at, *(attempt.last_activity for attempt in attempts)]
    return max(filter(None, moments), default=None)


def _start(task: Task, attempts: Sequence[Attempt]) -> datetime:
    return task.created_at or (attempts[0].started_at if attempts else None) or _LONG_AGO


ORDERS: Final[Mapping[str, Callable[[Task, Sequence[Attempt]], datetime | float | str]]] = {
    "newest": _start,
    "status": lambda task, attempts: task.status.value,
    "tries": lambda task, attempts: len(attempts),
    "errors": lambda task, attempts: sum(attempt.errors or 0 for attempt in attempts),
    "quality": lambda task, attempts: max(
        (rate for rate in map(final_quality, attempts) if rate is not None), default=-1.0
    ),
    "sign": lambda task, attempts: task_activity(task, attempts) or _LONG_AGO,
}
"""Sort keys of tasks; equal values are ordered by ID."""


def _draw_short(sign: Sign, glyphs: Glyphs) -> Content:
    """Draw a state; "left unfinished" is shortened to "unfinished"."""
    return draw(Sign("unfinished", sign.style, sign.glyph) if sign.text == AttemptState.LEFT else sign, glyphs)


def group_cells(group: str, shown: int, total: int, *, folded: bool, glyphs: Glyphs, in_attempts: int = 0) -> Cells:
    """Return the header of a group, with the numbers of matching and of all records.

    `in_attempts` is the number of debug sessions that are shown as the attempts they were made from.
    """
    count = f"{shown:,}" if shown == total else f"{shown:,} of {total:,}"
    count += f", and {in_attempts:,} in attempts" if group == SESSIONS and in_attempts else ""
    name = f"{_fold(folded, glyphs)} {GROUPS[group]}"
    return {"what": Content.assemble((name, "bold $secondary"), (f"  {count}", "$quiet"))}


def task_cells(
    task: Task,
    attempts: Sequence[Attempt],
    last: AttemptState | None,
    now: datetime,
    glyphs: Glyphs,
    *,
    folded: bool | None,
) -> Cells:
    """Return the cells of a task, with totals over its attempts.

    `last` is the state of the last attempt, `folded` whether the attempts are hidden; both are None without attempts.
    """
    quality = [entry.quality for attempt in attempts for entry in attempt.quality]
    reached = next((found for attempt in reversed(attempts) if (found := final_quality(attempt)) is not None), None)
    return {
        "what": Content.assemble(
            (f" {_fold(folded, glyphs)} ", "$quiet"),
            (visible_line(task.id, 40), "$secondary"),
            f"  {visible_line(task.description, 300)}",
        ),
        "status": _draw_short(task_sign(task, last), glyphs),
        "tries": Content(f"{len(attempts):,}" if attempts else ""),
        "quality": _quality(quality, reached, glyphs),
        "actions": _sum([attempt.actions for attempt in attempts], "$quiet"),
        "errors": _sum([attempt.errors for attempt in attempts], "$error"),
        "sign": Content.styled(ago(task_activity(task, attempts), now), "$quiet" if task.status.ended else ""),
    }


def earlier_cells(count: int, *, folded: bool, glyphs: Glyphs) -> Cells:
    return {"what": Content.styled(f"   {_fold(folded, glyphs):>4} {count:,} earlier attempts", "$quiet")}


def attempt_cells(attempt: Attempt, condition: AttemptCondition, now: datetime, glyphs: Glyphs) -> Cells:
    ended = condition.state is AttemptState.ENDED
    plan = (visible_line(attempt.plan, 300) or "no plan", "$quiet" if ended or not attempt.plan else "")
    return {
        "what": Content.assemble((f"   {attempt.number:>4} ", "$secondary"), plan),
        "status": _draw_short(attempt_sign(attempt, condition), glyphs),
        "quality": _quality([entry.quality for entry in attempt.quality], final_quality(attempt), glyphs),
        "actions": _sum([attempt.actions], "$quiet"),
        "errors": _sum([attempt.errors], "$error"),
        "sign": Content.styled(ago(attempt.last_activity, now), "$quiet" if ended else ""),
    }


def session_cells(session: DebugSession, now: datetime, glyphs: Glyphs, *, escalated: EscalatedSession | None) -> Cells:
    """Return the cells of a debug session.

    The quality is the share of passed tests; errors counts the failed tests of all runs.
    """
    activity = escalated.last_activity if escalated is not None else session.changed_at
    passing = [share for execution in session.executions if (share := _passed_share(execution)) is not None]
    return {
        "what": Content.assemble(
            "   ",
            (path_end(session.file_path or session.id), "$secondary"),
            f"  {visible_line(describe_first_failure(session), 300)}",
        ),
        "status": draw(session_sign(session, is_escalated=escalated is not None), glyphs),
        "tries": Content(f"{len(session.executions):,}" if session.executions else ""),
        "quality": _quality(passing, passing[-1] if passing else None, glyphs),
        "errors": _sum([_failed_tests(execution) for execution in session.executions], "$error"),
        "sign": Content.styled(ago(activity, now), "$quiet"),
    }


def _fold(folded: bool | None, glyphs: Glyphs) -> str:
    return " " if folded is None else glyphs.folded if folded else glyphs.unfolded


def _quality(values: Sequence[float], last: float | None, glyphs: Glyphs) -> Content:
    """Draw the newest values as a right-aligned sparkline, and `last` as a number."""
    drawn = sparkline(values, SPARKS, glyphs)
    ground = (" " if glyphs is ASCII else "·") * (SPARKS - len(drawn)) if drawn else " " * SPARKS
    return Content.assemble((ground, "$rule"), (drawn, "$secondary"), f"{percent(last) if last is not None else '':>6}")


def _sum(counts: Sequence[int | None], style: str) -> Content:
    """Return the sum of the known counts; empty if all are None, quiet if it is 0."""
    known = [count for count in counts if count is not None]
    return Content.styled(f"{sum(known):,}", style if sum(known) else "$quiet") if known else Content("")


def task_second_line(task: Task) -> Content:
    return _second_line("done when", task.criteria)


def attempt_second_line(attempt: Attempt) -> Content:
    """Return the reason of the outcome, or what did not work, or a suggestion."""
    known = (("because", (attempt.reason,)), ("did not work", attempt.failed), ("next time", attempt.suggestions))
    return next((_second_line(label, texts[0]) for label, texts in known if texts and texts[0]), Content(""))


def session_second_line(session: DebugSession) -> Content:
    causes = (one.analysis.root_cause for one in reversed(session.executions) if one.analysis is not None)
    return _second_line("cause", next(filter(None, causes), ""))


def _second_line(label: str, text: str) -> Content:
    return Content.styled(f"    {label}  {visible_line(text, 300)}", "$quiet") if text else Content("")


def path_end(path: str) -> str:
    shown = visible_line(path, 300)
    return shown if len(shown) <= _PATH_CELLS else f"…{shown[1 - _PATH_CELLS :]}"


def _passed_share(execution: Execution) -> float | None:
    results = execution.results
    if results is None or not results.total or results.passed is None:
        return None
    return min(max(results.passed / results.total, 0.0), 1.0)


def _failed_tests(execution: Execution) -> int | None:
    failing = execution.results.failing if execution.results is not None else None
    return len(execution.failures) or None if failing is None else failing
