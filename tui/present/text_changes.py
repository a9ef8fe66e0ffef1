"""Changes of a pattern's text, word by word; readable without colour."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.base.diff import DELETED, INSERTED, field_changes, word_changes
from core.base.text import plural, visible
from core.curation.text_approval import find_approved_pattern
from core.records.patterns import Pattern
from core.state.project_state import ProjectState

MAX_CHARS: Final = 20_000
_MARKERS: Final = {DELETED: ("[-", "-]", "$error"), INSERTED: ("{+", "+}", "$success bold")}
"""What encloses deleted and inserted words, as in `wdiff`, and their styles."""


def approved_changes(view: ProjectState, pattern: Pattern) -> list[Content]:
    """Return the fields that differ from the approved text, which is not always stored."""
    text = find_approved_pattern(view, pattern.id)
    if text is None:
        return [Content.styled("The approved text was not stored; below is the current one.", "$warning")]
    changes = field_changes(text, pattern)
    legend = (("[-deleted-]", _MARKERS[DELETED][2]), " ", ("{+inserted+}", _MARKERS[INSERTED][2]))
    lines = [Content.assemble(plural(len(changes), "field"), " changed   ", *legend)]
    for change in changes:
        lines += [Content(""), Content.styled(change.name.replace("_", " "), "bold $secondary")]
        lines += words_changed(change.before, change.after)
    return lines


def words_changed(before: str, after: str) -> list[Content]:
    """Return both texts in one: deleted words in `[- -]`, inserted words in `{+ +}`."""
    parts: list[Content] = []
    for change, text in word_changes(before[:MAX_CHARS], after[:MAX_CHARS]):
        shown = visible(text)
        if change in _MARKERS and (word := shown.strip()):
            opening, closing, style = _MARKERS[change]
            lead, trail = shown[: shown.index(word)], shown[shown.index(word) + len(word) :]
            gap = trail or " " * (change == DELETED)
            parts.append(Content.assemble(lead, (f"{opening}{word}{closing}", style), gap))
        else:
            parts.append(Content(shown))
    return list(Content.assemble(*parts).split("\n", allow_blank=True))
