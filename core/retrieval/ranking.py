"""Which patterns a task gets, in which order, and why the others are left out (semantics 6)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.base.text import visible_line
from core.config.settings import InjectionSettings
from core.learning.assessment import INVERSION, Assessment
from core.learning.scoreboard import Scoreboard
from core.records.patterns import DECOMPOSITION_TAG, Maturity, Pattern, PatternType
from core.records.times import day_of
from core.retrieval.decomposition import RELEVANCE, STRATEGY_PART, Strategies, find_strategy_rows
from core.retrieval.index import TYPES, PatternIndex
from core.retrieval.reflections import ReflectionChoice, ReflectionSection
from core.retrieval.relevance import Relevance, measure_relevance
from core.retrieval.rendering import REFLECTIONS_ONLY, Item, count_tokens, render_context
from core.retrieval.task import TaskProfile
from core.retrieval.vectors import Closeness
from core.scanning.context_scan import find_combined_harm, find_harm_when_cut
from core.scanning.messages import describe_suspicions

LIST_ALL_UP_TO: Final = 1000
"""In a registry of at most so many patterns every one that is left out is listed."""
MAX_LEFT_OUT: Final = 200
"""In a larger one only the most relevant are."""

_MAX_RANKED: Final = 400
"""How far down the ranking is worked out: what is listed, duplicates and long patterns included."""
_MAX_TRIED: Final = 40
"""How many patterns too long for the budget are passed over for shorter ones further down."""
_NOT_A_WORD: Final = re.compile(r"\W+")


MatchedBy = Literal["meaning", "words"]


class ChosenPattern(Struct, frozen=True, kw_only=True):
    """One injected pattern and where its place comes from.

    Attributes:
        score: relevance x effectiveness x multiplier.
        relevance: 0..1, the sum of `parts`.
        effectiveness: Success rate as shown, 0..1.
        multiplier: Of its state.
        parts: What each part adds to the relevance; see `core.retrieval.relevance.WEIGHTS`. One with a part
            `meaning` was found by meaning, one without by words.
        lower_bound: The score under the lower end of the rate's interval: what it would surely deserve.
    """

    pattern_id: str
    type: PatternType
    score: float
    relevance: float
    effectiveness: float
    multiplier: float
    parts: dict[str, float]
    lower_bound: float


class OmittedPattern(Struct, frozen=True, kw_only=True):
    """One pattern that is not injected, why not, and the score that it would have had."""

    pattern_id: str
    reason: str
    score: float


class Injection(Struct, frozen=True, kw_only=True):
    """What a loop with this task gets.

    Attributes:
        context: The exact text, "" if nothing is injected.
        tokens, bytes: Its size; tokens are estimated, see `count_tokens`.
        chosen: Best first.
        left_out: Most deserving first.
        matched_by: `meaning` if any pattern was compared by it, else `words`.
        reflections: The learnings in it, and those that were left out.
    """

    profile: TaskProfile
    context: str
    tokens: int
    bytes: int
    chosen: tuple[ChosenPattern, ...]
    left_out: tuple[OmittedPattern, ...]
    matched_by: MatchedBy
    reflections: ReflectionSection = ReflectionSection()


class InjectedContext(NamedTuple):
    """What a loop gets, and no more.

    Attributes:
        context: The exact text, "" if nothing is injected.
        tokens: Its size, estimated; see `count_tokens`.
        pattern_ids: Best first.
    """

    context: str
    tokens: int
    pattern_ids: tuple[str, ...]


def prepare_injection(
    profile: TaskProfile,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    settings: InjectionSettings,
    closeness: Closeness | None = None,
    learned: ReflectionChoice | None = None,
    strategies: Strategies | None = None,
) -> Injection:
    """Choose, order and render the patterns for a task, and then what similar tasks have learned.

    Ranked by score (or by lower bound, `settings.order`), then as `_Ranking` breaks ties; duplicates and what does
    not fit the budget are passed over; at most `top_k_patterns`, never more than `max_patterns_injected`.
    `closeness` is what `Embeddings.closeness` says of the task; without it patterns are found by words. The
    reflections in `learned` keep their share of the budget, see docs/scoring.md#reflections. `strategies` come last;
    `settings` and `learned` have the budget without them.
    """
    found = measure_relevance(profile, index, patterns, closeness)
    ranking = _Ranking(found, index, patterns, board, settings)
    selection = _Selection(patterns, board, settings, learned, strategies)
    chosen: list[ChosenPattern] = []
    left_out: list[OmittedPattern] = []
    for candidate in ranking.candidates():
        reason = selection.why_not(candidate)
        if reason:
            left_out.append(OmittedPattern(pattern_id=candidate.pattern_id, reason=reason, score=candidate.score))
        else:
            chosen.append(candidate)
    added = selection.strategies
    chosen += (ranking.chosen_strategy(id) for id in added.pattern_ids)
    left_out += (OmittedPattern(pattern_id=id, reason=why, score=0.0) for id, why in added.left_out.items())
    left_out += ranking.refused({*(one.pattern_id for one in chosen), *(one.pattern_id for one in left_out)})
    if len(patterns) > LIST_ALL_UP_TO:
        del left_out[MAX_LEFT_OUT:]
    context, reflections = selection.finished()
    return Injection(
        profile=profile,
        context=context,
        tokens=count_tokens(context),
        bytes=len(context.encode("utf-8", "replace")),
        chosen=tuple(chosen),
        left_out=tuple(left_out),
        matched_by="words" if closeness is None else "meaning",
        reflections=reflections,
    )


def prepare_context(
    found: Relevance,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    settings: InjectionSettings,
    learned: ReflectionChoice | None = None,
    strategies: Strategies | None = None,
) -> InjectedContext:
    """The context alone that `prepare_injection` gives, without a word on what is left out: many times as fast.

    `found` is what `measure_relevance` says of the task.
    """
    selection = _Selection(patterns, board, settings, learned, strategies)
    for candidate in _Ranking(found, index, patterns, board, settings).candidates():
        if selection.is_full:
            break
        selection.why_not(candidate)
    ids = (*(pattern.id for pattern, _ in selection.items), *selection.strategies.pattern_ids)
    context, _ = selection.finished()
    return InjectedContext(context, count_tokens(context), ids)


class _Selection:
    """The context as it grows, candidate by candidate.

    Attributes:
        items: What is in it, best first.
        context: Its text, "" while there is nothing in it.
    """

    def __init__(
        self,
        patterns: Mapping[str, Pattern],
        board: Scoreboard,
        settings: InjectionSettings,
        learned: ReflectionChoice | None,
        strategies: Strategies | None,
    ) -> None:
        self._patterns, self._board, self._settings = patterns, board, settings
        self._learned = learned
        self._max_tokens = settings.max_tokens - (learned.reserved_tokens if learned is not None else 0)
        self._added = strategies or Strategies()
        room = settings.max_patterns_injected - len(self._added.pattern_ids)
        self._top = max(min(settings.top_k_patterns, room), 0)
        self._originals: dict[tuple[str, ...], str] = {}
        self._too_long = 0
        self.items: list[Item] = []
        self.context = ""

    @property
    def is_full(self) -> bool:
        """Whether no candidate can come into it any more."""
        return len(self.items) >= self._top or self._too_long >= _MAX_TRIED

    def why_not(self, candidate: ChosenPattern) -> str:
        """Put the next candidate in, or say why it stays out."""
        pattern = self._patterns[candidate.pattern_id]
        original = self._originals.setdefault(_content(pattern), pattern.id)
        if original != pattern.id:
            return f"duplicate of {visible_line(original, 120)}"
        if self.is_full:
            return f"below the top {self._top} ({candidate.score:.2f})"
        more = [*self.items, (pattern, self._board.assessment(pattern.id))]
        longer = render_context(more, self._settings)
        if count_tokens(longer) > self._max_tokens:
            self._too_long += 1
            return "over the token budget"
        orders = self._board.stops_orders(pattern.id)
        if does := find_harm_when_cut(pattern, self._settings.max_field_chars, orders=orders):
            return f"cut to {self._settings.max_field_chars} characters it {does}"
        if does := find_combined_harm(longer, (item[0] for item in more), orders=orders):
            return f"with the patterns before it the context {does}"
        self.items, self.context = more, longer
        return ""

    @cached_property
    def strategies(self) -> Strategies:
        """The decomposition strategies behind these patterns; none where the scan stops both together."""
        added = self._added
        if not added.text or not self.context:
            return added
        patterns = [*(item[0] for item in self.items), *(self._patterns[id] for id in added.pattern_ids)]
        orders = any(self._board.stops_orders(pattern.id) for pattern in patterns)
        does = find_combined_harm(f"{self.context}\n{added.text}", patterns, orders=orders)
        if not does:
            return added
        reason = f"with the patterns before it the context {does}"
        return Strategies(left_out=added.left_out | dict.fromkeys(added.pattern_ids, reason))

    def finished(self) -> tuple[str, ReflectionSection]:
        """The whole context: patterns, reflections, decomposition strategies."""
        context, reflections = self.context, ReflectionSection()
        if self._learned is not None:
            context, reflections = self._learned.finish(self.context, REFLECTIONS_ONLY, self.strategies.text)
        return "\n".join(filter(None, (context, self.strategies.text))), reflections


def _content(pattern: Pattern) -> tuple[str, ...]:
    """Signature and description without case, spaces and punctuation: patterns with the same say the same."""
    code = pattern.template_code if pattern.type is PatternType.TEMPLATE else ""
    texts = (pattern.error_type, pattern.error_pattern, pattern.description or pattern.title, code)
    return (pattern.type, *(_NOT_A_WORD.sub(" ", text).strip().lower() for text in texts))


class _Ranking:
    """The relevant patterns with all that their order and reasons come from, as arrays of one length."""

    def __init__(
        self,
        found: Relevance,
        index: PatternIndex,
        patterns: Mapping[str, Pattern],
        board: Scoreboard,
        settings: InjectionSettings,
    ) -> None:
        self._patterns, self._board, self._settings = patterns, board, settings
        self._relevance = found
        self._index_ids = index.ids
        known = self._relevance.rows
        # Index and board made from the same patterns have the same rows, which saves looking up every id.
        if index.ids != board.ids:
            known = board.rows_of(index.ids[row] for row in known.tolist())
        self._values = self._relevance.values
        self._effectiveness = board.effectiveness[known]
        self._multiplier = board.multiplier[known]
        self._uses = board.uses[known]
        self._rows = known
        self._score = self._values * self._effectiveness * self._multiplier
        kinds = index.types[self._relevance.rows]
        allowed = np.array([self._switched_on(kind) for kind in TYPES])
        self._eligible: NDArray[np.bool_] = (
            allowed[kinds]
            & board.injectable[known]
            & (self._effectiveness >= settings.min_success_rate)
            & ~np.isin(self._relevance.rows, find_strategy_rows(index))
            & settings.enabled
        )

    def _id(self, place: int) -> str:
        return self._index_ids[int(self._relevance.rows[place])]

    def _switched_on(self, kind: PatternType) -> bool:
        return {
            PatternType.ERROR: self._settings.include_error_patterns,
            PatternType.SUCCESS: self._settings.include_success_patterns,
            PatternType.ANTI: self._settings.include_anti_patterns,
            PatternType.TEMPLATE: self._settings.include_code_templates,
        }[kind]

    def candidates(self) -> Iterator[ChosenPattern]:
        """The patterns that may be injected, best first."""
        order = self._score
        if self._settings.order == "lower-bound":
            order = self._values * self._board.interval[0][self._rows] * self._multiplier
        places = np.flatnonzero(self._eligible)
        places = places[np.argsort(-order[places], kind="stable")]
        end = min(_MAX_RANKED, len(places))
        # Ties are broken by what only the records have, so all that tie with the last one are looked at.
        while end < len(places) and order[places[end]] == order[places[end - 1]]:
            end += 1
        head = sorted(places[:end].tolist(), key=lambda place: (-order[place], *self._tie_break(place)))
        return map(self._chosen, head[:_MAX_RANKED])

    def _tie_break(self, place: int) -> tuple[float, int, str]:
        """Success patterns with fewer iterations first, then more uses, then the id (docs/scoring.md#ranking)."""
        pattern = self._patterns[self._id(place)]
        average = pattern.average_iterations if pattern.type is PatternType.SUCCESS else None
        known = average is not None and math.isfinite(average) and average > 0
        return average if known and average is not None else math.inf, -int(self._uses[place]), pattern.id

    def _chosen(self, place: int) -> ChosenPattern:
        pattern = self._patterns[self._id(place)]
        value, multiplier = float(self._values[place]), float(self._multiplier[place])
        low = float(self._board.interval[0][self._rows[place]])
        return ChosenPattern(
            pattern_id=pattern.id,
            type=pattern.type,
            score=float(self._score[place]),
            relevance=value,
            effectiveness=float(self._effectiveness[place]),
            multiplier=multiplier,
            parts=self._relevance.parts_of(place, pattern.type),
            lower_bound=value * low * multiplier,
        )

    def chosen_strategy(self, pattern_id: str) -> ChosenPattern:
        """A decomposition strategy as it counts for a task that is a decomposition."""
        board, row = self._board, self._board.row(pattern_id)
        effectiveness, multiplier = float(board.effectiveness[row]), float(board.multiplier[row])
        return ChosenPattern(
            pattern_id=pattern_id,
            type=self._patterns[pattern_id].type,
            score=RELEVANCE * effectiveness * multiplier,
            relevance=RELEVANCE,
            effectiveness=effectiveness,
            multiplier=multiplier,
            parts={STRATEGY_PART: RELEVANCE},
            lower_bound=RELEVANCE * float(board.interval[0][row]) * multiplier,
        )

    def refused(self, named: set[str]) -> Iterable[OmittedPattern]:
        """The patterns that are not in `named` and may not be injected, the most relevant first."""
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
        """Why this pattern is injected into no task at all, "" if it may be."""
        pattern, settings = self._patterns[pattern_id], self._settings
        if not settings.enabled:
            return "injection is switched off"
        if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
            return "a decomposition strategy: only for tasks that are a decomposition"
        if not self._switched_on(pattern.type):
            return f"{_NAMES[pattern.type]} are switched off"
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
            return "waits for your verdict on its inversion"
        effectiveness = float(self._board.effectiveness[self._board.row(pattern_id)])
        if effectiveness < settings.min_success_rate:
            shown = f"{effectiveness:.2f}" if assessment.rate is not None else "no result yet"
            return f"below min success rate {settings.min_success_rate:.2f} ({shown})"
        return ""


_NAMES: Final = {
    PatternType.ERROR: "error patterns",
    PatternType.SUCCESS: "success patterns",
    PatternType.ANTI: "anti-patterns",
    PatternType.TEMPLATE: "code templates",
}


def _deprecated(assessment: Assessment) -> str:
    pin = assessment.pin
    if pin is not None and not assessment.pin_stale:
        reason = f": {visible_line(pin.reason, 120)}" if pin.reason else ""
        return f"deprecated: {visible_line(pin.by, 40) or 'you'} pinned it on {day_of(pin.at)}{reason}"
    total = assessment.helpful + assessment.harmful
    return f"deprecated by rule: harmful ratio {assessment.harmful / total:.2f}"
