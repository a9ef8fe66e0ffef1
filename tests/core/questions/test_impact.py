from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from core.base.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.questions.impact import PatternImpacts, beta_losses, net, priority
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot
from tests.bench.queue import TRUTHS, spared
from tests.core.questions.test_queue import used
from tests.factories import CURATION_NOW, make_error_pattern

SETTINGS = Settings()
LATER = CURATION_NOW + timedelta(days=10)


def stakes(**results: str) -> tuple[Scoreboard, PatternImpacts]:
    patterns: dict[str, Pattern] = {name: make_error_pattern(name) for name in results}
    events = [event for name, outcomes in results.items() for event in used(name, outcomes)]
    board = Scoreboard.build(Snapshot(patterns=patterns, events=tuple(events)), LATER, SETTINGS)
    return board, PatternImpacts.of(board, SETTINGS)


@pytest.mark.parametrize("truth", ["most good, few bad", "good or bad", "anything"])
def test_impact_order_prevents_more_failures_than_simple_orders(truth: str) -> None:
    found = {name: values[0] for name, values in spared(TRUTHS[truth], 600, range(3), (20,)).items()}
    ours, hindsight = found.pop("ours"), found.pop("hindsight")
    assert ours >= 1.5 * max(found.values())
    assert ours <= hindsight


def test_impact_grows_with_uses_and_uncertainty() -> None:
    board, found = stakes(sure="+" * 30, unsure="++-+" * 3, often="+++-" * 20, rare="+++-", never="")
    held = {id: found.held[board.row(id)] for id in board.ids}
    assert held["unsure"] > held["sure"]
    assert held["often"] > 0
    assert held["never"] < held["rare"]


def test_impact_depends_on_whether_the_pattern_is_withheld() -> None:
    board, found = stakes(failing="-" * 9 + "+", working="+" * 9 + "-")
    failing, working = board.row("failing"), board.row("working")
    assert found.is_withheld[failing]
    assert not found.is_withheld[working]
    assert found.chance[failing] > 0.9
    assert found.chance[working] < 0.2
    np.testing.assert_allclose(found.held, found.uses * np.where(found.is_withheld, found.above, found.below))


def test_empty_registry_has_a_prior() -> None:
    _, found = stakes(new="")
    assert 0 < found.unjudged[0] < 0.7
    assert 0 < found.unjudged[1] < 0.3


def test_priority_is_zero_if_reading_costs_more() -> None:
    assert net(1.0, 3600.0, SETTINGS) == 0.0
    assert priority(1.0, 7200.0, SETTINGS) == 0.0
    assert 0.0 < priority(0.1, 20.0, SETTINGS) < priority(1.0, 20.0, SETTINGS) < 1.0


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_beta_losses_equal_numerical_integrals(threshold: float) -> None:
    from scipy.integrate import quad
    from scipy.stats import beta

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
