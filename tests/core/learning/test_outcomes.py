"""Outcomes, weights of criteria, their reasoning, and invalid input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.base.formatting import format_decimal
from core.base.settings import LearningSettings
from core.learning.outcomes import (
    CriterionWeight,
    FeedbackEvent,
    OutcomeSignals,
    Verdict,
    apply_weights,
    criterion_weight,
    effective_weight,
    format_duration_ms,
    score_outcome,
    should_deprecate_criterion,
    verdict_of,
)
from tests.factories import NOW, days_ago

MINUTE_MS = 60_000


def signals(**fields: Any) -> OutcomeSignals:
    """Signals of a success in 12 minutes without errors and retries, by default."""
    values = {"duration_ms": 12 * MINUTE_MS, "error_count": 0, "retry_count": 0, "success": True, "timestamp": NOW}
    return OutcomeSignals(bead_id="bd-123.1", **{**values, **fields})


def test_the_parts_are_in_a_fixed_order() -> None:
    outcome = score_outcome(signals(retry_count=1), NOW)
    assert list(outcome.parts.items()) == [("success", 1.0), ("duration", 0.6), ("errors", 1.0), ("retries", 0.7)]
    assert outcome.raw == pytest.approx(0.86)
    assert outcome.verdict is Verdict.HELPFUL


def test_age_lowers_the_score_and_leaves_the_verdict() -> None:
    outcome = score_outcome(signals(timestamp=days_ago(90).isoformat()), NOW.isoformat())
    assert (outcome.decay, outcome.decayed) == pytest.approx((0.5, 0.46))
    assert outcome.verdict is Verdict.HELPFUL
    assert score_outcome(signals(timestamp=days_ago(-400)), NOW).decay == 1.0


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"retry_count": 1}, "helpful, 0.86: success 1.00, 12 min 0.60, no errors 1.00, 1 retry 0.70"),
        (
            {"success": False, "duration_ms": 62 * MINUTE_MS, "error_count": 4, "retry_count": 3},
            "harmful, 0.14: failure 0.00, 62 min 0.20, 4 errors 0.20, 3 retries 0.30",
        ),
        (
            {"success": False, "duration_ms": 850, "error_count": 1},
            "neutral, 0.52: failure 0.00, 850 ms 1.00, 1 error 0.60, no retries 1.00",
        ),
        (
            {"success": False, "partial": True, "duration_ms": 62 * MINUTE_MS},
            "neutral, 0.64: partial success 0.50, 62 min 0.20, no errors 1.00, no retries 1.00",
        ),
        (
            {"duration_ms": None, "error_count": None, "retry_count": None},
            "helpful, 0.78: success 1.00, duration, errors and retries not known",
        ),
        (
            {"error_count": None, "retry_count": None},
            "helpful, 0.78: success 1.00, 12 min 0.60, errors and retries not known",
        ),
    ],
)
def test_the_reasoning_lists_each_part_with_its_value(fields: dict[str, Any], reasoning: str) -> None:
    assert score_outcome(signals(**fields), NOW).reasoning == reasoning


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (5 * MINUTE_MS - 0.001, "4 min 1.00"),
        (5 * MINUTE_MS, "5 min 0.60"),
        (30 * MINUTE_MS, "30 min 0.60"),
        (30 * MINUTE_MS + 0.001, "over 30 min 0.20"),
        (31 * MINUTE_MS, "31 min 0.20"),
    ],
)
def test_the_words_for_a_duration_fit_its_value(duration_ms: float, words: str) -> None:
    assert f", {words}, " in score_outcome(signals(duration_ms=duration_ms), NOW).reasoning


def test_the_duration_text_fits_any_threshold() -> None:
    tuned = LearningSettings(fast_completion_threshold_ms=270_000)
    assert ", 4 min 1.00, " in score_outcome(signals(duration_ms=260_000), NOW, tuned).reasoning
    assert ", over 4 min 0.60, " in score_outcome(signals(duration_ms=280_000), NOW, tuned).reasoning


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"),
        (0.4, "0 ms"),
        (850, "850 ms"),
        (999.9, "999 ms"),
        (1000, "1 s"),
        (45_000, "45 s"),
        (59_999, "59 s"),
        (MINUTE_MS, "1 min"),
        (119 * MINUTE_MS, "119 min"),
        (120 * MINUTE_MS, "2 h"),
        (125 * MINUTE_MS, "2 h 5 min"),
        (48 * 60 * MINUTE_MS, "2 d"),
        (76 * 60 * MINUTE_MS, "3 d 4 h"),
        (1e15, "11,574,074 d 1 h"),
    ],
)
def test_durations_are_formatted(duration_ms: float, text: str) -> None:
    assert format_duration_ms(duration_ms) == text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("duration_ms", float("nan")),
        ("duration_ms", float("inf")),
        ("duration_ms", -1),
        ("duration_ms", True),
        ("error_count", -1),
        ("error_count", True),
        ("error_count", 1.5),
        ("retry_count", -1),
        ("retry_count", "2"),
        ("timestamp", "yesterday"),
        ("timestamp", None),
        ("success", 1),
    ],
)
def test_invalid_signals_are_named(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=rf"{field} must be .*, not "):
        signals(**{field: value})


def test_weights_count_relative_to_their_sum() -> None:
    doubled = LearningSettings(success_weight=0.8, duration_weight=0.4, errors_weight=0.4, retries_weight=0.4)
    assert score_outcome(signals(), NOW, doubled).raw == pytest.approx(score_outcome(signals(), NOW).raw)


_DURATIONS = st.floats(0, 1e10)
_COUNTS = st.integers(0, 10)


@given(st.booleans(), st.none() | _DURATIONS, st.none() | _COUNTS, st.none() | _COUNTS)
def test_the_score_is_a_share_and_the_verdict_agrees_with_it(
    success: bool, duration: float | None, errors: int | None, retries: int | None
) -> None:
    values = signals(success=success, duration_ms=duration, error_count=errors, retry_count=retries)
    outcome = score_outcome(values, NOW)
    assert 0.0 <= outcome.decayed <= outcome.raw <= 1.0
    assert all(0.0 <= value <= 1.0 for value in outcome.parts.values())
    assert outcome.verdict is verdict_of(outcome.raw)
    assert outcome.reasoning.startswith(f"{outcome.verdict}, {format_decimal(outcome.raw)}: ")


@given(st.booleans(), *([st.tuples(_DURATIONS, _DURATIONS)] + [st.tuples(_COUNTS, _COUNTS)] * 2))
def test_more_trouble_never_raises_the_score(
    success: bool, durations: tuple[float, float], errors: tuple[int, int], retries: tuple[int, int]
) -> None:
    better, worse = (
        score_outcome(signals(success=success, duration_ms=a, error_count=b, retry_count=c), NOW).raw
        for a, b, c in zip(sorted(durations), sorted(errors), sorted(retries), strict=True)
    )
    assert worse <= better


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
