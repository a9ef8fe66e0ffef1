"""Weights of criteria from the feedback on them; docs/scoring.md#criteria."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from core.base.errors import BadInput
from core.base.grouping import group_pairs
from core.base.validation import check_amount, check_count, check_half_life, check_text, format_value
from core.config.settings import LearningSettings
from core.learning.decay import decayed_value, normalize_time, parse_moment
from core.learning.outcomes import Verdict

_DEFAULTS: Final = LearningSettings()


class FeedbackEvent(Struct, frozen=True, kw_only=True):
    """One piece of feedback on one criterion, e.g. `type_safe`.

    `id` is "" until it is stored. `type` is helpful, harmful or neutral; neutral feedback does not change the weight.
    `timestamp` (ISO-8601 or `datetime`) is converted to UTC. `raw_value` is the value without decay, 0..1. `bead_id` is
    the ID of the work item, or "". `context` is an untrusted remark. Raises BadInput for any other value.
    """

    id: str = ""
    criterion: str
    type: str
    timestamp: str | datetime
    raw_value: float = 1.0
    bead_id: str = ""
    context: str = ""

    def __post_init__(self) -> None:
        for field in ("id", "criterion", "bead_id", "context"):
            check_text(getattr(self, field), field)
        if self.type not in tuple(Verdict):
            raise BadInput(f"type must be helpful, harmful or neutral, not {format_value(self.type)}")
        normalize_time(self, "timestamp")
        check_amount(self.raw_value, "raw_value", 1)


class CriterionWeight(Struct, frozen=True, kw_only=True):
    """Weight of a criterion, 0..1; at least `min_criterion_weight` if computed.

    `helpful` and `harmful` are the sums of `raw_value`, decayed with `half_life_days`; the counts are of all such
    events. `last_validated` is the time (UTC) of the newest helpful or harmful event, at most now; None without one.
    `no_data` means that the weight is 1 by default: there is no feedback, or it has decayed to 0. Raises BadInput for a
    weight outside 0..1, a negative count or sum, or a half-life that is not above 0.
    """

    criterion: str
    weight: float
    helpful_count: int
    harmful_count: int
    last_validated: datetime | None = None
    half_life_days: float = _DEFAULTS.half_life_days
    helpful: float = 0.0
    harmful: float = 0.0
    no_data: bool = False

    def __post_init__(self) -> None:
        check_text(self.criterion, "criterion")
        normalize_time(self, "last_validated", optional=True)
        check_amount(self.weight, "weight", 1)
        check_half_life(self.half_life_days)
        for field in ("helpful_count", "harmful_count"):
            check_count(getattr(self, field), field)
        for field in ("helpful", "harmful"):
            check_amount(getattr(self, field), field)


class WeightedScores(Struct, frozen=True, kw_only=True):
    """Scores after weighting, all 0..1.

    `scores` contains score x effective weight for each criterion, and `weights` the effective weights. `total` is the
    weighted mean of the scores; None if all weights are 0.
    """

    scores: dict[str, float]
    weights: dict[str, float]
    total: float | None


def criterion_weight(
    events: Iterable[FeedbackEvent], now: str | datetime, settings: LearningSettings = _DEFAULTS
) -> CriterionWeight:
    """Return the weight of a criterion: the helpful share of decayed feedback.

    `events` must be all feedback on the criterion, in any order. Raises BadInput for events of several criteria.
    """
    today = parse_moment(now, "now")
    names: dict[str, None] = {}
    values: dict[str, list[float]] = {kind: [] for kind in Verdict}
    validated: list[datetime] = []
    for event in events:
        names[event.criterion] = None
        at = parse_moment(event.timestamp, "timestamp")
        values[event.type].append(event.raw_value * decayed_value(at, today, settings.half_life_days))
        if event.type != Verdict.NEUTRAL:
            validated.append(min(at, today))
    if len(names) > 1:
        raise BadInput(f"criterion must be the same in all events, not {' and '.join(map(format_value, [*names][:2]))}")
    # fsum rounds once, so that the order of the events does not matter.
    helpful, harmful = math.fsum(values[Verdict.HELPFUL]), math.fsum(values[Verdict.HARMFUL])
    no_data = not helpful + harmful
    return CriterionWeight(
        criterion=next(iter(names), ""),
        weight=1.0 if no_data else max(settings.min_criterion_weight, helpful / (helpful + harmful)),
        helpful_count=len(values[Verdict.HELPFUL]),
        harmful_count=len(values[Verdict.HARMFUL]),
        last_validated=max(validated, default=None),
        half_life_days=settings.half_life_days,
        helpful=helpful,
        harmful=harmful,
        no_data=no_data,
    )


def criterion_weights(
    events: Iterable[FeedbackEvent], now: str | datetime, settings: LearningSettings = _DEFAULTS
) -> dict[str, CriterionWeight]:
    """Return the weight of each criterion with feedback, by name in sorted order."""
    by_name = group_pairs((event.criterion, event) for event in events)
    return {name: criterion_weight(by_name[name], now, settings) for name in sorted(by_name)}


def should_deprecate_criterion(weight: CriterionWeight, settings: LearningSettings = _DEFAULTS) -> bool:
    """Return whether the harmful share of all feedback, without decay, exceeds the limit."""
    total = weight.helpful_count + weight.harmful_count
    enough = total > 0 and total >= settings.min_feedback_for_adjustment
    return enough and weight.harmful_count / total > settings.max_harmful_ratio + settings.ratio_tolerance


def effective_weight(weight: CriterionWeight, settings: LearningSettings = _DEFAULTS) -> float:
    """Return the weight of a criterion; 0 if the criterion is deprecated."""
    return 0.0 if should_deprecate_criterion(weight, settings) else weight.weight


def apply_weights(
    scores: Mapping[str, float], weights: Mapping[str, CriterionWeight], settings: LearningSettings = _DEFAULTS
) -> WeightedScores:
    """Multiply scores (0..1) by the weights of their criteria, by default 1.

    Raises BadInput for a score outside 0..1, or a weight that is not a `CriterionWeight`.
    """
    for name, weight in weights.items():
        if not isinstance(weight, CriterionWeight):
            raise BadInput(f"weight of {format_value(name)} must be a CriterionWeight, not {format_value(weight)}")
    for name, score in scores.items():
        check_amount(score, f"score of {format_value(name)}", 1)
    effective = {name: effective_weight(weights[name], settings) if name in weights else 1.0 for name in scores}
    weighted = {name: score * effective[name] for name, score in scores.items()}
    total = math.fsum(effective.values())
    mean = math.fsum(weighted.values()) / total if total else None
    return WeightedScores(scores=weighted, weights=effective, total=mean)
