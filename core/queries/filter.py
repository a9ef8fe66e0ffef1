"""The filter that people type: `type:error state:candidate uses:<3 tag:auth -flaky null`.

Words must all occur; `field:value` narrows by a field; a leading `-` turns a term around; quotes keep spaces.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from core.base.text import visible_line
from core.learning.maturity import STATES
from core.learning.scoreboard import Scoreboard
from core.records.decisions import Decision, Pin
from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.records.reflections import Reflection

MAX_QUERY: Final = 500
"""Characters of a query that are read."""
MAX_ANY_ID: Final = 300
"""Characters of a query that names several patterns: so many fit into the line where filters are typed."""

_TOKEN: Final = re.compile(r'(-?)(?:([A-Za-z_]+):)?("[^"]*"?|\S+)')
_NUMBER: Final = re.compile(r"(<=|>=|<|>|=)?(\d+(?:\.\d+)?|\.\d+)(%)?")
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    # Numbers are shown with two digits (rates as whole percent); what reads the same is the same.
    "=": lambda one, other: abs(one - other) < 0.005,
}
_NUMBERS: Final = frozenset({"uses", "rate", "low", "score"})
_AGES: Final = frozenset({"last", "age"})
_AGE: Final = re.compile(r"(<=|>=|<|>|=)?(\d{1,6})([hdwmy])")
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_OLDEST: Final = timedelta(days=365 * 1000)
"""No record is older; what is asked for beyond is cut to it, so that times stay times."""
_SHARES: Final = frozenset({"rate", "low"})
"""Numbers 0..1, which may be typed as percent."""
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "type": tuple(kind.value for kind in PatternType),
    "state": (*(state.value for state in STATES), "quarantine", "held"),
}
"""Fields that take one of a few words, or the beginning of one."""


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


def parse_query(text: str, fields: Iterable[str]) -> Query:
    """Parse what a person typed. An unknown field is a problem and is looked for as text.

    A field whose value is still to be typed narrows nothing, nor does a number that is none.
    """
    known = set(fields)
    terms: list[Term] = []
    problems: list[str] = []
    for sign, field, raw in _TOKEN.findall(text[:MAX_QUERY]):
        value = raw.strip('"').lower()
        name = field.lower()
        if name and name not in known:
            problems.append(f"no field {visible_line(name, 20)!r}, but {', '.join(sorted(known))}")
            name, value = "", f"{name}:{value}"
        elif not name and value.endswith(":") and value[:-1] in known:
            continue
        elif name in _NUMBERS and _number(value) is None:
            problems.append(f"{name}: wants a number, as in {name}:>{'50%' if name in _SHARES else '3'}")
            continue
        elif name in _AGES and _age(value) is None:
            problems.append(f"{name}: wants a time, as in {name}:<7d (h, d, w, m, y)")
            continue
        elif name in _WORDS and not any(word.startswith(value) for word in _WORDS[name]):
            problems.append(f"{name}: is one of {', '.join(_WORDS[name])}")
        if value:
            terms.append(Term(name, value, bool(sign)))
    return Query(tuple(terms), tuple(problems))


def _number(value: str) -> tuple[Callable[[Any, Any], Any], float] | None:
    found = _NUMBER.fullmatch(value)
    if found is None:
        return None
    sign, digits, percent = found.groups()
    return _COMPARE[sign or "="], float(digits) / (100 if percent else 1)


def _age(value: str) -> tuple[Callable[[Any, Any], Any], timedelta] | None:
    """How an age is compared, and with what: without a sign, `7d` is within seven days."""
    found = _AGE.fullmatch(value)
    if found is None:
        return None
    sign, digits, unit = found.groups()
    compare = _COMPARE[sign] if sign and sign != "=" else operator.le
    return compare, min(timedelta(hours=int(digits) * _HOURS[unit]), _OLDEST)


Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
_Value = TypeVar("_Value")

PATTERN_FIELDS: Final = (
    "type",
    "state",
    "uses",
    "rate",
    "low",
    "score",
    "last",
    "age",
    "tag",
    "loop",
    "id",
    "by",
    "is",
)
"""Fields of a pattern query. `low:` is the lower end of the interval of the rate, `last:` how long ago it was used,
`age:` how long ago it was discovered, `by:` who has pinned it (`me` for whoever looks); `is:` takes pinned, faded, due,
contradicted, injectable, quarantined, held, mirror, suspect (the scan finds something), and `id:` several of them with
commas between."""
_VECTORS: Final = frozenset({"state", "uses", "rate", "low", "score", "last", "is"})


def any_id(ids: Sequence[str]) -> tuple[str, int]:
    """The pattern query that finds these, or as many of them as it may be long, and how many it leaves out."""
    text = ""
    for number, pattern_id in enumerate(ids):
        longer = f"{text},{pattern_id}" if text else f"id:{pattern_id}"
        if len(longer) > MAX_ANY_ID:
            return text, len(ids) - number
        text = longer
    return text, 0


class PatternCatalog:
    """All patterns, ready to be filtered and sorted; immutable.

    100,000 patterns are filtered within a keystroke: numbers are vectors, text is one lower-case line a pattern,
    and each order is worked out once.

    Args:
        patterns: By id.
        board: Their scores.
        pins: What people have pinned, by pattern id.
        me: The name that `by:me` means.
    """

    def __init__(
        self, patterns: Mapping[str, Pattern], board: Scoreboard, pins: Mapping[str, Pin] | None = None, me: str = ""
    ) -> None:
        self._board = board
        self._pins, self._me = pins or {}, me.lower()
        self._records = [patterns[key] for key in board.ids]
        self._lines = [_line(pattern) for pattern in self._records]
        self._tags = [_tags(pattern) for pattern in self._records]
        self._ids = np.array(board.ids, dtype=object)
        self._orders: dict[tuple[str, bool], npt.NDArray[np.intp]] = {}

    def updated(
        self,
        patterns: Mapping[str, Pattern],
        board: Scoreboard,
        changed: Iterable[str],
        pins: Mapping[str, Pin] | None = None,
    ) -> PatternCatalog:
        """The catalog for a newer snapshot; only the lines of changed patterns are made again."""
        if board.ids != self._board.ids:
            return PatternCatalog(patterns, board, pins, self._me)
        newer = copy(self)
        newer._board, newer._pins, newer._orders = board, pins or {}, {}
        newer._records, newer._lines, newer._tags = self._records.copy(), self._lines.copy(), self._tags.copy()
        for key in patterns.keys() & changed:
            row, pattern = board.row(key), patterns[key]
            newer._records[row], newer._lines[row], newer._tags[row] = pattern, _line(pattern), _tags(pattern)
        return newer

    def select(self, query: Query, sort: str = "score", descending: bool = True) -> list[str]:
        """Ids of the patterns that match, in order.

        Args:
            query: See `PATTERN_FIELDS`.
            sort: `id`, `title`, `type`, `state`, `rate`, `uses`, `last_used` or `score`.
            descending: Whether the order is turned around.
        """
        rows: Rows = np.arange(len(self._ids))
        # Vectors first: of 100,000 patterns the texts of those that are left are looked at one by one.
        for term in sorted(query.terms, key=lambda term: term.field not in _VECTORS):
            found = self._mask(term, rows)
            rows = rows[~found if term.negated else found]
        matching = np.zeros(len(self._ids), dtype=np.bool_)
        matching[rows] = True
        order = self._order(sort, descending)
        chosen: list[str] = self._ids[order[matching[order]]].tolist()
        return chosen

    def _mask(self, term: Term, rows: Rows) -> Mask:
        """Which of the rows match."""
        board, value = self._board, term.value
        match term.field:
            case "uses" | "rate" | "low" | "score":
                column = self._numbers(term.field)
                compared = _number(value)
                if compared is None:
                    return np.ones(len(rows), dtype=np.bool_)
                compare, number = compared
                if term.field in _SHARES and number > 1:
                    number /= 100  # `rate:>75` can only mean percent
                return np.asarray(compare(column[rows], number), dtype=np.bool_)
            case "last" | "age" if (aged := _age(value)) is not None:
                older, span = aged
                if term.field == "last":
                    ages = board.now.timestamp() - board.last_used[rows]
                    return np.asarray(older(ages, span.total_seconds()) & np.isfinite(ages), dtype=np.bool_)
                records = self._of(self._records, rows)
                return _flags(_is_aged(p.first_discovered, board.now, older, span) for p in records)
            case "by":
                names = {key: pin.by.lower() for key, pin in self._pins.items()}
                found = {key for key, name in names.items() if (name == self._me if value == "me" else value in name)}
                return _flags(p.id in found for p in self._of(self._records, rows))
            case "state":
                codes = [n for n, state in enumerate(STATES) if state.value.startswith(value)]
                mask: Mask = np.isin(board.state_codes[rows], codes)
                for state, flags in (("quarantine", board.quarantined & ~board.held), ("held", board.held)):
                    if state.startswith(value):
                        mask |= flags[rows]
                return mask
            case "is":
                return self._is(value, rows)
            case "type":
                types = tuple(kind for kind in PatternType if kind.value.startswith(value))
                return _flags(p.type in types for p in self._of(self._records, rows))
            case "tag":
                return _flags(value in tags for tags in self._of(self._tags, rows))
            case "loop":
                records = self._of(self._records, rows)
                return _flags(any(value in loop.loop_id.lower() for loop in p.source_loops) for p in records)
            case "id":
                ids = tuple(filter(None, value.split(",")))
                return _flags(any(part in p.id.lower() for part in ids) for p in self._of(self._records, rows))
            case _:
                return _flags(value in line for line in self._of(self._lines, rows))

    def _numbers(self, field: str) -> npt.NDArray[Any]:
        board = self._board
        match field:
            case "uses":
                return board.uses
            case "rate":
                return board.rate
            case "low":
                return board.interval[0]
            case _:
                return board.score

    def _of(self, values: list[_Value], rows: Rows) -> list[_Value]:
        return values if len(rows) == len(values) else [values[row] for row in rows.tolist()]

    def _is(self, word: str, rows: Rows) -> Mask:
        board = self._board
        flags = {
            "pinned": board.pinned,
            "faded": board.faded,
            "due": board.inversion_due,
            "contradicted": board.contradicted,
            "injectable": board.injectable,
            "quarantined": board.quarantined,
            "held": board.held,
        }
        mask = np.zeros(len(rows), dtype=np.bool_)
        for name, flag in flags.items():
            if name.startswith(word):
                mask |= flag[rows]
        if "mirror".startswith(word):
            mask |= _flags(bool(p.copy_folder) for p in self._of(self._records, rows))
        if "suspect".startswith(word):
            mask |= _flags(bool(p.suspicions) for p in self._of(self._records, rows))
        return mask

    def _order(self, sort: str, descending: bool) -> npt.NDArray[np.intp]:
        order = self._orders.get((sort, descending))
        if order is None:
            order = self._orders[sort, descending] = self._sorted(sort, descending)
        return order

    def _sorted(self, sort: str, descending: bool) -> npt.NDArray[np.intp]:
        board = self._board
        columns = {
            "rate": board.rate,
            "uses": board.uses,
            "score": board.score,
            "last_used": board.last_used,
            "state": board.state_codes,
        }
        if sort in columns:
            values = np.asarray(columns[sort], dtype=np.float64)
            values = np.where(np.isfinite(values), values, np.nan)  # argsort puts what is unknown last either way
            return np.argsort(-values if descending else values, kind="stable")
        texts: dict[str, Callable[[Pattern], str]] = {
            "title": lambda p: p.title.lower(),
            "type": lambda p: p.type.value,
        }
        text = texts.get(sort, _id)
        keys = [text(record) for record in self._records]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=descending), dtype=np.intp)


def _is_aged(at: datetime | None, now: datetime, older: Callable[[Any, Any], Any], span: timedelta) -> bool:
    return at is not None and bool(older(now - at, span))


def _id(pattern: Pattern) -> str:
    return pattern.id


def _flags(values: Iterable[bool]) -> Mask:
    return np.array(list(values), dtype=np.bool_)


def _line(pattern: Pattern) -> str:
    """Everything of a pattern that a word may be found in, in lower case."""
    return "\n".join(
        (
            pattern.id,
            pattern.title,
            pattern.description,
            pattern.use_case,
            pattern.category,
            pattern.error_pattern,
            *pattern.tags,
        )
    ).lower()


def _tags(pattern: Pattern) -> str:
    return "\n".join(pattern.tags).lower()


LOOP_FIELDS: Final = ("status", "source", "id", "tag", "pattern", "is")
"""Fields of a loop query; `is:` takes archived, live, ended, orphan, stale, crashed and the other badges."""


def select_loops(loops: Mapping[str, Loop], query: Query, patterns_of: Callable[[str], Iterable[str]]) -> list[str]:
    """IDs of the loops that match, in their own order.

    Args:
        patterns_of: The patterns that a loop got or used, for `pattern:`.
    """

    def has(key: str, loop: Loop, term: Term) -> bool:
        if term.field == "pattern":
            return any(term.value in pattern_id.lower() for pattern_id in patterns_of(key))
        return _loop_has(loop, term)

    return [key for key, loop in loops.items() if all(has(key, loop, t) != t.negated for t in query.terms)]


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
            told = (reflection.observation, reflection.analysis, reflection.learning)
            text = "\n".join((*told, reflection.loop_id, reflection.task_id))
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
