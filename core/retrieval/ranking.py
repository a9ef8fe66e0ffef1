"""Ranking of patterns, and reasons for omissions (docs/retrieval.md#ranking)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.config.settings import InjectionSettings
from core.learning.assessment import INVERSION, Assessment
from core.learning.scoreboard import Scoreboard
from core.records.patterns import DECOMPOSITION_TAG, Maturity, Pattern, PatternType
from core.records.times import day_of
from core.retrieval.decomposition import RELEVANCE, STRATEGY_PART, find_strategy_rows
from core.retrieval.index import TYPES, PatternIndex
from core.retrieval.relevance import Relevance
from core.scanning.messages import describe_suspicions

LIST_ALL_UP_TO: Final = 1000  # number of patterns up to which every omitted pattern is listed
MAX_LEFT_OUT: Final = 200  # omitted patterns listed of more patterns, the most relevant ones
_MAX_RANKED: Final = 400  # candidates ranked, with duplicates and patterns over the budget
_SWITCHES: Final = {
    PatternType.ERROR: ("error patterns", "include_error_patterns"),
    PatternType.SUCCESS: ("success patterns", "include_success_patterns"),
    PatternType.ANTI: ("anti-patterns", "include_anti_patterns"),
    PatternType.TEMPLATE: ("code templates", "include_code_templates"),
}  # name of the patterns of a type, and the setting that includes them


class ChosenPattern(Struct, frozen=True, kw_only=True):
    """An injected pattern and its score."""

    pattern_id: str
    type: PatternType
    score: float  # relevance x effectiveness x multiplier
    relevance: float  # 0..1, the sum of `parts`
    effectiveness: float  # success rate as shown, 0..1
    multiplier: float  # of the state
    parts: dict[str, float]  # contributions to the relevance; with `meaning`, vectors were compared
    lower_bound: float  # the score with the lower end of the interval of the success rate


class OmittedPattern(Struct, frozen=True, kw_only=True):
    """A pattern that is not injected, with the reason and its score."""

    pattern_id: str
    reason: str
    score: float


@dataclass
class Ranking:
    """Order of the relevant patterns; arrays have one entry per relevant pattern."""

    _relevance: Relevance
    _index: PatternIndex
    _patterns: Mapping[str, Pattern]
    _board: Scoreboard
    _settings: InjectionSettings

    def __post_init__(self) -> None:
        board, index = self._board, self._index
        known = self._relevance.rows
        # An index and a board of the same patterns have the same rows, which saves a lookup of every ID.
        if index.ids != board.ids:
            known = board.rows_of(index.ids[row] for row in known.tolist())
        self._values = self._relevance.values
        self._multiplier = board.multiplier[known]
        self._uses = board.uses[known]
        self._rows = known
        self._score = self._values * board.effectiveness[known] * self._multiplier
        allowed = np.array([self._is_included(kind) for kind in TYPES])
        self._eligible: NDArray[np.bool_] = (
            allowed[index.types[self._relevance.rows]]
            & board.injectable[known]
            & (board.effectiveness[known] >= self._settings.min_success_rate)
            & ~np.isin(self._relevance.rows, find_strategy_rows(index))
            & self._settings.enabled
        )

    def _id(self, place: int) -> str:
        return self._index.ids[int(self._relevance.rows[place])]

    def _is_included(self, kind: PatternType) -> bool:
        return bool(getattr(self._settings, _SWITCHES[kind][1]))

    def candidates(self) -> Iterator[ChosenPattern]:
        """Patterns that may be injected, best first."""
        order = self._score
        if self._settings.order == "lower-bound":
            order = self._values * self._board.interval[0][self._rows] * self._multiplier
        places = np.flatnonzero(self._eligible)
        places = places[np.argsort(-order[places], kind="stable")]
        end = min(_MAX_RANKED, len(places))
        # Ties are broken by fields of the records, so all candidates with the last score are included.
        while end < len(places) and order[places[end]] == order[places[end - 1]]:
            end += 1
        head = sorted(places[:end].tolist(), key=lambda place: (-order[place], *self._tie_break(place)))
        for place in head[:_MAX_RANKED]:
            parts = self._relevance.parts_of(place, self._patterns[self._id(place)].type)
            yield self._scored(self._id(place), int(self._rows[place]), float(self._values[place]), parts)

    def _tie_break(self, place: int) -> tuple[float, int, str]:
        """Fewer iterations of a success pattern first, then more uses, then the ID."""
        pattern = self._patterns[self._id(place)]
        average = pattern.average_iterations if pattern.type is PatternType.SUCCESS else None
        iterations = average if average and math.isfinite(average) and average > 0 else math.inf
        return iterations, -int(self._uses[place]), pattern.id

    def chosen_strategy(self, pattern_id: str) -> ChosenPattern:
        """A decomposition strategy with its score for a decomposition task."""
        return self._scored(pattern_id, self._board.row(pattern_id), RELEVANCE, {STRATEGY_PART: RELEVANCE})

    def _scored(self, pattern_id: str, row: int, relevance: float, parts: dict[str, float]) -> ChosenPattern:
        board = self._board
        effectiveness, multiplier = float(board.effectiveness[row]), float(board.multiplier[row])
        return ChosenPattern(
            pattern_id=pattern_id,
            type=self._patterns[pattern_id].type,
            score=relevance * effectiveness * multiplier,
            relevance=relevance,
            effectiveness=effectiveness,
            multiplier=multiplier,
            parts=parts,
            lower_bound=relevance * float(board.interval[0][row]) * multiplier,
        )

    def omitted(self, named: set[str]) -> list[OmittedPattern]:
        """Patterns not in `named` that may not be injected, most relevant first."""
        places = np.flatnonzero(~self._eligible)
        if len(self._patterns) > LIST_ALL_UP_TO:
            places = places[np.argsort(-self._values[places], kind="stable")[:MAX_LEFT_OUT]]
        found = [
            OmittedPattern(
                pattern_id=self._id(place),
                reason=self._reason(self._id(place)) or "nothing in common with the task",
                score=float(self._score[place]),
            )
            for place in sorted(places.tolist(), key=lambda place: (-self._values[place], self._id(place)))
            if self._id(place) not in named
        ]
        if len(self._patterns) <= LIST_ALL_UP_TO:
            named |= {one.pattern_id for one in found}
            found += (
                OmittedPattern(pattern_id=id, reason=self._reason(id) or "nothing in common with the task", score=0.0)
                for id in sorted(self._patterns.keys() - named)
            )
        return found

    def _reason(self, pattern_id: str) -> str:
        """Reason why a pattern is injected into no task, "" if it may be."""
        pattern, settings = self._patterns[pattern_id], self._settings
        if not settings.enabled:
            return "injection is switched off"
        if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
            return "a decomposition strategy: only for decomposition tasks"
        if not self._is_included(pattern.type):
            return f"{_SWITCHES[pattern.type][0]} are switched off"
        if pattern.is_unnamed:
            return "its record has no ID"
        assessment = self._board.assessment(pattern_id)
        if assessment.state is Maturity.DEPRECATED:
            return _deprecated(assessment)
        if assessment.held:
            return f"held: waits for approval, since its text {describe_suspicions(pattern.suspicions)}"
        if assessment.blocked:
            return f"in quarantine: its text {describe_suspicions(pattern.suspicions)}"
        if assessment.quarantined:
            return "in quarantine: not released yet"
        if assessment.decided_by == INVERSION:
            return "an inversion is proposed: accept or reject it first"
        effectiveness = float(self._board.effectiveness[self._board.row(pattern_id)])
        if effectiveness < settings.min_success_rate:
            rate = format_decimal(effectiveness) if assessment.rate is not None else "no result yet"
            return f"below min success rate {format_decimal(settings.min_success_rate)} ({rate})"
        return ""


def _deprecated(assessment: Assessment) -> str:
    pin = assessment.pin
    if pin is not None and not assessment.pin_stale:
        reason = f": {visible_line(pin.reason, 120)}" if pin.reason else ""
        return f"deprecated: {visible_line(pin.by, 40) or 'you'} pinned it on {day_of(pin.at)}{reason}"
    total = assessment.helpful + assessment.harmful
    return f"deprecated by rule: harmful ratio {format_decimal(assessment.harmful / total)}"
