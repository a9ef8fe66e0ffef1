"""Reflections as documents (docs/task-memory.md#reflections)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.records.loops import Outcome
from core.records.reflections import JoinedLesson, Lesson, LessonState
from core.show.pages.document import (
    Block,
    Code,
    Document,
    Moment,
    Passage,
    Section,
    Sign,
    Text,
    fields,
    line,
    more,
    section,
)
from core.show.pages.signs import outcome_sign, status_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.reflections import Reflection


DRAFT = "draft, not reviewed yet"


def reflection_document(state: ProjectState, reflection: Reflection) -> Document:
    """Describe one reflection with its loop or task, its trigger and its files."""
    loop = state.snapshot.loops.get(reflection.loop_id)
    task = f"  {loop.task}" if loop else "  (unknown loop)"
    known = reflection.outcome is not Outcome.UNKNOWN or reflection.trigger or reflection.effectiveness
    outcome = (outcome_sign(reflection.outcome),) if known else None
    return Document(
        reflection.id,
        (
            head(reflection),
            *fields(
                ("Outcome", outcome),
                ("Trigger", reflection.trigger),
                ("Effect", reflection.effectiveness),
                ("Loop", ((reflection.loop_id, "accent"), (task, "quiet")) if reflection.loop_id else None),
                ("Task", reflection.task_id),
            ),
            *template(reflection),
            *fields(("File", f"{reflection.file} ({reflection.shape})"), ("Also in", ", ".join(reflection.also_in))),
        ),
    )


def head(reflection: Reflection, where: str = "") -> Block:
    return line(
        (f"{where}   ", "name") if where else None,
        (kind_word(reflection), "strong name"),
        "   ",
        Moment(reflection.at),
        (" (time of its file)", "quiet") if reflection.at_approximate else None,
        (f"   {DRAFT}", "warning") if reflection.draft else None,
        ("   replaced by a later one", "quiet") if reflection.superseded else None,
    )


def reflection_section(reflection: Reflection) -> Section:
    """Describe a reflection on an attempt or a task below its heading."""
    where = "the task" if reflection.attempt is None else f"Attempt {reflection.attempt}"
    return Section(f"Reflection on {where}", (*template(reflection), line(""), head(reflection)))


def template(reflection: Reflection) -> Iterable[Block]:
    """Describe observation, analysis, learning and action items.

    Parts that a reflection on an attempt lacks are shown as missing, others are left out.
    """
    is_whole = reflection.attempt is not None
    for label, question, text in (
        ("Observation", "What happened during this attempt?", reflection.observation),
        ("Analysis", "Why did this happen?", reflection.analysis),
        ("Learning", "What should be done differently?", reflection.learning),
    ):
        if text or is_whole:
            yield Passage(label, question, text or "Not given.")
    if reflection.actions or is_whole:
        yield Passage("Action Items", text="" if reflection.actions else "None.", items=reflection.actions)


def kind_word(reflection: Reflection) -> str:
    return reflection.kind.replace("_", " ") or "reflection"


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
    from core.base.scanning.verdict import (
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
