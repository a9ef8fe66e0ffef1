"""Errors in the output of commands."""

from __future__ import annotations

import pytest

from core.sources.adapters.command_output import MAX_ERROR, find_error


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("E   AssertionError: 1.0 != 1.1\n1 failed", "AssertionError: 1.0 != 1.1"),
        ("Traceback\n  File x\nshop.money.RoundingError: no quantum\n", "shop.money.RoundingError: no quantum"),
        ("error[E0382]: use of moved value", "error[E0382]: use of moved value"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("nothing\nspecial\n", "special"),
        ("", ""),
    ],
)
def test_the_most_specific_line_is_the_error(output: str, error: str) -> None:
    assert find_error(output) == error


def test_an_error_has_a_limited_length() -> None:
    assert len(find_error("ValueError: " + "x" * 100_000)) == MAX_ERROR
