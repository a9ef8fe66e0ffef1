"""The list of patterns: titles and cells."""

from __future__ import annotations

from core.show.patterns import COLUMNS, pattern_cells
from core.show.table import list_words
from tests.factories import make_assessment, make_pattern


def test_an_error_is_called_by_its_message_not_by_the_expression_for_it() -> None:
    pattern = make_pattern(error_pattern=r'got "str \| None"', error_message='got "str | None"')
    assert list_words(COLUMNS, pattern_cells(pattern, make_assessment()))["what"] == 'got "str | None"'


def test_a_row_shows_whether_a_lesson_is_stale() -> None:
    for is_stale in (True, False):
        cells = pattern_cells(make_pattern(), make_assessment(), is_stale=is_stale)
        assert ("stale" in list_words(COLUMNS, cells)["what"]) is is_stale
        assert (("?", "warning") in cells["flags"]) is is_stale


def test_a_row_counts_the_results_that_worked() -> None:
    words = list_words(COLUMNS, pattern_cells(make_pattern(), make_assessment(successes=9, failures=3, uses=14)))
    assert words["worked"] == "9 of 12" and words["used"] == "14"
    unused = make_assessment(successes=0, failures=0, uses=0, rate=None)
    assert list_words(COLUMNS, pattern_cells(make_pattern(), unused))["worked"] == "—"
