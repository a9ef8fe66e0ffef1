"""Both sides of each default threshold of the learning rules."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.settings import AntiPatternSettings, MaturitySettings
from core.learning.inversion_rules import inversion_triggered, invert_text
from core.learning.outcomes import (
    CriterionWeight,
    FeedbackEvent,
    OutcomeSignals,
    criterion_weight,
    score_outcome,
    should_deprecate_criterion,
    verdict_of,
)
from core.learning.states import decayed_value, multiplier, state_of
from core.learning.strategies import extract_strategies
from core.records.patterns import Maturity
from tests.factories import NOW, days_ago

MINUTE_MS = 60_000


def parts(**fields: Any) -> dict[str, float]:
    signals = {"bead_id": "bd-123.1", "success": True, "timestamp": NOW, **fields}
    return score_outcome(OutcomeSignals(**signals), NOW).parts


def feedback(type: str, age: float = 0) -> FeedbackEvent:
    return FeedbackEvent(criterion="type_safe", type=type, timestamp=days_ago(age))


# Implicit Feedback Scoring


@pytest.mark.parametrize(
    ("duration_ms", "value"),
    [
        (0, 1.0),
        (5 * MINUTE_MS - 0.001, 1.0),
        (5 * MINUTE_MS, 0.6),
        (30 * MINUTE_MS, 0.6),
        (30 * MINUTE_MS + 0.001, 0.2),
    ],
)
def test_duration_signals(duration_ms: float, value: float) -> None:
    assert parts(duration_ms=duration_ms)["duration"] == value


@pytest.mark.parametrize(("count", "value"), [(0, 1.0), (1, 0.6), (2, 0.6), (3, 0.2), (100, 0.2)])
def test_error_signals(count: int, value: float) -> None:
    assert parts(error_count=count)["errors"] == value


@pytest.mark.parametrize(("count", "value"), [(0, 1.0), (1, 0.7), (2, 0.3), (100, 0.3)])
def test_retry_signals(count: int, value: float) -> None:
    assert parts(retry_count=count)["retries"] == value


@pytest.mark.parametrize(("success", "value"), [(True, 1.0), (False, 0.0)])
def test_success_signal(success: bool, value: float) -> None:
    assert parts(success=success)["success"] == value


@pytest.mark.parametrize(
    ("success", "minutes", "errors", "retries", "raw", "verdict"),
    [
        (True, 3, 0, 0, 1.0, "helpful"),  # the example of docs/scoring.md
        (True, 12, 0, 1, 0.86, "helpful"),
        (True, 60, 2, 1, 0.7, "helpful"),  # exactly .7
        (True, 12, 3, 1, 0.7, "helpful"),
        (True, 60, 1, 2, 0.62, "neutral"),
        (True, 60, 3, 2, 0.54, "neutral"),  # no success is harmful
        (False, 3, 0, 0, 0.6, "neutral"),  # and no failure helpful
        (False, 12, 1, 1, 0.38, "harmful"),
        (False, 60, 3, 2, 0.14, "harmful"),
    ],
)
def test_weighted_score(success: bool, minutes: int, errors: int, retries: int, raw: float, verdict: str) -> None:
    signals = OutcomeSignals(
        bead_id="bd-123.1",
        success=success,
        timestamp=NOW,
        duration_ms=minutes * MINUTE_MS,
        error_count=errors,
        retry_count=retries,
    )
    outcome = score_outcome(signals, NOW)
    assert outcome.raw == pytest.approx(raw, abs=1e-12)
    assert outcome.verdict == verdict


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        (0.0, "harmful"),
        (0.4, "harmful"),
        (0.1 + 0.3 + 1e-16, "harmful"),
        (0.4001, "neutral"),
        (0.6999, "neutral"),
        (0.7 - 1e-16, "helpful"),
        (0.7, "helpful"),
        (1.0, "helpful"),
    ],
)
def test_verdicts_change_at_their_thresholds(raw: float, verdict: str) -> None:
    assert verdict_of(raw) == verdict


# Confidence Decay


@pytest.mark.parametrize(("day", "weight"), [(0, 1.0), (90, 0.5), (180, 0.25), (270, 0.125)])
def test_decay_timeline(day: int, weight: float) -> None:
    assert decayed_value(days_ago(day), NOW, 90) == weight


@pytest.mark.parametrize(
    ("helpful", "harmful", "weight"), [(0, 1, 0.1), (1, 10, 0.1), (1, 9, 0.1), (1, 8, 1 / 9), (12, 3, 0.8), (1, 0, 1.0)]
)
def test_a_weight_is_never_below_its_minimum(helpful: int, harmful: int, weight: float) -> None:
    events = [feedback("helpful")] * helpful + [feedback("harmful")] * harmful
    assert criterion_weight(events, NOW).weight == pytest.approx(weight)


def test_an_event_updates_the_time_of_validation() -> None:
    weight = criterion_weight([feedback("helpful", 90), feedback("harmful", 90), feedback("helpful", 1)], NOW)
    assert weight.last_validated == days_ago(1)


@pytest.mark.parametrize(
    ("helpful", "harmful", "deprecated"),
    [
        (0, 2, False),  # too few
        (0, 3, True),
        (2, 1, True),
        (3, 1, False),
        (7, 3, False),  # exactly 30 %
        (69, 31, True),
        (12, 3, False),  # the example of docs/scoring.md
    ],
)
def test_when_criteria_get_deprecated(helpful: int, harmful: int, deprecated: bool) -> None:
    weight = CriterionWeight(criterion="type_safe", weight=0.85, helpful_count=helpful, harmful_count=harmful)
    assert should_deprecate_criterion(weight) is deprecated


# Pattern Maturity States


@pytest.mark.parametrize(
    ("helpful", "harmful", "state"),
    [
        (2, 0, Maturity.CANDIDATE),
        (0, 2, Maturity.CANDIDATE),
        (3, 0, Maturity.ESTABLISHED),
        (4, 0, Maturity.ESTABLISHED),
        (5, 0, Maturity.PROVEN),
        (17, 3, Maturity.ESTABLISHED),  # exactly 15 %
        (86, 14, Maturity.PROVEN),
        (7, 3, Maturity.ESTABLISHED),  # exactly 30 %
        (69, 31, Maturity.DEPRECATED),
        (2, 1, Maturity.DEPRECATED),
    ],
)
def test_state_transitions(helpful: float, harmful: float, state: Maturity) -> None:
    assert state_of(helpful, harmful, MaturitySettings()) is state


@pytest.mark.parametrize(
    ("state", "factor"),
    [(Maturity.CANDIDATE, 0.5), (Maturity.ESTABLISHED, 1.0), (Maturity.PROVEN, 1.5), (Maturity.DEPRECATED, 0.0)],
)
def test_multipliers_in_decomposition(state: Maturity, factor: float) -> None:
    assert multiplier(state) == factor


# Anti-Pattern Inversion


@pytest.mark.parametrize(
    ("successes", "failures", "inverts"),
    [(0, 2, False), (0, 3, True), (1, 2, True), (2, 3, True), (41, 59, False), (40, 60, True), (2, 5, True)],
)
def test_inversion_threshold(successes: int, failures: int, inverts: bool) -> None:
    assert bool(inversion_triggered(successes, failures, AntiPatternSettings())) is inverts


@pytest.mark.parametrize(
    ("content", "failures", "total", "text"),
    [
        ("Split by file type", 5, 7, "AVOID: Split by file type. Failed 5/7 times (71% failure rate)"),
        ("Split by file type", 12, 15, "AVOID: Split by file type. Failed 12/15 times (80% failure rate)"),
        ("One file per subtask", 8, 10, "AVOID: One file per subtask. Failed 8/10 times (80% failure rate)"),
    ],
)
def test_inversion_process(content: str, failures: int, total: int, text: str) -> None:
    assert invert_text(content, failures, total, AntiPatternSettings()) == text


def test_pattern_extraction() -> None:
    found = extract_strategies("We'll split by file type, one file per subtask")
    assert found == ["Split by file type", "One file per subtask"]
