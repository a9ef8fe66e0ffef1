from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.beta_distribution import beta_probabilities, beta_quantiles
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


def test_the_quantile_of_students_distribution() -> None:
    rows: list[int] = [1, 2, 7, 300, 10_000, 1_000_000]
    for freedom in rows:
        from scipy.special import stdtrit

        assert student_quantile(freedom, 0.95) == pytest.approx(float(stdtrit(freedom, 0.95)), rel=1e-4), freedom


def test_arrays_give_the_same_as_single_values() -> None:
    pairs = [(3, 1), (0, 0), (3, 1), (1, 3), (17, 1)]
    low, high = jeffreys_intervals(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]), 0.9)
    assert [*zip(low.tolist(), high.tolist(), strict=True)] == [jeffreys_interval(a, b, 0.9) for a, b in pairs]


PARAMETER = st.floats(0.01, 10_000)


@given(st.lists(st.tuples(PARAMETER, PARAMETER), max_size=20), st.floats(0, 1))
def test_the_probability_is_the_incomplete_beta_function(pairs: list[tuple[float, float]], threshold: float) -> None:
    from scipy.special import betainc

    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    np.testing.assert_allclose(beta_probabilities(good, bad, threshold)[0], betainc(good, bad, threshold), atol=1e-10)


@given(st.lists(st.tuples(PARAMETER, PARAMETER), max_size=20), st.floats(0, 1))
def test_the_probability_after_one_more_success(pairs: list[tuple[float, float]], threshold: float) -> None:
    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    _, after = beta_probabilities(good, bad, threshold)
    np.testing.assert_allclose(after, beta_probabilities(good + 1.0, bad, threshold)[0], atol=1e-10)


@given(st.lists(st.tuples(st.floats(0.5, 10_000), st.floats(0.5, 10_000)), max_size=20), st.floats(0.001, 0.5))
def test_the_quantile_is_the_inverse_of_the_probability(pairs: list[tuple[float, float]], probability: float) -> None:
    from scipy.special import betaincinv

    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    np.testing.assert_allclose(beta_quantiles(good, bad, probability), betaincinv(good, bad, probability), rtol=1e-9)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 2.0])
def test_all_or_nothing_is_below_a_threshold_at_the_ends(threshold: float) -> None:
    assert beta_probabilities(np.array([0.5]), np.array([8.0]), threshold)[0].tolist() == [float(threshold >= 1.0)]
