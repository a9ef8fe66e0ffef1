"""Titles of patterns."""

from __future__ import annotations

import pytest

from core.base.pattern_titles import name_apart, pattern_title, sample_message
from core.records.patterns import PatternType
from tests.factories import make_pattern


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Global state", "Avoid: Global state"),
        ("Avoid global state", "Avoid global state"),
        ("NEVER use global state", "NEVER use global state"),
        ("Do not use global state", "Do not use global state"),
        ("Neverending retries", "Avoid: Neverending retries"),
    ],
)
def test_the_title_of_an_anti_pattern_is_a_warning(title: str, shown: str) -> None:
    assert pattern_title(make_pattern(type=PatternType.ANTI, title=title)) == shown
    assert pattern_title(make_pattern(type=PatternType.SUCCESS, title=title)) == title


@pytest.mark.parametrize(
    ("expression", "sample"),
    [
        (r"Cannot read propert(y|ies) .* of (null|undefined)", "Cannot read property … of null"),
        (r"Field required \[type=missing, .*\]", "Field required [type=missing, …]"),
        (r"Exceeded timeout of \d+ ?ms for a test", "Exceeded timeout of … ms for a test"),
        (r"^jwt (?:expired|not active)$", "jwt expired"),
        (r"index [0-9]{1,3} .+ .+ out of range", "index … out of range"),
    ],
)
def test_a_sample_message_is_what_the_expression_matches(expression: str, sample: str) -> None:
    assert sample_message(expression) == sample


@pytest.mark.parametrize(
    "expression", ["(?i)error|timeout", "a(b", "x[", "a)b", ".*", r"\d+", "(" * 300, "(" * 20, "a" * 301, ""]
)
def test_an_expression_without_one_readable_message_has_no_sample(expression: str) -> None:
    assert sample_message(expression) == ""
    pattern = make_pattern(type=PatternType.ERROR, title="Other: import cycle", error_pattern=expression)
    assert pattern_title(pattern) == "import cycle"


def test_rows_with_the_same_name_have_their_id() -> None:
    assert name_apart([("a", "Null user"), ("b", "Null user"), ("c", "Typo")]) == {
        "a": "Null user (a)",
        "b": "Null user (b)",
        "c": "Typo",
    }
