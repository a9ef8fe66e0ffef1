"""Descriptions of fixes."""

from __future__ import annotations

import pytest

from core.questions.extraction.fix_kinds import has_reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Settle the error: Change src/cart.ts", False),
        ("Settle the error", False),
        ("Add the missing import: Change a.py; Change b.py", False),
        ("Handle the error, as the loop did", False),
        ('`npm test` failed with "1 failing" until stock.js changed.', False),
        ("Change " * 5_000, True),
        ("", False),
        ("Change the order of the filters", True),
        ("Handle the error: the gateway closes idle sockets", True),
        ("Add null check before property access", True),
        ("In cart.py: `a` → `b`", True),
    ],
)
def test_a_reason_is_more_than_a_category_and_changed_files(text: str, expected: bool) -> None:
    assert has_reason(text) is expected
