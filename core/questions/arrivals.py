"""Whether agents may get a text that arrived: found in a session, imported, proposed or put into quarantine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_day
from core.base.scanning.messages import describe_suspicions
from core.base.scanning.scan import count_marks
from core.base.text import visible_line
from core.index import review_items as kinds
from core.questions.answer import Answer, new_text
from core.questions.held import SUSPECTED
from core.records.decisions import APPROVE, VERBS, Verb

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState, UnreviewedText
    from core.records.patterns import Pattern

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


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Return yes, which accepts the text, and no, which archives it."""
    if item.kind == kinds.QUARANTINE:
        return new_text(item, state, VERBS[Verb.RELEASE].word, "agents may get it")
    return new_text(item, state, APPROVE.word, "it stays, and may become proven")
