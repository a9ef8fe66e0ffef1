"""The text of patterns as details."""

from __future__ import annotations

from core.records.patterns import Pattern, PatternType
from core.show.pages.patterns import body
from tests.factories import NOW, example_patterns, make_pattern
from tui.kit.glyphs import DRAWN
from tui.screens.document import document_lines


def plain(pattern: Pattern) -> list[str]:
    return [line.plain for line in document_lines(body(pattern), NOW, DRAWN)]


def lines_of(**fields: object) -> list[str]:
    return plain(make_pattern(**fields))  # type: ignore[arg-type]


def test_anti_pattern_shows_approach_and_reason_separately() -> None:
    lines = plain(example_patterns()["pat-anti-premature-optimization-001"])
    assert "Approach: Optimizing code before tests pass or requirements are met" in lines
    assert "Why it fails: Optimization distracts from primary goal and adds complexity" in lines


def test_anti_pattern_without_a_reason_shows_none() -> None:
    lines = lines_of(type=PatternType.ANTI, description="Split by file type")
    assert lines == ["Approach: Split by file type"]


def test_use_case_and_iterations_are_shown() -> None:
    lines = lines_of(type=PatternType.TEMPLATE, description="Wraps a call", use_case="Calls that fail")
    assert lines == ["About: Wraps a call", "Use: Calls that fail"]
    shown = plain(example_patterns()["pat-success-test-generation-001"])
    assert "Iterations: 2.5 on average, 1 to 5" in shown
