"""What the answers to each kind of question in Review decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.curation.curator import Decided
from core.curation.rules import duplicate_question, extraction_question
from core.deck import Deck
from core.records.decisions import Decision, Verb
from core.review import items as kinds
from core.review.items import ReviewItem
from core.text import visible_line
from core.view import View

REJECTED: Final = "rejected in review"


def acceptance(item: ReviewItem, view: View) -> Callable[[Deck], Decided]:
    """Do what is proposed."""
    if item.burst is not None:
        return lambda deck: deck.revoke(item.subject, seen=item.burst)
    if item.inversion is not None:
        return lambda deck: deck.accept_inversion(item.subject)
    match item.kind:
        case kinds.OFFER:
            return lambda deck: deck.extract(item.subject, seen=item.offer)
        case kinds.DUPLICATE:
            return lambda deck: deck.merge(item.subject, item.other)
        case kinds.ESCALATION:
            summary = f"saw the {visible_line(item.about, 80)}"
            return lambda deck: deck.dismiss(item.question_key, summary, about=item.about)
        case kinds.QUARANTINE | kinds.EXTRACTED:
            # Bound to the very text that is on the screen.
            seen = view.pattern(item.subject).content_hash
            return lambda deck: deck.release(item.subject, seen_hash=seen)
        case _:
            reason = "its text has changed" if item.kind == kinds.STALE_PIN else "later evidence contradicts it"
            return lambda deck: deck.reset(item.subject, reason=reason)


def rejection(item: ReviewItem) -> Callable[[Deck], Decided]:
    """Leave things as they are and ask no more; let marks count; or archive a text."""
    if item.burst is not None:
        return lambda deck: deck.confirm(item.subject, seen=item.burst)
    match item.kind:
        case kinds.OFFER:
            summary = f"nothing is extracted from {visible_line(item.subject, 80)}"
            return lambda deck: deck.dismiss(item.question_key, summary)
        case kinds.DUPLICATE:
            summary = f"kept both {visible_line(item.subject, 80)} and {visible_line(item.other, 80)}"
            return lambda deck: deck.dismiss(item.question_key, summary)
        case kinds.QUARANTINE | kinds.EXTRACTED:
            return lambda deck: deck.archive(item.subject, reason=REJECTED)
        case _:
            return lambda deck: deck.reject_inversion(item.subject)


def question_of(decision: Decision) -> str:
    """What the question that a decision has answered is filed under."""
    if decision.verb is Verb.MERGE:
        return duplicate_question(decision.subject, str(decision.after.get("merged", "")))
    return extraction_question(decision.subject) if decision.verb is Verb.EXTRACT else decision.subject
