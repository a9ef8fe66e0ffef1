"""The filter that people type: `type:error state:candidate uses:<3 tag:auth -flaky null`.

Words must all occur; `field:value` narrows by a field; a leading `-` turns a term around; quotes keep spaces.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.learning.scoreboard import Scoreboard
from core.records.decisions import Decision
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern
from core.records.reflections import Reflection
from core.text import visible_line

MAX_QUERY: Final = 500
"""Characters of a query that are read."""

_TOKEN: Final = re.compile(r'(-?)(?:([A-Za-z_]+):)?("[^"]*"?|\S+)')
_NUMBER: Final = re.compile(r"(<=|>=|<|>|=)?(\d+(?:\.\d+)?|\.\d+)(%)?")
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Term:
    """One term: a word (`field` empty) or `field:value`, in lower case."""

    field: str
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed filter and what could not be understood in it."""

    terms: tuple[Term, ...]
    problems: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """The words that must occur, for highlighting."""
        return tuple(term.value for term in self.terms if not term.field and not term.negated)


def parse_query(text: str, fields: Iterable[str]) -> Query:
    """Parse what a person typed. An unknown field is a problem and is looked for as text."""
    known = set(fields)
    terms: list[Term] = []
    problems: list[str] = []
    for sign, field, raw in _TOKEN.findall(text[:MAX_QUERY]):
        value = raw.strip('"').lower()
        name = field.lower()
        if name and name not in known:
            problems.append(f"no field {visible_line(name, 30)!r}; fields: {', '.join(sorted(known))}")
            name, value = "", f"{name}:{value}"
        if value:
            terms.append(Term(name, value, bool(sign)))
    return Query(tuple(terms), tuple(problems))


def _number(value: str) -> tuple[Callable[[Any, Any], Any], float] | None:
    found = _NUMBER.fullmatch(value)
    if found is None:
        return None
    sign, digits, percent = found.groups()
    return _COMPARE[sign or "="], float(digits) / (100 if percent else 1)


Mask = npt.NDArray[np.bool_]

PATTERN_FIELDS: Final = ("type", "state", "uses", "rate", "score", "tag", "loop", "id", "is")
"""Fields of a pattern query; `is:` takes pinned, faded, due, contradicted, injectable, mirror."""


class PatternCatalog:
    """All patterns, ready to be filtered and sorted; immutable.

    100,000 patterns are filtered in a few ms: numbers as vectors, text as one lower-case line a pattern.
    """

    def __init__(
        self, patterns: Mapping[str, Pattern], board: Scoreboard, lines: Mapping[str, str] | None = None
    ) -> None:
        self._patterns = patterns
        self._board = board
        self._lines = {key: lines[key] if lines and key in lines else _line(p) for key, p in patterns.items()}

    def updated(
        self, patterns: Mapping[str, Pattern], board: Scoreboard, changed: Iterable[str]
    ) -> PatternCatalog:
        """The catalog for a newer snapshot; only the lines of changed patterns are made again."""
        if not changed and patterns is self._patterns:
            fresh = object.__new__(PatternCatalog)
            fresh._patterns, fresh._board, fresh._lines = patterns, board, self._lines
            return fresh
        kept = dict(self._lines)
        for key in changed:
            kept.pop(key, None)
        return PatternCatalog(patterns, board, kept)

    def select(self, query: Query, sort: str = "score", descending: bool = True) -> list[str]:
        """Ids of the patterns that match, sorted by `id`, `title`, `type`, `state`, `rate`, `uses`, `last_used` or `score`."""
        ids = self._board.ids
        mask = np.ones(len(ids), dtype=np.bool_)
        for term in query.terms:
            mask &= ~self._mask(term) if term.negated else self._mask(term)
        chosen = np.flatnonzero(mask)
        return [ids[n] for n in self._sorted(chosen, sort, descending)]

    def _mask(self, term: Term) -> Mask:
        board, patterns = self._board, self._patterns
        if term.field in {"uses", "rate", "score"}:
            column = {"uses": board.uses, "rate": board.rate, "score": board.score}[term.field]
            compared = _number(term.value)
            if compared is None:
                return np.zeros(len(board.ids), dtype=np.bool_)
            compare, value = compared
            with np.errstate(invalid="ignore"):
                return np.asarray(compare(column, value), dtype=np.bool_)
        if term.field == "is":
            return self._is(term.value)
        if term.field == "state":
            codes = [n for n, state in enumerate(Maturity) if state.value.startswith(term.value)]
            return np.isin(board.state_codes, codes)
        tests: dict[str, Callable[[str], bool]] = {
            "": lambda key: term.value in self._lines[key],
            "type": lambda key: patterns[key].type.value.startswith(term.value),
            "tag": lambda key: any(term.value in tag.lower() for tag in patterns[key].tags),
            "loop": lambda key: any(
                term.value in loop.loop_id.lower() for loop in patterns[key].source_loops
            ),
            "id": lambda key: term.value in key.lower(),
        }
        test = tests[term.field]
        return np.fromiter((test(key) for key in board.ids), dtype=np.bool_, count=len(board.ids))

    def _is(self, word: str) -> Mask:
        board = self._board
        flags = {
            "pinned": board.pinned,
            "faded": board.faded,
            "due": board.inversion_due,
            "contradicted": board.contradicted,
            "injectable": board.injectable,
            "mirror": np.fromiter((bool(self._patterns[key].mirror_of) for key in board.ids), np.bool_),
        }
        mask = np.zeros(len(board.ids), dtype=np.bool_)
        for name, flag in flags.items():
            if name.startswith(word):
                mask |= flag
        return mask

    def _sorted(self, chosen: npt.NDArray[np.intp], sort: str, descending: bool) -> Sequence[int]:
        board = self._board
        columns = {"rate": board.rate, "uses": board.uses, "score": board.score, "last_used": board.last_used,
                   "state": board.state_codes}  # fmt: skip
        if sort in columns:
            values = np.nan_to_num(np.asarray(columns[sort], dtype=np.float64)[chosen], nan=-1.0)
            order = np.argsort(-values if descending else values, kind="stable")
            return [int(n) for n in chosen[order]]
        ids = board.ids
        texts: dict[str, Callable[[int], str]] = {
            "title": lambda n: self._patterns[ids[n]].title.lower(),
            "type": lambda n: self._patterns[ids[n]].type.value,
        }
        return sorted((int(n) for n in chosen), key=texts.get(sort, lambda n: ids[n]), reverse=descending)


