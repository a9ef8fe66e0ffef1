from __future__ import annotations

import pytest

from core.base.formatting import format_decimal, format_percent


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
