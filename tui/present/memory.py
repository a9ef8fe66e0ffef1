"""Tasks, attempts and debug sessions as rows of one list, and the marks that stand for how they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.text import visible_line
from core.debug_memory.escalation_status import EscalatedSession, describe_first_failure
from core.episodes.attempt_state import NOT_STARTED, AttemptCondition, AttemptState
from core.records.debug_sessions import ESCALATED, FAILED, IN_PROGRESS, PASSED, DebugSession, Escalation, Execution
from core.records.episodes import Attempt, Task, TaskStatus
from tui.present.glyphs import ASCII, Cells, Glyphs, outcome_mark
from tui.present.memory_tree import GROUPS, final_quality, task_sign
from tui.present.numbers import ago, percent, sparkline

SPARKS: Final = 5
"""Values of a row's quality that are drawn, the last ones."""
_PATH_CELLS: Final = 28
"""Characters of a path in a row; its end says more than its start."""
_TASK_STYLES: Final = {
    TaskStatus.RUNNING: "$success",
    TaskStatus.PAUSED: "$warning",
    TaskStatus.COMPLETED: "$secondary",
    TaskStatus.FAILED: "$error",
    TaskStatus.UNKNOWN: "$quiet",
}
_STATE_STYLES: Final = {
    AttemptState.RUNNING: "$success",
    AttemptState.PAUSED: "$warning",
    AttemptState.LEFT: "$warning",
}
_SESSION_STYLES: Final = {
    PASSED: "$secondary",
    FAILED: "$error",
    IN_PROGRESS: "$success",
    ESCALATED: "$warning bold",
}


# Marks


def in_list(mark: Content) -> Content:
    """A mark as the list has room for it: its longest words shorter."""
    glyph, _, word = mark.plain.partition(" ")
    return (
        Content.styled(f"{glyph} unfinished", _STATE_STYLES[AttemptState.LEFT]) if word == AttemptState.LEFT else mark
    )


def task_mark(task: Task, last: AttemptState | None, glyphs: Glyphs) -> Content:
    """Glyph and word of a task's status; one that says it runs is shown as what is known of its last attempt.

    Args:
        last: The state of its last attempt; None without any.
    """
    if task.status is TaskStatus.RUNNING and last is None:
        return Content.styled(f"{glyphs.waiting} {NOT_STARTED}", "$quiet")
    if task.status is TaskStatus.RUNNING and last is AttemptState.LEFT:
        return _state_mark(AttemptState.LEFT, glyphs)
    glyph = {
        TaskStatus.RUNNING: glyphs.running,
        TaskStatus.PAUSED: glyphs.paused,
        TaskStatus.COMPLETED: glyphs.done,
        TaskStatus.FAILED: glyphs.failed,
        TaskStatus.UNKNOWN: glyphs.unknown,
    }[task.status]
    return Content.styled(f"{glyph} {task.status.value}", _TASK_STYLES[task.status])


def attempt_mark(attempt: Attempt, condition: AttemptCondition, glyphs: Glyphs) -> Content:
    """Glyph and word: how an attempt came out, else whether somebody works at it."""
    if condition.state is AttemptState.ENDED:
        mark = outcome_mark(attempt.outcome, glyphs)
        return mark if len(mark.plain) > 1 else Content.styled(f"{glyphs.unknown} no outcome", "$quiet")
    return _state_mark(condition.state, glyphs)


def _state_mark(state: AttemptState, glyphs: Glyphs) -> Content:
    glyph = {
        AttemptState.RUNNING: glyphs.running,
        AttemptState.PAUSED: glyphs.paused,
        AttemptState.LEFT: glyphs.left,
    }[state]
    return Content.styled(f"{glyph} {state.value}", _STATE_STYLES[state])


def session_mark(session: DebugSession, glyphs: Glyphs, *, escalated: bool) -> Content:
    """Glyph and word of a debug session's status; that it is escalated counts more than what its file says."""
    status = ESCALATED if escalated else session.status
    glyph = {
        PASSED: glyphs.done,
        FAILED: glyphs.failed,
        IN_PROGRESS: glyphs.running,
        ESCALATED: glyphs.escalated,
    }.get(status, glyphs.unknown)
    word = visible_line(status.replace("_", " ") or "unknown", 15)
    return Content.styled(f"{glyph} {word}", _SESSION_STYLES.get(status, "$quiet"))


# Rows


def group_cells(group: str, shown: int, total: int, *, folded: bool, glyphs: Glyphs) -> Cells:
    """The header of a group.

    Args:
        group: One of the keys of `GROUPS`.
        shown, total: How many tasks or sessions match, and how many there are.
    """
    count = f"{shown:,}" if shown == total else f"{shown:,} of {total:,}"
    return {
        "what": Content.assemble(
            (f"{_fold(folded, glyphs)} {GROUPS[group]}", "bold $secondary"), (f"  {count}", "$quiet")
        )
    }


def task_cells(
    task: Task,
    attempts: Sequence[Attempt],
    last: AttemptState | None,
    now: datetime,
    glyphs: Glyphs,
    *,
    folded: bool | None,
) -> Cells:
    """A task, with what its attempts come to.

    Args:
        attempts: All of them, by number.
        last: The state of the last one; see `task_mark`.
        folded: Whether its attempts are folded away; None where there is nothing to fold.
    """
    quality = [entry.quality for attempt in attempts for entry in attempt.quality]
    reached = next((found for attempt in reversed(attempts) if (found := final_quality(attempt)) is not None), None)
    return {
        "what": Content.assemble(
            (f" {_fold(folded, glyphs)} ", "$quiet"),
            (visible_line(task.id, 40), "$secondary"),
            f"  {visible_line(task.description, 300)}",
        ),
        "status": in_list(task_mark(task, last, glyphs)),
        "tries": Content(f"{len(attempts):,}" if attempts else ""),
        "quality": _quality(quality, reached, glyphs),
        "actions": _sum([attempt.actions for attempt in attempts], "$quiet"),
        "errors": _sum([attempt.errors for attempt in attempts], "$error"),
        "sign": Content.styled(ago(task_sign(task, attempts), now), "$quiet" if task.status.ended else ""),
    }


