from __future__ import annotations

from datetime import timedelta

import pytest

from core.base.formatting import (
    format_age,
    format_cost,
    format_count,
    format_decimal,
    format_duration,
    format_percent,
    format_span,
)
from tests.factories import NOW


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.00"), (0.6, "0.60"), (0.145, "0.15"), (0.144, "0.14"), (0.995, "1.00"), (1, "1.00"), (1.35, "1.35")],
)
def test_a_number_has_two_digits_and_a_leading_zero(value: float, text: str) -> None:
    assert format_decimal(value) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0 %"), (0.125, "13 %"), (5 / 7, "71 %"), (0.995, "100 %"), (1, "100 %")]
)
def test_a_percentage_is_whole_and_rounded_half_up(rate: float, text: str) -> None:
    assert format_percent(rate) == text


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0 k"),
        (12_345, "12.3 k"),
        (999_960, "1.0 M"),
        (4_100_000, "4.1 M"),
        (10**17, "many"),
    ],
)
def test_large_counts_are_short(count: int, shown: str) -> None:
    assert format_count(count) == shown


@pytest.mark.parametrize(("dollars", "shown"), [(0.0, "$0.00"), (0.424, "$0.42"), (1250.4, "$1,250")])
def test_costs_are_in_dollars(dollars: float, shown: str) -> None:
    assert format_cost(dollars) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (119, "1 m"),
        (3599, "59 m"),
        (7199, "1 h"),
        (3 * 86400 - 1, "2 d"),
        (366 * 86400, "1.0 y"),
    ],
)
def test_spans_are_rounded_down(seconds: float, shown: str) -> None:
    assert format_span(seconds) == shown


def test_only_short_durations_have_a_fraction() -> None:
    assert [format_duration(seconds) for seconds in (0.42, 9.96, 119)] == ["0.4 s", "9 s", "1 m"]


def test_age_of_past_and_future_moments() -> None:
    assert format_age(None, NOW) == "—"
    assert format_age(NOW - timedelta(hours=5, minutes=59), NOW) == "5 h ago"
    assert format_age(NOW + timedelta(seconds=1.5), NOW) == format_age(NOW + timedelta(seconds=59), NOW) == "now"
    assert format_age(NOW + timedelta(days=3), NOW) == "in 3 d"
