"""Relevance: what counts as something in common, and how much."""

from __future__ import annotations

import pytest

from core.records.patterns import Pattern, PatternType
from core.retrieval.index import PatternIndex
from core.retrieval.relevance import WEIGHTS, relevance
from core.retrieval.task import analyse_task
from tests.core.learning.making import make_pattern


def parts_for(task: str, *patterns: Pattern) -> dict[str, dict[str, float]]:
    found = {pattern.id: pattern for pattern in patterns}
    index = PatternIndex.build(found)
    relevant = relevance(analyse_task(task), index, found)
    return {
        index.ids[row]: relevant.parts_of(place, found[index.ids[row]].type)
        for place, row in enumerate(relevant.rows.tolist())
    }


def parts(task: str, **fields: object) -> dict[str, float]:
    kind = fields.pop("type", PatternType.ERROR)
    pattern = make_pattern("sample", kind, **{"title": "", **fields})  # type: ignore[arg-type]
    return parts_for(task, pattern).get("sample", {})


def test_weights_sum_to_one() -> None:
    assert [sum(weights.values()) for weights in WEIGHTS.values()] == pytest.approx([1.0] * 4)


def test_nothing_in_common_is_not_found() -> None:
    assert parts("Translate the poem", title="Null check", tags=("python",)) == {}


def test_a_common_language_alone_is_not_enough() -> None:
    assert parts("Fix the python importer", title="Null", tags=("rust",)) == {}
    template = parts("Fix main.go in Go", type=PatternType.TEMPLATE, category="go")
    assert template == {}


def test_an_error_is_matched_literally_by_name_or_by_wording() -> None:
    fields = {"error_type": "TypeError", "error_pattern": "Cannot read property '.*' of null"}
    assert parts("Cannot read property 'email' of null", **fields)["error"] == 0.4
    assert parts("a TypeError in login", **fields)["error"] == pytest.approx(0.28)
    assert parts("type errors in login", **fields)["error"] == pytest.approx(0.16)


@pytest.mark.parametrize("source", [".*", "", ".", "[a-z]*", "(?s).+"])
def test_a_regex_that_matches_everything_tells_nothing(source: str) -> None:
    assert parts("Null user", title="null user", error_pattern=source)["error"] == 0.0


def test_a_regex_that_no_engine_should_run_is_harmless() -> None:
    assert parts("null aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", title="null", error_pattern="(a|a)*$(?=x)")["error"] == 0


def test_a_success_pattern_is_found_by_its_own_regex_for_tasks() -> None:
    found = parts(
        "Generate tests for the parser",
        type=PatternType.SUCCESS,
        task_pattern="(?i)(add|write|generate).*tests?",
        category="testing",
    )
    assert (found["task"], found["category"]) == (0.30, 0.25)


def test_the_category_alone_finds_success_and_anti_patterns_only() -> None:
    task = "Refactor the store"
    assert parts(task, type=PatternType.SUCCESS, category="refactoring")
    assert parts(task, type=PatternType.ANTI, category="scope_creep")
    assert not parts("Fix it", type=PatternType.ERROR, category="add_null_check")


def test_two_tags_are_full_marks() -> None:
    task = "Fix null safety in TypeScript validation"
    assert parts(task, tags=("typescript", "null-safety", "x"))["tags"] == 0.10
    assert parts(task, tags=("typescript", "x", "y"))["tags"] == 0.05
    assert parts(task, tags=("validation",))["tags"] == 0.10


def test_rare_words_count_more_than_common_ones() -> None:
    common = [make_pattern(f"c{n}", title="cache") for n in range(20)]
    rare = make_pattern("rare", title="mutex")
    found = parts_for("mutex in the cache", *common, rare)
    assert found["rare"]["words"] > 2 * found["c0"]["words"]


def test_a_long_task_is_not_held_against_a_pattern() -> None:
    words = " ".join(f"filler{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    others = [make_pattern(f"c{n}", title="filleraa") for n in range(3)]
    found = parts_for(f"mutex deadlock {words}", make_pattern("x", title="mutex deadlock"), *others)
    assert found["x"]["words"] > 0.05
