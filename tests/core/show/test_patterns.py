"""The list of patterns: titles and cells."""

from __future__ import annotations

import pytest

from core.documents.pattern_titles import pattern_title, sample_message
from core.records.patterns import PatternType
from core.show.patterns import COLUMNS, pattern_cells
from core.show.table import list_words
from tests.factories import make_assessment, make_pattern


def test_an_error_is_called_by_its_message_not_by_the_expression_for_it() -> None:
    pattern = make_pattern(error_pattern=r'got "str \| None"', error_message='got "str | None"')
    assert list_words(COLUMNS, pattern_cells(pattern, make_assessment()))["what"] == 'got "str | None"'


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


def test_a_row_counts_the_results_that_worked() -> None:
    words = list_words(COLUMNS, pattern_cells(make_pattern(), make_assessment(successes=9, failures=3, uses=14)))
    assert words["worked"] == "9 of 12" and words["followed"] == "14"
    unused = make_assessment(successes=0, failures=0, uses=0, rate=None)
    assert list_words(COLUMNS, pattern_cells(make_pattern(), unused))["worked"] == "—"
