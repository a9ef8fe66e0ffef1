from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc

from core.review.beta import BetaLosses


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_losses_are_the_integrals_under_the_distribution(threshold: float) -> None:
    random = np.random.default_rng(1)
    total, mean = np.exp(random.uniform(np.log(2.0), np.log(300.0), 2000)), random.uniform(0.02, 0.98, 2000)
    good, bad = total * mean, total * (1 - mean)
    told = np.minimum(good, bad) >= 0.3
    good, bad, mean = good[told], bad[told], mean[told]
    below, above, chance = BetaLosses.at(threshold).of(good, bad)
    exact = betainc(good, bad, threshold)
    loss = threshold * exact - mean * betainc(good + 1, bad, threshold)
    np.testing.assert_allclose(chance, exact, atol=0.005)
    np.testing.assert_allclose(below, loss, atol=0.003)
    np.testing.assert_allclose(above, loss + mean - threshold, atol=0.003)


def test_more_evidence_than_the_table_knows_is_as_sure_as_it_gets() -> None:
    below, above, chance = BetaLosses.at(0.6).of(np.array([1e9, 0.0]), np.array([0.0, 1e9]))
    np.testing.assert_allclose(below, [0.0, 0.6], atol=1e-3)
    np.testing.assert_allclose(above, [0.4, 0.0], atol=1e-3)
    np.testing.assert_allclose(chance, [0.0, 1.0], atol=1e-3)
