"""Questions about what arrived: texts, learnings, lessons, reports, escalations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_day, shorten_id
from core.base.text import plural, visible_line
from core.learning.bursts import format_burst, format_source
from core.questions.held import SUSPECTED
from core.questions.impact import UNSEEN_USES
from core.questions.lesson_search import lesson_weight
from core.questions.offer import chars_offered
from core.scanning.messages import describe_danger, describe_suspicions
from core.scanning.scan import count_marks
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.debug_memory.escalations import EscalatedSession
    from core.questions.priority import ImpactEstimator
    from core.records.debug_sessions import DebugSession, Escalation
    from core.records.decisions import CurationState, UnreviewedText
    from core.records.extractions import Extraction
    from core.records.lessons import JoinedLesson
    from core.records.patterns import Pattern
    from core.state.review_items import ReviewItem, WeakenedTest

STUCK: Final = timedelta(days=14)  # Age at which an escalation stops being urgent.
WAITS: Final = "an agent waits until a person helps"  # Why an escalation comes first.
_ARRIVED: Final = {
    "import": "imported",
    "extraction": "found",
    "proposal": "proposed",
    "quarantine": "quarantined",
}


def arrivals(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Ask about imported, extracted or quarantined texts that no person released."""
    board = scales.board
    for pattern_id, arrival in curation.arrivals.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern_id not in board or not arrival.needs_review(pattern.content_hash):
            continue
        row = board.row(pattern_id)
        if board.held[row]:
            continue  # asked about as a held text
        kind, question, place = kinds.EXTRACTED, "Keep {}?", None
        is_withheld = bool(scales.stakes.is_withheld[row])
        if board.quarantined[row]:
            kind, question, place = (
                kinds.QUARANTINE,
                "An agent proposes {}. May agents get it?" if arrival.kind == "proposal" else "May agents get {}?",
                "no agent gets it until you say yes",
            )
            is_withheld = True
        elif arrival.blocks:
            continue
        suspicions = board.suspicions(pattern_id)
        impact = (SUSPECTED if suspicions else 1.0) * scales.unseen(pattern_id, is_withheld=is_withheld)
        make = partial(_arrival, scales, kind, pattern, arrival, question, place)
        yield scales.ask(kind, pattern_id, make, arrival, suspicions, impact=impact)


def _arrival(
    scales: ImpactEstimator, kind: str, pattern: Pattern, arrival: UnreviewedText, question: str, place: str | None
) -> ReviewItem:
    is_found = arrival.kind == "extraction"
    by = "in a session" if is_found else f"by {visible_line(arrival.by, 40)}"
    reason = f"{_ARRIVED[arrival.kind]} {by} on {format_day(arrival.at)}"
    reason += f": {visible_line(arrival.reason, 120)}" if arrival.reason and not is_found else ""
    suspicions = scales.board.suspicions(pattern.id)
    reason += f"; this text {describe_suspicions(suspicions)}" if suspicions else ""
    risk = count_marks(suspicions) if kind == kinds.QUARANTINE else ()
    return scales.item(kind, pattern.id, question=question, reason=reason, place=place, risk=risk)


def lessons(scales: ImpactEstimator, found: Sequence[tuple[JoinedLesson, Extraction]]) -> Iterator[ReviewItem]:
    """Ask about lessons that agents wrote down, of which a pattern can be made."""
    weights = [lesson_weight(one, scales.board.now, scales.settings.maturity.half_life_days) for one, _ in found]
    top = max(weights, default=0.0)
    for (joined, offer), weight in zip(found, weights, strict=True):
        lesson = joined.lesson
        does = describe_danger(lesson.text, scales.settings)
        parts = [f"written down by {visible_line(', '.join(joined.runners), 60)}", does and f"this text {does}"]
        if joined.contradicts:
            parts.append(f"contradicts {shorten_id(joined.contradicts[0])}")
        if joined.disagrees_with:
            parts.append(f"contradicts {plural(len(joined.disagrees_with), 'other lesson')}")
        cited = f", cited {plural(joined.uses, 'time')}" if joined.uses else ""
        loaded = ", loaded by the agent" if joined.is_loaded else ""
        yield scales.item(
            kinds.LESSON,
            joined.id,
            question="Make {} a lesson for all agents?",
            name=f"the note “{visible_line(lesson.text, 80)}”",
            this="this note of an agent",
            reason="; ".join(filter(None, parts)),
            place=f"in {plural(len(joined.places), 'place')}{loaded}{cited}",
            impact=scales.new(UNSEEN_USES * (weight + top * joined.is_contradicted)),
            chars=len(lesson.text) + len(lesson.why) + chars_offered(offer),
            offer=offer,
            lesson=joined,
            evidence=len(joined.places),
        )


