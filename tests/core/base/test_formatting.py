from __future__ import annotations

import pytest

from core.base.formatting import format_cost, format_count, format_decimal, format_percent


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
