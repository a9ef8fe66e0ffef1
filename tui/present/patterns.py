"""Patterns as table rows and detail tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.documents import patterns as documents
from core.documents.signs import TYPE_WORDS
from core.records.patterns import Pattern, PatternType
from tui.present.glyphs import TYPE_LETTERS, Cells, Glyphs, draw_state
from tui.present.numbers import ago, interval_bar, interval_text, percent

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.learning.assessment import Assessment
    from core.state.project_state import ProjectState

STATE_CELLS: Final = 13  # Cells of the longest state in full.
INTERVAL_CELLS: Final = 19  # Cells of an interval with its bar.
TABS = ("Overview", "Evidence", "Lineage", "Why", "History")


def pattern_cells(
    pattern: Pattern,
    assessment: Assessment,
    now: datetime,
    glyphs: Glyphs,
    *,
    short: bool = False,
    with_bar: bool = True,
) -> Cells:
    """Return the cells of a row; `short` abbreviates the state."""
    low, high = assessment.interval
    flags = (glyphs.pin if assessment.pin else "") + ("!" if assessment.inversion_due else "")
    flags += glyphs.suspect if pattern.suspicions else ""
    interval = interval_bar(low, high, assessment.rate, 9, glyphs) if with_bar else interval_text(low, high)
    texts = {
        "id": visible_line(pattern.id, 120),
        "title": visible_line(_subject(pattern), 200),
        "rate": f"{'~' * assessment.is_claimed}{percent(assessment.rate)}",
        "given": f"{assessment.given:,}",
        "uses": f"{assessment.uses:,}",
        "seen": f"{assessment.seen:,}",
        "score": format_decimal(assessment.score),
    }
    style = "$quiet" if assessment.multiplier == 0 else ""
    return {name: Content.styled(text, style) for name, text in texts.items()} | {
        "state": draw_state(assessment.shown, glyphs, short=short),
        "flags": Content.styled(flags, "$warning"),
        "type": Content.styled(TYPE_LETTERS[pattern.type], "$quiet"),
        "interval": Content.styled(interval, "$quiet"),
        "last_used": Content.styled(ago(assessment.last_used, now), "$quiet"),
    }


def pattern_words(pattern: Pattern, assessment: Assessment, now: datetime) -> dict[str, str]:
    """Return the values of a row by label, unabbreviated, for the clipboard."""
    low, high = assessment.interval
    flags = (
        "pinned" * bool(assessment.pin),
        "due for inversion" * assessment.inversion_due,
        "suspect text" * bool(pattern.suspicions),
    )
    return {
        "state": assessment.shown,
        "flags": ", ".join(filter(None, flags)),
        "type": TYPE_WORDS[pattern.type],
        "id": pattern.id,
        "what": _subject(pattern),
        "success rate": assessment.claim_text or percent(assessment.rate),
        "90 % interval": f"{percent(low)} to {percent(high)}",
        "given": f"{assessment.given:,}",
        "applied": f"{assessment.uses:,}",
        "seen": f"{assessment.seen:,}",
        "last used": ago(assessment.last_used, now) if assessment.last_used else "never",
        "score": format_decimal(assessment.score),
    }


def second_line(pattern: Pattern) -> Content:
    """Return the second line of a row: a text missing in the first line, and tags."""
    subject = _subject(pattern)
    text = next((text for text in (pattern.title, pattern.description) if text and text != subject), subject)
    tags = " ".join(f"#{visible_line(tag, 40)}" for tag in pattern.tags[:6])
    return Content.styled(f"{visible_line(text, 400)}   {tags}".rstrip(), "$quiet")


def _subject(pattern: Pattern) -> str:
    """Return what the pattern is about: a message of the error, else the expression for it, or the description."""
    about_error = pattern.error_message or pattern.error_pattern
    return (about_error if pattern.type is PatternType.ERROR else pattern.description) or pattern.title


def tab_blocks(view: ProjectState, pattern: Pattern, tab: str, me: str = "") -> tuple[Block, ...]:
    """Return the content of a tab in `TABS`; `me` is the user, "" if unknown."""
    if tab == "Overview":
        return tuple(documents.overview(view, pattern, me))
    blocks: dict[str, Callable[[ProjectState, Pattern], Iterable[Block]]] = {
        "Evidence": documents.evidence,
        "Lineage": documents.lineage,
        "Why": documents.rules,
        "History": documents.decisions,
    }
    return tuple(blocks[tab](view, pattern))
