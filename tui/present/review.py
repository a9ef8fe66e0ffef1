"""Questions of the review queue: what is asked, in one line, and both of its sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from core.learning.proposing import Inversion
from core.records.decisions import Decision
from core.review.answers import question_of
from core.review.items import (
    BORDERLINE,
    BROAD,
    BURST,
    CONTRADICTED,
    DUPLICATE,
    ESCALATION,
    EXTRACTED,
    INVERSION,
    OFFER,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    UNRECONCILED,
    ReviewItem,
)
from core.text import visible_line
from core.view import View
from tui.present.arrivals import exact_text, origin
from tui.present.debugging import failing_lines, tried_lines
from tui.present.decisions import verb_text, words
from tui.present.inverting import original, warning
from tui.present.layout import UNBROKEN
from tui.present.marks import Glyphs
from tui.present.merging import beside
from tui.present.numbers import moment_text, percent
from tui.present.offers import loop_lines, proposal_lines, told_lines
from tui.present.review_bursts import blamed, suspicion
from tui.present.review_doubts import claims, matched, nearness, standing
from tui.present.review_evidence import evidence, uses
from tui.present.text_changes import told_anew

KINDS: Final = {
    INVERSION: "Make it an anti-pattern?",
    CONTRADICTED: "Does this decision still hold?",
    STALE_PIN: "The text has changed: does this decision still hold?",
    BORDERLINE: "Is this state right?",
    BURST: "Do these marks count?",
    QUARANTINE: "May loops get this text?",
    EXTRACTED: "Keep what nobody has read?",
    DUPLICATE: "Are these two one pattern?",
    OFFER: "Extract what this loop has learned?",
    RECURRING: "Make a pattern of what loops keep telling?",
    BROAD: "Is this trigger too broad?",
    UNRECONCILED: "Which counts are right?",
    ESCALATION: "An agent is stuck. Seen?",
}
EMPTY: Final = (
    "Escalations, inversions, decisions that later evidence contradicts, texts that nobody has read, patterns that "
    "say the same and what finished loops offer will stand here."
)
_HIGH, _SOME = 0.66, 0.33
"""Worth, 0..1, from which it is called high, and some."""
_WORTH_CELLS: Final = 5

Sides = tuple[str, str, list[Content], list[Content]]
"""Headings and paragraphs of the left and the right side."""


@dataclass(frozen=True, slots=True)
class Desk:
    """How a question is drawn.

    Attributes:
        glyphs: The marks in use.
        key: The key of an action, for people.
        widths: Cells that each side has.
        proposal: The anti-pattern as it stands, for an inversion.
        own_words: Its text is a person's.
    """

    glyphs: Glyphs
    key: Callable[[str], str]
    widths: tuple[int, int] = (UNBROKEN, UNBROKEN)
    proposal: Inversion | None = None
    own_words: bool = False


def head(item: ReviewItem, number: int, total: int, glyphs: Glyphs) -> tuple[Content, Content]:
    """What is asked, and how much hangs on it."""
    filled = round(item.worth * _WORTH_CELLS)
    worth = "high" if item.worth >= _HIGH else "some" if item.worth >= _SOME else "little"
    return (
        Content.assemble(
            (KINDS.get(item.kind, visible_line(item.kind, 40)), "bold"), (f"   {number} of {total}", "$quiet")
        ),
        Content.assemble(
            (f"worth: {worth} ", "$quiet"),
            (glyphs.full * filled, "$accent"),
            (glyphs.empty * (_WORTH_CELLS - filled), "$quiet"),
        ),
    )


def reason(item: ReviewItem) -> Content:
    """Why it is asked, and why at this place."""
    return Content.styled(visible_line(item.reason, 1000), "$warning")


def is_about(decision: Decision, item: ReviewItem) -> bool:
    """Whether a decision may have answered a question."""
    return question_of(decision) == item.question_key or decision.subject in (item.subject, item.other or item.subject)


def gone(item: ReviewItem, by: Decision | None, view: View) -> str:
    """Why the question in front waits no more."""
    if by is None:
        return "This question waits no more: what is known has changed."
    why = f" “{visible_line(words(by), 120)}”" if words(by) else ""
    return f"{visible_line(by.by, 40)} has answered this, {moment_text(by.at, view.now)}: {verb_text(by)}{why}"


def about(item: ReviewItem) -> str:
    """What a question is about that not every answer fits."""
    if item.kind == RECURRING:
        return "what loops tell, no pattern yet"
    if item.burst is not None:
        return "many patterns at once"
    if item.offer is not None:
        return "no pattern yet"
    if item.session is not None:
        return "no pattern"
    return "two patterns" if item.kind == DUPLICATE else "one pattern"


def sides(view: View, item: ReviewItem, desk: Desk) -> Sides:
    """Both sides: what it is about, to the letter, and what speaks for and against it."""
    if item.is_about_pattern:
        return _PATTERN_SIDES[item.kind](view, item, desk)
    glyphs, (left, right) = desk.glyphs, desk.widths
    if item.session is not None:
        tried = tried_lines(item.session, view, glyphs, left)
        return (
            "what was tried",
            "what fails, why, and what was learned",
            tried,
            failing_lines(item.session, view, glyphs, right),
        )
    if item.burst is not None:
        return "blamed patterns", "who blames them", blamed(view, item.burst, glyphs), suspicion(view, item.burst)
    if item.offer is None:
        return "", "", [], []
    offered = proposal_lines(item.offer, glyphs)
    if item.kind == RECURRING:
        return "what loops tell", "the candidate", told_lines(view, item.offer, glyphs), offered
    return "loop", "what it offers, and where each part comes from", loop_lines(view, item.subject, glyphs), offered


def _inversion(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    proposal = desk.proposal or view.inversion(pattern.id)
    keys = {action: desk.key(action) for action in ("rewrite", "rewrite_in_editor", "alternative")}
    alternatives = view.board.alternatives(pattern.id)
    return (
        "pattern",
        "would become",
        original(view, pattern, desk.glyphs, desk.widths[0]),
        warning(view, proposal, alternatives, keys, desk.glyphs, own_words=desk.own_words, width=desk.widths[1]),
    )


def _duplicate(view: View, item: ReviewItem, desk: Desk) -> Sides:
    kept, other = beside(view, view.pattern(item.subject), view.pattern(item.other), desk.glyphs)
    turn = f"{desk.key('rewrite')} turns it"
    return f"this one stays, {turn}", f"this one goes into it, {percent(item.likeness)} alike", kept, other


def _arrival(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    would = "would get" if item.kind == QUARANTINE else "get"
    return (
        f"what loops {would}, to the letter",
        "where it comes from",
        exact_text(view, pattern),
        origin(view, pattern, desk.glyphs),
    )


def _decided(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    doubt = [*standing(view, item, desk.glyphs), Content("")]
    return (
        "what loops get, to the letter",
        "the decision, and the evidence since",
        exact_text(view, pattern),
        doubt + evidence(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _changed(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    doubt = [*standing(view, item, desk.glyphs), Content("")]
    now = [Content(""), Content.styled("What loops would get by now:", "$quiet"), *exact_text(view, pattern)]
    return (
        "the text, and what has changed since it was approved",
        "the decision, and the evidence",
        told_anew(view, pattern) + now,
        doubt + evidence(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _borderline(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    near = [*nearness(view, pattern, desk.glyphs), Content("")]
    return (
        "what loops get, to the letter",
        "how near, what one more result would do, and the evidence",
        exact_text(view, pattern),
        near + evidence(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _broad(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    return (
        "what loops get, to the letter",
        "what it fits, everyday and here",
        exact_text(view, pattern),
        matched(view, pattern, desk.glyphs),
    )


def _unreconciled(view: View, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    return (
        "counts, the record beside the evidence",
        "the evidence",
        claims(view, pattern, desk.glyphs),
        uses(view, pattern, desk.glyphs),
    )


_PATTERN_SIDES: Final[dict[str, Callable[[View, ReviewItem, Desk], Sides]]] = {
    INVERSION: _inversion,
    DUPLICATE: _duplicate,
    QUARANTINE: _arrival,
    EXTRACTED: _arrival,
    CONTRADICTED: _decided,
    STALE_PIN: _changed,
    BORDERLINE: _borderline,
    BROAD: _broad,
    UNRECONCILED: _unreconciled,
}
