"""Texts of equal words are similar, and lines that repeat a text are found."""

from __future__ import annotations

from core.retrieval import similarity
from core.retrieval.similarity import Repetition, find_repeated, measure_similarity
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
