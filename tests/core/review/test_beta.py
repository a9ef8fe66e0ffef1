"""Expected losses under Beta distributions, compared with numerical integrals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from core.review.beta import beta_losses


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_losses_are_the_integrals_under_the_distribution(threshold: float) -> None:
    good, bad = np.array([1.5, 4.0, 30.0, 4.0]), np.array([2.0, 0.7, 12.0, 0.7])
    below, above, chance = beta_losses(good, bad, threshold)
    for row, (a, b) in enumerate(zip(good, bad, strict=True)):
        density = beta(a, b).pdf
        assert chance[row] == pytest.approx(quad(density, 0.0, threshold)[0])
        assert below[row] == pytest.approx(quad(lambda p, f=density: (threshold - p) * f(p), 0.0, threshold)[0])
        assert above[row] == pytest.approx(quad(lambda p, f=density: (p - threshold) * f(p), threshold, 1.0)[0])


def test_more_results_than_the_maximum_do_not_make_a_rate_more_certain() -> None:
    capped = beta_losses(np.array([6e8]), np.array([4e8]), 0.6)
    most = beta_losses(np.array([180.0]), np.array([120.0]), 0.6)
    np.testing.assert_allclose(capped, most)
