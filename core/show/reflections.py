"""Lists of Reflections: what agents wrote, shared learnings, and agents' lessons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from core.base.text import one_line, plural
from core.questions.extraction.learnings import KNOWN
from core.records.loops import Outcome
from core.records.reflections import JoinedLesson, LessonKind, LessonState
from core.show.filter_parser import FieldKind, Fields, Query, Tests, matches, matches_flag
from core.show.pages.document import Block, Cells, Code, Column, Moment, Sign, Table, Text, line, more
from core.show.pages.reflections import kind_word, place_name

if TYPE_CHECKING:
    from core.questions.extraction.learnings import Cluster
    from core.records.reflections import Lesson, Reflection

COLUMNS: Final = (
    Column("at", "when", 10, align="right", keep=6, about="when it was written"),
    Column("kind", "kind", 14, keep=7, about="what the reflection is about"),
    Column("text", "learned", 24, flex=4, about="what the agent learned"),
    Column("effect", "effect", 9, keep=5, about="whether later work with it succeeded more often"),
    Column("iteration", "where", 6, keep=4, about="the iteration or attempt"),
    Column("loop", "session or task", 20, flex=2, keep=3, about="the session or task that it comes from"),
)
SORTS: Final = (("at", True), ("kind", False), ("effect", False), ("loop", False))
LEARNING_COLUMNS: Final = (
    Column("loops", "loops", 5, align="right"),
    Column("text", "learned", 30, flex=4),
    Column("kind", "kinds", 22, keep=7),
    Column("at", "last seen", 10, align="right", keep=6),
    Column("loop", "by", 20, flex=1, keep=3),
)
LESSON_COLUMNS: Final = (
    Column("state", "state", 8),
    Column("text", "believed", 30, flex=4),
    Column("kind", "kind", 8, keep=5),
    Column("runner", "by", 12, keep=7),
    Column("loaded", "loaded", 6, keep=6),
    Column("uses", "cited", 5, align="right", keep=4),
    Column("at", "written", 10, align="right", keep=6),
    Column("file", "file", 20, flex=1, keep=3),
)
_EFFECTS: Final = {"helpful": "good", "unhelpful": "bad", "harmful": "bad", "neutral": "quiet"}
_STATES: Final = {
    LessonState.OPEN: "accent",
    LessonState.ACCEPTED: "good",
    LessonState.REJECTED: "quiet",
    LessonState.KNOWN: "name",
}
_MAX_MEMBERS: Final = 200  # reflections listed below a recurring learning


def reflection_cells(reflection: Reflection, *, below: bool = False) -> Cells:
    """Return the cells of a row; `below` indents it under a recurring learning."""
    about = "~" if reflection.at_approximate else ""
    effect = reflection.effectiveness
    return {
        "at": ((about, "quiet"), Moment(reflection.at, is_age=True)),
        "kind": ((kind_word(reflection), "name"),),
        "text": ("    " if below else "", ("draft  " if reflection.draft else "", "warning"), reflection.text),
        "effect": ((effect, _EFFECTS.get(effect, "quiet")),),
        "iteration": ((where(reflection), "quiet"),),
        "loop": ((reflection.loop_id or reflection.task_id, "quiet"),),
    }


def second_line(reflection: Reflection) -> Text:
    """Return the second line of a row: a text that is not in the first line."""
    parts = (reflection.learning, reflection.analysis, reflection.observation)
    text = next((part for part in parts if part and part != reflection.text), "")
    return ((text, "quiet"),)


def where(reflection: Reflection) -> str:
    """Return the attempt or the iteration in short; "" if neither is known."""
    if reflection.attempt is not None:
        return f"att {reflection.attempt}"
    return "" if reflection.iteration is None else f"it {reflection.iteration}"


def cluster_cells(cluster: Cluster, *, folded: bool, unfit: str) -> Cells:
    """Return a recurring learning's cells; `unfit` is why it cannot be a pattern."""
    is_known = unfit.startswith(KNOWN)
    state: Text = ()
    if unfit:
        state = (("has a pattern  ", "good"),) if is_known else (Sign("no pattern  ", "warning", "deprecated"),)
    extra = f" +{len(cluster.kinds) - 1}" if len(cluster.kinds) > 1 else ""
    kind = (cluster.kinds or ("reflection",))[0].replace("_", " ")
    return {
        "loops": ((f"{len(cluster.sources):,}", "quiet" if unfit else "accent"),),
        "at": (Moment(cluster.last_at, is_age=True),),
        "kind": ((f"{kind}{extra}", "quiet" if unfit else "name"),),
        "text": (
            Sign("", "quiet", "folded" if folded else "unfolded"),
            " ",
            *state,
            (cluster.text, "quiet" if unfit else ""),
        ),
        "loop": ((", ".join(cluster.sources[:3]), "quiet"),),
    }


def renamed_clusters(before: Mapping[str, Cluster], after: Mapping[str, Cluster]) -> dict[str, str]:
    """Map old to new IDs of learnings whose ID changed because a reflection joined."""
    missing = before.keys() - after.keys()
    homes = {one.reflection.id: key for key, cluster in after.items() for one in cluster.members} if missing else {}
    return {key: homes[id] for key in missing if (id := before[key].members[0].reflection.id) in homes}


