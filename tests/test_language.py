"""The plain-English check finds what it should, and the repository passes it."""

from __future__ import annotations

import pytest

from tests.language import check_markdown, check_python, find_violations


@pytest.mark.slow
def test_the_repository_uses_plain_english() -> None:
    assert find_violations() == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What the file tells."""', "tells"),
        ('TEXT = "by now it is late"', "by now"),
        ("# as it stands here\n", "stands"),
        ("X = f'{a!r} is no time such as 2026-11-15'", "is no time"),
        ("def told() -> None: ...", "told"),
        ("def use(deck: int) -> None: ...", "deck"),
        ('"""The log of an attempt (1) attempt_log."""', "(1)"),
        ('"""Decay, see semantics 3."""', "semantics 3"),
        ('"""One row (formats C14)."""', "formats C1"),
        (f'"""Return {"x" * 73}."""', f"Return {'x' * 33}..."),
    ],
)
def test_banned_words_names_and_references_are_found(source: str, found: str) -> None:
    assert [one.found for one in check_python(source, "core/example.py")] == [found]


@pytest.mark.parametrize(
    "source",
    [
        'RULE = r"(tell|told) me"',
        '"""There is no file; the lock is no longer held."""',
        "def find_patterns() -> None: ...",
        'TEXT = "weighs 0.86 (1 of 3 results)"',
        f'"""Return {"x" * 71}."""',
    ],
)
def test_regular_expressions_and_plain_english_pass(source: str) -> None:
    assert list(check_python(source, "core/example.py")) == []


def test_strings_of_tests_are_data() -> None:
    assert list(check_python('DATA = "nobody told me"', "tests/example.py")) == []


def test_pages_are_checked_for_numbers_without_a_zero() -> None:
    page = "A rate of .86 is high.\n\n```\nx = .86\n```\nUse `.5` in the filter.\n"
    assert [(one.line, one.found) for one in check_markdown(page, "docs/page.md")] == [(1, ".86")]