def bursts(scales: ImpactEstimator) -> Iterator[ReviewItem]:
    """Ask about suspicious reports, which do not count until a person decides."""
    for burst in scales.board.bursts:
        count = len(burst.patterns)
        question = f"{{}} blamed {plural(count, 'lesson')} at once. Ignore its reports?"
        if burst.is_of_member:
            results = plural(burst.successes + burst.failures, "unconfirmed result")
            question = f"{{}} sent {results}. Ignore them?"
        yield scales.item(
            kinds.BURST,
            burst.source,
            question=question,
            name=format_source(burst.source),
            this="A member" if burst.is_of_member else "A session",
            reason=format_burst(burst),
            place="",
            impact=sum(scales.either(id) for id in burst.patterns if id in scales.board) / 2,
            chars=0,
            further=count,
            burst=burst,
            evidence=count,
        )


def weakened_tests(scales: ImpactEstimator, found: Sequence[WeakenedTest]) -> Iterator[ReviewItem]:
    """Ask about tests that passed because they check less; docs/extraction.md#weakened-tests."""
    for one in found:
        command, failure = visible_line(one.command, 60), visible_line(one.failure, 120)
        files = visible_line(", ".join(one.files), 80) or "a test"
        by = f" by {visible_line(one.agent, 40)}" if one.agent else ""
        yield scales.item(
            kinds.WEAKENED,
            one.task_id,
            question=f"{{}} was {one.change} to pass. Have you seen it?",
            name=f"A test of {visible_line(one.attempt_id, 80)}",
            this="A test",
            reason=f"{files} was changed{by} after {command!r} failed: {failure}",
            place="",
            chars=len(one.diff),
            weakened=one,
        )


def escalations(scales: ImpactEstimator, escalated: Iterable[EscalatedSession], now: datetime) -> Iterator[ReviewItem]:
    """Ask about escalated debug sessions, newest first; only recent ones whose loop has not ended are urgent."""
    for one in sorted(escalated, key=lambda one: one.at or now, reverse=True):
        session, at = one.session, one.at
        since = f", on {format_day(at)}" if at is not None else ""
        called = f"; {_call_text(one.call)}" if one.call is not None else ""
        stuck = _stuck_text(session)
        file, what = visible_line(session.file_path, 80), "an agent asks for help"
        if one.has_ended:
            what = f"the agent gave up{f' on {format_day(at)}' if at is not None else ''}"
        is_stuck = not one.has_ended and (at is None or now - at <= STUCK)
        yield scales.item(
            kinds.ESCALATION,
            session.id,
            question=f"Escalated{f' at {file}' if file else ''}: {what}. Have you seen it?",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck}",
            place=WAITS if is_stuck else "",
            is_urgent=is_stuck,
            impact=0.0,
            chars=len(stuck),
            escalated=one,
            evidence=len(session.executions),
        )


def _call_text(call: Escalation) -> str:
    """Describe why and by whom a person was called: `needs credentials — by ada`."""
    by = f"by {visible_line(call.by, 40) or 'unknown'}"
    return f"{visible_line(call.reason, 200)} — {by}" if call.reason else f"called {by}"


def _stuck_text(session: DebugSession) -> str:
    """Describe in one line what an escalated session could not fix."""
    run = session.newest_failing
    if run is None:
        return "no failed run is recorded"
    failure = run.failures[0]
    more = f", and {plural(len(run.failures) - 1, 'further failure')}" if len(run.failures) > 1 else ""
    error = f"{failure.error_type}: {failure.message}".strip(": ")
    return visible_line(error or failure.test_name or "unnamed failure", 160) + more
