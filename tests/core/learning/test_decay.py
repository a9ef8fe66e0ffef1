"""Decay of evidence over time, and invalid input."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.learning.decay import decayed_value
from tests.factories import NOW, days_ago

_DAYS = st.floats(0, 5000)


@pytest.mark.parametrize(("age", "left"), [(0, 1.0), (90, 0.5), (180, 0.25), (270, 0.125)])
def test_decay_follows_the_half_life(age: float, left: float) -> None:
    assert decayed_value(days_ago(age), NOW, 90) == pytest.approx(left)
    assert decayed_value(days_ago(age).isoformat(), NOW.isoformat(), 90) == pytest.approx(left)


def test_a_future_time_counts_as_now() -> None:
    assert decayed_value(NOW + timedelta(days=400), NOW, 90) == 1.0


@pytest.mark.parametrize("half_life", [0, -1, float("nan"), float("inf"), "90", None])
def test_an_invalid_half_life_is_named(half_life: float) -> None:
    with pytest.raises(BadInput, match="half_life_days"):
        decayed_value(NOW, NOW, half_life)


def test_an_invalid_time_is_named() -> None:
    with pytest.raises(BadInput, match="timestamp"):
        decayed_value("yesterday or so", NOW, 90)


@given(_DAYS, _DAYS, st.floats(0.01, 1000))
def test_decay_is_monotone_and_never_above_one(one: float, other: float, half_life: float) -> None:
    younger, older = sorted((one, other))
    young, old = (decayed_value(days_ago(age), NOW, half_life) for age in (younger, older))
    assert 0.0 <= old <= young <= 1.0
