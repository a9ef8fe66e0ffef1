"""Ranking and selection of patterns for a task (docs/retrieval.md#selection)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from core.base.context_blocks import APPROVED, NO_BLOCKS, UNREVIEWED, Blocks, Voice
from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.learning.assessment import INVERSION, Assessment
from core.learning.inversion_rules import remove_warning_prefix
from core.learning.statistics import jeffreys_interval
from core.records.patterns import DECOMPOSITION_TAG, Maturity, Pattern, PatternType
from core.records.times import day_of
from core.retrieval.decomposition import RELEVANCE, STRATEGY_PART, Strategies, find_strategy_rows
from core.retrieval.index import TYPES, PatternIndex
from core.retrieval.reflections import ReflectionChoice, ReflectionSection, put_reflections
from core.retrieval.relevance import WEIGHTS, Relevance, measure_relevance
from core.retrieval.rendering import Item, count_tokens, render_patterns
from core.retrieval.task import TaskProfile
from core.scanning.context_scan import find_combined_harm, find_harm_when_cut
from core.scanning.messages import describe_suspicions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.config.settings import InjectionSettings
    from core.learning.scoreboard import Scoreboard
    from core.retrieval.embeddings import Closeness, Floats
    from core.retrieval.relevance import UntriedRegexes

LIST_ALL_UP_TO: Final = 1000  # number of patterns up to which every omitted pattern is listed
MAX_LEFT_OUT: Final = 200  # omitted patterns listed of more patterns, the most relevant ones
_MAX_RANKED: Final = 400  # candidates ranked, with duplicates and patterns over the budget
_SWITCHES: Final = {
    PatternType.ERROR: ("error patterns", "include_error_patterns"),
    PatternType.SUCCESS: ("success patterns", "include_success_patterns"),
    PatternType.ANTI: ("anti-patterns", "include_anti_patterns"),
    PatternType.TEMPLATE: ("code templates", "include_code_templates"),
}  # name of the patterns of a type, and the setting that includes them
_MAX_TRIED: Final = 40  # patterns over the budget that are skipped for shorter ones with a lower rank
_NOT_A_WORD: Final = re.compile(r"\W+")


class ChosenPattern(Struct, frozen=True, kw_only=True):
    """Injected pattern and its score."""

    pattern_id: str
    type: PatternType
    score: float  # relevance x effectiveness x multiplier
    relevance: float  # 0..1, the sum of `parts`
    effectiveness: float  # success rate as shown, 0..1
    multiplier: float  # of the state
    parts: dict[str, float]  # contributions to the relevance; with `meaning`, vectors were compared
    successes: int  # numbers of uses with a result
    failures: int
    level: float  # probability of the interval of the success rate, 0..1
    voice: Voice  # the block of the context that contains it

    @property
    def lower_bound(self) -> float:
        """The score with the lower end of the interval of the success rate."""
        return self.relevance * jeffreys_interval(self.successes, self.failures, self.level)[0] * self.multiplier


class OmittedPattern(Struct, frozen=True, kw_only=True):
    """Pattern that is not injected, with the reason and its score."""

    pattern_id: str
    reason: str
    score: float


@dataclass
class Ranking:
    """Ranking of the relevant patterns; arrays have one entry per relevant pattern."""

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
        """Injectable patterns, best first; at most `_MAX_RANKED`."""
        if self._relevance.untried is not None:
            return self._resolved_candidates(self._relevance.untried)
        return self._ordered_candidates()

    def _order(self, values: Floats) -> Floats:
        """Return by what patterns with these values of relevance are ordered."""
        rate = self._board.interval[0] if self._settings.order == "lower-bound" else self._board.effectiveness
        order: Floats = values * rate[self._rows] * self._multiplier
        return order

    def _resolved_candidates(self, untried: UntriedRegexes) -> Iterator[ChosenPattern]:
        """Yield the same candidates, and match regexes only of patterns that could be the next one."""
        lowest, highest = self._order(self._values), self._order(untried.values)
        places = np.flatnonzero(self._eligible)
        left = places[np.argsort(highest[places], kind="stable")].tolist()  # the best one last
        ready: list[tuple[float, tuple[float, int, str], int, float]] = []  # a heap: order, ties, place, relevance
        for _ in range(min(_MAX_RANKED, len(left))):
            while left and (not ready or highest[left[-1]] >= -ready[0][0]):
                place = left.pop()
                is_better = highest[place] > lowest[place] and untried.matches(self._patterns[self._id(place)])
                order, values = (highest, untried.values) if is_better else (lowest, self._values)
                heappush(ready, (-float(order[place]), self._tie_break(place), place, float(values[place])))
            _, _, place, relevance = heappop(ready)
            yield self._scored(self._id(place), int(self._rows[place]), relevance, {})

    def _ordered_candidates(self) -> Iterator[ChosenPattern]:
        order = self._order(self._values)
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
        """Order equal scores by iterations of a success pattern, then most uses, then ID."""
        pattern = self._patterns[self._id(place)]
        average = pattern.average_iterations if pattern.type is PatternType.SUCCESS else None
        iterations = average if average and math.isfinite(average) and average > 0 else math.inf
        return iterations, -int(self._uses[place]), pattern.id

    def chosen_strategy(self, pattern_id: str) -> ChosenPattern:
        """Return a decomposition strategy with its score for a decomposition task."""
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
            successes=int(board.successes[row]),
            failures=int(board.failures[row]),
            level=board.settings.interval_level,
            voice=APPROVED if board.is_approved(pattern_id) else UNREVIEWED,
        )

    def omitted(self, named: set[str]) -> list[OmittedPattern]:
        """Return patterns not in `named` that may not be injected, most relevant first."""
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
        """Return why a pattern is not injected for any task; "" if it may be."""
        pattern, settings = self._patterns[pattern_id], self._settings
        if not settings.enabled:
            return "injection is switched off"
        if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
            return "a decomposition strategy, injected only into decomposition tasks"
        if not self._is_included(pattern.type):
            return f"{_SWITCHES[pattern.type][0]} are switched off"
        if pattern.is_unnamed:
            return "its record has no ID"
        assessment = self._board.assessment(pattern_id)
        if assessment.state is Maturity.DEPRECATED:
            return _deprecated(assessment)
        if assessment.held:
            return f"held until approved: its text {describe_suspicions(self._board.suspicions(pattern_id))}"
        if assessment.blocked:
            return f"in quarantine: its text {describe_suspicions(self._board.suspicions(pattern_id))}"
        if assessment.quarantined:
            return "in quarantine until released"
        if assessment.decided_by == INVERSION:
            return "an inversion is proposed: accept or reject it first"
        if assessment.warning_id:
            return f"{visible_line(assessment.warning_id, 120)} warns of the same fix"
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


class Injection(Struct, frozen=True, kw_only=True):
    """Context for a task: what is injected and what is left out."""

    profile: TaskProfile
    blocks: Blocks  # injected texts without fences
    token: str  # of the fences, "" if nothing is injected
    context: str  # injected text with its fences, "" if nothing is injected
    tokens: int  # estimated, see `count_tokens`
    bytes: int
    chosen: tuple[ChosenPattern, ...]  # injected patterns, best first
    left_out: tuple[OmittedPattern, ...]  # omitted patterns, highest score first
    matched_by: Literal["meaning", "words"]  # `meaning` if vectors were compared, else `words`
    reflections: ReflectionSection = ReflectionSection()  # learnings in the context, and those left out

    @property
    def pattern_ids(self) -> tuple[str, ...]:
        return tuple(one.pattern_id for one in self.chosen)

    @property
    def reflection_ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.reflections.chosen)


class InjectedContext(NamedTuple):
    """Injected text, its size and its patterns."""

    context: str  # injected text, "" if nothing is injected
    tokens: int  # estimated size, see `count_tokens`
    pattern_ids: tuple[str, ...]  # injected patterns, best first
    least: float = -math.inf  # patterns that rank lower were not considered; see `best_rank`
    reflection_ids: tuple[str, ...] = ()  # injected reflections, best first


def prepare_injection(
    profile: TaskProfile,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    settings: InjectionSettings,
    closeness: Closeness | None = None,
    learned: ReflectionChoice | None = None,
    strategies: Strategies | None = None,
    past: Floats | None = None,
    weights: Mapping[PatternType, Mapping[str, float]] = WEIGHTS,
    token: str = "",
) -> Injection:
    """Choose and render patterns and learnings for a task.

    `closeness` is the result of `Embeddings.closeness` for the task; None compares patterns by words. `learned` chooses
    the learnings within its share of the budget. `strategies` are rendered last in their blocks. `past` is the result
    of `PastTasks.similarity`, `weights` the learned ones. `token` is for the fences, "" for a new one.
    """
    found = measure_relevance(profile, index, patterns, closeness, past, weights)
    ranking = Ranking(found, index, patterns, board, settings)
    selection = _Selection(patterns, board, settings, learned, strategies or Strategies())
    chosen: list[ChosenPattern] = []
    left_out: list[OmittedPattern] = []
    for candidate in ranking.candidates():
        reason = selection.try_add(candidate)
        if reason:
            left_out.append(OmittedPattern(pattern_id=candidate.pattern_id, reason=reason, score=candidate.score))
        else:
            chosen.append(candidate)
    added = selection.strategies
    chosen += (ranking.chosen_strategy(id) for id in added.pattern_ids)
    left_out += (OmittedPattern(pattern_id=id, reason=why, score=0.0) for id, why in added.left_out.items())
    left_out += ranking.omitted({*(one.pattern_id for one in chosen), *(one.pattern_id for one in left_out)})
    if len(patterns) > LIST_ALL_UP_TO:
        del left_out[MAX_LEFT_OUT:]
    blocks, reflections = selection.finish()
    token = blocks.choose_token(token)
    context = blocks.fenced(token)
    return Injection(
        profile=profile,
        blocks=blocks,
        token=token if context else "",
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
    token: str = "",
) -> InjectedContext:
    """Return only the context of `prepare_injection`, many times as fast."""
    selection = _Selection(patterns, board, settings, learned, strategies or Strategies())
    least = -math.inf
    for candidate in Ranking(found, index, patterns, board, settings).candidates():
        selection.try_add(candidate)
        if selection.is_full:
            least = _rank_of(candidate, settings)
            break
    ids = (*(pattern.id for pattern, _ in selection.items), *selection.strategies.pattern_ids)
    blocks, reflections = selection.finish()
    context = blocks.fenced(blocks.choose_token(token))
    return InjectedContext(context, count_tokens(context), ids, least, tuple(one.id for one in reflections.chosen))


def best_rank(
    found: Relevance,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    settings: InjectionSettings,
) -> float:
    """Return the rank value of the best injectable pattern of `found`, -inf if there is none."""
    best = next(Ranking(found, index, patterns, board, settings).candidates(), None)
    return -math.inf if best is None else _rank_of(best, settings)


def _rank_of(candidate: ChosenPattern, settings: InjectionSettings) -> float:
    return candidate.lower_bound if settings.order == "lower-bound" else candidate.score


@dataclass
class _Selection:
    """Context under construction; candidates are added one by one."""

    _patterns: Mapping[str, Pattern]
    _board: Scoreboard
    _settings: InjectionSettings
    _learned: ReflectionChoice | None
    _added: Strategies

    def __post_init__(self) -> None:
        settings = self._settings
        self._reserved = self._learned.reserved_text if self._learned is not None else ""
        room = settings.max_patterns_injected - len(self._added.pattern_ids)
        self._top = max(min(settings.top_k_patterns, room), 0)
        self._originals: dict[tuple[str, ...], str] = {}
        self._advice: dict[str, str] = {}  # IDs of added patterns by what they recommend
        self._warnings: dict[str, str] = {}  # IDs of added warnings by what they warn of
        self._too_long = 0
        self.items: list[Item] = []  # added patterns, best first
        self._blocks = NO_BLOCKS  # texts of these patterns

    @property
    def is_full(self) -> bool:
        """Return whether no further candidate can be added."""
        return len(self.items) >= self._top or self._too_long >= _MAX_TRIED

    def try_add(self, candidate: ChosenPattern) -> str:
        """Add the next candidate, or return why it is left out."""
        pattern = self._patterns[candidate.pattern_id]
        original = self._originals.setdefault(_content(pattern), pattern.id)
        if original != pattern.id:
            return f"duplicate of {visible_line(original, 120)}"
        if opposite := self._find_opposite(pattern):
            return f"contradicts {visible_line(opposite, 120)}, which ranks higher"
        if self.is_full:
            return f"below the top {self._top} ({format_decimal(candidate.score)})"
        more = [*self.items, (pattern, self._board.assessment(pattern.id))]
        longer = render_patterns(more, self._settings)
        whole = put_reflections(longer, self._reserved, self._added.blocks).fenced()
        if count_tokens(whole) > self._settings.max_tokens:
            self._too_long += 1
            return "over the token budget"
        orders = self._board.stops_orders(pattern.id)
        if does := find_harm_when_cut(pattern, self._settings.max_field_chars, orders=orders):
            return f"when cut to {self._settings.max_field_chars} characters, it {does}"
        if does := find_combined_harm(longer.fenced(), (item[0] for item in more), orders=orders):
            return f"together with the patterns before it, the context {does}"
        self.items, self._blocks = more, longer
        added = self._warnings if pattern.type is PatternType.ANTI else self._advice
        added.update(dict.fromkeys(self._subjects(pattern), pattern.id))
        return ""

    def _find_opposite(self, pattern: Pattern) -> str:
        """Return the added pattern that warns of what this one recommends, or the reverse; "" if there is none."""
        opposite = self._advice if pattern.type is PatternType.ANTI else self._warnings
        return next((opposite[subject] for subject in self._subjects(pattern) if subject in opposite), "")

    def _subjects(self, pattern: Pattern) -> tuple[str, ...]:
        """Return what a pattern recommends or warns of, normalized."""
        texts = [remove_warning_prefix(pattern.description or pattern.title)]
        if pattern.type is PatternType.ANTI and (original := self._patterns.get(pattern.inverted_from)) is not None:
            texts.append(original.description or original.title)
        return tuple(filter(None, (_NOT_A_WORD.sub(" ", text).strip().lower() for text in texts)))

    @cached_property
    def strategies(self) -> Strategies:
        """Return strategies to add after the patterns; none if the whole would do harm."""
        added = self._added
        if not added.pattern_ids or not self.items:
            return added
        patterns = [*(item[0] for item in self.items), *(self._patterns[id] for id in added.pattern_ids)]
        orders = any(self._board.stops_orders(pattern.id) for pattern in patterns)
        does = find_combined_harm(put_reflections(self._blocks, "", added.blocks).fenced(), patterns, orders=orders)
        if not does:
            return added
        reason = f"together with the patterns before it, the context {does}"
        return Strategies(left_out=added.left_out | dict.fromkeys(added.pattern_ids, reason))

    def finish(self) -> tuple[Blocks, ReflectionSection]:
        """Render the whole context: in each block patterns, then reflections and decomposition strategies."""
        if self._learned is not None:
            return self._learned.finish(self._blocks, self.strategies.blocks)
        return put_reflections(self._blocks, "", self.strategies.blocks), ReflectionSection()


def _content(pattern: Pattern) -> tuple[str, ...]:
    """Return the key of duplicates: signature and description, normalized."""
    code = pattern.template_code if pattern.type is PatternType.TEMPLATE else ""
    texts = (pattern.error_type, pattern.error_pattern, pattern.description or pattern.title, code)
    return (pattern.type, *(_NOT_A_WORD.sub(" ", text).strip().lower() for text in texts))
