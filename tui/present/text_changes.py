"""How the text of a pattern has changed, word by word; readable without colour."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.base.diff import DELETED, INSERTED, field_changes, word_changes
from core.base.text import plural, visible
from core.records.patterns import Pattern
from core.review.approved_text import approved
from core.state.project_state import ProjectState

MOST_CHARS: Final = 20_000
"""Characters of one field that are shown."""
_MARKS: Final = {DELETED: ("[-", "-]", "$error"), INSERTED: ("{+", "+}", "$success bold")}
"""What encloses words that went and words that came, as `wdiff` writes them, and their style."""


def told_anew(view: ProjectState, pattern: Pattern) -> list[Content]:
    """The fields that differ from the text that a person approved; what was approved is not always kept."""
    text = approved(view, pattern.id)
    if text is None:
        return [Content.styled("The text that was approved was not kept: below is the one of today.", "$warning")]
    changes = field_changes(text, pattern)
    lines = [
        Content.assemble(
            plural(len(changes), "field"),
            " changed   ",
            ("[-went-]", _MARKS[DELETED][2]),
            " ",
            ("{+came+}", _MARKS[INSERTED][2]),
        )
    ]
    for change in changes:
        lines += [Content(""), Content.styled(change.name.replace("_", " "), "bold $secondary")]
        lines += words_changed(change.before, change.after)
    return lines


def words_changed(before: str, after: str) -> list[Content]:
    """Both texts in one: words that went in `[- -]`, words that came in `{+ +}`."""
    parts: list[Content] = []
    for mark, text in word_changes(before[:MOST_CHARS], after[:MOST_CHARS]):
        shown = visible(text)
        if mark in _MARKS and (word := shown.strip()):
            opening, closing, style = _MARKS[mark]
            lead, trail = shown[: shown.index(word)], shown[shown.index(word) + len(word) :]
            gap = trail or " " * (mark == DELETED)
            parts.append(Content.assemble(lead, (f"{opening}{word}{closing}", style), gap))
        else:
            parts.append(Content(shown))
    return list(Content.assemble(*parts).split("\n", allow_blank=True))
