"""Signs of states (word, glyph, style) for all renderers; decisions as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.learning.maturity import HELD, QUARANTINE
from core.records.debug_sessions import ESCALATED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import TESTS_FAILED, WAITS_FOR_YOU, Loop, LoopStatus, Outcome, needs_person
from core.records.patterns import PatternType
from core.show.pages import document as doc
from core.show.pages.document import Sign, line
from core.tasks.attempts import NOT_STARTED, AttemptCondition, AttemptState

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Decision
    from core.records.snapshot import Snapshot


TYPE_WORDS: Final = {
    PatternType.ERROR: "error pattern",
    PatternType.SUCCESS: "success pattern",
    PatternType.ANTI: "anti-pattern",
    PatternType.TEMPLATE: "code template",
}
_RESULTS: Final = {
    True: Sign("", "good", "done"),
    False: Sign("", "bad", "failed"),
    None: Sign("", "quiet", "no_result"),
}
_LOOKS: Final = {
    "running": ("running", "good"),
    "completing": ("running", "good"),
    "in_progress": ("running", "good"),
    "recovering": ("running", "warning"),
    "paused": ("paused", "warning"),
    "waiting": ("waiting", "quiet"),
    "not started": ("waiting", "quiet"),
    "unfinished": ("left", "warning"),
    "escalated": ("escalated", "warning strong"),
    "completed": ("done", "name"),
    "passed": ("done", "name"),
    "success": ("done", "good"),
    "partial": ("done", "warning"),
    "failed": ("failed", "bad"),
    "failure": ("failed", "bad"),
    "timeout": ("failed", "bad"),
    "crashed": ("failed", "bad strong"),
    "limit": ("deprecated", "warning"),
    "aborted": ("deprecated", "quiet"),
}
"""Glyph and style by status; a status looks the same for loops, tasks, attempts and debug sessions."""


def _sign(status: str) -> Sign:
    glyph, style = _LOOKS.get(status, ("unknown", "quiet"))
    return Sign(status.replace("_", " ") or "unknown", style, glyph)


def result_sign(success: bool | None) -> Sign:
    """Return the glyph of one use or action: succeeded, failed, or unknown."""
    return _RESULTS[success]


def state_sign(state: str) -> Sign:
    """Return the sign of a pattern state as returned by `Assessment.shown`."""
    return Sign(state, "warning" if state in (QUARANTINE, HELD) else state, state)


def status_sign(status: LoopStatus) -> Sign:
    return _sign(status.value)


def loop_sign(loop: Loop) -> Sign:
    """Return a loop's sign: its status, that it waits for a person, or failed tests.

    What a loop ended with is unknown if its files say that it runs, but it is archived or has long been silent.
    """
    if loop.has_failed_check:
        return Sign(TESTS_FAILED, "bad", "failed")
    if loop.status is LoopStatus.UNKNOWN or (loop.is_over and not loop.status.ended):
        return Sign("no result", "quiet", "unknown")
    return Sign(WAITS_FOR_YOU, "warning strong", "waiting") if needs_person(loop) else status_sign(loop.status)


def outcome_sign(outcome: Outcome) -> Sign:
    """Return the sign of an outcome; a dash if it is unknown."""
    if outcome in (Outcome.PARTIAL, Outcome.SKIPPED):
        return Sign(outcome.value, "quiet")
    return Sign("", "quiet", "dash") if outcome is Outcome.UNKNOWN else _sign(outcome.value)


def task_sign(task: Task, last: AttemptState | None) -> Sign:
    """Return the sign of a task; for a running task that of its `last` attempt."""
    if task.status is TaskStatus.RUNNING and last in (None, AttemptState.LEFT):
        return _sign(last.word if last is not None else NOT_STARTED)
    return _sign(task.status.value)


def attempt_sign(attempt: Attempt, condition: AttemptCondition) -> Sign:
    """Return the sign of an attempt's outcome, or of its state while it is open."""
    if condition.state is not AttemptState.ENDED:
        return _sign(condition.state.word)
    if attempt.outcome is Outcome.UNKNOWN:
        return Sign("no outcome", "quiet", "unknown")
    return outcome_sign(attempt.outcome)


def session_sign(session: DebugSession, *, is_escalated: bool) -> Sign:
    """Return the sign of a debug session; an escalation takes precedence."""
    return _sign(ESCALATED if is_escalated else session.status)


def session_status_sign(session: DebugSession, snapshot: Snapshot) -> Sign:
    """Return the sign of a session: escalated if a call for a person is pending."""
    from core.tasks.escalations import find_escalation  # reads files; the words of states need no files

    return session_sign(session, is_escalated=find_escalation(session, snapshot) is not None)


def decision_line(state: ProjectState, decision: Decision) -> doc.Line:
    """Describe a decision in one line of a page."""
    from core.decisions.case import (
        author_text,
        verb_text,
    )  # loads rules; the words of states need none

    is_undone = decision.id in state.snapshot.curation.undone
    change, text = change_text(decision), reason_text(decision)
    return line(
        doc.Moment(decision.at),
        ("  " + verb_text(decision), "strike quiet" if is_undone else "strong"),
        f"  {author_text(decision)}",
        change and f"  {change}",
        (f"  “{text}”", "quiet") if text else None,
        ("  (undone)", "warning") if is_undone else None,
    )


def change_text(decision: Decision) -> str:
    from core.decisions.case import describe_change

    text = describe_change(decision)
    return "" if text.startswith("stays ") else text


def reason_text(decision: Decision) -> str:
    """Return the text that the author wrote: a reason, a note, or an inversion."""
    text = decision.after.get("text")
    return decision.reason or (text if isinstance(text, str) else "")