def _line(pattern: Pattern) -> str:
    """Everything of a pattern that a word may be found in, in lower case."""
    return "\n".join(
        (
            pattern.id,
            pattern.title,
            pattern.description,
            pattern.category,
            pattern.error_pattern,
            *pattern.tags,
        )
    ).lower()


LOOP_FIELDS: Final = ("status", "source", "id", "tag", "pattern", "is")
"""Fields of a loop query; `is:` takes archived, live, ended, orphan, stale, crashed and the other badges."""


def select_loops(loops: Mapping[str, Loop], query: Query) -> list[str]:
    """Ids of the loops that match, in their own order."""
    return [key for key, loop in loops.items() if all(_loop_has(loop, t) != t.negated for t in query.terms)]


def _loop_has(loop: Loop, term: Term) -> bool:
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
        case "pattern":
            return any(value in use.pattern_id.lower() for use in loop.injected)
        case "is":
            holds = {"archived": loop.archived, "live": loop.status.active, "ended": loop.status.ended}
            words = [*loop.badges, *(word for word, holding in holds.items() if holding)]
            return any(word.startswith(value) for word in words)
        case _:
            return value in f"{loop.id}\n{loop.task}\n{loop.status}\n{loop.raw_status}\n{loop.owner}".lower()


REFLECTION_FIELDS: Final = ("kind", "loop", "task", "effect", "shape", "outcome")
"""Fields of a reflection query."""


def select_reflections(reflections: Mapping[str, Reflection], query: Query) -> list[str]:
    """Ids of the reflections that match, in their own order."""
    return [
        key
        for key, reflection in reflections.items()
        if all(_reflection_has(reflection, t) != t.negated for t in query.terms)
    ]


def _reflection_has(reflection: Reflection, term: Term) -> bool:
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
            text = f"{reflection.observation}\n{reflection.analysis}\n{reflection.learning}\n{reflection.loop_id}"
            return value in text.lower() or any(value in action.lower() for action in reflection.actions)


DECISION_FIELDS: Final = ("verb", "by", "subject")
"""Fields of a decision query."""


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """Ids of the decisions that match, in their own order."""
    return [d.id for d in decisions if all(_decision_has(d, t) != t.negated for t in query.terms)]


def _decision_has(decision: Decision, term: Term) -> bool:
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