def count_sources(cluster: Cluster) -> str:
    """Return the number of sources in words: `2 loops and 1 task`."""
    tasks = {source for source, one in cluster.members if not one.loop_id and source == one.task_id}
    loops = len(cluster.sources) - len(tasks)
    counts = (plural(loops, "loop") if loops else "", plural(len(tasks), "task") if tasks else "")
    return " and ".join(filter(None, counts))


def cluster_blocks(cluster: Cluster, unfit: str) -> Iterable[Block]:
    """Describe a recurring learning and its reflections, oldest first."""
    known = unfit.removeprefix(KNOWN)
    yield line((", ".join(cluster.kinds).replace("_", " ") or "reflection", "strong name"))
    yield line(
        (f"{plural(len(cluster.members), 'reflection')} from {count_sources(cluster)}; first ", "quiet"),
        Moment(cluster.first_at, is_age=True),
        (", last ", "quiet"),
        Moment(cluster.last_at, is_age=True),
    )
    if unfit:
        is_known = known != unfit
        yield line((f"{'Has a pattern' if is_known else 'No pattern'}: {known}", "good" if is_known else "warning"))
    yield line("")
    yield Code(cluster.text, "", "")
    yield line("")
    yield line(("Reported by", "quiet"))
    rows: list[tuple[Text, ...]] = []
    for source, one in cluster.members[:_MAX_MEMBERS]:
        text = "" if one.learning == cluster.text else one.learning
        rows.append(((Moment(one.at, is_age=True),), ((source, "accent"),), ((where(one), "quiet"),), (text,)))
    yield Table(("", "", "", ""), tuple(rows))
    yield from more(len(cluster.members), "reflection", _MAX_MEMBERS)


def lesson_cells(joined: JoinedLesson) -> Cells:
    """Return the cells of a lesson that agents or runners wrote down."""
    lesson, uses = joined.lesson, joined.uses
    extra = f" +{len(joined.places) - 1}" if len(joined.places) > 1 else ""
    is_quiet = joined.state is LessonState.REJECTED
    return {
        "at": (Moment(joined.at, is_age=True),),
        "state": ((joined.state.value, _STATES[joined.state]),),
        "kind": ((lesson.kind.value, "name"),),
        "text": (
            ("! contradicted  " if joined.is_contradicted else "", "warning"),
            (one_line(lesson.text), "quiet" if is_quiet else ""),
        ),
        "loaded": (("yes" if joined.is_loaded else "", "quiet"),),
        "uses": (("" if uses is None else f"{uses:,}", "quiet"),),
        "runner": ((f"{lesson.runner}{extra}", "quiet"),),
        "file": ((place_name(lesson), "quiet"),),
    }


# Filters

REFLECTION_FIELDS: Final[Fields] = dict.fromkeys(("kind", "loop", "task", "effect", "shape", "outcome"), FieldKind.TEXT)
LESSON_FIELDS: Final[Fields] = {
    **dict.fromkeys(("runner", "file", "loop"), FieldKind.TEXT),
    "kind": tuple(kind.value for kind in LessonKind),
    "state": tuple(state.value for state in LessonState),
    "outcome": tuple(outcome.value for outcome in Outcome),
    "is": ("loaded", "contradicted", "cited"),
}


def _reflection_text(reflection: Reflection) -> str:
    parts = (reflection.observation, reflection.analysis, reflection.learning)
    return "\n".join((*parts, reflection.loop_id, reflection.task_id, *reflection.actions)).lower()


def _lesson_text(lesson: Lesson) -> str:
    return "\n".join((lesson.id, lesson.text, lesson.title, lesson.trigger, lesson.why)).lower()


_REFLECTION_TESTS: Final[Tests[Reflection]] = {
    "kind": lambda reflection, value: reflection.kind.startswith(value.replace("-", "_")),
    "loop": lambda reflection, value: value in reflection.loop_id.lower(),
    "task": lambda reflection, value: value in reflection.task_id.lower(),
    "effect": lambda reflection, value: reflection.effectiveness.startswith(value),
    "shape": lambda reflection, value: reflection.shape.startswith(value),
    "outcome": lambda reflection, value: reflection.outcome.value.startswith(value),
    "": lambda reflection, value: value in _reflection_text(reflection),
}
_LESSON_TESTS: Final[Tests[JoinedLesson]] = {
    "runner": lambda joined, value: any(runner.startswith(value) for runner in joined.runners),
    "file": lambda joined, value: any(value in place.file.lower() for place in joined.places),
    "loop": lambda joined, value: any(value in place.loop_id.lower() for place in joined.places),
    "kind": lambda joined, value: joined.lesson.kind.startswith(value),
    "state": lambda joined, value: joined.state.startswith(value),
    "outcome": lambda joined, value: any(place.outcome.startswith(value) for place in joined.places),
    "is": lambda joined, value: matches_flag(
        value, loaded=joined.is_loaded, contradicted=joined.is_contradicted, cited=bool(joined.uses)
    ),
    "": lambda joined, value: any(value in _lesson_text(place) for place in joined.places),
}


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """Return the IDs of matching reflections, in the given order."""
    return [key for key, reflection in reflections.items() if matches(reflection, query, _REFLECTION_TESTS)]


def select_lessons(lessons: Iterable[JoinedLesson], query: Query) -> list[str]:
    """Return the IDs of matching lessons, in the given order."""
    return [one.id for one in lessons if matches(one, query, _LESSON_TESTS)]
