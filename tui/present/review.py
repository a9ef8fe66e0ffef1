"""Questions of the review queue: what is asked, in one line, and both of its sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from core.base.text import visible_line
from core.curation.rules import verb_text
from core.documents.decisions import reason_text
from core.learning.inversion_proposals import Inversion
from core.records.decisions import Decision
from core.retrieval.similarity import cap_similarity
from core.review.answers import question_of
from core.state.project_state import ProjectState
from core.state.review_items import (
    BORDERLINE,
    BROAD,
    CONTRADICTED,
    DUPLICATE,
    EXTRACTED,
    HELD,
    INVERSION,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    UNRECONCILED,
    ReviewItem,
)
from tui.present.debug_sessions import attempted_fix_lines, last_failure_lines
from tui.present.extraction import loop_lines, proposal_lines, source_lines
from tui.present.glyphs import Glyphs
from tui.present.incoming import exact_text, held_text_lines, held_text_origin, origin
from tui.present.inversion import anti_pattern_lines, original_lines
from tui.present.layout import UNBROKEN
from tui.present.merge import beside
from tui.present.numbers import percent
from tui.present.review_bursts import blamed, suspicion
from tui.present.review_doubts import claims, matched, nearness, standing
from tui.present.review_evidence import evidence_lines, use_lines
from tui.present.text_changes import told_anew

EMPTY: Final = (
    "Escalations, inversions, decisions that later evidence contradicts, texts that nobody has read, patterns that "
    "say the same and what finished loops offer will stand here."
)
_PROPOSED: Final = {
    "accept": "nothing is proposed here to accept",
    "reject": "nothing is proposed here to reject",
    "rewrite": "there is no text here to put in other words",
}
"""What is missing where an answer to a proposal does not fit."""
_WORTHS: Final = ("little", "little", "some", "some", "high", "high")
"""What a worth is called, by the cells of its bar."""

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


def head(item: ReviewItem, number: int, total: int, fresh: int = 0) -> Content:
    """The question with its number, the ID of its record, and how many new ones were appended since the sitting began.

    The number comes first and the ID right after the question, so that both are there however narrow the screen is.
    """
    asked = visible_line(item.asks or item.question, 100)
    name = f"  {visible_line(item.subject, 80)}" if item.asks else ""
    new = f"  +{fresh:,} new" if fresh else ""
    return Content.assemble(
        (f"{number:,} of {total:,}", "$quiet"), (new, "$accent"), "  ", (asked, "bold"), (name, "$secondary")
    )


def worth_bar(item: ReviewItem, glyphs: Glyphs, *, short: bool = False) -> Content:
    """How much hangs on it; of what stands first because an agent waits, that."""
    if item.is_urgent:
        return Content.styled("an agent waits", "$warning")
    cells = len(_WORTHS) - 1
    filled = round(item.worth * cells)
    return Content.assemble(
        (f"{'' if short else 'worth: '}{_WORTHS[filled]} ", "$quiet"),
        (glyphs.full * filled, "$accent"),
        (glyphs.empty * (cells - filled), "$quiet"),
    )


def reason(item: ReviewItem) -> Content:
    """Why it is asked, and why at this place."""
    return Content.styled(visible_line(item.reason, 1000), "$warning")


def is_about(decision: Decision, item: ReviewItem) -> bool:
    """Whether a decision may have answered a question."""
    return question_of(decision) == item.question_key or decision.subject in (item.subject, item.other or item.subject)


def skipped(item: ReviewItem, by: Decision | None, view: ProjectState) -> str:
    """Why the question in front was skipped."""
    asked = visible_line(item.question, 80)
    if by is None:
        return f"Skipped: already resolved: “{asked}”"
    why = f" “{visible_line(reason_text(by), 120)}”" if reason_text(by) else ""
    return f"Skipped: {visible_line(by.by, 40)} has answered “{asked}”: {verb_text(by)}{why}"


def no_answer(action: str, item: ReviewItem) -> str:
    """Why an action is no answer to a question."""
    if action == "restore_text" and item.is_about_pattern:
        return "its text is the one that was decided on"
    if item.is_about_pattern and item.kind != DUPLICATE and action not in _PROPOSED:
        return "the proposal is just that"
    missing = _PROPOSED.get(action, "that is decided about one pattern alone")
    return f"{missing}: this question is about {about(item)}"


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
    if item.held_text is not None:
        return "a reflection, no pattern"
    return "two patterns" if item.kind == DUPLICATE else "one pattern"


def sides(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    """Both sides: what it is about, to the letter, and what speaks for and against it."""
    if item.is_about_pattern:
        return _PATTERN_SIDES[item.kind](view, item, desk)
    glyphs, (left, right) = desk.glyphs, desk.widths
    if item.session is not None:
        tried = attempted_fix_lines(item.session, view, glyphs, left)
        return (
            "what was tried",
            "what fails, why, and what was learned",
            tried,
            last_failure_lines(item.session, view, glyphs, right),
        )
    if item.held_text is not None:
        return (
            "what loops would get, to the letter",
            "where it comes from",
            held_text_lines(item.held_text),
            held_text_origin(item.held_text),
        )
    if item.burst is not None:
        return "blamed patterns", "who blames them", blamed(view, item.burst, glyphs), suspicion(view, item.burst)
    if item.offer is None:
        return "", "", [], []
    offered = proposal_lines(view, item.offer, glyphs)
    if item.kind == RECURRING:
        return "what loops tell", "the candidate", source_lines(view, item.offer, glyphs), offered
    return "loop", "what it offers, and where each part comes from", loop_lines(view, item.subject, glyphs), offered


def _inversion(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    proposal = desk.proposal or view.inversion(pattern.id)
    keys = {action: desk.key(action) for action in ("rewrite", "rewrite_in_editor", "alternative")}
    alternatives = view.board.alternatives(pattern.id)
    return (
        "pattern",
        "would become",
        original_lines(view, pattern, desk.glyphs, desk.widths[0]),
        anti_pattern_lines(
            view, proposal, alternatives, keys, desk.glyphs, is_edited=desk.own_words, width=desk.widths[1]
        ),
    )


def _duplicate(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    kept, other = beside(view, view.pattern(item.subject), view.pattern(item.other), desk.glyphs)
    turn = f"{desk.key('rewrite')} turns it"
    alike = percent(cap_similarity(item.likeness))
    return f"this one stays, {turn}", f"this one goes into it, {alike} alike", kept, other


def _arrival(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    would = "get" if item.kind == EXTRACTED else "would get"
    return (
        f"what loops {would}, to the letter",
        "where it comes from",
        exact_text(view, pattern),
        origin(view, pattern, desk.glyphs),
    )


def _decided(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    doubt = [*standing(view, item, desk.glyphs), Content("")]
    return (
        "what loops get, to the letter",
        "the decision, and the evidence since",
        exact_text(view, pattern),
        doubt + evidence_lines(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _changed(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    doubt = [*standing(view, item, desk.glyphs), Content("")]
    now = [Content(""), Content.styled("What loops would get by now:", "$quiet"), *exact_text(view, pattern)]
    return (
        "the text, and what has changed since it was approved",
        "the decision, and the evidence",
        told_anew(view, pattern) + now,
        doubt + evidence_lines(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _borderline(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    near = [*nearness(view, pattern, desk.glyphs), Content("")]
    return (
        "what loops get, to the letter",
        "how near, what one more result would do, and the evidence",
        exact_text(view, pattern),
        near + evidence_lines(view, pattern, desk.glyphs, desk.widths[1]),
    )


def _broad(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    return (
        "what loops get, to the letter",
        "what it fits, everyday and here",
        exact_text(view, pattern),
        matched(view, pattern, desk.glyphs),
    )


def _unreconciled(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    pattern = view.pattern(item.subject)
    return (
        "counts, the record beside the evidence",
        "the evidence",
        claims(view, pattern, desk.glyphs),
        use_lines(view, pattern, desk.glyphs),
    )


_PATTERN_SIDES: Final[dict[str, Callable[[ProjectState, ReviewItem, Desk], Sides]]] = {
    INVERSION: _inversion,
    DUPLICATE: _duplicate,
    QUARANTINE: _arrival,
    HELD: _arrival,
    EXTRACTED: _arrival,
    CONTRADICTED: _decided,
    STALE_PIN: _changed,
    BORDERLINE: _borderline,
    BROAD: _broad,
    UNRECONCILED: _unreconciled,
}
