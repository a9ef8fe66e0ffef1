"""Intervals of success rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.statistics import jeffreys_interval, jeffreys_intervals, student_quantile


def test_an_interval_has_the_expected_bounds() -> None:
    from scipy.stats import beta

    expected = (beta.ppf(0.05, 17.5, 1.5), beta.ppf(0.95, 17.5, 1.5))
    assert jeffreys_interval(17, 1, 0.9) == pytest.approx(expected)


def test_intervals_without_successes_or_failures_reach_the_limits() -> None:
    assert jeffreys_interval(0, 0, 0.9) == (0.0, 1.0)
    assert jeffreys_interval(1, 0, 0.9)[1] == 1.0
    assert jeffreys_interval(0, 5, 0.9)[0] == 0.0


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.floats(0.5, 0.99))
def test_the_interval_contains_the_rate(successes: int, failures: int, level: float) -> None:
    low, high = jeffreys_interval(successes, failures, level)
    assert 0.0 <= low <= high <= 1.0
    if successes + failures:
        assert low <= successes / (successes + failures) <= high


@pytest.mark.parametrize(("successes", "failures"), [(9_000, 1_100), (12, 40_000), (10**6, 3)])
def test_an_interval_of_many_results_is_nearly_exact(successes: int, failures: int) -> None:
    from scipy.stats import beta

    expected = beta.ppf([0.05, 0.95], successes + 0.5, failures + 0.5)
    assert jeffreys_interval(successes, failures, 0.9) == pytest.approx(tuple(expected), abs=1e-4)


@pytest.mark.parametrize("freedom", [1, 2, 7, 300, 10_000, 1_000_000])
def test_the_quantile_of_students_distribution(freedom: int) -> None:
    from scipy.special import stdtrit

    assert student_quantile(freedom, 0.95) == pytest.approx(float(stdtrit(freedom, 0.95)), rel=1e-4)


def test_arrays_give_the_same_as_single_values() -> None:
    pairs = [(3, 1), (0, 0), (3, 1), (1, 3), (17, 1)]
    low, high = jeffreys_intervals(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]), 0.9)
    assert [*zip(low.tolist(), high.tolist(), strict=True)] == [jeffreys_interval(a, b, 0.9) for a, b in pairs]
