"""Maturity: the documents' thresholds from both sides, and dates that hold."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.maturity import (
    STATES,
    decayed_counts,
    maturity_state,
    multiplier,
    next_change,
    state_codes,
    state_of,
)
from core.records.events import Observation
from core.records.patterns import Maturity
from core.settings import MaturitySettings
from tests.core.learning.making import NOW, days_ago

DEFAULT = MaturitySettings()


@pytest.mark.parametrize(
    ("helpful", "harmful", "state"),
    [
        (0, 0, Maturity.CANDIDATE),
        (2.98, 0, Maturity.CANDIDATE),
        (2.995, 0, Maturity.ESTABLISHED),  # the tolerance of totals
        (3, 0, Maturity.ESTABLISHED),
        (0, 2.98, Maturity.CANDIDATE),
        (0, 3, Maturity.DEPRECATED),
        (7, 3, Maturity.ESTABLISHED),  # exactly 30 %
        (7, 3.01, Maturity.DEPRECATED),
        (4.98, 0, Maturity.ESTABLISHED),
        (4.995, 0, Maturity.PROVEN),
        (17, 3, Maturity.ESTABLISHED),  # exactly 15 %
        (17, 2.99, Maturity.PROVEN),
        (0.85 * 18, 0.15 * 18, Maturity.ESTABLISHED),  # 15 % up to rounding
        (11, 1, Maturity.PROVEN),
    ],
)
def test_the_documents_thresholds(helpful: float, harmful: float, state: Maturity) -> None:
    assert state_of(helpful, harmful, DEFAULT) is state


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.floats(0, 40), st.floats(0, 40)), min_size=1, max_size=20))
def test_many_at_once_are_the_same_as_one_by_one(sums: list[tuple[float, float]]) -> None:
    helpful, harmful = (np.array(column) for column in zip(*sums, strict=True))
    codes = state_codes(helpful, harmful, DEFAULT)
    assert [STATES[code] for code in codes] == [state_of(good, bad, DEFAULT) for good, bad in sums]


def test_multipliers() -> None:
    assert [multiplier(state) for state in STATES] == [0.5, 1.0, 1.5, 0.0]
    assert multiplier(Maturity.PROVEN, MaturitySettings(multiplier_proven=2.0)) == 2.0


def seen(age: float | None, success: bool | None, count: int = 1, weight: float = 1.0) -> Observation:
    at = None if age is None else days_ago(age)
    return Observation(
        pattern_id="p", kind="applied", source="loop", at=at, success=success, count=count, weight=weight
    )


def test_counts_decay_and_uses_without_a_result_do_not_count() -> None:
    events = [seen(90, True, 4), seen(0, True, 1, 0.5), seen(180, False, 8), seen(None, False), seen(0, None, 9)]
    assert decayed_counts(events, NOW, DEFAULT) == pytest.approx((2.5, 3.0))


_SEEN = st.builds(seen, st.none() | st.floats(-30, 400), st.sampled_from([True, False, None]), st.integers(1, 8))


@settings(deadline=None, max_examples=200)
@given(st.lists(_SEEN, max_size=8))
def test_the_calendar_holds_when_the_clock_is_moved_there(events: list[Observation]) -> None:
    change = next_change(events, NOW, DEFAULT)
    before = maturity_state(events, NOW, DEFAULT)
    if change is None:
        for days in (1, 30, 365, 3650):
            assert maturity_state(events, NOW + timedelta(days=days), DEFAULT) is before
    else:
        at, state = change
        assert state is not before and at > NOW
        assert maturity_state(events, at, DEFAULT) is state
        if at - NOW > timedelta(seconds=4):
            for share in (0.25, 0.5, 0.999):
                assert maturity_state(events, NOW + (at - NOW) * share - timedelta(seconds=2), DEFAULT) is before


@settings(deadline=None, max_examples=100)
@given(st.lists(_SEEN, max_size=8))
def test_one_more_success_never_raises_the_harmful_ratio(events: list[Observation]) -> None:
    def ratio(all_events: list[Observation]) -> float:
        helpful, harmful = decayed_counts(all_events, NOW, DEFAULT)
        return harmful / (helpful + harmful) if helpful + harmful else 0.0

    assert ratio([*events, seen(0, True)]) <= ratio(events) + 1e-12


def test_a_half_life_of_ages_never_overflows() -> None:
    assert next_change([seen(0, True, 4)], NOW, MaturitySettings(half_life_days=1e12)) is None
