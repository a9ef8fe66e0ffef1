"""Filter and sort all patterns by a parsed query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from core.base.pattern_titles import pattern_title
from core.learning.following import FollowCounts
from core.learning.maturity import STATES
from core.records.patterns import Pattern, PatternType
from core.show.filter_parser import FieldKind, Fields, Query, Term, parse_age, parse_number

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import Pin
    from core.show.filter_parser import Comparison

_FLAGS: Final = {
    "due": "inversion_due",
    **{name: name for name in ("pinned", "faded", "contradicted", "injectable", "quarantined", "held")},
}
_RECORD_FLAGS: Final = {"mirror": "copy_folder", "suspect": "suspicions"}
"""Attributes of a scoreboard (`_FLAGS`) and of a pattern (`_RECORD_FLAGS`), by value of `is:`."""
_STALE: Final = "stale"
PATTERN_FIELDS: Final[Fields] = {
    "type": tuple(kind.value for kind in PatternType),
    "state": (*(state.value for state in STATES), "quarantine", "held"),
    "uses": FieldKind.NUMBER,
    "rate": FieldKind.SHARE,
    "low": FieldKind.SHARE,
    "followed": FieldKind.SHARE,
    "score": FieldKind.NUMBER,
    "last": FieldKind.AGE,
    "age": FieldKind.AGE,
    "is": (*_FLAGS, *_RECORD_FLAGS, _STALE),
    **dict.fromkeys(("tag", "loop", "id", "by"), FieldKind.TEXT),
}
"""Fields of a pattern query.

