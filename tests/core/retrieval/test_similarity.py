"""Similar patterns, and sentences with opposite demands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.retrieval import similarity
from core.retrieval.similarity import Repetition, find_repeated, measure_similarity, parse_demand, split_unspaced
from tests.core.index.test_similarity import FIX, error


def test_the_order_of_words_case_and_marks_make_no_difference() -> None:
    other = error(2, "of null: cannot read property", "before the property is read, add a NULL check")
    assert measure_similarity(error(1), other) == 1


def test_a_text_within_a_longer_one_is_not_the_same() -> None:
    long = f"{FIX}; log what was missing, tell the caller, and write a test that fails without the check"
    assert measure_similarity(error(1), error(2, description=long)) < 0.8


def test_regex_character_classes_are_not_words() -> None:
    assert measure_similarity(error(1, r"line \d+ of \w+"), error(2, "line 12 of main")) < 1
    assert measure_similarity(error(1, r"line \d+"), error(2, r"line \s")) == 1


def test_repeated_words_are_numbered() -> None:
    assert similarity.number_words("a b b b c c") == ["a", "b", "b 2", "b 3", "c", "c 2"]
    assert similarity.number_words("a b") == ["a", "b"]


FILE = ("CLAUDE.md", ["# Rules", "", "- Always pin the seed before you run the tests.", "Use Decimal for money."])


def test_the_same_words_in_another_order_are_a_repetition() -> None:
    found = find_repeated({"pat-1": ["Before you run the tests, always pin the seed"]}, [FILE])
    assert found == {"pat-1": Repetition("CLAUDE.md", 3)}


def test_another_text_does_not_count() -> None:
    assert find_repeated({"pat-1": ["Never round totals in the templates"]}, [FILE]) == {}


def test_texts_of_few_words_are_not_compared() -> None:
    assert find_repeated({"pat-1": ["# Rules"]}, [("CLAUDE.md", ["# Rules"])]) == {}


def test_nothing_is_compared_without_files() -> None:
    assert find_repeated({"pat-1": ["Always pin the seed before you run"]}, []) == {}


def test_different_demands_differ() -> None:
    for one, other in [
        ("Mock the gateway in tests", "Do not mock the gateway in tests"),
        ("Use global state", "Avoid global state"),
        ("The cache must be cleared", "The cache must NOT be cleared"),
        ("Types zuerst ändern", "Types nicht zuerst ändern"),
        ("先に型を更新する", "先に型を更新しない"),
        ("Set the timeout to 30 seconds", "Set the timeout to 300 seconds"),
        ("Increase the pool under load", "Decrease the pool under load"),
        ("Enabling strict mode helps", "Disabling strict mode helps"),
        ("Test with the network", "Test without the network"),
        ("Run the migrations before the tests", "Run the migrations after the tests"),
        ("Use callbacks instead of promises", "Use promises rather than callbacks"),
        ("Update the interface before the code", "Update the code before the interface"),
    ]:
        assert parse_demand(one).differs(parse_demand(other)) and parse_demand(other).differs(parse_demand(one)), (
            one,
            other,
        )


def test_compatible_demands_do_not_differ() -> None:
    for one, other in [
        ("Never mock the gateway", "Don\u2019t mock the gateway"),
        ("Keep handlers free of state", "Avoid state in handlers"),
        ("Lock in order", "Lock in order, so that no worker does not wait"),
        ("Retry 3 times", "Retry with backoff"),
        ("In attempt 2 types came first: 3 type errors", "In attempt 4 types came first: 12 of 14 tests failed"),
        ("Fix src/a1.ts:12 at once", "Fix src/a1.ts:90 at once"),
        ("Run the migrations before the tests", "Run the tests after the migrations"),
        ("When adding properties, update the type before the code", "Update the type before the code for properties"),
        ("Add a lock and remove the retry", "Remove the retry"),
    ]:
        assert not parse_demand(one).differs(parse_demand(other)) and not parse_demand(other).differs(
            parse_demand(one)
        ), (one, other)


def test_text_without_spaces_is_split_into_pairs() -> None:
    assert split_unspaced("a 型定義 b") == "a  型定 定義  b"


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_agrees_with_itself_and_differs_both_ways(one: str, other: str) -> None:
    assert not parse_demand(one).differs(parse_demand(one))
    assert parse_demand(one).differs(parse_demand(other)) == parse_demand(other).differs(parse_demand(one))
