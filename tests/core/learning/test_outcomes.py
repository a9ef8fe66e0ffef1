"""Outcomes: the weighted score, its reasoning, and invalid input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.base.formatting import format_decimal
from core.config.settings import LearningSettings
from core.learning.outcomes import OutcomeSignals, Verdict, format_duration_ms, score_outcome, verdict_of
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