`low:` is the lower end of the interval of the rate, `followed:` the share of clear verdicts that it was followed,
`last:` the time since the last use, `age:` the time since the discovery, `by:` the author of the pin (`me` for the
current user). `is:` accepts the keys of `_FLAGS` and `_RECORD_FLAGS`, and `stale` for a removed anchor; `id:` accepts
several IDs, separated by commas.
"""
_FAST_FIELDS: Final = frozenset({"state", "uses", "rate", "low", "score", "last", "is"})  # compared as numpy arrays
_NUMBERS: Final = {"state": "state_codes", **{name: name for name in ("rate", "uses", "score", "last_used")}}
"""Attributes of a scoreboard by name of the sort order."""

_TYPES: Final = tuple(PatternType)

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
_Value = TypeVar("_Value")


def _parse_number_of(term: Term) -> tuple[Comparison, float] | None:
    """Parse the value of a term into a comparison and a number; None if invalid."""
    parsed = parse_number(term.value)
    if parsed is not None and PATTERN_FIELDS[term.field] is FieldKind.SHARE and parsed[1] > 1:
        return parsed[0], parsed[1] / 100  # `rate:>75` can only mean percent
    return parsed


class PatternCatalog:
    """All patterns, prepared for filtering and sorting; immutable.

    Fast enough to filter 100,000 patterns after each keystroke: numbers are numpy arrays, text is one lower-case string
    per pattern, and sort orders are cached. `pins` are pinned states by pattern ID; `me` is the current user; `stale`
    are patterns with removed anchors.
    """

    def __init__(
        self,
        patterns: Mapping[str, Pattern],
        board: Scoreboard,
        pins: Mapping[str, Pin] | None = None,
        me: str = "",
        stale: Collection[str] = (),
    ) -> None:
        self._board = board
        self._pins, self._me, self._stale = pins or {}, me.lower(), stale
        self._followed: dict[str, float] = {}
        self._records = [patterns[key] for key in board.ids]
        self._made: list[str] | None = None  # the texts
        self._ids = np.array(board.ids, dtype=object)
        # Rows are in the order in which the index got the patterns, which is another one after it is made again.
        self._by_id: Rows = np.array(sorted(range(len(board.ids)), key=board.ids.__getitem__), dtype=np.intp)
        self._orders: dict[tuple[str, bool], Rows] = {}

    def updated(
        self,
        patterns: Mapping[str, Pattern],
        board: Scoreboard,
        changed: Iterable[str],
        pins: Mapping[str, Pin] | None = None,
        stale: Collection[str] = (),
    ) -> PatternCatalog:
        """Return the catalog of a newer snapshot; index only `changed` patterns again."""
        if board.ids != self._board.ids:
            return PatternCatalog(patterns, board, pins, self._me, stale)
        newer = copy(self)
        newer._board, newer._pins, newer._orders, newer._stale, newer._followed = board, pins or {}, {}, stale, {}
        newer._records, newer._made = self._records.copy(), self._made and self._made.copy()
        for key in patterns.keys() & changed:
            row, pattern = board.row(key), patterns[key]
            newer._records[row] = pattern
            if newer._made:
                newer._made[row] = _search_text(pattern)
        return newer

    @property
    def _texts(self) -> list[str]:
        """Search texts by row; made when a term first needs them (0.2 s for 100,000)."""
        if self._made is None:
            self._made = [_search_text(pattern) for pattern in self._records]
        return self._made

    def select(self, query: Query, sort: str = "score", descending: bool = True) -> list[str]:
        """Return sorted IDs of patterns that match a `PATTERN_FIELDS` query; ties by ID.

        `sort` is `id`, `title`, `type`, `state`, `rate`, `uses`, `last_used` or `score`.
        """
        rows: Rows = np.arange(len(self._ids))
        # Fast terms come first, so that texts are compared only for the remaining rows.
        for term in sorted(query.terms, key=lambda term: term.field not in _FAST_FIELDS):
            matches = self._match(term, rows)
            rows = rows[~matches if term.negated else matches]
        selected = np.zeros(len(self._ids), dtype=np.bool_)
        selected[rows] = True
        order = self._order(sort, descending)
        ids: list[str] = self._ids[order[selected[order]]].tolist()
        return ids

    def _match(self, term: Term, rows: Rows) -> Mask:
        """Return a mask of the rows that match a term."""
        board, value = self._board, term.value
        match term.field:
            case "uses" | "rate" | "low" | "score":
                if (parsed := _parse_number_of(term)) is None:
                    return np.ones(len(rows), dtype=np.bool_)
                compare, number = parsed
                column = board.interval[0] if term.field == "low" else getattr(board, term.field)
                return np.asarray(compare(column[rows], number), dtype=np.bool_)
            case "followed" if (share := _parse_number_of(term)) is not None:
                compare, number = share
                return _mask(compare(self._share_followed(row), number) for row in rows.tolist())
            case "last" | "age" if (parsed_age := parse_age(value)) is not None:
                compare, age = parsed_age
                if term.field == "last":
                    ages = board.now.timestamp() - board.last_used[rows]
                    return np.asarray(compare(ages, age.total_seconds()) & np.isfinite(ages), dtype=np.bool_)
                times = (p.first_discovered for p in self._take(self._records, rows))
                return _mask(at is not None and bool(compare(board.now - at, age)) for at in times)
            case "by":
                names = {key: pin.by.lower() for key, pin in self._pins.items()}
                pinned = {key for key, name in names.items() if (name == self._me if value == "me" else value in name)}
                return _mask(p.id in pinned for p in self._take(self._records, rows))
            case "state":
                codes = [n for n, state in enumerate(STATES) if state.value.startswith(value)]
                mask: Mask = np.isin(board.state_codes[rows], codes)
                for state, flags in (("quarantine", board.quarantined & ~board.held), ("held", board.held)):
                    if state.startswith(value):
                        mask |= flags[rows]
                return mask
            case "is":
                mask = np.zeros(len(rows), dtype=np.bool_)
                for flag in (attribute for word, attribute in _FLAGS.items() if word.startswith(value)):
                    mask |= getattr(board, flag)[rows]
                for flag in (attribute for word, attribute in _RECORD_FLAGS.items() if word.startswith(value)):
                    mask |= _mask(bool(getattr(p, flag)) for p in self._take(self._records, rows))
                if _STALE.startswith(value):
                    mask |= _mask(p.id in self._stale for p in self._take(self._records, rows))
                return mask
            case "type":
                types = tuple(kind for kind in PatternType if kind.value.startswith(value))
                return _mask(p.type in types for p in self._take(self._records, rows))
            case "tag":
                found = zip(self._take(self._texts, rows), self._take(self._records, rows), strict=True)
                return _mask(value in text and any(value in tag.lower() for tag in p.tags) for text, p in found)
            case "loop":
                records = self._take(self._records, rows)
                return _mask(any(value in loop.loop_id.lower() for loop in p.source_loops) for p in records)
            case "id":
                ids = tuple(filter(None, value.split(",")))
                return _mask(any(part in p.id.lower() for part in ids) for p in self._take(self._records, rows))
            case _:
                return _mask(value in text for text in self._take(self._texts, rows))

    def _share_followed(self, row: int) -> float:
        """Return the share of clear verdicts with a pattern followed; NaN without any."""
        id = self._board.ids[row]
        if id not in self._followed:
            counts = FollowCounts.of(self._board.verdicts(id)) if self._board.given[row] else FollowCounts()
            self._followed[id] = counts.followed / counts.judged if counts.judged else float("nan")
        return self._followed[id]

    def _take(self, values: list[_Value], rows: Rows) -> list[_Value]:
        return values if len(rows) == len(values) else [values[row] for row in rows.tolist()]

    def _order(self, sort: str, descending: bool) -> Rows:
        key = sort, descending
        if key not in self._orders:
            self._orders[key] = self._sort_rows(sort, descending)
        return self._orders[key]

    def _sort_rows(self, sort: str, descending: bool) -> Rows:
        if sort in _NUMBERS:
            values = np.asarray(getattr(self._board, _NUMBERS[sort]), dtype=np.float64)[self._by_id]
            values = np.where(np.isfinite(values), values, np.nan)  # argsort puts NaN last in both directions
            return self._by_id[np.argsort(-values if descending else values, kind="stable")]
        match sort:
            case "title":
                keys: list[Any] = [pattern_title(record).lower() for record in self._records]
            case "type":
                keys = [_TYPES.index(record.type) for record in self._records]
            case _:
                return self._by_id[::-1] if descending else self._by_id
        return np.array(sorted(self._by_id.tolist(), key=keys.__getitem__, reverse=descending), dtype=np.intp)


def _mask(values: Iterable[Any]) -> Mask:
    return np.array(list(values), dtype=np.bool_)


def _search_text(pattern: Pattern) -> str:
    parts = (pattern.id, pattern.title, pattern.description, pattern.use_case, pattern.category)
    return "\n".join((*parts, pattern.error_pattern, pattern.error_message, *pattern.tags)).lower()
