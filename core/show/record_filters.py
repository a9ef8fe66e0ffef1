"""Filter reflections, lessons and decisions.

`filter_parser` parses the queries, such as `kind:error effect:helpful timeout`; `core.show.work` filters loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from core.records.lessons import LessonKind, LessonState
from core.records.loops import Outcome
from core.show.filter_parser import FieldKind, Fields, Query

if TYPE_CHECKING:
    from core.records.decisions import Decision
    from core.records.lessons import JoinedLesson, Lesson
    from core.records.reflections import Reflection

REFLECTION_FIELDS: Final[Fields] = dict.fromkeys(("kind", "loop", "task", "effect", "shape", "outcome"), FieldKind.TEXT)
LESSON_FIELDS: Final[Fields] = {
    **dict.fromkeys(("runner", "file", "loop"), FieldKind.TEXT),
    "kind": tuple(kind.value for kind in LessonKind),
    "state": tuple(state.value for state in LessonState),
    "outcome": tuple(outcome.value for outcome in Outcome),
    "is": ("loaded", "contradicted", "cited"),
}
DECISION_FIELDS: Final[Fields] = dict.fromkeys(("verb", "by", "subject"), FieldKind.TEXT)


_Record = TypeVar("_Record")
Tests = Mapping[str, Callable[[_Record, str], bool]]  # (record, lower-case value) -> match, by field; "" for text


def _reflection_text(reflection: Reflection) -> str:
    parts = (reflection.observation, reflection.analysis, reflection.learning)
    return "\n".join((*parts, reflection.loop_id, reflection.task_id, *reflection.actions)).lower()


def _lesson_text(lesson: Lesson) -> str:
    return "\n".join((lesson.id, lesson.text, lesson.title, lesson.trigger, lesson.why)).lower()


def _verb(decision: Decision) -> str:
    return decision.verb.value.replace("_", " ")


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


def _is_by(decision: Decision, value: str) -> bool:
    from core.decisions.decision_text import author_text  # the list of loops needs no decisions

    return value in f"{decision.by}\n{author_text(decision)}".lower()


_DECISION_TESTS: Final[Tests[Decision]] = {
    "verb": lambda decision, value: _verb(decision).startswith(value.replace("_", " ").replace("-", " ")),
    "by": _is_by,
    "subject": lambda decision, value: value in decision.subject.lower(),
    "": lambda decision, value: (
        value in f"{_verb(decision)}\n{decision.by}\n{decision.subject}\n{decision.reason}".lower()
    ),
}


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """Return the IDs of matching reflections, in the given order."""
    return [key for key, reflection in reflections.items() if _matches(reflection, query, _REFLECTION_TESTS)]


def select_lessons(lessons: Iterable[JoinedLesson], query: Query) -> list[str]:
    """Return the IDs of matching lessons, in the given order."""
    return [one.id for one in lessons if _matches(one, query, _LESSON_TESTS)]


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """Return the IDs of matching decisions, in the given order."""
    return [decision.id for decision in decisions if _matches(decision, query, _DECISION_TESTS)]


def _matches(record: _Record, query: Query, tests: Tests[_Record]) -> bool:
    return all(tests.get(term.field, tests[""])(record, term.value) != term.negated for term in query.terms)


def matches_flag(word: str, **flags: bool) -> bool:
    return any(is_set and name.startswith(word) for name, is_set in flags.items())
