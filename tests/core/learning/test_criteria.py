"""Weights of criteria, deprecation of criteria, and weighted scores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.config.settings import LearningSettings
from core.learning.criteria import (
    CriterionWeight,
    FeedbackEvent,
    apply_weights,
    criterion_weight,
    effective_weight,
    should_deprecate_criterion,
)
from tests.factories import NOW, days_ago


def feedback(type: str, age: float = 0, raw_value: float = 1.0, **fields: Any) -> FeedbackEvent:
    values = {"criterion": "type_safe", "timestamp": days_ago(age), **fields}
    return FeedbackEvent(type=type, raw_value=raw_value, **values)


def counted(helpful: int, harmful: int, weight: float = 0.85) -> CriterionWeight:
    return CriterionWeight(criterion="type_safe", weight=weight, helpful_count=helpful, harmful_count=harmful)


def test_the_weight_is_the_helpful_share_of_decayed_feedback() -> None:
    weight = criterion_weight([feedback("helpful", 90), feedback("harmful", 180), feedback("helpful", 0, 0.5)], NOW)
    assert (weight.helpful, weight.harmful) == pytest.approx((1.0, 0.25))
    assert weight.weight == pytest.approx(0.8)
    assert (weight.helpful_count, weight.harmful_count) == (2, 1)
    assert (weight.criterion, weight.half_life_days, weight.no_data) == ("type_safe", 90, False)


def test_a_weight_never_falls_below_the_floor() -> None:
    assert criterion_weight([feedback("harmful")] * 5, NOW).weight == 0.1
    assert criterion_weight([feedback("harmful")] * 5, NOW, LearningSettings(min_criterion_weight=0.2)).weight == 0.2


@pytest.mark.parametrize(
    "events",
    [
        [],
        [feedback("neutral")],
        [feedback("harmful", raw_value=0)],
        [feedback("helpful", 700_000), feedback("harmful", 700_000)],  # 2^-7778: less than any float
    ],
)
def test_a_criterion_without_feedback_has_weight_one(events: list[FeedbackEvent]) -> None:
    weight = criterion_weight(events, NOW)
    assert (weight.weight, weight.no_data) == (1.0, True)


def test_the_newest_helpful_or_harmful_event_validates_a_criterion() -> None:
    events = [feedback("helpful", 30), feedback("helpful", 10), feedback("neutral", 0)]
    assert criterion_weight(events, NOW).last_validated == days_ago(10)
    assert criterion_weight([*events, feedback("harmful", 1)], NOW).last_validated == days_ago(1)
    assert criterion_weight(events[2:], NOW).last_validated is None


def test_a_future_event_counts_as_now() -> None:
    weight = criterion_weight([feedback("helpful", -400), feedback("harmful", 90)], NOW)
    assert weight.last_validated == NOW
    assert weight.weight == pytest.approx(2 / 3)


def test_events_of_two_criteria_are_refused() -> None:
    with pytest.raises(BadInput, match="criterion must be the same in all events, not 'type_safe' and 'fast'"):
        criterion_weight([feedback("helpful"), feedback("helpful", criterion="fast")], NOW)


def test_a_deprecated_criterion_has_no_effect_and_keeps_its_weight() -> None:
    assert (effective_weight(counted(12, 3)), effective_weight(counted(2, 1))) == (0.85, 0.0)
    assert counted(2, 1).weight == 0.85


def test_deprecation_follows_the_settings() -> None:
    assert should_deprecate_criterion(counted(0, 1), LearningSettings(min_feedback_for_adjustment=1))
    assert not should_deprecate_criterion(counted(0, 0), LearningSettings(min_feedback_for_adjustment=0))
    # .1 + .2 is a little more than .3, and 3 of 10 a little less than that.
    assert not should_deprecate_criterion(counted(7, 3), LearningSettings(max_harmful_ratio=0.3 - 1e-12))


def test_scores_are_weighted_by_criterion() -> None:
    weights = {"a": counted(9, 1, 0.5), "b": counted(0, 5), "unused": counted(1, 0)}
    weighted = apply_weights({"a": 0.8, "b": 1.0, "c": 0.4}, weights)
    assert weighted.weights == {"a": 0.5, "b": 0.0, "c": 1.0}
    assert weighted.scores == {"a": pytest.approx(0.4), "b": 0.0, "c": 0.4}
    assert weighted.total == pytest.approx(0.8 / 1.5)


def test_without_a_weighted_criterion_there_is_no_score() -> None:
    assert apply_weights({"b": 1.0}, {"b": counted(0, 5)}).total is None
    assert apply_weights({}, {}).total is None


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), True])
def test_an_invalid_score_is_named(score: float) -> None:
    with pytest.raises(BadInput, match="score of 'fast' must be a number from 0 to 1, not"):
        apply_weights({"fast": score}, {})


@pytest.mark.parametrize(
    ("field", "value"),
    [("type", "great"), ("type", None), ("timestamp", "soon"), ("raw_value", 1.01), ("raw_value", float("nan"))],
)
def test_invalid_feedback_is_named(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"{field} must be .*, not "):
        feedback(**{"type": "helpful", field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("weight", 1.5), ("helpful_count", -1), ("harmful_count", 0.5), ("half_life_days", 0), ("harmful", float("inf"))],
)
def test_an_invalid_weight_is_named(field: str, value: Any) -> None:
    values = {"criterion": "x", "weight": 0.5, "helpful_count": 1, "harmful_count": 1, field: value}
    with pytest.raises(BadInput, match=f"{field} must be .*, not "):
        CriterionWeight(**values)


_EVENTS = st.lists(
    st.builds(feedback, st.sampled_from(["helpful", "harmful", "neutral"]), st.floats(-30, 3000), st.floats(0, 1)),
    max_size=12,
)


@given(_EVENTS, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(events: list[FeedbackEvent], random: Any) -> None:
    shuffled = random.sample(events, len(events))
    assert criterion_weight(shuffled, NOW) == criterion_weight(events, NOW)


@given(_EVENTS, st.floats(0, 3000), st.floats(0, 1))
def test_one_more_helpful_event_never_lowers_a_weight(
    events: list[FeedbackEvent], age: float, raw_value: float
) -> None:
    before = criterion_weight(events, NOW)
    after = criterion_weight([*events, feedback("helpful", age, raw_value)], NOW)
    assert after.weight >= before.weight - 1e-12
    assert 0.1 <= after.weight <= 1.0
