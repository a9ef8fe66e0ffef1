"""Signs of states: the word, the glyph and the style that every renderer uses."""

from __future__ import annotations

from typing import Final

from core.debug_memory.escalation_status import find_escalation
from core.documents.document import Sign
from core.episodes.attempt_state import NOT_STARTED, AttemptCondition, AttemptState
from core.learning.assessment import HELD, QUARANTINE
from core.learning.outcomes import Verdict
from core.records.debug_sessions import ESCALATED, FAILED, IN_PROGRESS, PASSED, DebugSession
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import LoopStatus, Outcome
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot

TYPE_WORDS: Final = {
    PatternType.ERROR: "error pattern",
    PatternType.SUCCESS: "success pattern",
    PatternType.ANTI: "anti-pattern",
    PatternType.TEMPLATE: "code template",
}
VERDICT_STYLES: Final = {Verdict.HELPFUL: "good", Verdict.HARMFUL: "bad", Verdict.NEUTRAL: "quiet"}
_RESULTS: Final = {True: ("done", "good"), False: ("failed", "bad"), None: ("no_result", "quiet")}
_STATUSES: Final = {
    LoopStatus.RUNNING: ("running", "good"),
    LoopStatus.COMPLETING: ("running", "good"),
    LoopStatus.RECOVERING: ("running", "warning"),
    LoopStatus.PAUSED: ("paused", "warning"),
    LoopStatus.WAITING: ("waiting", "quiet"),
    LoopStatus.COMPLETED: ("done", "name"),
    LoopStatus.PARTIAL: ("done", "warning"),
    LoopStatus.FAILED: ("failed", "bad"),
    LoopStatus.LIMIT: ("deprecated", "warning"),
    LoopStatus.ABORTED: ("deprecated", "quiet"),
    LoopStatus.CRASHED: ("failed", "bad strong"),
    LoopStatus.UNKNOWN: ("unknown", "quiet"),
}
_OUTCOMES: Final = {
    Outcome.SUCCESS: ("done", "good"),
    Outcome.FAILURE: ("failed", "bad"),
    Outcome.TIMEOUT: ("failed", "bad"),
}
_TASKS: Final = {
    TaskStatus.RUNNING: ("running", "good"),
    TaskStatus.PAUSED: ("paused", "warning"),
    TaskStatus.COMPLETED: ("done", "name"),
    TaskStatus.FAILED: ("failed", "bad"),
    TaskStatus.UNKNOWN: ("unknown", "quiet"),
}
_ATTEMPTS: Final = {
    AttemptState.RUNNING: ("running", "good"),
    AttemptState.PAUSED: ("paused", "warning"),
    AttemptState.LEFT: ("left", "warning"),
}
_SESSIONS: Final = {
    PASSED: ("done", "name"),
    FAILED: ("failed", "bad"),
    IN_PROGRESS: ("running", "good"),
    ESCALATED: ("escalated", "warning strong"),
}


def _sign(word: str, look: tuple[str, str]) -> Sign:
    glyph, style = look
    return Sign(word, style, glyph)


def result_sign(success: bool | None) -> Sign:
    """Return the glyph of one use or action: succeeded, failed, or unknown."""
    return _sign("", _RESULTS[success])


def state_sign(state: str) -> Sign:
    """Return the sign of a pattern state, see `Assessment.shown`."""
    return Sign(state, "warning" if state in (QUARANTINE, HELD) else state, state)


def status_sign(status: LoopStatus) -> Sign:
    """Return the sign of a loop's status."""
    return _sign(status.value, _STATUSES[status])


def outcome_sign(outcome: Outcome) -> Sign:
    """Return the sign of an outcome; a bare dash if it is unknown."""
    if outcome is Outcome.UNKNOWN:
        return Sign("", "quiet", "dash")
    return _sign(outcome.value, _OUTCOMES.get(outcome, ("", "quiet")))


def task_sign(task: Task, last: AttemptState | None) -> Sign:
    """Return the sign of a task; a running one is shown as its `last` attempt."""
    if task.status is TaskStatus.RUNNING and last is None:
        return Sign(NOT_STARTED, "quiet", "waiting")
    if task.status is TaskStatus.RUNNING and last is AttemptState.LEFT:
        return _sign(last.value, _ATTEMPTS[last])
    return _sign(task.status.value, _TASKS[task.status])


def attempt_sign(attempt: Attempt, condition: AttemptCondition) -> Sign:
    """Return the sign of an attempt's outcome, or of its state while it is open."""
    if condition.state is not AttemptState.ENDED:
        return _sign(condition.state.value, _ATTEMPTS[condition.state])
    if attempt.outcome is Outcome.UNKNOWN:
        return Sign("no outcome", "quiet", "unknown")
    return outcome_sign(attempt.outcome)


def session_sign(session: DebugSession, *, is_escalated: bool) -> Sign:
    """Return the sign of a debug session; an escalation takes precedence."""
    status = ESCALATED if is_escalated else session.status
    return _sign(status.replace("_", " ") or "unknown", _SESSIONS.get(status, ("unknown", "quiet")))


def session_status_sign(session: DebugSession, snapshot: Snapshot) -> Sign:
    """Return the sign of a session, escalated where a call to a person is pending."""
    return session_sign(session, is_escalated=find_escalation(session, snapshot) is not None)
