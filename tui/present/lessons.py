"""Lessons that agents wrote down as table rows."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.record_text import one_line
from core.base.text import visible_line
from core.documents.lessons import place_name
from core.records.lessons import JoinedLesson, LessonState
from tui.present.numbers import ago

if TYPE_CHECKING:
    from tui.present.glyphs import Cells

_STATES: Final = {
    LessonState.OPEN: "$accent",
    LessonState.ACCEPTED: "$success",
    LessonState.REJECTED: "$quiet",
    LessonState.KNOWN: "$secondary",
}


def lesson_cells(joined: JoinedLesson, now: datetime) -> Cells:
    """Return the cells of a row."""
    lesson, uses = joined.lesson, joined.uses
    more = f" +{len(joined.places) - 1}" if len(joined.places) > 1 else ""
    is_quiet = joined.state is LessonState.REJECTED
    return {
        "at": Content.styled(ago(joined.at, now), "$quiet"),
        "state": Content.styled(joined.state.value, _STATES[joined.state]),
        "kind": Content.styled(lesson.kind.value, "$secondary"),
        "text": Content.assemble(
            ("! contradicted  " if joined.is_contradicted else "", "$warning"),
            (visible_line(one_line(lesson.text), 300), "$quiet" if is_quiet else ""),
        ),
        "loaded": Content.styled("yes" if joined.is_loaded else "", "$quiet"),
        "uses": Content.styled("" if uses is None else f"{uses:,}", "$quiet"),
        "runner": Content.styled(visible_line(f"{lesson.runner}{more}", 40), "$quiet"),
        "file": Content.styled(visible_line(place_name(lesson), 200), "$quiet"),
    }


def second_line(joined: JoinedLesson) -> Content:
    """Return the second line of a row: when the lesson applies, or why."""
    lesson = joined.lesson
    return Content.styled(visible_line(lesson.trigger or lesson.why or lesson.title, 400), "$quiet")
