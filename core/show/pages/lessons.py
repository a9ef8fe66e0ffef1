"""Lessons that agents and runners wrote down, as documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.records.lessons import JoinedLesson, Lesson, LessonState
from core.show.pages.document import Block, Code, Document, Moment, Sign, Text, fields, line, more, section
from core.show.pages.signs import outcome_sign, status_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

_MAX_PLACES: Final = 20
_STATE_STYLES: Final = {
    LessonState.OPEN: "accent",
    LessonState.ACCEPTED: "good",
    LessonState.REJECTED: "bad",
    LessonState.KNOWN: "name",
}
_MADE: Final = {
    LessonState.ACCEPTED: "Made into",
    LessonState.KNOWN: "Also in pattern",
}


def lesson_document(state: ProjectState, joined: JoinedLesson) -> Document:
    """Describe a lesson, its places, and what contradicts it."""
    return Document(joined.id, tuple(lesson_blocks(state, joined)))


def lesson_blocks(state: ProjectState, joined: JoinedLesson) -> Iterable[Block]:
    from core.base.scanning.messages import (
        describe_danger,  # reads the rules, which the help of a command does not need
    )

    lesson = joined.lesson
    yield line(
        (lesson.kind.value, "strong name"),
        "   ",
        (joined.state.value, _STATE_STYLES[joined.state]),
        ("   loaded by the agent", "quiet") if joined.is_loaded else None,
    )
    if lesson.title and lesson.title != lesson.text:
        yield line((lesson.title, "quiet"))
    yield line("")
    yield Code(lesson.text, "", "")
    if does := describe_danger(lesson.text, state.settings):
        yield line(Sign(f"this text {does}", "warning", "suspect"))
    yield line("")
    yield from fields(
        ("Applies when", lesson.trigger),
        ("Why", lesson.why),
        *((_MADE.get(joined.state, "Pattern"), _pattern_line(state, id)) for id in joined.patterns),
    )
    yield from section("Contradicts", (line(*_pattern_line(state, id)) for id in joined.contradicts))
    yield from section("Other lessons that say the opposite", (_other(state, id) for id in joined.disagrees_with))
    places = [block for place in joined.places[:_MAX_PLACES] for block in _place(state, place, joined)]
    yield from section("Written down", (*places, *more(len(joined.places), "place", _MAX_PLACES)))
    if joined.state is LessonState.REJECTED:
        yield line("")
        yield line(("ralphdeck never changes files of agents. To remove the lesson, delete it yourself in:", "quiet"))
        for place in joined.places[:_MAX_PLACES]:
            yield line(place_name(place), indent=2)


def place_name(lesson: Lesson) -> str:
    """Return file and line; untrusted."""
    return f"{lesson.file}:{lesson.line}"


def _pattern_line(state: ProjectState, pattern_id: str) -> Text:
    pattern = state.snapshot.patterns.get(pattern_id)
    return (pattern_id, "name"), (
        f"  {pattern_title(pattern)}" if pattern is not None else "  not in the registry",
        "quiet",
    )


def _other(state: ProjectState, lesson_id: str) -> Block:
    other = state.snapshot.lessons.get(lesson_id)
    return line((f"{other.runner}  ", "name"), other.text) if other is not None else line((lesson_id, "name"))


def _place(state: ProjectState, place: Lesson, joined: JoinedLesson) -> Iterable[Block]:
    cited = f"   cited {plural(place.uses, 'time')}" if place.uses else ""
    yield line(
        (f"{place.runner}  ", "name"),
        place_name(place),
        *(("  ", Moment(place.at)) if place.at else ()),
        (cited, "quiet"),
    )
    if place.loop_id:
        loop = state.snapshot.loops.get(place.loop_id)
        yield line(
            ("learned in ", "quiet"),
            (place.loop_id, "accent"),
            "  ",
            status_sign(loop.status) if loop is not None else outcome_sign(place.outcome),
            (f"  {loop.task}" if loop is not None else "", "quiet"),
            indent=2,
        )
    if place.text != joined.lesson.text:
        yield line((place.text, "quiet"), indent=2)
