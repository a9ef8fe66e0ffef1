"""Notifications of what happened between two states of a project."""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import visible_line
from core.decisions.case import about_text, subject_text, verb_text
from core.index.project_state import all_findings
from core.index.review_items import ESCALATION, KINDS, ReviewItem
from core.records.decisions import SYNC, TURNS, Decision, Verb
from core.records.findings import Severity
from core.records.loops import LoopStatus

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.loops import Loop
    from core.records.snapshot import Delta

_BAD: Final = frozenset({LoopStatus.FAILED, LoopStatus.CRASHED, LoopStatus.LIMIT})
_ENDED_WORDS: Final = {LoopStatus.LIMIT: "hit its limit", LoopStatus.PARTIAL: "partly completed"}
_MAX_WORDS: Final = 50


class NotificationKind(StrEnum):
    """Kinds of notifications; the values are printed by `watch --json` and stable."""

    STARTED = "loop-started"
    ENDED = "loop-ended"
    ITERATION = "iteration"
    LEARNED = "pattern-new"
    LEFT = "pattern-gone"
    STATE = "state-changed"
    DECIDED = "decision"
    ASKED = "question"
    ESCALATED = "escalation"
    FINDING = "finding"
    REFUSED = "decision-refused"


class Notification(Struct, frozen=True):
    what: NotificationKind
    subject: str  # ID of the loop, pattern, debug session or decision; of a finding its file
    text: str  # displayable
    severity: Severity = Severity.INFO  # `error`: failed loop or unusable file; `warning`: urgent question
    status: LoopStatus | None = None  # of a finished loop, else None


def find_notifications(
    before: ProjectState, after: ProjectState, delta: Delta, mine: Container[str] = ()
) -> list[Notification]:
    """List all notifications of a change, errors first.

    `mine` has the IDs of the user's own decisions; questions that result from them are not urgent.
    """
    found = [*_loops(before, after, delta), *_patterns(before, after, delta)]
    new: list[Decision] = []
    if after.snapshot.decisions is not before.snapshot.decisions:
        known = {decision.id for decision in before.snapshot.decisions}
        new += (decision for decision in after.snapshot.decisions if decision.id not in known)
    is_own = any(decision.id in mine for decision in new)
    found += (_decided(decision, after) for decision in new)
    is_same_queue = after.queue is before.queue
    asked = set() if is_same_queue else set(map(_asked, before.queue))
    for item in () if is_same_queue else after.queue:
        if _asked(item) in asked:
            continue
        if item.kind == ESCALATION:
            text = f"{visible_line(item.question, 120)} {visible_line(item.reason, 200)}"
            found.append(Notification(NotificationKind.ESCALATED, item.subject, text, Severity.WARNING))
        else:
            text = f"Review asks: {visible_line(item.question, 120)}"
            severity = Severity.WARNING if KINDS[item.kind].is_urgent and not is_own else Severity.INFO
            found.append(Notification(NotificationKind.ASKED, item.subject, text, severity))
    if delta.findings:
        old = set(all_findings(before))
        for finding in all_findings(after):
            if finding not in old and finding.severity is Severity.ERROR:
                text = f"{visible_line(finding.file, 120)}: {visible_line(finding.message, 200)}"
                found.append(Notification(NotificationKind.FINDING, finding.file, text, Severity.ERROR))
    return sorted(found, key=lambda notification: notification.severity is not Severity.ERROR)


def _decided(decision: Decision, after: ProjectState) -> Notification:
    """Return a decision's notification, or that the team refused an offline one."""
    if decision.by == SYNC and decision.verb in TURNS:
        by_id = {one.id: one for one in after.snapshot.decisions}
        what = "Undone" if decision.verb is Verb.UNDO else "Made again"
        text = f"{what}: {visible_line(about_text(decision, by_id), _MAX_WORDS)}. {visible_line(decision.reason, 200)}"
        return Notification(NotificationKind.REFUSED, decision.id, text, Severity.WARNING)
    verb = verb_text(decision)
    text = f"{visible_line(decision.by, 30)}: {verb} {visible_line(subject_text(decision), _MAX_WORDS)}"
    return Notification(NotificationKind.DECIDED, decision.id, text)


def _asked(item: ReviewItem) -> tuple[str, str, str]:
    """Return the identity of a question; each escalation of a session is a question."""
    call = item.escalated.call if item.escalated is not None else None
    return item.kind, item.subject, call.file if call is not None else ""


def _loops(before: ProjectState, after: ProjectState, delta: Delta) -> list[Notification]:
    found = []
    for key in sorted(delta.loops):
        old, new = before.snapshot.loops.get(key), after.snapshot.loops.get(key)
        if new is None:
            continue
        name = visible_line(new.task or new.id, _MAX_WORDS)
        if new.status.ended and old is not None and not old.status.ended:
            severity = Severity.ERROR if new.status in _BAD else Severity.INFO
            text = f"{ended_word(new.status)}: {name}"
            found.append(Notification(NotificationKind.ENDED, key, text, severity, new.status))
        elif new.status.active and (old is None or _is_empty_folder(old)):
            found.append(Notification(NotificationKind.STARTED, key, f"started: {name}"))
        elif old is not None and new.status.active and new.iteration != old.iteration and new.iteration is not None:
            limit = "" if new.max_iterations is None else f" of {new.max_iterations}"
            found.append(Notification(NotificationKind.ITERATION, key, f"iteration {new.iteration}{limit}: {name}"))
    return found


def _is_empty_folder(loop: Loop) -> bool:
    """Return whether a loop was only a folder, which is made before its state."""
    return loop.status is LoopStatus.UNKNOWN and loop.started_at is None and loop.iteration is None


def ended_word(status: LoopStatus) -> str:
    """Return the past tense of a final loop status."""
    return _ENDED_WORDS.get(status, status.value)


def _patterns(before: ProjectState, after: ProjectState, delta: Delta) -> list[Notification]:
    found = []
    for key in sorted(delta.patterns | _scored(before, after, delta)):
        name = visible_line(key, 80)
        if key not in before.snapshot.patterns and key in after.snapshot.patterns:
            found.append(Notification(NotificationKind.LEARNED, key, f"new pattern: {name}"))
        elif key in before.snapshot.patterns and key not in after.snapshot.patterns:
            found.append(Notification(NotificationKind.LEFT, key, f"no longer in the registry: {name}"))
        elif key in before.board and key in after.board:
            old, new = before.assessment(key).shown, after.assessment(key).shown
            if old != new:
                found.append(Notification(NotificationKind.STATE, key, f"{name}: {old} → {new}"))
    return found


def _scored(before: ProjectState, after: ProjectState, delta: Delta) -> set[str]:
    """Return the patterns whose state may have changed by evidence or decisions."""
    if not (delta.loops or delta.events or delta.decisions or delta.attempts or delta.team):
        return set()
    if before.board.ids != after.board.ids:
        return set(before.board.ids) & set(after.board.ids)
    differ = before.board.state_codes != after.board.state_codes
    return {after.board.ids[row] for row in differ.nonzero()[0].tolist()}
