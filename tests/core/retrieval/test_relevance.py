"""Relevance of patterns for a task."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from core.records.debug_sessions import Failure
from core.records.patterns import Pattern, PatternType
from core.retrieval.embeddings import SAME, UNRELATED
from core.retrieval.index import PatternIndex
from core.retrieval.relevance import (
    RELEVANCE_PARTS,
    SEMANTIC_WEIGHTS,
    WEIGHTS,
    list_places,
    matches_failure,
    measure_relevance,
    occurs_in,
)
from core.retrieval.task import analyse_task
from tests.factories import make_pattern


def parts_for(task: str, *patterns: Pattern, closeness: Sequence[float] | None = None) -> dict[str, dict[str, float]]:
    found = {pattern.id: pattern for pattern in patterns}
    index = PatternIndex.build(found)
    close = None if closeness is None else np.array(closeness, np.float32)
    relevant = measure_relevance(analyse_task(task), index, found, close)
    return {
        index.ids[row]: relevant.parts_of(place, found[index.ids[row]].type)
        for place, row in enumerate(relevant.rows.tolist())
    }


def parts(task: str, **fields: object) -> dict[str, float]:
    kind = fields.pop("type", PatternType.ERROR)
    pattern = make_pattern("sample", kind, **{"title": "", **fields})  # type: ignore[arg-type]
    return parts_for(task, pattern).get("sample", {})


def test_weights_sum_to_one() -> None:
    rows = (*WEIGHTS.values(), *SEMANTIC_WEIGHTS.values())
    assert [sum(weights.values()) for weights in rows] == pytest.approx([1.0] * 8)
    assert {name for weights in rows for name in weights} == set(RELEVANCE_PARTS)


def test_a_vector_finds_a_pattern_without_common_words() -> None:
    lost, other = make_pattern("lost", title="jwt expired"), make_pattern("other", title="jwt expired")
    found = parts_for("People lose their session", lost, other, closeness=[0.5, UNRELATED - 0.01])
    assert found.keys() == {"lost"}
    weight = SEMANTIC_WEIGHTS[PatternType.ERROR]["meaning"]
    assert found["lost"]["meaning"] == pytest.approx(weight * (0.5 - UNRELATED) / (SAME - UNRELATED), abs=1e-4)
    assert sum(found["lost"].values()) == pytest.approx(found["lost"]["meaning"])


def test_a_common_word_finds_no_pattern_of_another_meaning() -> None:
    same, other = make_pattern("same", title="null user"), make_pattern("other", title="null island")
    assert parts_for("null user", same, other, closeness=[0.4, UNRELATED - 0.01]).keys() == {"same"}


def test_the_meaning_part_is_clipped() -> None:
    patterns = [make_pattern(id, title="TypeError null user", error_type="TypeError") for id in ("opposite", "same")]
    found = parts_for("TypeError null user", *patterns, closeness=[-0.9, 1.0])
    weight = SEMANTIC_WEIGHTS[PatternType.ERROR]["meaning"]
    assert [found[id]["meaning"] for id in ("opposite", "same")] == pytest.approx([0.0, weight])


def test_a_pattern_without_a_vector_is_found_by_words() -> None:
    read, unread = make_pattern("read", title="null user"), make_pattern("unread", title="null user")
    found = parts_for("null user", read, unread, closeness=[0.4, math.nan])
    assert found["unread"] == parts_for("null user", read, unread)["unread"]
    assert "meaning" not in found["unread"] and found["read"]["words"] < found["unread"]["words"]


def test_a_literal_error_ranks_before_similar_meaning() -> None:
    quoted = make_pattern("quoted", title="null access", error_pattern="Cannot read property '.*' of null")
    near = make_pattern("near", title="undefined customer")
    found = parts_for("Cannot read property 'email' of null", near, quoted, closeness=[0.6, 0.5])
    assert sum(found["quoted"].values()) > sum(found["near"].values())


def test_unrelated_texts_are_not_found() -> None:
    assert parts("Translate the poem", title="Null check", tags=("python",)) == {}


def test_a_common_language_alone_is_not_enough() -> None:
    assert parts("Fix the python importer", title="Null", tags=("rust",)) == {}
    template = parts("Fix main.go in Go", type=PatternType.TEMPLATE, category="go")
    assert template == {}


def test_an_error_is_matched_by_regex_name_or_words() -> None:
    fields = {"error_type": "TypeError", "error_pattern": "Cannot read property '.*' of null"}
    assert parts("Cannot read property 'email' of null", **fields)["error"] == 0.4
    assert parts("a TypeError in login", **fields)["error"] == pytest.approx(0.28)
    assert parts("type errors in login", **fields)["error"] == pytest.approx(0.16)


@pytest.mark.parametrize("source", [".*", "", ".", "[a-z]*", "(?s).+"])
def test_a_regex_that_matches_everything_does_not_count(source: str) -> None:
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


def test_two_matching_tags_give_the_full_part() -> None:
    task = "Fix null safety in TypeScript validation"
    assert parts(task, tags=("typescript", "null-safety", "x"))["tags"] == 0.10
    assert parts(task, tags=("typescript", "x", "y"))["tags"] == 0.05
    assert parts(task, tags=("validation",))["tags"] == 0.10


def test_rare_words_count_more_than_common_ones() -> None:
    common = [make_pattern(f"c{n}", title="cache") for n in range(20)]
    rare = make_pattern("rare", title="mutex")
    found = parts_for("mutex in the cache", *common, rare)
    assert found["rare"]["words"] > 2 * found["c0"]["words"]


def test_a_long_task_does_not_lower_the_relevance() -> None:
    words = " ".join(f"filler{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    others = [make_pattern(f"c{n}", title="filleraa") for n in range(3)]
    found = parts_for(f"mutex deadlock {words}", make_pattern("x", title="mutex deadlock"), *others)
    assert found["x"]["words"] > 0.05


def test_the_relevance_without_parts_is_the_same() -> None:
    patterns = {id: make_pattern(id, title="jwt expired") for id in ("one", "other")}
    whole = measure_relevance(analyse_task("the jwt expired"), PatternIndex.build(patterns), patterns)
    lean = whole.without_parts()
    assert whole.parts_of(0, PatternType.ERROR) and not lean.parts_of(0, PatternType.ERROR)
    assert lean.values.tolist() == whole.values.tolist()
    assert lean.only(whole.rows[:1]).values.tolist() == whole.only(whole.rows[:1]).values.tolist()


FAILED = Failure(
    message="assert 3 == 4",
    error_type="AssertionError",
    test_name="tests/test_cart.py::test_total[2-3]",
    test_file="tests/test_cart.py",
    file="cart.py",
    function="total",
)


def pattern(regex: str, *places: str) -> Pattern:
    return Pattern(id="pat-error-x-001", type=PatternType.ERROR, title="x", error_pattern=regex, places=places)


def test_the_places_of_a_failure_are_its_test_its_function_and_its_files() -> None:
    assert list_places(FAILED) == (
        *("tests/test_cart.py::test_total", "cart.py::total"),
        *("cart.py", "tests/test_cart.py"),
    )
    assert list_places(Failure(message="x")) == ()


@pytest.mark.parametrize(
    ("regex", "places", "expected"),
    [
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_total",), True),
        (r"AssertionError: assert \d+ == \d+", ("cart.py::total",), True),
        (r"assert \d+ == \d+", ("/copy/of/project/tests/test_cart.py::test_total",), True),
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_other",), False),
        (r"assert \d+ == \d+", ("tests/test_user.py::test_total",), False),
        (r"assert \d+ == \d+", ("art.py",), False),
        (r"assert \d+ == \d+", (), True),
        (r"assert \d+ != \d+", (), False),
        ("", ("cart.py",), False),
    ],
)
def test_a_trigger_applies_in_its_places(regex: str, places: tuple[str, ...], expected: bool) -> None:
    assert matches_failure(pattern(regex, *places), FAILED) is expected


def test_a_text_names_a_place_with_its_file_and_its_name() -> None:
    places = ["tests/test_cart.py::test_total"]
    assert occurs_in(places, "test_total in test_cart.py fails")
    assert not occurs_in(places, "test_total fails")
    assert not occurs_in([], "test_total in test_cart.py fails")


@pytest.mark.parametrize(("message", "expected"), [("assert 3 == 4", True), ("assert 3 == 5", False)])
def test_a_failure_of_unknown_place_needs_the_same_message(message: str, expected: bool) -> None:
    trigger = replace(pattern(r"assert \d+ == \d+", "cart.py"), error_message="AssertionError: assert 3 == 4")
    assert matches_failure(trigger, Failure(message=message)) is expected
