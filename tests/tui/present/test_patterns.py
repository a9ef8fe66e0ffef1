"""Patterns as paragraphs, part by part."""

from __future__ import annotations

from core.records.patterns import PatternType
from tests.core.learning.making import example_patterns, make_pattern
from tui.present import patterns


def lines_of(**fields: object) -> list[str]:
    return [line.plain for line in patterns.body(make_pattern(**fields))]  # type: ignore[arg-type]


def test_an_anti_pattern_shows_its_approach_and_why_it_fails_apart() -> None:
    lines = [line.plain for line in patterns.body(example_patterns()["pat-anti-premature-optimization-001"])]
    assert "Approach: Optimizing code before tests pass or requirements are met" in lines
    assert "Why it fails: Optimization distracts from primary goal and adds complexity" in lines


def test_an_anti_pattern_without_a_reason_claims_none() -> None:
    lines = lines_of(type=PatternType.ANTI, description="Split by file type")
    assert lines == ["Approach: Split by file type"]


def test_the_use_case_and_the_iterations_of_a_pattern_are_shown() -> None:
    lines = lines_of(type=PatternType.TEMPLATE, description="Wraps a call", use_case="Calls that fail")
    assert lines == ["About: Wraps a call", "Use: Calls that fail"]
    shown = [line.plain for line in patterns.body(example_patterns()["pat-success-test-generation-001"])]
    assert "Iterations: 2.5 on average, 1 to 5" in shown
    assert "  - ralph-add-auth-tests-c3d4e5f6: took 3 iterations" in shown
    anti = [line.plain for line in patterns.body(example_patterns()["pat-anti-premature-optimization-001"])]
    assert "  - ralph-optimize-early-e5f6a7b8: failed in iteration 12" in anti
