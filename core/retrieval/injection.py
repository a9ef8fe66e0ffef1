"""Selection of patterns for a task and its context (docs/retrieval.md#selection)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.config.settings import InjectionSettings
from core.learning.scoreboard import Scoreboard
from core.records.patterns import Pattern, PatternType
from core.retrieval.decomposition import Strategies
from core.retrieval.embeddings import Closeness
from core.retrieval.index import PatternIndex
from core.retrieval.ranking import LIST_ALL_UP_TO, MAX_LEFT_OUT, ChosenPattern, OmittedPattern, Ranking
from core.retrieval.reflections import ReflectionChoice, ReflectionSection
from core.retrieval.relevance import Relevance, measure_relevance
from core.retrieval.rendering import REFLECTIONS_ONLY, Item, count_tokens, render_context
from core.retrieval.task import TaskProfile
from core.scanning.context_scan import find_combined_harm, find_harm_when_cut

_MAX_TRIED: Final = 40  # patterns over the budget that are skipped for shorter ones with a lower rank
_NOT_A_WORD: Final = re.compile(r"\W+")


class Injection(Struct, frozen=True, kw_only=True):
    """What is injected for a task, and what is left out."""

    profile: TaskProfile
    context: str  # injected text, "" if nothing is injected
    tokens: int  # estimated, see `count_tokens`
    bytes: int
    chosen: tuple[ChosenPattern, ...]  # injected patterns, best first
    left_out: tuple[OmittedPattern, ...]  # omitted patterns, highest score first
    matched_by: Literal["meaning", "words"]  # `meaning` if vectors were compared, else `words`
    reflections: ReflectionSection = ReflectionSection()  # learnings in the context, and those left out


class InjectedContext(NamedTuple):
    """The injected text alone."""

    context: str  # injected text, "" if nothing is injected
    tokens: int  # estimated size, see `count_tokens`
    pattern_ids: tuple[str, ...]  # injected patterns, best first


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
    """Choose and render patterns and learnings for a task.

    `closeness` is the result of `Embeddings.closeness` for the task; None compares patterns by words. `learned` keeps
    its share of the budget. `strategies` are rendered last; the budgets of `settings` and `learned` exclude them.
    """
    found = measure_relevance(profile, index, patterns, closeness)
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
    context, reflections = selection.finish()
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
    """Context of `prepare_injection` alone, many times as fast."""
    selection = _Selection(patterns, board, settings, learned, strategies or Strategies())
    for candidate in Ranking(found, index, patterns, board, settings).candidates():
        if selection.is_full:
            break
        selection.try_add(candidate)
    ids = (*(pattern.id for pattern, _ in selection.items), *selection.strategies.pattern_ids)
    context, _ = selection.finish()
    return InjectedContext(context, count_tokens(context), ids)


@dataclass
class _Selection:
    """Builds the context candidate by candidate."""

    _patterns: Mapping[str, Pattern]
    _board: Scoreboard
    _settings: InjectionSettings
    _learned: ReflectionChoice | None
    _added: Strategies

    def __post_init__(self) -> None:
        settings, learned = self._settings, self._learned
        self._max_tokens = settings.max_tokens - (learned.reserved_tokens if learned is not None else 0)
        room = settings.max_patterns_injected - len(self._added.pattern_ids)
        self._top = max(min(settings.top_k_patterns, room), 0)
        self._originals: dict[tuple[str, ...], str] = {}
        self._too_long = 0
        self.items: list[Item] = []  # added patterns, best first
        self.context = ""  # text of these patterns, "" without any

    @property
    def is_full(self) -> bool:
        """Whether no further candidate can be added."""
        return len(self.items) >= self._top or self._too_long >= _MAX_TRIED

    def try_add(self, candidate: ChosenPattern) -> str:
        """Add the next candidate, or return the reason why it is left out."""
        pattern = self._patterns[candidate.pattern_id]
        original = self._originals.setdefault(_content(pattern), pattern.id)
        if original != pattern.id:
            return f"duplicate of {visible_line(original, 120)}"
        if self.is_full:
            return f"below the top {self._top} ({format_decimal(candidate.score)})"
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
        """Strategies after the patterns; none if the scan stops the combination."""
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

    def finish(self) -> tuple[str, ReflectionSection]:
        """Render the whole context: patterns, reflections, decomposition strategies."""
        context, reflections = self.context, ReflectionSection()
        if self._learned is not None:
            context, reflections = self._learned.finish(self.context, REFLECTIONS_ONLY, self.strategies.text)
        return "\n".join(filter(None, (context, self.strategies.text))), reflections


def _content(pattern: Pattern) -> tuple[str, ...]:
    """Key of duplicates: signature and description without case and punctuation."""
    code = pattern.template_code if pattern.type is PatternType.TEMPLATE else ""
    texts = (pattern.error_type, pattern.error_pattern, pattern.description or pattern.title, code)
    return (pattern.type, *(_NOT_A_WORD.sub(" ", text).strip().lower() for text in texts))
