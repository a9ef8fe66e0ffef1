"""Ranking and selection of patterns for a task (docs/retrieval.md#selection)."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from core.base.formatting import format_percent
from core.base.prompt_text import APPROVED, NO_BLOCKS, UNREVIEWED, Blocks, Voice
from core.base.scanning.verdict import describe_suspicions, find_combined_harm, find_completed_harm, find_harm_when_cut
from core.base.text import visible_line
from core.learning.evidence import find_origin
from core.learning.experiments import Assignment
from core.learning.inversion import (
    MAX_CHARS,
    ObservedPattern,
    format_anti_patterns,
    format_successful_patterns,
    remove_warning_prefix,
)
from core.learning.maturity import INVERSION, Assessment
from core.learning.statistics import jeffreys_interval
from core.records.patterns import DECOMPOSITION_TAG, Maturity, Pattern, PatternType
from core.records.times import day_of
from core.retrieval.reflections import (
    ReflectionChoice,
    ReflectionLeftOut,
    ReflectionSection,
    put_reflections,
    render_reflections,
)
from core.retrieval.relevance import TAG, TYPES, PatternIndex
from core.retrieval.rendering import Item, count_tokens, render_patterns
from core.retrieval.task import TaskProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.base.settings import InjectionSettings
    from core.learning.experiments import Coin
    from core.learning.scoreboard import Scoreboard
    from core.retrieval.embeddings import Floats
    from core.retrieval.relevance import Relevance

NOTHING_IN_COMMON: Final = "nothing in common with the task"  # reason for a pattern that does not resemble it
HELD_OUT: Final = "held out by chance for this task"  # reason of a pattern that the experiment holds out
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

STRATEGY_PART: Final = "decomposition"  # name of the only part of the relevance of strategies
RELEVANCE: Final = 1.0  # relevance of a strategy for a decomposition task; its text is not compared


class ChosenPattern(Struct, frozen=True, kw_only=True):
    """Injected pattern and its score."""

    pattern_id: str
    type: PatternType
    score: float  # relevance x effectiveness x multiplier
    relevance: float  # 0..1, the sum of `parts`
    effectiveness: float  # success rate as shown, 0..1
    multiplier: float  # of the state, and the factor of a removed anchor
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


class Strategies(Struct, frozen=True, kw_only=True):
    """Decomposition sections of one context."""

    blocks: Blocks = NO_BLOCKS  # injected texts
    pattern_ids: tuple[str, ...] = ()  # patterns in the text, best first: warnings, then strategies that worked
    left_out: dict[str, str] = {}  # reasons by pattern ID


NO_STRATEGIES: Final = Strategies()


@dataclass
class Ranking:
    """Ranking of the relevant patterns; arrays have one entry per relevant pattern."""

    relevance: Relevance
    index: PatternIndex
    patterns: Mapping[str, Pattern]
    board: Scoreboard
    settings: InjectionSettings
    stale: Collection[str] = ()  # IDs of patterns with removed anchors, which rank lower

    def __post_init__(self) -> None:
        board, index = self.board, self.index
        rows = self.relevance.rows
        # An index and a board of the same patterns have the same rows, which saves a lookup of every ID.
        if index.ids != board.ids:
            rows = board.rows_of(index.ids[row] for row in rows.tolist())
        self._values = self.relevance.values
        stale = [board.row(id) for id in self.stale if id in board]
        factor = np.where(np.isin(rows, stale), self.settings.stale_factor, 1.0) if stale else 1.0
        self._multiplier = board.multiplier[rows] * factor
        self._uses = board.uses[rows]
        self._rows = rows
        self._score = self._values * board.effectiveness[rows] * self._multiplier
        allowed = np.array([self._is_included(kind) for kind in TYPES])
        self._eligible: NDArray[np.bool_] = (
            allowed[index.types[self.relevance.rows]]
            & board.injectable[rows]
            & (board.effectiveness[rows] >= self.settings.min_success_rate)
            & ~np.isin(self.relevance.rows, find_strategy_rows(index))
            & self.settings.enabled
        )

    def _id(self, place: int) -> str:
        return self.index.ids[int(self.relevance.rows[place])]

    def _is_included(self, kind: PatternType) -> bool:
        return bool(getattr(self.settings, _SWITCHES[kind][1]))

    def _order(self, values: Floats) -> Floats:
        """Compute the sort keys of the patterns from these values of relevance."""
        rate = self.board.interval[0] if self.settings.order == "lower-bound" else self.board.effectiveness
        order: Floats = values * rate[self._rows] * self._multiplier
        return order

    def candidates(self) -> Iterator[ChosenPattern]:
        """Yield injectable patterns, best first; at most `_MAX_RANKED`.

        Regexes that were not tried are matched only of patterns that could be the next one.
        """
        untried = self.relevance.untried
        lowest = self._order(self._values)
        highest = lowest if untried is None else self._order(untried.values)
        places = np.flatnonzero(self._eligible)
        remaining = places[np.argsort(highest[places], kind="stable")].tolist()  # the best one last
        ready: list[tuple[float, tuple[float, int, str], int, float]] = []  # a heap: order, ties, place, relevance
        for _ in range(min(_MAX_RANKED, len(remaining))):
            while remaining and (not ready or highest[remaining[-1]] >= -ready[0][0]):
                place = remaining.pop()
                pattern = self.patterns[self._id(place)]
                order, relevance = lowest, self._values
                if untried is not None and highest[place] > lowest[place] and untried.matches(pattern):
                    order, relevance = highest, untried.values
                heappush(ready, (-float(order[place]), self._tie_break(place, pattern), place, float(relevance[place])))
            _, _, place, value = heappop(ready)
            parts = self.relevance.parts_of(place, self.patterns[self._id(place)].type)
            yield self._scored(self._id(place), int(self._rows[place]), value, parts)

    def _tie_break(self, place: int, pattern: Pattern) -> tuple[float, int, str]:
        """Order equal scores by iterations of a success pattern, then most uses, then ID."""
        average = pattern.average_iterations if pattern.type is PatternType.SUCCESS else None
        iterations = average if average and math.isfinite(average) and average > 0 else math.inf
        return iterations, -int(self._uses[place]), pattern.id

    def chosen_strategy(self, pattern_id: str) -> ChosenPattern:
        """Return a decomposition strategy with its score for a decomposition task."""
        return self._scored(pattern_id, self.board.row(pattern_id), RELEVANCE, {STRATEGY_PART: RELEVANCE})

    def _scored(self, pattern_id: str, row: int, relevance: float, parts: dict[str, float]) -> ChosenPattern:
        board = self.board
        effectiveness, multiplier = float(board.effectiveness[row]), float(board.multiplier[row])
        if pattern_id in self.stale:
            multiplier *= self.settings.stale_factor
        return ChosenPattern(
            pattern_id=pattern_id,
            type=self.patterns[pattern_id].type,
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
        if len(self.patterns) > LIST_ALL_UP_TO:
            places = places[np.argsort(-self._values[places], kind="stable")[:MAX_LEFT_OUT]]
        patterns = [
            OmittedPattern(
                pattern_id=self._id(place),
                reason=self._reason(self._id(place)) or NOTHING_IN_COMMON,
                score=float(self._score[place]),
            )
            for place in sorted(places.tolist(), key=lambda place: (-self._values[place], self._id(place)))
            if self._id(place) not in named
        ]
        if len(self.patterns) <= LIST_ALL_UP_TO:
            named |= {one.pattern_id for one in patterns}
            patterns += (
                OmittedPattern(pattern_id=id, reason=self._reason(id) or NOTHING_IN_COMMON, score=0.0)
                for id in sorted(self.patterns.keys() - named)
            )
        return patterns

    def _reason(self, pattern_id: str) -> str:
        """Return why a pattern is not injected for any task; "" if it may be."""
        pattern, settings = self.patterns[pattern_id], self.settings
        if not settings.enabled:
            return "injection is switched off"
        if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
            return "a decomposition strategy, injected only into decomposition tasks"
        if not self._is_included(pattern.type):
            return f"switched off ({_SWITCHES[pattern.type][0]})"
        if pattern.is_unnamed:
            return "its record has no ID"
        assessment = self.board.assessment(pattern_id)
        if assessment.state is Maturity.DEPRECATED:
            return _deprecated(assessment)
        if assessment.held:
            return f"held until approved: its text {describe_suspicions(self.board.suspicions(pattern_id))}"
        if assessment.blocked:
            return f"in quarantine: its text {describe_suspicions(self.board.suspicions(pattern_id))}"
        if assessment.quarantined:
            return "in quarantine until released"
        if assessment.decided_by == INVERSION:
            return "an inversion is proposed: accept or reject it first"
        if assessment.warning_id:
            return f"{visible_line(assessment.warning_id, 120)} warns of the same fix"
        effectiveness = float(self.board.effectiveness[self.board.row(pattern_id)])
        if effectiveness < settings.min_success_rate:
            return _low_rate(effectiveness if assessment.rate is not None else None, settings)
        return ""


def _low_rate(rate: float | None, settings: InjectionSettings) -> str:
    """Describe a success rate (0..1, None without a result) below the minimum."""
    least = f"(at least {format_percent(settings.min_success_rate)})"
    return f"no result yet {least}" if rate is None else f"low rate {format_percent(rate)} {least}"


def _deprecated(assessment: Assessment) -> str:
    pin = assessment.pin
    if pin is not None and not assessment.pin_stale:
        reason = f": {visible_line(pin.reason, 120)}" if pin.reason else ""
        return f"deprecated: {visible_line(pin.by, 40) or 'you'} pinned it on {day_of(pin.at)}{reason}"
    total = assessment.helpful + assessment.harmful
    return f"deprecated: {format_percent(assessment.harmful / total)} failed, weighed by age"


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
    task: str = ""  # key of the task under which `assigned` is recorded, "" if it is not
    assigned: tuple[Assignment, ...] = ()  # patterns about which the coin decided, best first

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
    task: str = ""  # key of the task under which `assigned` is recorded, "" if it is not
    assigned: tuple[Assignment, ...] = ()  # patterns about which the coin decided, best first


def prepare_injection(
    profile: TaskProfile,
    ranking: Ranking,
    learned: ReflectionChoice | None = None,
    strategies: Strategies = NO_STRATEGIES,
    token: str = "",
    coin: Coin | None = None,
) -> Injection:
    """Choose and render patterns and learnings for a task.

    `learned` chooses the learnings within its share of the budget. `strategies` are rendered last in their blocks.
    `token` is for the fences, "" for a new one. `coin` holds some of the chosen patterns out. No other pattern takes
    their place: which patterns are eligible must not depend on the coin.
    """
    selection = _Selection(ranking, learned, strategies)
    chosen: list[ChosenPattern] = []
    left_out: list[OmittedPattern] = []
    for candidate in ranking.candidates():
        reason = selection.try_add(candidate)
        if reason:
            left_out.append(OmittedPattern(pattern_id=candidate.pattern_id, reason=reason, score=candidate.score))
        else:
            chosen.append(candidate)
    if held_out := selection.hold_out(coin):
        missing = [one for one in chosen if not selection.has(one.pattern_id)]
        left_out += (
            OmittedPattern(
                pattern_id=one.pattern_id,
                reason=HELD_OUT if one.pattern_id in held_out else "does harm together with the others",
                score=one.score,
            )
            for one in missing
        )
        chosen = [one for one in chosen if one not in missing]
    added = selection.strategies
    chosen += (ranking.chosen_strategy(id) for id in added.pattern_ids)
    left_out += (OmittedPattern(pattern_id=id, reason=why, score=0.0) for id, why in added.left_out.items())
    left_out += ranking.omitted({*(one.pattern_id for one in chosen), *(one.pattern_id for one in left_out)})
    if len(ranking.patterns) > LIST_ALL_UP_TO:
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
        matched_by="meaning" if ranking.relevance.has_vectors else "words",
        reflections=reflections,
        task=coin.logged_task if coin is not None else "",
        assigned=selection.assigned,
    )


def prepare_context(
    ranking: Ranking,
    learned: ReflectionChoice | None = None,
    strategies: Strategies = NO_STRATEGIES,
    token: str = "",
    coin: Coin | None = None,
) -> InjectedContext:
    """Return only the context of `prepare_injection`, many times as fast."""
    selection = _Selection(ranking, learned, strategies)
    least = -math.inf
    for candidate in ranking.candidates():
        selection.try_add(candidate)
        if selection.is_full:
            least = _rank_of(candidate, ranking.settings)
            break
    selection.hold_out(coin)
    ids = (*(pattern.id for pattern, _ in selection.items), *selection.strategies.pattern_ids)
    blocks, reflections = selection.finish()
    context = blocks.fenced(blocks.choose_token(token))
    reflection_ids, task = tuple(one.id for one in reflections.chosen), coin.logged_task if coin is not None else ""
    return InjectedContext(context, count_tokens(context), ids, least, reflection_ids, task, selection.assigned)


def best_rank(ranking: Ranking) -> float:
    """Return the rank value of the best injectable pattern, -inf if there is none."""
    best = next(ranking.candidates(), None)
    return -math.inf if best is None else _rank_of(best, ranking.settings)


def _rank_of(candidate: ChosenPattern, settings: InjectionSettings) -> float:
    return candidate.lower_bound if settings.order == "lower-bound" else candidate.score


@dataclass
class _Selection:
    """Context under construction; candidates are added one by one."""

    _ranking: Ranking
    _learned: ReflectionChoice | None
    _added: Strategies

    def __post_init__(self) -> None:
        self._patterns, self._board = self._ranking.patterns, self._ranking.board
        settings = self._settings = self._ranking.settings
        self._reserved = self._learned.reserved_text if self._learned is not None else ""
        room = settings.max_patterns_injected - len(self._added.pattern_ids)
        self._top = max(min(settings.top_k_patterns, room), 0)
        self._originals: dict[tuple[str, ...], str] = {}
        self._advice: dict[str, str] = {}  # IDs of added patterns by what they recommend
        self._warnings: dict[str, str] = {}  # IDs of added warnings by what they warn of
        self._too_long = 0
        self.items: list[Item] = []  # added patterns, best first
        self._blocks = NO_BLOCKS  # texts of these patterns
        self.assigned: tuple[Assignment, ...] = ()
        self._reflections: ReflectionSection | None = None  # those of the whole context, if patterns are held out

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
        if len(self.items) >= self._top:
            return f"limit of {self._top} reached"
        if self.is_full:
            return "over the token budget"
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

    def has(self, pattern_id: str) -> bool:
        return any(pattern.id == pattern_id for pattern, _ in self.items)

    def hold_out(self, coin: Coin | None) -> frozenset[str]:
        """Remove held-out patterns; return their IDs. Call it after the last candidate.

        Learnings of the work in which such a pattern was first found repeat it, so they are removed, too. All other
        learnings stay as they were chosen, because what is eligible must not depend on the coin. If two of the other
        patterns would do harm together without the removed one between them, the second one is left out as well.
        """
        if coin is None:
            return frozenset()
        self.assigned = coin.assign_all(self.items)
        held_out = frozenset(one.pattern_id for one in self.assigned if one.is_held_out)
        if held_out:
            self._reflections = _without_sources(self.finish()[1], (self._patterns[id] for id in held_out))
            before, self.items, self._blocks = self.items, [], NO_BLOCKS
            for item in before:
                more = [*self.items, item]
                longer = render_patterns(more, self._settings)
                orders = self._board.stops_orders(item[0].id)
                if item[0].id not in held_out and not find_combined_harm(
                    longer.fenced(), (one for one, _ in more), orders=orders
                ):
                    self.items, self._blocks = more, longer
        return held_out

    def _find_opposite(self, pattern: Pattern) -> str:
        """Return the added warning of this advice, or advice for this warning, else ""."""
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
        """Render the context: per block patterns, reflections, decomposition strategies."""
        if self._reflections is not None:
            section = render_reflections(self._reflections.chosen, self._settings)
            if not find_completed_harm(section, self._blocks.fenced()):
                return put_reflections(self._blocks, section, self.strategies.blocks), self._reflections
            return put_reflections(self._blocks, "", self.strategies.blocks), ReflectionSection()
        if self._learned is not None:
            return self._learned.finish(self._blocks, self.strategies.blocks)
        return put_reflections(self._blocks, "", self.strategies.blocks), ReflectionSection()


def _without_sources(section: ReflectionSection, patterns: Iterable[Pattern]) -> ReflectionSection:
    """Remove learnings of the work in which these patterns were found first."""
    works = {origin.loop_id for pattern in patterns if (origin := find_origin(pattern)) is not None}
    kept = tuple(one for one in section.chosen if works.isdisjoint(one.sources))
    removed = tuple(
        ReflectionLeftOut(id=one.id, text=one.text, reason=HELD_OUT, score=one.score)
        for one in section.chosen
        if one not in kept
    )
    return ReflectionSection(chosen=kept, left_out=(*removed, *section.left_out))


def _content(pattern: Pattern) -> tuple[str, ...]:
    """Return the key of duplicates: signature and description, normalized."""
    code = pattern.template_code if pattern.type is PatternType.TEMPLATE else ""
    texts = (pattern.error_type, pattern.error_pattern, pattern.description or pattern.title, code)
    return (pattern.type, *(_NOT_A_WORD.sub(" ", text).strip().lower() for text in texts))


def find_strategy_rows(index: PatternIndex) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the rows of decomposition strategies and of warnings about strategies."""
    rows = index.terms.get(TAG, DECOMPOSITION_TAG)
    if rows is None:
        return np.empty(0, np.int32)
    kinds = [code for code, kind in enumerate(PatternType) if kind in (PatternType.SUCCESS, PatternType.ANTI)]
    strategies: np.ndarray[tuple[int], np.dtype[np.int32]] = rows[np.isin(index.types[rows], kinds)]
    return strategies


