"""Filter loops, reflections and decisions by a parsed query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from core.queries.filter_parser import FieldKind, Fields, Query, Term
from core.records.decisions import Decision
from core.records.loops import Loop
from core.records.reflections import Reflection

LOOP_FIELDS: Final[Fields] = dict.fromkeys(("status", "source", "id", "tag", "pattern", "is"), FieldKind.TEXT)
"""Fields of a loop query; `is:` accepts archived, live, ended, orphan, stale, crashed and the other badges."""
REFLECTION_FIELDS: Final[Fields] = dict.fromkeys(("kind", "loop", "task", "effect", "shape", "outcome"), FieldKind.TEXT)
DECISION_FIELDS: Final[Fields] = dict.fromkeys(("verb", "by", "subject"), FieldKind.TEXT)


def select_loops(loops: Mapping[str, Loop], query: Query, patterns_of: Callable[[str], Iterable[str]]) -> list[str]:
    """IDs of the matching loops, in the given order.

    Args:
        patterns_of: Returns the IDs of patterns injected into or used by a loop, for `pattern:`.
    """

    def matches(key: str, loop: Loop, term: Term) -> bool:
        if term.field == "pattern":
            return any(term.value in pattern_id.lower() for pattern_id in patterns_of(key))
        return _loop_matches(loop, term)

    return [key for key, loop in loops.items() if all(matches(key, loop, t) != t.negated for t in query.terms)]


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """IDs of the matching reflections, in the given order."""
    return [
        key
        for key, reflection in reflections.items()
        if all(_reflection_matches(reflection, t) != t.negated for t in query.terms)
    ]


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """IDs of the matching decisions, in the given order."""
    return [d.id for d in decisions if all(_decision_matches(d, t) != t.negated for t in query.terms)]


def _loop_matches(loop: Loop, term: Term) -> bool:
    value = term.value
    match term.field:
        case "status":
            return loop.status.value.startswith(value) or loop.raw_status.lower().startswith(value)
        case "source":
            return any(source.startswith(value) for source in loop.sources)
        case "id":
            return value in loop.id.lower()
        case "tag":
            return any(value in tag.lower() for tag in loop.tags)
        case "is":
            flags = {"archived": loop.archived, "live": loop.status.active, "ended": loop.status.ended}
            words = [*loop.badges, *(word for word, is_set in flags.items() if is_set)]
            return any(word.startswith(value) for word in words)
        case _:
            return value in f"{loop.id}\n{loop.task}\n{loop.status}\n{loop.raw_status}\n{loop.owner}".lower()


def _reflection_matches(reflection: Reflection, term: Term) -> bool:
    value = term.value
    match term.field:
        case "kind":
            return reflection.kind.startswith(value.replace("-", "_"))
        case "loop":
            return value in reflection.loop_id.lower()
        case "task":
            return value in reflection.task_id.lower()
        case "effect":
            return reflection.effectiveness.startswith(value)
        case "shape":
            return reflection.shape.startswith(value)
        case "outcome":
            return reflection.outcome.value.startswith(value)
        case _:
            parts = (reflection.observation, reflection.analysis, reflection.learning)
            text = "\n".join((*parts, reflection.loop_id, reflection.task_id, *reflection.actions))
            return value in text.lower()


def _decision_matches(decision: Decision, term: Term) -> bool:
    verb = decision.verb.value.replace("_", " ")
    match term.field:
        case "verb":
            return verb.startswith(term.value.replace("_", " ").replace("-", " "))
        case "by":
            return term.value in decision.by.lower()
        case "subject":
            return term.value in decision.subject.lower()
        case _:
            return term.value in f"{verb}\n{decision.by}\n{decision.subject}\n{decision.reason}".lower()
