"""The calendar: dates that hold when the clock is moved there."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.config.settings import MaturitySettings
from core.learning.reference.maturity import MaturityFeedback, maturity_state
from core.learning.states import change_within, decayed_counts, next_change, state_calendar
from core.records.events import Observation
from core.records.patterns import Maturity
from tests.factories import NOW, days_ago

DEFAULT = MaturitySettings()
SECOND = timedelta(seconds=1)


def seen(at: datetime | None, success: bool | None, count: int = 1, weight: float = 1.0) -> Observation:
    return Observation(
        pattern_id="p", kind="applied", source="loop", at=at, success=success, count=count, weight=weight
    )


_AT = st.none() | st.floats(-200, 400).map(days_ago) | st.floats(-5, 5).map(lambda s: NOW + timedelta(seconds=s))
_SEEN = st.builds(seen, _AT, st.sampled_from([True, False, None]), st.integers(1, 12), st.sampled_from([1.0, 0.5, 0.1]))


@settings(deadline=None, max_examples=100)
@given(st.lists(_SEEN, max_size=8), st.sampled_from([0.001, 1.0, 90.0, 36_500.0]))
def test_the_state_changes_exactly_at_the_predicted_times(events: list[Observation], half_life: float) -> None:
    limits = MaturitySettings(half_life_days=half_life)
    calendar = state_calendar(events, NOW, limits)
    state = maturity_state(events, NOW, limits)
    moment = NOW
    for at, new in calendar:
        assert new is not state and at > moment
        assert maturity_state(events, at - SECOND, limits) is state
        for share in range(1, 8):  # nothing happens in between
            between = moment + share / 8 * (at - SECOND - moment)
            assert maturity_state(events, between, limits) is state
        assert maturity_state(events, at, limits) is new
        moment, state = at, new
    for days in (0, 1, 30, 365, 36_500):
        assert maturity_state(events, moment + timedelta(days=days), limits) is state
    assert next_change(events, NOW, limits) == (calendar[0] if calendar else None)


def test_a_proven_pattern_fades_step_by_step() -> None:
    calendar = state_calendar([seen(NOW, True, 10)], "2026-02-03T00:00:00Z")
    assert [state for _, state in calendar] == [Maturity.ESTABLISHED, Maturity.CANDIDATE]
    days = [(at - NOW) / timedelta(days=1) for at, _ in calendar]
    assert days == pytest.approx([90.26, 156.76], abs=0.01)  # 90 * log2(10 / 4.99), 90 * log2(10 / 2.99)


def test_undated_uses_do_not_decay() -> None:
    events = [seen(NOW, True, 20), seen(None, False, 2), seen(None, True, 2)]
    assert [state for _, state in state_calendar(events, NOW)] == [Maturity.ESTABLISHED, Maturity.DEPRECATED]


def test_feedback_has_a_calendar_too() -> None:
    events = [MaturityFeedback(pattern_id="p", type="helpful", timestamp="2026-02-03T00:00:00Z")] * 4
    assert [state for _, state in state_calendar(events, NOW)] == [Maturity.CANDIDATE]


@settings(deadline=None, max_examples=100)
@given(st.lists(_SEEN, max_size=6))
def test_the_calendar_of_sums_equals_that_of_events(events: list[Observation]) -> None:
    dated = [event for event in events if event.at is not None and event.at <= NOW]
    undated = [event for event in events if event.at is None]
    state = maturity_state(dated + undated, NOW, DEFAULT)
    sums = decayed_counts(dated, NOW, DEFAULT), decayed_counts(undated, NOW, DEFAULT)
    assert change_within(state, *sums, NOW, DEFAULT) == next_change(dated + undated, NOW)


@pytest.mark.parametrize("fixed", [0.0, *(tenths / 10 + 0.0001 for tenths in range(1, 29))])
def test_a_sum_at_its_threshold_falls_below_it_within_a_second(fixed: float) -> None:
    least = DEFAULT.min_feedback - DEFAULT.total_tolerance
    moving = least - fixed
    while moving + fixed < least:
        moving = nextafter(moving, 9)
    found = change_within(Maturity.ESTABLISHED, (moving, 0.0), (fixed, 0.0), NOW)
    assert found == (NOW + SECOND, Maturity.CANDIDATE)


def test_a_half_life_of_ages_never_overflows() -> None:
    for half_life in (1e12, 1e300):
        assert state_calendar([seen(NOW, True, 4)], NOW, MaturitySettings(half_life_days=half_life)) == ()


def test_a_missing_half_life_is_refused() -> None:
    with pytest.raises(BadInput, match="half_life_days"):
        next_change([], NOW, MaturitySettings(half_life_days=0))