def choose_strategies(ranking: Ranking) -> Strategies:
    """Choose the best strategies within their budget; at most half are warnings."""
    index, patterns, board, settings = ranking.index, ranking.patterns, ranking.board, ranking.settings
    if not settings.enabled or not settings.include_decomposition:
        return NO_STRATEGIES
    ids = [index.ids[row] for row in find_strategy_rows(index).tolist() if index.ids[row] in board]
    most = max(min(settings.top_k_patterns, settings.max_patterns_injected), 0)
    budget = int(settings.max_tokens * settings.decomposition_share)
    limit = min(settings.max_field_chars, MAX_CHARS)
    left_out: dict[str, str] = {}
    ranked = sorted(ids, key=lambda id: (-float(board.score[board.row(id)]), -board.assessment(id).uses, id))
    chosen: list[Pattern] = []
    blocks = NO_BLOCKS
    # Warnings first: a failure costs more than a success brings.
    for kind, is_on in (
        (PatternType.ANTI, settings.include_anti_patterns),
        (PatternType.SUCCESS, settings.include_success_patterns),
    ):
        quota = -(-most // 2) if kind is PatternType.ANTI else most
        for pattern in (patterns[id] for id in ranked if patterns[id].type is kind):
            reason = "switched off" if not is_on else _why_unfit(pattern, board, settings)
            if not reason and len(chosen) >= quota:
                reason = f"limit of {quota} reached"
            longer = NO_BLOCKS if reason else render_strategies([*chosen, pattern], board, limit)
            orders = board.stops_orders(pattern.id)
            text = longer.fenced()
            # The fences count only towards the budget of the whole context.
            if count_tokens(longer.approved + longer.unreviewed) > budget or count_tokens(text) > settings.max_tokens:
                reason = "over the token budget of decomposition strategies"
            if not reason and (does := find_harm_when_cut(pattern, limit, orders=orders)):
                reason = f"when cut to {limit} characters, it {does}"
            if not reason and (does := find_combined_harm(text, [*chosen, pattern], orders=orders)):
                reason = f"together with the strategies before it, the context {does}"
            if reason:
                left_out[pattern.id] = reason
                continue
            chosen.append(pattern)
            blocks = longer
    return Strategies(blocks=blocks, pattern_ids=tuple(pattern.id for pattern in chosen), left_out=left_out)


def render_strategies(chosen: list[Pattern], board: Scoreboard, limit: int) -> Blocks:
    """Render strategies in two blocks, approved and others.

    Warnings come first in each block. Each text is cut to `limit` characters.
    """
    approved = [pattern for pattern in chosen if board.is_approved(pattern.id)]
    others = [pattern for pattern in chosen if pattern not in approved]
    return Blocks(_render_lines(approved, board, limit), _render_lines(others, board, limit))


def _render_lines(chosen: list[Pattern], board: Scoreboard, limit: int) -> str:
    observed = [
        ObservedPattern(
            id=pattern.id,
            content=visible_line((pattern.description or pattern.title).strip(), limit),
            is_negative=pattern.type is PatternType.ANTI,
            success_count=board.assessment(pattern.id).successes,
            failure_count=board.assessment(pattern.id).failures,
        )
        for pattern in chosen
    ]
    parts = (format_anti_patterns(observed), format_successful_patterns(observed, 0.0))
    return "".join(f"{part}\n" for part in ("\n\n".join(filter(None, parts)),) if part)


def _why_unfit(pattern: Pattern, board: Scoreboard, settings: InjectionSettings) -> str:
    assessment = board.assessment(pattern.id)
    if not assessment.injectable:
        return f"{assessment.shown}, by {assessment.decided_by}"
    if pattern.type is PatternType.ANTI:
        return ""
    if not assessment.successes + assessment.failures:
        return "no result yet"
    rate = assessment.rate or 0.0
    return _low_rate(rate, settings) if rate < settings.min_success_rate else ""
