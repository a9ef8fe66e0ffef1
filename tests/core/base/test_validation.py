"""Checks of arguments: each message is one short line with field and value."""

from __future__ import annotations

from typing import Any, Final

import pytest

from core.base.errors import BadInput
from core.base.validation import MAX_COUNT, check_amount, check_count, check_flag, check_text, check_texts, format_value

HUGE: Final = pytest.param(10**5000, id="huge")
"""A number with more digits than Python converts."""


@pytest.mark.parametrize("value", [0, 1, MAX_COUNT])
def test_valid_counts(value: int) -> None:
    check_count(value, "error_count")


@pytest.mark.parametrize("value", [-1, MAX_COUNT + 1, HUGE, 1.0, True, "1", None, float("nan")])
def test_invalid_counts(value: Any) -> None:
    with pytest.raises(BadInput, match="error_count must be a whole number"):
        check_count(value, "error_count")


@pytest.mark.parametrize("value", [0, 0.0, 0.5, 1, 1.0])
def test_valid_amounts(value: float) -> None:
    check_amount(value, "weight", 1)


@pytest.mark.parametrize("value", [-0.01, 1.01, HUGE, float("nan"), float("inf"), True, "1", None])
def test_invalid_amounts(value: Any) -> None:
    with pytest.raises(BadInput, match="weight must be a number from 0 to 1, not"):
        check_amount(value, "weight", 1)
    if value != 1.01:
        with pytest.raises(BadInput, match="age must be a finite number of at least 0, not"):
            check_amount(value, "age")


@pytest.mark.parametrize("value", [0, None, b"x", ["x"]])
def test_invalid_texts(value: Any) -> None:
    with pytest.raises(BadInput, match="content must be a text, not"):
        check_text(value, "content")


@pytest.mark.parametrize("value", [None, "abc", 5, ("a", None), {"a": "b"}])
def test_invalid_lists_of_texts(value: Any) -> None:
    with pytest.raises(BadInput, match="tags must be"):
        check_texts(value, "tags")


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_invalid_flags(value: Any) -> None:
    with pytest.raises(BadInput, match="success must be true or false, not"):
        check_flag(value, "success")


@pytest.mark.parametrize("value", [HUGE, pytest.param("\x1b[31m\n" * 10**6, id="text"), ("\u202e",) * 50, b"\xff" * 50])
def test_format_value_returns_one_short_line(value: object) -> None:
    text = format_value(value)
    assert len(text) <= 80
    assert text.isprintable()
