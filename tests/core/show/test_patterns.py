"""The list of patterns: titles and cells."""

from __future__ import annotations

from core.records.patterns import Pattern, PatternType
from core.show.pages.document import list_words
from core.show.pages.patterns import body
from core.show.patterns import COLUMNS, pattern_cells
from tests.factories import NOW, example_patterns, make_assessment, make_pattern
from tui.kit.looks import DRAWN
from tui.screens.document import document_lines


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


def plain(pattern: Pattern) -> list[str]:
    return [line.plain for line in document_lines(body(pattern), NOW, DRAWN)]


def lines_of(**fields: object) -> list[str]:
    return plain(make_pattern(**fields))  # type: ignore[arg-type]


def test_the_parts_of_a_pattern_have_labels() -> None:
    lines = plain(example_patterns()["pat-anti-premature-optimization-001"])
    assert "Approach: Optimizing code before tests pass or requirements are met" in lines
    assert "Why it fails: Optimization distracts from primary goal and adds complexity" in lines
    assert lines_of(type=PatternType.ANTI, description="Split by file type") == ["Approach: Split by file type"]
    lines = lines_of(type=PatternType.TEMPLATE, description="Wraps a call", use_case="Calls that fail")
    assert lines == ["About: Wraps a call", "Use: Calls that fail"]
    shown = plain(example_patterns()["pat-success-test-generation-001"])
    assert "Iterations: 2.5 on average, 1 to 5" in shown
