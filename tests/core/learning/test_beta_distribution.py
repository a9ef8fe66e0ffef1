"""Probabilities and quantiles of Beta distributions equal those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.beta_distribution import beta_probabilities, beta_probability, beta_quantiles

PARAMETER = st.floats(0.01, 10_000)


@given(st.lists(st.tuples(PARAMETER, PARAMETER), max_size=20), st.floats(0, 1))
def test_the_probability_is_the_incomplete_beta_function(pairs: list[tuple[float, float]], threshold: float) -> None:
    from scipy.special import betainc

    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    np.testing.assert_allclose(beta_probability(good, bad, threshold), betainc(good, bad, threshold), atol=1e-10)


@given(st.lists(st.tuples(PARAMETER, PARAMETER), max_size=20), st.floats(0, 1))
def test_the_probability_after_one_more_success(pairs: list[tuple[float, float]], threshold: float) -> None:
    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    _, after = beta_probabilities(good, bad, threshold)
    np.testing.assert_allclose(after, beta_probability(good + 1.0, bad, threshold), atol=1e-10)


@given(st.lists(st.tuples(st.floats(0.5, 10_000), st.floats(0.5, 10_000)), max_size=20), st.floats(0.001, 0.5))
def test_the_quantile_is_the_inverse_of_the_probability(pairs: list[tuple[float, float]], probability: float) -> None:
    from scipy.special import betaincinv

    good, bad = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    np.testing.assert_allclose(beta_quantiles(good, bad, probability), betaincinv(good, bad, probability), rtol=1e-9)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 2.0])
def test_all_or_nothing_is_below_a_threshold_at_the_ends(threshold: float) -> None:
    assert beta_probability(np.array([0.5]), np.array([8.0]), threshold).tolist() == [float(threshold >= 1.0)]
