"""Filter loops, reflections and decisions by a parsed query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from core.queries.filter_parser import FieldKind, Fields, Query
from core.records.decisions import Decision
from core.records.loops import Loop
from core.records.reflections import Reflection

LOOP_FIELDS: Final[Fields] = dict.fromkeys(("status", "source", "id", "tag", "pattern", "is"), FieldKind.TEXT)
"""Fields of a loop query; `is:` accepts archived, live, ended, orphan, stale, crashed and the other badges."""
REFLECTION_FIELDS: Final[Fields] = dict.fromkeys(("kind", "loop", "task", "effect", "shape", "outcome"), FieldKind.TEXT)
DECISION_FIELDS: Final[Fields] = dict.fromkeys(("verb", "by", "subject"), FieldKind.TEXT)


_Record = TypeVar("_Record")
Tests = Mapping[str, Callable[[_Record, str], bool]]
"""Whether a record has a value (in lower case), by field; "" for words and any other field."""


def _badges(loop: Loop) -> list[str]:
    flags = {"archived": loop.archived, "live": loop.status.active, "ended": loop.status.ended}
    return [*loop.badges, *(word for word, is_set in flags.items() if is_set)]


def _reflection_text(reflection: Reflection) -> str:
    parts = (reflection.observation, reflection.analysis, reflection.learning)
    return "\n".join((*parts, reflection.loop_id, reflection.task_id, *reflection.actions)).lower()


def _verb(decision: Decision) -> str:
    return decision.verb.value.replace("_", " ")


_LOOP_TESTS: Final[Tests[Loop]] = {
    "status": lambda loop, value: loop.status.value.startswith(value) or loop.raw_status.lower().startswith(value),
    "source": lambda loop, value: any(source.startswith(value) for source in loop.sources),
    "id": lambda loop, value: value in loop.id.lower(),
    "tag": lambda loop, value: any(value in tag.lower() for tag in loop.tags),
    "is": lambda loop, value: any(word.startswith(value) for word in _badges(loop)),
    "": lambda loop, value: value in f"{loop.id}\n{loop.task}\n{loop.status}\n{loop.raw_status}\n{loop.owner}".lower(),
}
_REFLECTION_TESTS: Final[Tests[Reflection]] = {
    "kind": lambda reflection, value: reflection.kind.startswith(value.replace("-", "_")),
    "loop": lambda reflection, value: value in reflection.loop_id.lower(),
    "task": lambda reflection, value: value in reflection.task_id.lower(),
    "effect": lambda reflection, value: reflection.effectiveness.startswith(value),
    "shape": lambda reflection, value: reflection.shape.startswith(value),
    "outcome": lambda reflection, value: reflection.outcome.value.startswith(value),
    "": lambda reflection, value: value in _reflection_text(reflection),
}
_DECISION_TESTS: Final[Tests[Decision]] = {
    "verb": lambda decision, value: _verb(decision).startswith(value.replace("_", " ").replace("-", " ")),
    "by": lambda decision, value: value in decision.by.lower(),
    "subject": lambda decision, value: value in decision.subject.lower(),
    "": lambda decision, value: (
        value in f"{_verb(decision)}\n{decision.by}\n{decision.subject}\n{decision.reason}".lower()
    ),
}


def select_loops(loops: Mapping[str, Loop], query: Query, patterns_of: Callable[[str], Iterable[str]]) -> list[str]:
    """IDs of the matching loops, in the given order.

    `patterns_of` returns the IDs of patterns injected into or used by a loop, for `pattern:`.
    """

    def uses_pattern(loop: Loop, value: str) -> bool:
        return any(value in pattern_id.lower() for pattern_id in patterns_of(loop.id))

    tests = {**_LOOP_TESTS, "pattern": uses_pattern}
    return [key for key, loop in loops.items() if _matches(loop, query, tests)]


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """IDs of the matching reflections, in the given order."""
    return [key for key, reflection in reflections.items() if _matches(reflection, query, _REFLECTION_TESTS)]


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """IDs of the matching decisions, in the given order."""
    return [decision.id for decision in decisions if _matches(decision, query, _DECISION_TESTS)]


def _matches(record: _Record, query: Query, tests: Tests[_Record]) -> bool:
    return all(tests.get(term.field, tests[""])(record, term.value) != term.negated for term in query.terms)