def earlier_cells(count: int, *, folded: bool, glyphs: Glyphs) -> Cells:
    """The row that older attempts at a task stand under."""
    return {"what": Content.styled(f"   {_fold(folded, glyphs):>4} {count:,} earlier attempts", "$quiet")}


def attempt_cells(attempt: Attempt, condition: AttemptCondition, now: datetime, glyphs: Glyphs) -> Cells:
    """An attempt, below its task."""
    ended = condition.state is AttemptState.ENDED
    return {
        "what": Content.assemble(
            (f"   {attempt.number:>4} ", "$secondary"),
            (visible_line(attempt.plan, 300) or "no plan", "$quiet" if ended or not attempt.plan else ""),
        ),
        "status": in_list(attempt_mark(attempt, condition, glyphs)),
        "quality": _quality([entry.quality for entry in attempt.quality], final_quality(attempt), glyphs),
        "actions": _sum([attempt.actions], "$quiet"),
        "errors": _sum([attempt.errors], "$error"),
        "sign": Content.styled(ago(attempt.last_activity, now), "$quiet" if ended else ""),
    }


def session_cells(session: DebugSession, now: datetime, glyphs: Glyphs, *, escalated: EscalatedSession | None) -> Cells:
    """A debug session: what was worked on and what failed first; quality is the share of the tests that pass, errors
    are the tests that failed, of all its runs."""
    sign = escalated.last_activity if escalated is not None else session.changed_at
    passing = [share for execution in session.executions if (share := passed_share(execution)) is not None]
    return {
        "what": Content.assemble(
            "   ",
            (path_end(session.file_path or session.id), "$secondary"),
            f"  {visible_line(describe_first_failure(session), 300)}",
        ),
        "status": session_mark(session, glyphs, escalated=escalated is not None),
        "tries": Content(f"{len(session.executions):,}" if session.executions else ""),
        "quality": _quality(passing, passing[-1] if passing else None, glyphs),
        "errors": _sum([_failed_tests(execution) for execution in session.executions], "$error"),
        "sign": Content.styled(ago(sign, now), "$quiet"),
    }


def _fold(folded: bool | None, glyphs: Glyphs) -> str:
    if folded is None:
        return " "
    return glyphs.folded if folded else glyphs.unfolded


def _quality(values: Sequence[float], last: float | None, glyphs: Glyphs) -> Content:
    """The last values, the newest beside its number, on a dotted ground: short is few of them, not little."""
    drawn = sparkline(values, SPARKS, glyphs)
    ground = (" " if glyphs is ASCII else "·") * (SPARKS - len(drawn)) if drawn else " " * SPARKS
    return Content.assemble(
        (ground, "$rule"),
        (drawn, "$secondary"),
        f"{percent(last) if last is not None else '':>6}",
    )


def _sum(counts: Sequence[int | None], style: str) -> Content:
    """What is known of the counts added up; nothing where none is known, and quiet where it is nought."""
    known = [count for count in counts if count is not None]
    if not known:
        return Content("")
    return Content.styled(f"{sum(known):,}", style if sum(known) else "$quiet")


# Second lines of rows, where rows have two


def task_below(task: Task) -> Content:
    """When a task is done."""
    return _below("done when", task.criteria)


def attempt_below(attempt: Attempt) -> Content:
    """Why an attempt came out as it did, else what did not work or is suggested."""
    told = (("because", (attempt.reason,)), ("didn't work", attempt.failed), ("next time", attempt.suggestions))
    return next((_below(label, texts[0]) for label, texts in told if texts and texts[0]), Content(""))


def session_below(session: DebugSession) -> Content:
    """The root cause that was seen last."""
    causes = (one.analysis.root_cause for one in reversed(session.executions) if one.analysis is not None)
    return _below("cause", next(filter(None, causes), ""))


def _below(label: str, text: str) -> Content:
    return Content.styled(f"    {label}  {visible_line(text, 300)}", "$quiet") if text else Content("")


# What sessions say of themselves


def path_end(path: str) -> str:
    """A path in a row: what it ends with, where it is long."""
    shown = visible_line(path, 300)
    return shown if len(shown) <= _PATH_CELLS else f"…{shown[1 - _PATH_CELLS :]}"


def passed_share(execution: Execution) -> float | None:
    """How many of the tests passed, 0..1; None where that is not told."""
    results = execution.results
    if results is None or not results.total or results.passed is None:
        return None
    return min(max(results.passed / results.total, 0.0), 1.0)


def _failed_tests(execution: Execution) -> int | None:
    """How many tests failed or broke in one run; None where that is not told."""
    told = execution.results.failing if execution.results is not None else None
    return len(execution.failures) or None if told is None else told


def call_line(call: Escalation, now: datetime) -> Content:
    """Who called for a person, when, and where the context is kept."""
    return Content.assemble(
        (f"called by {visible_line(call.by, 40) or 'nobody named'}, {ago(call.at, now)}; context kept in ", "$quiet"),
        (visible_line(call.file, 300), "$secondary"),
    )
